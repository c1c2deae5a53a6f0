"""`StoreView`: what planning asks of a state of the store, the present one or one still being planned."""

from collections.abc import Iterator
from typing import Protocol, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from graphdb.model import GraphName, NamedGraph

__all__ = ["StoreView", "Subject", "Term"]

Subject: TypeAlias = NamedNode | BlankNode | Triple
Term: TypeAlias = NamedNode | BlankNode | Literal | Triple


class StoreView(Protocol):
    """One state of the dataset, readable quad by quad."""

    def contains(self, quad: Quad) -> bool:
        """Whether the quad, in its stored form, is there."""

    def graph_exists(self, graph: NamedGraph) -> bool:
        """True also for a graph that was created empty."""

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        """The quads of one graph; None is the default graph.

        Raises UnknownGraph, at the call.
        """

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """The quads with these terms, in their stored form, of this graph; None stands for any, of the graph
        too.
        """

    def dataset_quads(self) -> Iterator[Quad]:
        """The quads of all graphs."""

    def named_graphs(self) -> Iterator[NamedGraph]:
        """The names of the graphs that exist, the empty ones too."""
