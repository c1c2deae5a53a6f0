"""`ForwardedWork`: what other nodes' clients ask of the node that leads, taken from its log and performed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Protocol

from pyoxigraph import NamedNode

from actors.clustering.cluster_follower import ClusterFollower
from actors.clustering.forward_batches import BATCH, encode_outcomes
from actors.clustering.forwarded_writes import GraphDeletion, SparqlUpdate, decode_write, encode_confirmation
from actors.error_codec import encode_error
from actors.raft.log_requests import ForwardedRequest, decode_requests
from actors.raft.raft_log_client import RaftLogClient
from graphdb.config.limits import GateLimits
from graphdb.errors import GraphDBError, NotLeader, OutcomeUnknown
from graphdb.model import Confirmation
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.gate import SHORT_TEXT_CHARACTERS, read_update
from graphdb.sparql.syntax import Update

__all__ = ["APPLIED_INDEX", "ForwardedWork"]

APPLIED_INDEX = "applied_index"  # the operation that asks a leader how far its store is
_AGAIN_S = 0.2
_LEAVE_S = 2.0  # so long a log may take to hear that this port takes no more


class LeadingShard(Protocol):
    """What performs: see `serve.backend.Backend`, and `ShardWriter.write` for since."""

    def snapshot_index(self) -> int: ...
    async def update(
        self, update: Update, using: Dataset, request_id: bytes | None, since: int | None
    ) -> Confirmation: ...
    async def write_graph(
        self,
        body: AsyncIterator[bytes],
        syntax: RdfSyntax,
        *,
        graph: NamedNode | None,
        whole_dataset: bool,
        replace: bool,
        base_iri: str | None,
        request_id: bytes | None,
        since: int | None,
    ) -> Confirmation: ...
    async def delete_graph(
        self, graph: NamedNode | None, request_id: bytes | None, since: int | None
    ) -> Confirmation: ...


class ForwardedWork:
    """Owned by a `ClusteredShard`, on its event loop."""

    def __init__(
        self, log: RaftLogClient, cluster: ClusterFollower, shard: LeadingShard, limits: GateLimits
    ) -> None:
        self._log = log
        self._cluster = cluster
        self._shard = shard
        self._limits = limits
        self._taking: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    def start(self) -> None:
        """Begin to take requests."""
        if self._taking is None:
            self._taking = asyncio.get_running_loop().create_task(self._take())

    async def close(self) -> None:
        """Finish what was taken, refusing what comes meanwhile; then take no more.

        The log knows of that: a request that it gave to a port which has gone would be neither performed nor
        refused.
        """
        self._closing = True
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._taking is not None:
            with contextlib.suppress(GraphDBError, TimeoutError):
                async with asyncio.timeout(_LEAVE_S):
                    await self._log.leave()
                    await self._taking  # it was answered before
            self._taking.cancel()
            await asyncio.gather(self._taking, return_exceptions=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self) -> None:
        while True:
            try:
                requests = await self._log.take()
            except GraphDBError:
                await asyncio.sleep(_AGAIN_S)  # the log is being started again, or cannot be
                continue
            if not requests:
                return  # the last answer, after `leave`
            for request in requests:
                task = asyncio.get_running_loop().create_task(self._perform(request))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _perform(self, request: ForwardedRequest) -> None:
        succeeded, outcome = await self._outcome(request)
        with contextlib.suppress(GraphDBError):  # then who asked learns that the outcome is unknown
            await self._log.finish(request.number, succeeded, outcome)

    async def _outcome(self, request: ForwardedRequest) -> tuple[bool, bytes]:
        try:
            return True, await self._answer(request)
        except Exception as error:  # noqa: BLE001 whoever asked gets it
            return False, encode_error(error, OutcomeUnknown)

    async def _answer(self, request: ForwardedRequest) -> bytes:
        if self._closing:
            raise NotLeader("this node is stopping")
        if not self._cluster.leads:
            view = self._cluster.view
            raise NotLeader("another node leads", 1, view.leader_id if view is not None else None)
        if request.operation == BATCH:
            return encode_outcomes(await asyncio.gather(*map(self._outcome, decode_requests(request.body))))
        if request.operation == APPLIED_INDEX:
            return b"%d" % self._shard.snapshot_index()
        return encode_confirmation(await self._write(request))

    async def _read(self, write: SparqlUpdate) -> Update:
        if len(write.text) <= SHORT_TEXT_CHARACTERS:
            return read_update(write.text, write.base_iri, self._limits)
        return await asyncio.to_thread(read_update, write.text, write.base_iri, self._limits)

    async def _write(self, request: ForwardedRequest) -> Confirmation:
        write = decode_write(request.operation, request.body)
        request_id = bytes.fromhex(request.request_id)
        if isinstance(write, SparqlUpdate):
            update = await self._read(write)
            return await self._shard.update(update, write.using, request_id, write.since)
        if isinstance(write, GraphDeletion):
            return await self._shard.delete_graph(write.graph, request_id, write.since)
        return await self._shard.write_graph(
            _once(write.document),
            write.syntax,
            graph=write.graph,
            whole_dataset=write.whole_dataset,
            replace=write.replace,
            base_iri=write.base_iri,
            request_id=request_id,
            since=write.since,
        )


async def _once(document: bytes) -> AsyncIterator[bytes]:
    yield document
