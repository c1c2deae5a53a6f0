"""The settings `index.graph` of an index: read, and refused where they cannot be."""

from collections.abc import Mapping
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode

from graphdb.config.limits import GateLimits
from graphdb.errors import RequestError
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from graphdb.search.errors import illegal_argument
from graphdb.search.extension.template import value_as_iri
from graphdb.search.following.class_shape import ClassShape
from graphdb.search.following.query_shape import QueryShape
from graphdb.search.following.shacl_tree import NodeTree, ShapesGraph
from graphdb.search.following.shape import Shape
from graphdb.search.following.stored_shape import StoredShape
from graphdb.search.following.tree_shape import TreeShape

__all__ = ["check_graph", "read_shape"]

_KINDS = ("class", "query", "shape", "shacl")
_GRAPHS_MAX = 100
_TURTLE_MAX = 100_000


def read_shape(settings: Mapping[str, Any], limits: GateLimits) -> Shape:
    """The shape that the tree of settings asks for.

    Errors: illegal_argument_exception, or what the gate has to say about a query.
    """
    unknown = sorted(settings.keys() - {"shape"})
    if unknown:
        raise illegal_argument(f"unknown setting [index.graph.{unknown[0]}]")
    shape = settings.get("shape")
    if isinstance(shape, str):
        shape = {"class": shape}
    if not isinstance(shape, Mapping):
        raise illegal_argument("[index.graph.shape] must be the IRI of a class, or an object")
    unknown = sorted(shape.keys() - {*_KINDS, "graph"})
    if unknown:
        raise illegal_argument(f"unknown setting [index.graph.shape.{unknown[0]}]")
    given = [kind for kind in _KINDS if kind in shape]
    if len(given) != 1:
        listed = ", ".join(f"[{kind}]" for kind in _KINDS)
        raise illegal_argument(f"[index.graph.shape] takes exactly one of {listed}, found [{len(given)}]")
    return _read(given[0], shape[given[0]], _graphs(shape.get("graph")), limits)


def _read(kind: str, value: Any, graphs: tuple[str, ...], limits: GateLimits) -> Shape:
    name = f"index.graph.shape.{kind}"
    if not isinstance(value, str):
        raise illegal_argument(f"[{name}] must be a string")
    if kind == "class":
        return ClassShape(_iri(name, value), graphs)
    if kind == "shape":
        return StoredShape(_iri(name, value), graphs)
    if kind == "shacl":
        return TreeShape(_inline_tree(value), graphs)
    if graphs:
        raise illegal_argument("[index.graph.shape.graph] is not for a query, which says FROM")
    return QueryShape(value, limits)


def _inline_tree(turtle: str) -> NodeTree:
    """Of the one node shape in the text that has targets."""
    if len(turtle) > _TURTLE_MAX:
        raise illegal_argument(f"[index.graph.shape.shacl] has more than [{_TURTLE_MAX}] characters")
    try:
        quads = list(read_quads(turtle.encode(), RdfSyntax.TURTLE, fresh_blank_nodes=False))
    except (RequestError, UnicodeEncodeError) as error:
        raise illegal_argument(f"[index.graph.shape.shacl] is no Turtle: {error}") from error
    graph = ShapesGraph.of(
        {"s": _term(quad.subject), "p": _term(quad.predicate), "o": _term(quad.object)} for quad in quads
    )
    shapes = graph.node_shapes()
    if len(shapes) != 1:
        raise illegal_argument(
            f"[index.graph.shape.shacl] must have one node shape with a target, found [{len(shapes)}]"
        )
    return graph.tree(shapes[0])


def _term(node: Any) -> dict[str, Any]:
    """As results of a query have it."""
    if isinstance(node, NamedNode):
        return {"type": "uri", "value": node.value}
    if isinstance(node, BlankNode):
        return {"type": "bnode", "value": node.value}
    if not isinstance(node, Literal):
        return {"type": "triple", "value": str(node)}
    language = {} if node.language is None else {"xml:lang": node.language}
    return {"type": "literal", "value": node.value, "datatype": node.datatype.value, **language}


def _graphs(value: Any) -> tuple[str, ...]:
    graphs = value if isinstance(value, list) else [] if value is None else [value]
    if len(graphs) > _GRAPHS_MAX:
        raise illegal_argument(f"[index.graph.shape.graph] names more than [{_GRAPHS_MAX}] graphs")
    return tuple(_iri("index.graph.shape.graph", graph) for graph in graphs)


def _iri(name: str, value: Any) -> str:
    if not isinstance(value, str) or value_as_iri(value) is None:
        raise illegal_argument(f"[{name}] [{str(value)[:200]}] is not an absolute IRI")
    return value


def check_graph(settings: Mapping[str, Any]) -> None:
    """Raise what `read_shape` does, the same on every node: limits that one may configure do not count here,
    only where the graph is asked.
    """
    read_shape(settings, GateLimits())
