"""`StoredShape`: a SHACL shape that is itself in the graph, and may change there."""

from collections.abc import Iterable, Sequence

from pyoxigraph import Quad

from graphdb.search.following.plans import Plan, Row
from graphdb.search.following.shacl_tree import RDF_FIRST, RDF_REST, SHACL, NodeTree, ShapesGraph
from graphdb.search.following.shape import Documents, Selection
from graphdb.search.following.tree_shape import TreeShape
from graphdb.search.following.values import document_id, resource_id

__all__ = ["StoredShape"]

_NAMES = """targetClass targetNode targetSubjectsOf targetObjectsOf property path inversePath name node
    datatype nodeKind class deactivated"""
_SHAPES = " ".join(f"<{SHACL}{name}>" for name in _NAMES.split())
# Sequences of paths: every list that a path begins with, whatever else it holds.
_LISTS = (
    f"SELECT ?s ?p ?o WHERE {{ GRAPH{{ ?any <{SHACL}path> ?l . ?l <{RDF_REST}>* ?s . "
    f"VALUES ?p {{ <{RDF_FIRST}> <{RDF_REST}> }} ?s ?p ?o }} }}"
)
_ANYWHERE = "{ ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } }"


class StoredShape:
    """Looked for in all graphs, each time anew; a change of any shape makes all documents be compared."""

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
        rows = list((yield f"SELECT ?s ?p ?o WHERE {{ VALUES ?p {{ {_SHAPES} }} {_ANYWHERE} }}"))
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
