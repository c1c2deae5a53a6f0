"""Changes of the graph that a SHACL shape notices in roundabout ways."""

from collections.abc import Iterable
from typing import Any

import orjson
from pyoxigraph import Literal, NamedNode, Quad, Triple

from graphdb.config.limits import GateLimits
from graphdb.search.following.graph_settings import read_shape
from tests.support.followed_graphs import EX, RDF_TYPE, FollowedStore
from tests.support.shacl_shapes import Property, Shapes, Step, Targets, shape_quads, turtle_of

WORKS = Targets(classes=("Work",))


def quad(subject: str, predicate: str, value: Any) -> Quad:
    named = NamedNode(EX + value) if isinstance(value, str) else value
    return Quad(NamedNode(EX + subject), NamedNode(EX + predicate), named)


IS_WORK = Quad(NamedNode(f"{EX}a"), RDF_TYPE, NamedNode(f"{EX}Work"))


def followed(value: dict[str, str], quads: Iterable[Quad]) -> FollowedStore:
    return FollowedStore(read_shape({"shape": value}, GateLimits()), quads)


def document(store: FollowedStore) -> Any:
    return orjson.loads(store.documents[f"{EX}a"])


def test_a_path_that_goes_through_a_literal() -> None:
    for literal in (Literal("x"), Literal('"\\\n', language="de"), Literal("long" * 1000), Literal(7)):
        path = (Step("name"), Step("name", inverse=True))
        shapes = Shapes(WORKS, ((Property(path, "same name"),),))
        store = followed({"shacl": turtle_of(shapes)}, [IS_WORK, quad("a", "name", literal)])
        assert document(store)["same name"] == f"{EX}a"
        store.change([], [quad("b", "name", literal)])
        assert document(store)["same name"] == [f"{EX}a", f"{EX}b"]


def test_a_path_that_goes_through_a_triple_term() -> None:
    term = Triple(NamedNode(f"{EX}s"), NamedNode(f"{EX}p"), Literal(1))
    shapes = Shapes(WORKS, ((Property((Step("part"), Step("made", inverse=True)), "maker"),),))
    store = followed({"shacl": turtle_of(shapes)}, [IS_WORK, quad("a", "part", term)])
    store.change([], [quad("b", "made", term)])
    assert document(store)["maker"] == f"{EX}b"


def test_another_step_of_a_path_in_the_graph() -> None:
    shapes = Shapes(WORKS, ((Property((Step("part"), Step("name")), "shown"),),))
    written = shape_quads(shapes)
    graph = [
        IS_WORK,
        quad("a", "part", "b"),
        quad("b", "name", Literal("n")),
        quad("b", "made", Literal("m")),
    ]
    store = followed({"shape": f"{EX}S0"}, [*written, *graph])
    (step,) = [one for one in written if one.object == NamedNode(f"{EX}name")]
    store.change([step], [Quad(step.subject, step.predicate, NamedNode(f"{EX}made"))])
    assert document(store) == {"id": f"{EX}a", "shown": "m"}


def test_lists_that_are_no_paths_are_no_shapes() -> None:
    shapes = Shapes(WORKS, ((Property((Step("part"), Step("name")), "shown"),),))
    store = followed({"shape": f"{EX}S0"}, [*shape_quads(shapes), IS_WORK])
    first = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#first")
    store.rebuild = None  # type: ignore[method-assign, assignment] # it would not be called
    store.change([], [Quad(NamedNode(f"{EX}list"), first, Literal(1))])
