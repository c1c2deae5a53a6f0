"""`RoutedWrites`: writing in a cluster, as one visibility shows the graph, on whatever node leads."""

import tempfile
from collections.abc import AsyncIterator, Callable
from typing import IO, TypedDict

from pyoxigraph import NamedNode

from actors.clustering.forwarded_writes import GraphDeletion, GraphWrite, ResourceEdits, SparqlUpdate
from actors.clustering.write_router import WriteRouter
from actors.node.open_store import CurrentStore
from actors.node.store_writes import StoreWrites, StoreWriting
from actors.node.update_runner import is_quick
from graphdb.access.visibility import Visibility
from graphdb.graphql.edits import Edits
from graphdb.model import Confirmation
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.syntax import Update
from graphdb.store.view import StoreView

__all__ = ["RoutedWrites", "RoutedWriting"]

_SPOOL_BYTES = 1 << 20


class _Placement(TypedDict):
    """What becomes of a document that is written; see `GraphWrites.write_graph`."""

    graph: NamedNode | None
    whole_dataset: bool
    replace: bool
    base_iri: str | None


class RoutedWrites:
    """See `serve.backend.GraphWrites`. The visibility goes with each write, which the leader plans by it."""

    def __init__(
        self, own: StoreWrites, visibility: Visibility, router: WriteRouter, current: CurrentStore
    ) -> None:
        """own are those of this node with the same visibility, for where it leads."""
        self._own, self._visibility, self._router, self._current = own, visibility, router, current

    async def update(self, update: Update, using: Dataset, request_id: bytes | None = None) -> Confirmation:
        """See `serve.backend.GraphWrites.update`."""
        return await self._router.route(
            request_id,
            lambda own_id, since: self._own.update(update, using, own_id, since),
            lambda since: SparqlUpdate(update.text, update.base_iri, using, since, self._visibility),
            quick=is_quick(update),
        )

    async def write_graph(
        self,
        body: AsyncIterator[bytes],
        syntax: RdfSyntax,
        *,
        graph: NamedNode | None,
        whole_dataset: bool,
        replace: bool,
        base_iri: str | None,
        request_id: bytes | None = None,
        precondition: Callable[[StoreView], None] | None = None,
    ) -> Confirmation:
        """See `serve.backend.GraphWrites.write_graph`. The body is kept until it is stored: it may be for
        another node.
        """
        assert precondition is None, "no function goes to another node"
        options: _Placement = {
            "graph": graph,
            "whole_dataset": whole_dataset,
            "replace": replace,
            "base_iri": base_iri,
        }
        scratch = str(self._current.opened().directory.scratch)
        with tempfile.SpooledTemporaryFile(_SPOOL_BYTES, dir=scratch) as spool:
            async for chunk in body:
                spool.write(chunk)
            return await self._router.route(
                request_id,
                lambda own_id, since: self._own.write_graph(
                    _pieces(spool), syntax, request_id=own_id, since=since, **options
                ),
                lambda since: GraphWrite(
                    _whole(spool), syntax, since=since, visibility=self._visibility, **options
                ),
            )

    async def delete_graph(self, graph: NamedNode | None, request_id: bytes | None = None) -> Confirmation:
        """See `serve.backend.GraphWrites.delete_graph`."""
        return await self._router.route(
            request_id,
            lambda own_id, since: self._own.delete_graph(graph, own_id, since),
            lambda since: GraphDeletion(graph, since, self._visibility),
        )

    async def edit(self, edits: Edits, request_id: bytes | None = None) -> Confirmation:
        """See `serve.backend.GraphWrites.edit`."""
        return await self._router.route(
            request_id,
            lambda own_id, since: self._own.edit(edits, own_id, since),
            lambda since: ResourceEdits(edits, since, self._visibility),
        )


class RoutedWriting:
    """See `serve.backend.Writing`."""

    def __init__(self, own: StoreWriting, router: WriteRouter, current: CurrentStore) -> None:
        """own is that of this node, for where it leads."""
        self._own, self._router, self._current = own, router, current

    def writes(self, visibility: Visibility) -> RoutedWrites:
        """See `serve.backend.Writing.writes`."""
        return RoutedWrites(self._own.writes(visibility), visibility, self._router, self._current)


async def _pieces(spool: IO[bytes]) -> AsyncIterator[bytes]:
    """A spooled body, from its beginning."""
    spool.seek(0)
    while piece := spool.read(_SPOOL_BYTES):
        yield piece


def _whole(spool: IO[bytes]) -> bytes:
    spool.seek(0)
    return spool.read()
