"""`CopiedGraphs`: the data graph for SPARQL of the shapes that the store itself would answer otherwise."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from pyoxigraph import DefaultGraph, NamedNode, Quad, Store

from graphdb.shacl.data_graph import UNION_GRAPH, DataGraph, graph_of_quads
from graphdb.shacl.shapes import Shapes

__all__ = ["SHAPES_GRAPH_NAME", "CopiedGraphs"]

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
