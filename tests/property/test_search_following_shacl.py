"""An index of a random SHACL shape has what the shape means, also after it has followed random changes."""

from collections.abc import Iterable, Iterator
from typing import Any
from zlib import crc32

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, NamedNode, Quad, Store

from graphdb.config.limits import GateLimits
from graphdb.search.errors import SearchError
from graphdb.search.following.graph_settings import read_shape
from graphdb.search.following.shape import Shape
from tests.support.followed_graphs import EX, FollowedStore, tangled_changes, tangled_graphs
from tests.support.shacl_shapes import Shapes, documents_of, shape_quads, shapes, turtle_of

Changes = list[tuple[list[Quad], list[Quad]]]
STORED = {"shape": f"{EX}S0"}


@settings(max_examples=60, deadline=None)
@given(
    found=shapes,
    graph=tangled_graphs,
    happenings=tangled_changes,
    read=st.sampled_from([(), ("g1",), ("g1", "g2")]),
)
def test_following_a_shape_is_what_it_means(
    found: Shapes, graph: list[Quad], happenings: Changes, read: tuple[str, ...]
) -> None:
    """read: the graphs that are merged; none: the default graph."""
    value = {"shacl": turtle_of(found), **({"graph": [EX + name for name in read]} if read else {})}
    followed = FollowedStore(shape_of(value), map(placed, graph))
    assert documents(followed) == documents_of(found, of_graphs(followed.store, read))
    for removed, added in happenings:
        followed.change([*map(placed, removed)], [*map(placed, added)])
        assert documents(followed) == documents_of(found, of_graphs(followed.store, read))


def placed(quad: Quad) -> Quad:
    """In the default graph or another one, the same quad always in the same."""
    name = ("", "g1", "g2")[crc32(str(quad).encode()) % 3]
    return Quad(quad.subject, quad.predicate, quad.object, NamedNode(EX + name)) if name else quad


def of_graphs(store: Store, names: tuple[str, ...]) -> Iterator[Quad]:
    for name in names:
        yield from store.quads_for_pattern(None, None, None, NamedNode(EX + name))
    if not names:
        yield from store.quads_for_pattern(None, None, None, DefaultGraph())


@settings(max_examples=60, deadline=None)
@given(found=shapes, graph=tangled_graphs, happenings=tangled_changes, rng=st.randoms(use_true_random=False))
def test_following_a_shape_that_changes_in_the_graph(
    found: Shapes, graph: list[Quad], happenings: Changes, rng: Any
) -> None:
    """Parts of it go and come back; where it cannot be meanwhile, everyone says so."""
    written = shape_quads(found)
    followed = FollowedStore(shape_of(STORED), [*graph, *written])
    missing: list[Quad] = []
    instead: list[Quad] = []
    for removed, added in happenings:
        gone, new = spoilt(written, rng) if written else ([], [])
        follow(followed, [*removed, *gone, *instead], [*added, *(set(missing) - set(gone)), *new])
        missing, instead = gone, new
    follow(followed, instead, missing)
    assert documents(followed) == documents_of(found, without(written, followed.store))


def spoilt(written: list[Quad], rng: Any) -> tuple[list[Quad], list[Quad]]:
    """A part of a shape that goes, and what comes in its place, if anything."""
    gone = rng.choice(written)
    if rng.random() < 0.3:
        return [], []
    if rng.random() < 0.5 or not isinstance(gone.object, NamedNode):
        return [gone], []
    other = Quad(gone.subject, gone.predicate, NamedNode(f"{EX}{rng.choice(['part', 'made', 'a'])}"))
    # one that the shape has besides would be taken back with it
    return [gone], [] if other in written else [other]


def follow(followed: FollowedStore, removed: list[Quad], added: list[Quad]) -> None:
    """The same, or the same error, as of an index that is made anew."""
    outcome: object
    try:
        followed.change(removed, added)
        outcome = followed.documents
    except SearchError as error:
        outcome = error.reason
    try:
        anew: object = FollowedStore(shape_of(STORED), followed.store).documents
    except SearchError as error:
        anew = error.reason
    assert outcome == anew


def shape_of(value: dict[str, Any]) -> Shape:
    return read_shape({"shape": value}, GateLimits())


def documents(followed: FollowedStore) -> dict[str, Any]:
    return {doc_id: orjson.loads(source) for doc_id, source in followed.documents.items()}


def without(quads: Iterable[Quad], store: Store) -> list[Quad]:
    return [quad for quad in store if quad not in set(quads)]
