"""What the edges need from the node behind them.

`serve/` knows only these protocols; `serve/deployments.py` wires them to the actors, and tests to memory.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Protocol

from pyoxigraph import NamedNode, Quad

from graphdb.model import Confirmation, NamedGraph
from graphdb.node import ClusterMember, Evaluated, NodeStatus
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import Query
from graphdb.sparql.syntax import Update

__all__ = ["Backend", "ClusterMember", "Evaluated", "NodeStatus"]


class Backend(Protocol):
    """One node's graph. Methods without `async` block (in native code, without the GIL) and may be called on
    any thread.
    """

    def query(self, query: Query, dataset: Dataset) -> Evaluated:
        """Start evaluating; rows are computed as they are taken.

        Raises LimitExceeded, EvaluationFailed, HostNotAllowed.
        """

    async def update(self, update: Update, using: Dataset) -> Confirmation:
        """Evaluate the whole request, log its effect, apply it. Atomic.

        Raises LimitExceeded, EvaluationFailed, UnknownGraph, AlreadyExists, HostNotAllowed,
        InvalidParameter, UnavailableError.
        """

    def graph_exists(self, graph: NamedGraph) -> bool:
        """True also for a graph that was created empty."""

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        """The quads of one graph (None: the default graph) of one consistent state.

        Raises UnknownGraph.
        """

    def dataset_quads(self) -> Iterator[Quad]:
        """Every quad of one consistent state."""

    def snapshot_index(self) -> int:
        """The log index of the last entry that readers see."""

    async def write_graph(
        self,
        body: AsyncIterator[bytes],
        syntax: RdfSyntax,
        *,
        graph: NamedNode | None,
        whole_dataset: bool,
        replace: bool,
        base_iri: str | None,
    ) -> Confirmation:
        """Read an RDF document (already decompressed) to its end, then put it in as one atomic change.

        With whole_dataset the body's own graph names count: replace empties every graph that the body names
        first, else they are merged. Without it everything goes to `graph` (None: the default graph), and a
        named graph in the body is InvalidParameter. Nothing is stored unless the whole body parses.
        Raises RdfSyntaxError, InvalidParameter, BodyTooLarge (passed through from the iterator),
        UnavailableError.
        """

    async def delete_graph(self, graph: NamedNode | None) -> Confirmation:
        """Delete a named graph, or empty the default graph (None).

        Raises UnknownGraph.
        """

    def status(self) -> NodeStatus:
        """How the node is; never blocks, never raises."""
