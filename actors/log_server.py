"""The Unix domain socket that an `UpdateLog` listens on."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol, cast

from actors.frames import Frame, FrameReader, encode_frame
from actors.log_protocol import (
    LogStatus,
    Request,
    Status,
    decode_append,
    decode_index,
    decode_read,
    encode_entries,
    encode_error,
    encode_index,
    encode_status,
)
from actors.private_socket import private_directory
from graphdb.errors import LogUnavailable
from graphdb.model import LogEntry

__all__ = ["LogServer"]


class ServedLog(Protocol):
    """What the server needs of an `UpdateLog`."""

    def submit_append(self, entries: list[LogEntry], expected_index: int) -> "Future[int]": ...
    def submit_read(self, from_index: int, max_bytes: int) -> "Future[list[LogEntry]]": ...
    def submit_status(self) -> "Future[LogStatus]": ...
    def submit_truncate_before(self, index: int) -> "Future[None]": ...


class LogServer:
    """Serves one log, on the event loop that the log works on.

    Only the same user can reach the socket: its directory has mode 0700.
    """

    def __init__(self, log: ServedLog, log_directory: str, socket_directory: str | None) -> None:
        self.path = os.path.join(socket_directory or private_directory(log_directory), "log.sock")
        self._log = log
        self._connections: set[_Connection] = set()
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Listen."""
        # left by a process that was killed; the log's lock says that it is gone
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(
            lambda: _Connection(self._log, self._connections), self.path
        )

    async def close(self) -> None:
        """Stop listening and end the connections. What they were waiting for may still be stored."""
        assert self._server is not None
        self._server.close()
        for connection in tuple(self._connections):
            connection.abort()
        await asyncio.sleep(0)  # the transports finish closing
        os.unlink(self.path)


class _Connection(asyncio.Protocol):
    def __init__(self, log: ServedLog, connections: "set[_Connection]") -> None:
        self._log = log
        self._connections = connections
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._connections.discard(self)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            future, encode = self._submit(frame)
            future.add_done_callback(partial(self._answer, frame.number, encode))

    def _submit(self, frame: Frame) -> "tuple[Future[Any], Callable[[Any], bytes]]":
        """Hand a request to the log; how to encode its result."""
        match frame.code:
            case Request.APPEND:
                return self._log.submit_append(*decode_append(frame.body)), encode_index
            case Request.READ:
                return self._log.submit_read(*decode_read(frame.body)), encode_entries
            case Request.STATUS:
                return self._log.submit_status(), encode_status
            case Request.TRUNCATE_BEFORE:
                return self._log.submit_truncate_before(decode_index(frame.body)), lambda _: b""
            case _:
                future: Future[None] = Future()
                future.set_exception(LogUnavailable(f"the log knows no request {frame.code}"))
                return future, lambda _: b""

    def _answer(self, number: int, encode: Callable[[Any], bytes], done: "Future[Any]") -> None:
        """Called by the log on its thread, which is the loop's."""
        error = done.exception()
        status, body = (Status.OK, encode(done.result())) if error is None else encode_error(error)
        if self._transport is not None:
            self._transport.write(encode_frame(status, number, body))
