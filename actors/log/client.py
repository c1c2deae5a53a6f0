"""`LogClient`: the update log as seen from another process, over its Unix domain socket."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import IntEnum
from typing import Protocol, cast

from actors.error_codec import decode_error
from actors.frames import Frame, FrameReader, encode_frame
from actors.log.protocol import (
    LogStatus,
    Request,
    Status,
    decode_entries,
    decode_index,
    decode_status,
    encode_append,
    encode_read,
    encode_truncation,
    encode_watch_index,
)
from graphdb.errors import LogUnavailable, OutcomeUnknown
from graphdb.model import LogEntry

__all__ = ["LogAccess", "LogClient"]

_APPEND_S = 20.0  # a log that syncs for longer hangs; what it was given may still be stored
_ANSWER_S = 10.0
_WATCH_S = 10.0


class LogAccess(Protocol):
    """The update log from its users' side; `LogClient` is the one of a node that stands alone."""

    # whether it can tell at once what has become of an append whose answer was lost; where not, that is known
    # when the places that the entries would have are taken
    settles_at_once: bool

    async def append(self, entries: list[LogEntry], expected_index: int = 0) -> int: ...
    async def read(self, from_index: int, max_bytes: int = ...) -> list[LogEntry]: ...
    async def status(self) -> LogStatus: ...
    async def confirm(self, index: int) -> bool: ...
    async def truncate_before(self, index: int, view: str) -> None: ...
    async def append_anywhere(self, entries: Sequence[LogEntry]) -> int: ...
    async def watch_index(self, known_index: int, timeout_s: float = ...) -> int: ...
    async def close(self) -> None: ...


class LogClient:
    """Requests to an `UpdateLog`, any number at a time, for one event loop.

    It connects when first used, and again after the connection was lost; then it asks `endpoint` anew where
    the log is, for a restarted log may listen elsewhere. LogUnavailable means that nothing was sent, or that
    the log has refused; OutcomeUnknown that the answer to an append was lost, or has not come in time.
    """

    settles_at_once = True

    def __init__(self, endpoint: Callable[[], Awaitable[str]]) -> None:
        """endpoint answers the path of the socket, or raises LogUnavailable."""
        self._endpoint = endpoint
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()

    async def append(self, entries: Sequence[LogEntry], expected_index: int = 0) -> int:
        """See `UpdateLog.append`. Raises StorageFull, LogUnavailable, OutcomeUnknown."""
        body = encode_append(entries, expected_index)
        return decode_index(await self._request(Request.APPEND, body, timeout_s=_APPEND_S))

    async def append_anywhere(self, entries: Sequence[LogEntry]) -> int:
        """Store entries behind whatever there is, wherever in the cluster that is done; the first's index.

        They can be read here at that index, perhaps a moment later. Raises NotLeader (none leads),
        StorageFull, Overloaded, LogUnavailable (nothing was stored), OutcomeUnknown.
        """
        return await self.append(entries)

    async def read(self, from_index: int, max_bytes: int = 4 << 20) -> list[LogEntry]:
        """See `UpdateLog.read`. Raises CorruptionError, LogUnavailable."""
        return decode_entries(await self._ask(Request.READ, encode_read(from_index, max_bytes)))

    async def status(self) -> LogStatus:
        """See `UpdateLog.status`. Raises LogUnavailable."""
        return decode_status(await self._ask(Request.STATUS, b""))

    async def watch_index(self, known_index: int, timeout_s: float = _WATCH_S) -> int:
        """The last index that can be read: as soon as it is more than known_index, else when the time is up.

        Raises LogUnavailable.
        """
        body = encode_watch_index(known_index, timeout_s)
        return decode_index(await self._ask(Request.WATCH_INDEX, body, timeout_s=timeout_s + _ANSWER_S))

    async def confirm(self, index: int) -> bool:
        """Whether nothing that concerns quads had been stored behind index at the call: nobody else writes
        such entries here.
        """
        return True

    async def truncate_before(self, index: int, view: str) -> None:
        """See `UpdateLog.truncate_before`. Raises LogUnavailable, StorageFull."""
        await self._ask(Request.TRUNCATE_BEFORE, encode_truncation(index, view))

    async def close(self) -> None:
        """End the connection; requests under way fail."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _ask(self, request: IntEnum, body: bytes, *, timeout_s: float | None = _ANSWER_S) -> bytes:
        """A request that may be repeated, so that a lost answer means no more than an unavailable log."""
        try:
            return await self._request(request, body, timeout_s=timeout_s)
        except OutcomeUnknown as error:
            raise LogUnavailable(error.reason) from error

    async def _request(self, request: IntEnum, body: bytes, *, timeout_s: float | None) -> bytes:
        """timeout_s: None where whoever asks waits as long as it takes. Raises OutcomeUnknown after it."""
        connection = self._connection
        if connection is None or connection.lost:
            connection = await self._connect()
        try:
            async with asyncio.timeout(timeout_s):
                frame = await connection.request(request, body)
        except TimeoutError:
            raise OutcomeUnknown(f"the update log has not answered for {timeout_s:g} s") from None
        if frame.code != Status.OK:
            raise decode_error(frame.body)
        return frame.body

    async def _connect(self) -> "_Connection":
        async with self._connecting:
            if self._connection is None or self._connection.lost:
                path = await self._endpoint()
                try:
                    _, connection = await asyncio.get_running_loop().create_unix_connection(_Connection, path)
                except OSError as error:
                    raise LogUnavailable(f"the update log does not answer: {error.strerror}") from error
                self._connection = connection
            return self._connection


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader()
        self._waiting: dict[int, asyncio.Future[Frame]] = {}
        self._number = 0
        self._transport: asyncio.Transport | None = None
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(OutcomeUnknown("the connection to the update log was lost"))

    def data_received(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            future = self._waiting.get(frame.number)
            if future is not None and not future.done():
                future.set_result(frame)

    async def request(self, request: IntEnum, body: bytes) -> Frame:
        """Send, wait for the answer. Raises OutcomeUnknown."""
        assert self._transport is not None
        self._number = number = (self._number + 1) % (1 << 32)
        future: asyncio.Future[Frame] = self._loop.create_future()
        self._waiting[number] = future
        try:
            self._transport.write(encode_frame(request, number, body))
            return await future
        finally:
            del self._waiting[number]

    def close(self) -> None:
        assert self._transport is not None
        self._transport.abort()
