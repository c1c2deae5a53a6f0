"""`RoutedWrites`: writing in a cluster, as one visibility shows the graph. `WriteRouter`: takes each write to
the node that leads, and to the next where leaders change meanwhile.
"""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import IO, TypedDict

from pyoxigraph import NamedNode

from actors.clustering.cluster_follower import ClusterFollower
from actors.clustering.forwarded_writes import (
    ForwardBatches,
    ForwardedWrite,
    GraphDeletion,
    GraphWrite,
    QuadPatchWrite,
    ResourceEdits,
    SparqlUpdate,
    TransactionWrite,
    WrittenBy,
    decode_confirmation,
)
from actors.node.open_store import CurrentStore
from actors.node.store_writes import StoreWrites, StoreWriting
from actors.node.update_runner import is_quick
from actors.raft.log_requests import ForwardedRequest
from actors.raft.raft_log_client import RaftLogClient
from actors.shard.large_bodies import GrowingDocument
from actors.worker_thread import on_thread
from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.errors import (
    BodyTooLarge,
    GraphDBError,
    LogUnavailable,
    NotLeader,
    OutcomeUnknown,
    UnavailableError,
)
from graphdb.graphql.edits import Edits
from graphdb.log import request_ids
from graphdb.model import UNKNOWN_AUTHOR, Author, Confirmation, Outcome
from graphdb.raft.messages import MESSAGE_BYTES_MAX
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.patch import QuadPatch
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.syntax import Update
from graphdb.store.view import StoreView
from graphdb.transactions.changes import TransactionCommit

__all__ = ["RoutedWrites", "RoutedWriting", "WriteRouter"]

_RETRY_S = 10.0  # after that, what has failed is not tried again
_PAUSE_S = 0.05
_SEEN_HERE_S = 2.0


@dataclass(slots=True)
class Begun:
    """A write on its way. It may be in the log behind since."""

    request_id: bytes
    since: int
    has_failed: bool = False  # once, in a way that the next leader may mend
    unknown: OutcomeUnknown | None = None  # that failure, where the write may have been stored


class WriteRouter:
    """Owned by a clustered node, on its event loop.

    A write has one request id, however often it is tried: the log takes it once.
    """

    def __init__(
        self,
        node_id: int,
        log: RaftLogClient,
        cluster: ClusterFollower,
        committed_index: Callable[[], int],
        wait_for_index: Callable[[int, float], Awaitable[None]],
        write_timeout_s: float,
    ) -> None:
        """committed_index: up to where the log is committed, as this node knows.

        write_timeout_s: how long a write that is performed elsewhere may take.
        """
        self._node_id = node_id
        self._log = log
        self._cluster = cluster
        self._committed_index = committed_index
        self._wait_for_index = wait_for_index
        self._seen_here = _SeenHere(wait_for_index)
        self._write_timeout_s = write_timeout_s
        self._fresh_request_id = request_ids.FreshIds(os.urandom)
        self._batches: dict[int, ForwardBatches] = {}

    async def route(
        self,
        request_id: bytes | None,
        perform: Callable[[bytes, int], Awaitable[Confirmation]],
        describe: Callable[[int], ForwardedWrite],
        *,
        quick: bool = False,
        begun: Begun | None = None,
    ) -> Confirmation:
        """Have a write performed by the leader: here with perform(request_id, since), elsewhere as described.

        The write may be in the log behind `since` already. A quick one may share its way with others. begun:
        it was tried once, in vain. Raises what performing raises, NotLeader where there is no leader,
        OutcomeUnknown.
        """
        begun = begun or self.begin(request_id)
        request_id, since = begun.request_id, begun.since
        give_up_at = asyncio.get_running_loop().time() + _RETRY_S
        failure: UnavailableError
        unknown = begun.unknown
        if begun.has_failed:
            await self._cluster.change(_PAUSE_S)
        while True:
            leader_id = await self._leader(unknown)
            try:
                if leader_id == self._node_id:
                    return await perform(request_id, since)
                return await self._forward(leader_id, request_id, partial(describe, since), quick)
            except OutcomeUnknown as error:
                failure = unknown = error
            except (NotLeader, LogUnavailable) as error:
                failure = unknown or error  # an earlier try may have been taken
            except (UnavailableError, BodyTooLarge) as error:  # neither says what an earlier try has come to
                raise unknown or error from None
            if asyncio.get_running_loop().time() > give_up_at:
                raise failure
            await self._cluster.change(_PAUSE_S)

    def begin(self, request_id: bytes | None = None) -> Begun:
        """A write that is to be tried."""
        return Begun(request_id or self._fresh_request_id(), self._committed_index())

    def begin_forward(self, leader_id: int, request_id: bytes, write: SparqlUpdate, outcome: Outcome) -> None:
        """Have the leader perform a quick write; the outcome of this one try goes to outcome, after this
        call.
        """
        answer = _Forwarded(outcome, self._seen_here)
        self._batches_to(leader_id).begin(_request_of(request_id, lambda: write), answer)

    @property
    def leads(self) -> bool:
        """Whether this node leads, as far as it knows."""
        return self._cluster.leads

    @property
    def leader_id(self) -> int | None:
        """The node that leads, as far as this one knows."""
        return self._cluster.view.leader_id if self._cluster.view is not None else None

    async def _leader(self, unknown: OutcomeUnknown | None) -> int:
        try:
            return await self._cluster.leader()
        except NotLeader as error:
            raise unknown or error from None

    async def _forward(
        self, leader_id: int, request_id: bytes, describe: Callable[[], ForwardedWrite], quick: bool
    ) -> Confirmation:
        if quick:
            request = _request_of(request_id, describe)
            answer = await self._batches_to(leader_id).forward(request)
        else:  # the loop would stand still for a large one: 0.1 s for a transaction of 200,000 quads
            request = await on_thread(_request_of, request_id, describe)
            answer = await self._log.forward(leader_id, request, self._write_timeout_s)
        confirmation = decode_confirmation(answer)
        with contextlib.suppress(UnavailableError):  # who writes here can read it here, if it is soon
            await self._wait_for_index(confirmation.snapshot_index, _SEEN_HERE_S)
        return confirmation

    def _batches_to(self, leader_id: int) -> ForwardBatches:
        batches = self._batches.get(leader_id)
        if batches is None:
            batches = self._batches[leader_id] = ForwardBatches(self._log, leader_id, self._write_timeout_s)
        return batches


def _request_of(request_id: bytes, describe: Callable[[], ForwardedWrite]) -> ForwardedRequest:
    write = describe()
    return ForwardedRequest(0, write.operation, request_id.hex(), write.encode())


_SPOOL_BYTES = 1 << 20


class _Placement(TypedDict):
    """What becomes of a document that is written; see `GraphWrites.write_graph`."""

    graph: NamedNode | None
    whole_dataset: bool
    replace: bool
    base_iri: str | None
    clear: bool
    keep_blank_nodes: bool


class RoutedWrites:
    """See `serve.backend.GraphWrites`. The visibility goes with each write, which the leader plans by it."""

    def __init__(
        self, own: StoreWrites, writer: WrittenBy, router: WriteRouter, current: CurrentStore
    ) -> None:
        """own are those of this node for the same writer, for where it leads."""
        self._own, self._writer, self._router, self._current = own, writer, router, current

    async def update(
        self,
        update: Update,
        using: Dataset,
        request_id: bytes | None = None,
        begun: Begun | None = None,
    ) -> Confirmation:
        """See `serve.backend.GraphWrites.update`, and `WriteRouter.route` for begun."""
        return await self._router.route(
            request_id,
            lambda own_id, since: self._own.update(update, using, own_id, since),
            lambda since: SparqlUpdate(update.text, update.base_iri, using, since, self._writer),
            quick=is_quick(update),
            begun=begun,
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
        clear: bool = False,
        keep_blank_nodes: bool = False,
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
            "clear": clear,
            "keep_blank_nodes": keep_blank_nodes,
        }
        shard = self._current.opened()
        growing = GrowingDocument(shard.checkpointer.room)
        with tempfile.SpooledTemporaryFile(_SPOOL_BYTES, dir=str(shard.directory.scratch)) as spool:
            async for chunk in body:
                spool.write(chunk)
                growing.check(spool.tell())
            return await self._router.route(
                request_id,
                lambda own_id, since: self._own.write_graph(
                    _pieces(spool), syntax, request_id=own_id, since=since, **options
                ),
                lambda since: GraphWrite(_whole(spool), syntax, since=since, writer=self._writer, **options),
            )

    async def delete_graph(self, graph: NamedNode | None, request_id: bytes | None = None) -> Confirmation:
        """See `serve.backend.GraphWrites.delete_graph`."""
        return await self._router.route(
            request_id,
            lambda own_id, since: self._own.delete_graph(graph, own_id, since),
            lambda since: GraphDeletion(graph, since, self._writer),
        )

    async def patch(self, patch: QuadPatch, request_id: bytes | None = None) -> Confirmation:
        """See `serve.backend.GraphWrites.patch`."""
        return await self._router.route(
            request_id,
            lambda own_id, since: self._own.patch(patch, own_id, since),
            lambda since: QuadPatchWrite(patch, since, self._writer),
        )

    async def edit(self, edits: Edits, request_id: bytes | None = None) -> Confirmation:
        """See `serve.backend.GraphWrites.edit`."""
        return await self._router.route(
            request_id,
            lambda own_id, since: self._own.edit(edits, own_id, since),
            lambda since: ResourceEdits(edits, since, self._writer),
        )

    async def commit(self, commit: TransactionCommit, request_id: bytes | None = None) -> Confirmation:
        """See `serve.backend.GraphWrites.commit`."""
        return await self._router.route(
            request_id,
            lambda own_id, since: self._own.commit(commit, own_id, since),
            lambda since: TransactionWrite(commit, since, self._writer),
        )


class _SeenHere:
    """Confirmations of the leader, given out when this node has applied what they confirm, if that is soon:
    who writes here can read it here.
    """

    def __init__(self, wait_for_index: Callable[[int, float], Awaitable[None]]) -> None:
        self._wait_for_index = wait_for_index
        self._come: list[tuple[Confirmation, Outcome]] = []  # in this step of the event loop
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, confirmation: Confirmation, outcome: Outcome) -> None:
        """Give outcome the confirmation. Those that come together wait together."""
        if not self._come:
            task = asyncio.get_running_loop().create_task(self._give_out())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._come.append((confirmation, outcome))

    async def _give_out(self) -> None:
        waiting, self._come = self._come, []
        index = max(confirmation.snapshot_index for confirmation, _ in waiting)
        try:
            with contextlib.suppress(UnavailableError):
                await self._wait_for_index(index, _SEEN_HERE_S)
        finally:
            for confirmation, outcome in waiting:
                if not outcome.done():
                    outcome.set_result(confirmation)


class _Forwarded:
    """The `Answer` to a write that was forwarded without a task of its own."""

    __slots__ = ("_outcome", "_seen_here")

    def __init__(self, outcome: Outcome, seen_here: _SeenHere) -> None:
        self._outcome, self._seen_here = outcome, seen_here

    def done(self) -> bool:
        """See `Answer`."""
        return self._outcome.done()

    def set_result(self, result: bytes, /) -> None:
        """See `Answer`."""
        try:
            confirmation = decode_confirmation(result)
        except (ValueError, TypeError):
            self._outcome.set_exception(OutcomeUnknown("an answer that cannot be understood"))
        else:
            self._seen_here.add(confirmation, self._outcome)

    def set_exception(self, exception: GraphDBError, /) -> None:
        """See `Answer`."""
        self._outcome.set_exception(exception)


class RoutedWriting:
    """See `serve.backend.Writing`."""

    def __init__(self, own: StoreWriting, router: WriteRouter, current: CurrentStore) -> None:
        """own is that of this node, for where it leads."""
        self._own, self._router, self._current = own, router, current
        self._tasks: set[asyncio.Task[None]] = set()

    def writes(self, visibility: Visibility, author: Author = UNKNOWN_AUTHOR) -> RoutedWrites:
        """See `serve.backend.Writing.writes`."""
        own, writer = self._own.writes(visibility, author), WrittenBy(visibility, author)
        return RoutedWrites(own, writer, self._router, self._current)

    def begin_update(self, update: Update, outcome: Outcome, author: Author = UNKNOWN_AUTHOR) -> bool:
        """See `serve.backend.Writing.begin_update`. A task routes it only where the first try fails."""
        if not is_quick(update):
            return False
        begun = self._router.begin()
        first = _FirstTry(begun, outcome, lambda: self._go_on(update, outcome, author, begun))
        if self._router.leads:
            return self._own.begin_update(update, first, author, begun.request_id, begun.since)
        leader_id = self._router.leader_id
        if leader_id is None:
            self._go_on(update, outcome, author, begun)
        else:
            writer = WrittenBy(FULL_VISIBILITY, author)
            write = SparqlUpdate(update.text, update.base_iri, Dataset(), begun.since, writer)
            self._router.begin_forward(leader_id, begun.request_id, write, first)
        return True

    def _go_on(self, update: Update, outcome: Outcome, author: Author, begun: Begun) -> None:
        task = asyncio.get_running_loop().create_task(self._try_again(update, outcome, author, begun))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _try_again(self, update: Update, outcome: Outcome, author: Author, begun: Begun) -> None:
        writes = self.writes(FULL_VISIBILITY, author)
        try:
            confirmation = await writes.update(update, Dataset(), begun=begun)
        except Exception as error:  # noqa: BLE001 whoever asked gets it
            outcome.set_exception(error)
        else:
            outcome.set_result(confirmation)


class _FirstTry:
    """What a first try by the node that leads comes to: the outcome, unless the next leader may do better."""

    def __init__(self, begun: Begun, outcome: Outcome, go_on: Callable[[], None]) -> None:
        self._begun, self._outcome, self._go_on = begun, outcome, go_on

    def done(self) -> bool:
        """See `Outcome`."""
        return self._begun.has_failed or self._outcome.done()

    def set_result(self, result: Confirmation, /) -> None:
        """See `Outcome`."""
        self._outcome.set_result(result)

    def set_exception(self, exception: Exception, /) -> None:
        """See `Outcome`."""
        if not isinstance(exception, OutcomeUnknown | NotLeader | LogUnavailable):
            self._outcome.set_exception(exception)
            return
        self._begun.has_failed = True
        if isinstance(exception, OutcomeUnknown):
            self._begun.unknown = exception
        self._go_on()


async def _pieces(spool: IO[bytes]) -> AsyncIterator[bytes]:
    """A spooled body, from its beginning."""
    spool.seek(0)
    while piece := spool.read(_SPOOL_BYTES):
        yield piece


def _whole(spool: IO[bytes]) -> bytes:
    """Raises BodyTooLarge for what no message to another node holds."""
    if spool.seek(0, os.SEEK_END) > MESSAGE_BYTES_MAX:
        raise BodyTooLarge(MESSAGE_BYTES_MAX)
    spool.seek(0)
    return spool.read()
