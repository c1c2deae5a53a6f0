"""`RoutedWrites`: writing in a cluster, as one sight sees the graph, on whatever node leads."""

import tempfile
from collections.abc import AsyncIterator, Callable
from typing import IO, TypedDict

from pyoxigraph import NamedNode

from actors.clustering.forwarded_writes import GraphDeletion, GraphWrite, ResourceEdits, SparqlUpdate
from actors.clustering.write_router import WriteRouter
from actors.shard.store_writes import StoreWrites, WriteMeans
from actors.shard.update_runner import is_quick
from graphdb.access.sight import Sight
from graphdb.graphql.edits import Edits
from graphdb.model import Confirmation
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.syntax import Update
from graphdb.store.view import StoreView

__all__ = ["RoutedWrites"]

_SPOOL_BYTES = 1 << 20


class _Placement(TypedDict):
    """What becomes of a document that is written; see `GraphWrites.write_graph`."""

    graph: NamedNode | None
    whole_dataset: bool
    replace: bool
    base_iri: str | None


class RoutedWrites(StoreWrites):
    """See `serve.backend.GraphWrites`. The sight goes with each write, which the leader plans by it.

    A write that comes with `since` is one that another node forwards, for this one leads.
    """

    def __init__(self, means: WriteMeans, sight: Sight, router: WriteRouter) -> None:
        """means are those of this node, for where it leads."""
        super().__init__(means, sight)
        self._router = router

    async def update(
        self, update: Update, using: Dataset, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `GraphWrites.update`."""
        local = super().update
        if since is not None:
            return await local(update, using, request_id, since)
        return await self._router.route(
            request_id,
            lambda own_id, behind: local(update, using, own_id, behind),
            lambda behind: SparqlUpdate(update.text, update.base_iri, using, behind, self._sight),
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
        since: int | None = None,
        precondition: Callable[[StoreView], None] | None = None,
    ) -> Confirmation:
        """See `GraphWrites.write_graph`. The body is kept until it is stored: it may be for another node."""
        assert precondition is None, "no function goes to another node"
        options: _Placement = {
            "graph": graph,
            "whole_dataset": whole_dataset,
            "replace": replace,
            "base_iri": base_iri,
        }
        local = super().write_graph
        if since is not None:
            return await local(body, syntax, request_id=request_id, since=since, **options)
        scratch = str(self._means.opened().directory.scratch)
        with tempfile.SpooledTemporaryFile(_SPOOL_BYTES, dir=scratch) as spool:
            async for chunk in body:
                spool.write(chunk)
            return await self._router.route(
                request_id,
                lambda own_id, behind: local(
                    _pieces(spool), syntax, request_id=own_id, since=behind, **options
                ),
                lambda behind: GraphWrite(_whole(spool), syntax, since=behind, sight=self._sight, **options),
            )

    async def delete_graph(
        self, graph: NamedNode | None, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `GraphWrites.delete_graph`."""
        local = super().delete_graph
        if since is not None:
            return await local(graph, request_id, since)
        return await self._router.route(
            request_id,
            lambda own_id, behind: local(graph, own_id, behind),
            lambda behind: GraphDeletion(graph, behind, self._sight),
        )

    async def edit(
        self, edits: Edits, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `GraphWrites.edit`."""
        local = super().edit
        if since is not None:
            return await local(edits, request_id, since)
        return await self._router.route(
            request_id,
            lambda own_id, behind: local(edits, own_id, behind),
            lambda behind: ResourceEdits(edits, behind, self._sight),
        )


async def _pieces(spool: IO[bytes]) -> AsyncIterator[bytes]:
    """A spooled body, from its beginning."""
    spool.seek(0)
    while piece := spool.read(_SPOOL_BYTES):
        yield piece


def _whole(spool: IO[bytes]) -> bytes:
    spool.seek(0)
    return spool.read()
