"""`ReaderClient`: the readers as seen from the port's process, over `StoreReader`'s Unix domain socket."""

import asyncio
from collections.abc import Awaitable, Callable

from actors.readers.protocol import (
    READER_MESSAGES,
    AskStatus,
    Granted,
    LeaseRequest,
    ReaderStatus,
    ReleaseCheckpoint,
    Task,
)
from actors.wire.client import WireClient
from actors.wire.connection import Stream
from actors.wire.messages import Done, Piece, expect
from graphdb.errors import QueryTimeout, UnavailableError

__all__ = ["Lease", "ReaderClient"]

_AWAY_S = 10.0  # a killed StoreReader is back within 2 s, or twice that on a busy machine
_ASK_AGAIN_S = 0.05
_CALL_S = 5.0


class Lease:
    """A place in the StoreReader's queue, then an evaluator, for one query. Made by `ReaderClient.lease`."""

    def __init__(self, stream: Stream) -> None:
        self.where = ""  # the evaluator, once there is one: "reader 2 (process 1234)"
        self.on_close: Callable[[Lease], None] = lambda _: None
        self._stream = stream

    async def wait_granted(self, request: LeaseRequest) -> bool:
        """Queue for an evaluator; False where the StoreReader went away meanwhile. Raises Overloaded, ..."""
        self._stream.send(request)
        granted = await self._stream.read()
        if granted is not None:
            self.where = expect(Granted, granted).where
        return granted is not None

    def evaluate(self, task: Task) -> None:
        """Hand over the task; once. If the StoreReader has gone meanwhile, read() tells."""
        self._stream.send(task)

    async def read(self) -> bytes | None:
        """The next piece of the answer, about 64 kB; None at its end, which alone says that it is whole.

        Raises EvaluationFailed, NotAcceptable, LimitExceeded, HostNotAllowed, QueryTimeout,
        QueryMemoryExceeded, UnavailableError; for a validation RdfSyntaxError, MalformedShapes, UnknownGraph
        as well.
        """
        message = await self._stream.read()
        if message is None:
            raise UnavailableError("the readers went away in the midst of the query")
        return None if isinstance(message, Done) else expect(Piece, message).data

    def close(self) -> None:
        """Give the evaluator back; if it is not finished, it is killed and replaced. Twice is allowed."""
        self._stream.close()
        self.on_close(self)


class ReaderClient:
    """Leases of evaluators, any number at a time, for one event loop.

    It asks `find_endpoint` where the StoreReader is when it is first used, and again after it was away.
    """

    def __init__(self, find_endpoint: Callable[[], Awaitable[str]]) -> None:
        """find_endpoint answers the path of the socket, or raises UnavailableError."""
        self._wire = WireClient(READER_MESSAGES, "the readers do", find_endpoint)
        self._leases: set[Lease] = set()

    async def lease(self, query_id: str, timeout_s: float) -> Lease:
        """Wait for an evaluator, and for the StoreReader if it is being started again.

        timeout_s counts from here to the last byte of the answer. Whoever gets the lease closes it.
        Raises Overloaded, QueryTimeout, UnavailableError.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return await self._lease(query_id, timeout_s)
        except TimeoutError:
            raise QueryTimeout(f"no reader was free within the query's {round(timeout_s, 2):g} s") from None

    async def release_checkpoint(self, path: str) -> None:
        """Return when no idle evaluator has it open any more, or where none can be asked."""
        try:
            await self._wire.call(ReleaseCheckpoint(path), Done, _CALL_S)
        except UnavailableError:
            return

    async def status(self) -> ReaderStatus:
        """What runs and what waits. Raises UnavailableError."""
        return await self._wire.call(AskStatus(), ReaderStatus, _CALL_S)

    async def close(self) -> None:
        """Cancel what still runs."""
        for lease in tuple(self._leases):
            lease.close()

    async def _lease(self, query_id: str, timeout_s: float) -> Lease:
        loop = asyncio.get_running_loop()
        last_seen = began = loop.time()
        while True:
            try:
                lease = Lease(await self._wire.open())
            except UnavailableError:
                if loop.time() > last_seen + _AWAY_S:
                    raise
            else:
                if await self._is_granted(lease, LeaseRequest(query_id, timeout_s, loop.time() - began)):
                    return lease
                last_seen = loop.time()
            await asyncio.sleep(_ASK_AGAIN_S)

    async def _is_granted(self, lease: Lease, request: LeaseRequest) -> bool:
        is_granted = False
        self._leases.add(lease)
        lease.on_close = self._leases.discard
        try:
            is_granted = await lease.wait_granted(request)
        finally:
            if not is_granted:
                lease.close()
        return is_granted
