"""`StoreView`: what planning asks of a state of the store, the present one or one still being planned."""

from collections.abc import Iterator
from typing import Protocol

from pyoxigraph import Quad

from graphdb.model import NamedGraph

__all__ = ["StoreView"]


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

    def dataset_quads(self) -> Iterator[Quad]:
        """The quads of all graphs."""

    def named_graphs(self) -> Iterator[NamedGraph]:
        """The names of the graphs that exist, the empty ones too."""
