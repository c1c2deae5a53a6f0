"""Graphs that a validation is made of: merged, and copied."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from pyoxigraph import DefaultGraph, NamedNode, Quad, Store, Triple

from graphdb.shacl.data_graph import UNION_GRAPH, DataGraph, DataGraphName, graph_of_quads
from graphdb.shacl.shapes import Shapes

__all__ = ["SHAPES_GRAPH_NAME", "CopiedGraphs", "merged_graphs", "merged_triples"]

# Several named graphs as the one graph that is validated, or that the shapes are in.
#
# Those that do not exist hold nothing, so a name that nothing was written to yet is no error.


def merged_graphs(graphs: Iterable[NamedNode], store: Store) -> tuple[Store, DataGraphName]:
    """A store, and the graph of it that holds what the graphs hold together, each triple once.

    Where more than one exists it is a copy in memory: of a triple in two the engine would find two.
    """
    found = [graph for graph in graphs if store.contains_named_graph(graph)]
    if len(found) == 1:
        return store, found[0]
    merged = Store()
    merged.bulk_extend(Quad(*triple) for triple in merged_triples(found, store))
    return merged, None


def merged_triples(graphs: Iterable[NamedNode], store: Store) -> Iterator[Triple]:
    """The triples of the graphs; one that stands in two comes twice."""
    for graph in graphs:
        for quad in store.quads_for_pattern(None, None, None, graph):
            yield quad.triple


# `CopiedGraphs`: the data graph for SPARQL of the shapes that the store itself would answer otherwise.

SHAPES_GRAPH_NAME = NamedNode("urn:graphdb:shacl:shapes-graph")


class CopiedGraphs:
    """Those of one validation, in memory; each is made when it is first asked for."""

    def __init__(self, graph: DataGraph, shapes: Shapes) -> None:
        self._graph, self._shapes = graph, shapes

    @cached_property
    def with_shapes(self) -> DataGraph:
        """Beside it the graph `SHAPES_GRAPH_NAME`."""
        triples = self._shapes.triples
        beside = (Quad(each.subject, each.predicate, each.object, SHAPES_GRAPH_NAME) for each in triples)
        return self._copy(beside)

    @cached_property
    def each_triple_once(self) -> DataGraph:
        """The union of graphs as a set: the engine finds a triple that stands in two graphs twice."""
        store = self._graph.store
        if self._graph.name is not UNION_GRAPH or not _has_several_graphs(store):
            return self._graph
        return self._copy(quad for quad in store if quad.graph_name != DefaultGraph())

    def _copy(self, beside: Iterable[Quad]) -> DataGraph:
        store = Store()
        store.bulk_extend(self._triples())
        store.bulk_extend(beside)
        return self._graph.instead(store)

    def _triples(self) -> Iterator[Quad]:
        for quad in self._graph.quads_matching(None, None, None, graph_of_quads(self._graph.name)):
            yield Quad(quad.subject, quad.predicate, quad.object, DefaultGraph())


def _has_several_graphs(store: Store) -> bool:
    """Whether more than one graph may hold something."""
    of_default = next(store.quads_for_pattern(None, None, None, DefaultGraph()), None)
    return (of_default is not None) + len(list(islice(store.named_graphs(), 2))) > 1
