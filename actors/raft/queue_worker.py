"""`QueueWorker`: a port's part in performing what other nodes have asked for: it takes, performs, answers."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from actors.raft.log_requests import ForwardedRequest, RequestQueue
from actors.raft.raft_log_client import RaftLogClient
from actors.wire.error_codec import encode_error
from graphdb.errors import GraphDBError, NotLeader, OutcomeUnknown

__all__ = ["QueueWorker"]

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
