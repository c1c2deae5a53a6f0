"""The settings of an index that follows the graph: read, stored, and checked at its creation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from graphdb.config.limits import GateLimits
from graphdb.errors import RequestError
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from graphdb.search.catalog.index_settings import read_settings
from graphdb.search.errors import illegal_argument
from graphdb.search.extension.template import iri_of
from graphdb.search.following.class_shape import ClassShape
from graphdb.search.following.document_values import document_id, resource_id
from graphdb.search.following.query_shape import QueryShape
from graphdb.search.following.shacl_tree import RDF_FIRST, RDF_REST, SHACL, NodeTree, ShapesGraph
from graphdb.search.following.shape import Documents, Plan, Row, Selection, Shape
from graphdb.search.following.tree_shape import TreeShape

__all__ = ["StoredShape", "check_graph", "completed_body", "read_shape"]

# `StoredShape`: a SHACL shape that is itself in the graph, and may change there.

_NAMES = """targetClass targetNode targetSubjectsOf targetObjectsOf property path inversePath name node
    datatype nodeKind class deactivated"""
_SHAPES = " ".join(f"<{SHACL}{name}>" for name in _NAMES.split())
# Sequences of paths: every list that a path begins with, whatever else it holds.
_LISTS = (
    f"SELECT ?s ?p ?o WHERE {{ GRAPH{{ ?any <{SHACL}path> ?l . ?l <{RDF_REST}>* ?s . "
    f"VALUES ?p {{ <{RDF_FIRST}> <{RDF_REST}> }} ?s ?p ?o }} }}"
)
_ANY_GRAPH = "{ ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } }"


class StoredShape:
    """Looked for in all graphs, each time again; a change of any shape makes all documents be compared."""

    def __init__(self, iri: str, graphs: Sequence[str] = ()) -> None:
        """graphs: their merge is read for documents; the default graph where none is given."""
        self._iri, self._graphs = iri, graphs

    def everything(self) -> Plan[Selection]:
        shape = yield from self._shape()
        return (yield from shape.everything())

    def owners(self, quads: Iterable[Quad]) -> Plan[set[str] | None]:
        quads = list(quads)
        if any(quad.predicate.value.startswith(SHACL) for quad in quads):
            return None
        rows = yield from self._rows()
        if _changes_a_path(quads, rows):
            return None
        return (yield from self._shape_of(rows).owners(quads))

    def documents(self, ids: Sequence[str]) -> Plan[Documents]:
        shape = yield from self._shape()
        return (yield from shape.documents(ids))

    def tree(self) -> Plan[NodeTree]:
        """As it is now. Errors: illegal_argument_exception where there is none, or none for an index."""
        return ShapesGraph.of((yield from self._rows())).tree(self._iri)

    def _rows(self) -> Plan[list[Row]]:
        """What the graphs say of shapes, this one and others."""
        rows = list((yield f"SELECT ?s ?p ?o WHERE {{ VALUES ?p {{ {_SHAPES} }} {_ANY_GRAPH} }}"))
        if any(row["p"]["value"] == f"{SHACL}path" and row["o"]["type"] == "bnode" for row in rows):
            for graph in ("", "GRAPH ?g "):
                rows += yield _LISTS.replace("GRAPH", graph)
        return rows

    def _shape(self) -> Plan[TreeShape]:
        return self._shape_of((yield from self._rows()))

    def _shape_of(self, rows: Iterable[Row]) -> TreeShape:
        return TreeShape(ShapesGraph.of(rows).tree(self._iri), self._graphs)


def _changes_a_path(quads: Iterable[Quad], rows: Iterable[Row]) -> bool:
    """Whether a link of a list that is a path has changed: of those, the first is still part of a path."""
    changed = {resource_id(quad.subject) for quad in quads if quad.predicate.value in (RDF_FIRST, RDF_REST)}
    if not changed:
        return False
    in_paths = (row for row in rows if row["p"]["value"] in (f"{SHACL}path", RDF_FIRST, RDF_REST))
    return any(document_id(row[end]) in changed for row in in_paths for end in ("s", "o"))


# The settings `index.graph` of an index: read, and refused where they cannot be.

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
    if not isinstance(value, str) or iri_of(value) is None:
        raise illegal_argument(f"[{name}] [{str(value)[:200]}] is not an absolute IRI")
    return value


def check_graph(settings: Mapping[str, Any]) -> None:
    """Raise what `read_shape` does, the same on every node: limits that one may configure do not count here,
    only where the graph is asked.
    """
    read_shape(settings, GateLimits())


# What is added to the request that makes an index, where its documents are to be of a SHACL shape.


def completed_body(body: Mapping[str, Any], limits: GateLimits) -> Plan[Mapping[str, Any]]:
    """The body of PUT /{index} with the fields that datatypes of the shape ask for; those given stay.

    Errors: SearchError for a shape that cannot be, or that the graph does not have.
    """
    settings = body.get("settings")
    graph = read_settings(settings).get("graph") if isinstance(settings, Mapping) else None
    mappings = body.get("mappings") or {}
    if not isinstance(graph, Mapping) or not isinstance(mappings, Mapping):
        return body  # whatever is wrong with it, creating says
    shape = read_shape(graph, limits)
    if not isinstance(shape, TreeShape | StoredShape):
        return body
    tree = yield from shape.tree()
    given = mappings.get("properties") or {}
    if not isinstance(given, Mapping):
        return body
    return {**body, "mappings": {**mappings, "properties": _with_given(tree.properties(), given)}}


def _with_given(properties: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as they are given; objects of both have the fields of both."""
    result = {**properties, **given}
    for name in properties.keys() & given.keys():
        ours, theirs = properties[name], given[name]
        if "properties" not in ours or not isinstance(theirs, Mapping):
            continue
        below = theirs.get("properties", {})
        if theirs.get("type", "object") in ("object", "nested") and isinstance(below, Mapping):
            result[name] = {**theirs, "properties": _with_given(ours["properties"], below)}
    return result
