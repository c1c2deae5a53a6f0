"""`RaftLogClient`: a node's `RaftLog` from its port's side. `QueueWorker`: a port's part in performing what
other nodes have asked for.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Sequence

from actors.log.client import LogClient
from actors.log.protocol import Index, encode_entries
from actors.raft.log_requests import (
    RAFT_LOG_MESSAGES,
    Adopted,
    AppendUnconditionally,
    AskLastEffect,
    ClusterView,
    Confirm,
    Finish,
    Forward,
    ForwardedRequest,
    Leave,
    MemberChange,
    Offer,
    ReadIndex,
    RequestQueue,
    Requests,
    Take,
    Watch,
)
from actors.wire.messages import Done, Piece, encode_error
from graphdb.errors import GraphDBError, NotLeader, OutcomeUnknown
from graphdb.model import LogEntry

__all__ = ["QueueWorker", "RaftLogClient"]

_CONFIRM_S = 3.0
_SLACK_S = 2.0  # beyond the time that the log itself takes care of
_UNCONDITIONAL_S = 20.0  # the log tries for 5 s, and waits for a leader's answer for 12 s
_CHANGE_S = 20.0  # the log gives a change up after 10 s, and so does the leader's


class RaftLogClient(LogClient):
    """A `LogAccess` whose appends succeed on the leader only, and what else a port asks of its cluster.

    Everything raises LogUnavailable where the log does not answer.
    """

    settles_at_once = False

    def __init__(self, endpoint: Callable[[], Awaitable[str]]) -> None:
        """See `LogClient`."""
        super().__init__(endpoint, RAFT_LOG_MESSAGES)
        self._port = secrets.randbits(63)  # so that the log can tell this port from one before it

    async def confirm(self, index: int) -> bool:
        """Whether nothing that concerns quads had been stored behind index at the call. Raises NotLeader."""
        request = Confirm(index, _CONFIRM_S)
        return (await self._ask(request, Index, timeout_s=_CONFIRM_S + _SLACK_S)).index == index

    async def append_unconditionally(self, entries: Sequence[LogEntry]) -> int:
        """See `LogClient.append_unconditionally`, `ForwardedAppends.append`."""
        request = AppendUnconditionally(encode_entries(entries))
        return (await self._wire.ask(request, Index, _UNCONDITIONAL_S)).index

    async def watch(self, version: int, committed_index: int) -> ClusterView:
        """The view of the cluster as soon as it is another one, or more is committed; else after a while."""
        return await self._ask(Watch(version, committed_index), ClusterView, timeout_s=None)

    async def last_effect_index(self) -> int:
        """The last entry of this node's log that changes anything, committed or not."""
        return (await self._ask(AskLastEffect(), Index)).index

    async def read_index(self, timeout_s: float) -> int:
        """An index that a linearizable read has to see; the log can be read so far. Raises NotLeader."""
        return (await self._ask(ReadIndex(timeout_s), Index, timeout_s=timeout_s + _SLACK_S)).index

    async def forward(self, node_id: int, request: ForwardedRequest, timeout_s: float) -> bytes:
        """Have another node perform a request, at most once: its answer.

        Raises what that node raises, LogUnavailable (it was not given to that node), OutcomeUnknown.
        """
        asked = Forward(node_id, request, timeout_s)
        return (await self._wire.ask(asked, Piece, timeout_s + _SLACK_S)).data

    async def take(self, queue: RequestQueue = RequestQueue.GRAPH) -> list[ForwardedRequest]:
        """Requests of other nodes' clients, once there are any; none after `leave`. Each must be finished."""
        return (await self._ask(Take(queue, self._port), Requests, timeout_s=None)).requests

    async def leave(self, queue: RequestQueue = RequestQueue.GRAPH) -> None:
        """Take no more requests: one that waits is answered, with nothing; those of others are refused."""
        await self._ask(Leave(queue, self._port), Done)

    async def finish(
        self, number: int, succeeded: bool, outcome: bytes, queue: RequestQueue = RequestQueue.GRAPH
    ) -> None:
        """Answer a request that was taken."""
        await self._ask(Finish(queue, number, succeeded, outcome), Done)

    async def change(self, change: MemberChange) -> None:
        """Have the cluster changed. Raises MembershipRefused, UnavailableError."""
        await self._wire.ask(change, Done, _CHANGE_S)

    async def offer(self, index: int, tree: str) -> None:
        """Give a snapshot of the state at index for peers that need one; the tree is the log's from then on.

        Raises LogCompacted.
        """
        await self._ask(Offer(index, tree), Done)

    async def adopted(self, index: int) -> None:
        """The store has become the received snapshot at index."""
        await self._ask(Adopted(index), Done)


_AGAIN_S = 0.2
_LEAVE_S = 2.0  # so long a log may take to hear that this port takes no more


class QueueWorker:
    """For one event loop."""

    def __init__(
        self, log: RaftLogClient, queue: RequestQueue, perform: Callable[[ForwardedRequest], Awaitable[bytes]]
    ) -> None:
        """queue: nobody else takes there. perform: the answer; what it raises is raised where it was
        asked."""
        self._log, self._queue, self._perform = log, queue, perform
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
                    await self._log.leave(self._queue)
                    await self._taking  # it was answered before
            self._taking.cancel()
            await asyncio.gather(self._taking, return_exceptions=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def outcome(self, request: ForwardedRequest) -> tuple[bool, bytes]:
        """Whether it was performed, and the answer or the error."""
        try:
            if self._closing:
                raise NotLeader("this node is stopping")
            return True, await self._perform(request)
        except Exception as error:  # noqa: BLE001 whoever asked gets it
            return False, encode_error(error, OutcomeUnknown)

    async def _take(self) -> None:
        while True:
            try:
                requests = await self._log.take(self._queue)
            except GraphDBError:
                await asyncio.sleep(_AGAIN_S)  # the log is being started again, or cannot be
                continue
            if not requests:
                return  # the last answer, after `leave`
            for request in requests:
                task = asyncio.get_running_loop().create_task(self._finish(request))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _finish(self, request: ForwardedRequest) -> None:
        succeeded, outcome = await self.outcome(request)
        with contextlib.suppress(GraphDBError):  # then who asked learns that the outcome is unknown
            await self._log.finish(request.number, succeeded, outcome, self._queue)
