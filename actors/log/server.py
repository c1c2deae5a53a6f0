"""The Unix domain socket that a log listens on."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

from actors.error_codec import encode_error
from actors.frames import Frame, FrameReader, encode_frame
from actors.log.protocol import (
    LogStatus,
    Request,
    Status,
    decode_append,
    decode_read,
    decode_truncation,
    decode_watch_index,
    encode_entries,
    encode_index,
    encode_status,
)
from actors.private_socket import private_directory
from graphdb.errors import LogUnavailable, OutcomeUnknown
from graphdb.model import LogEntry

__all__ = ["Handler", "LogServer", "ServedLog", "encode_nothing", "log_handlers"]

# what a request's body asks for, and how to encode what comes of it
Handler: TypeAlias = "Callable[[bytes], tuple[Future[Any], Callable[[Any], bytes]]]"


class ServedLog(Protocol):
    """What every log answers."""

    def submit_append(self, entries: list[LogEntry], expected_index: int) -> "Future[int]": ...
    def submit_read(self, from_index: int, max_bytes: int) -> "Future[list[LogEntry]]": ...
    def submit_status(self) -> "Future[LogStatus]": ...
    def submit_truncate_before(self, index: int, view: str) -> "Future[None]": ...
    def submit_watch_index(self, known_index: int, timeout_s: float) -> "Future[int]": ...


def log_handlers(log: ServedLog) -> dict[int, Handler]:
    """How a log answers the requests of `actors.log.protocol`."""
    return {
        Request.APPEND: lambda body: (log.submit_append(*decode_append(body)), encode_index),
        Request.READ: lambda body: (log.submit_read(*decode_read(body)), encode_entries),
        Request.STATUS: lambda _: (log.submit_status(), encode_status),
        Request.TRUNCATE_BEFORE: lambda body: (
            log.submit_truncate_before(*decode_truncation(body)),
            encode_nothing,
        ),
        Request.WATCH_INDEX: lambda body: (log.submit_watch_index(*decode_watch_index(body)), encode_index),
    }


def encode_nothing(_: object) -> bytes:
    """The body of an answer that says no more than that it is done."""
    return b""


class LogServer:
    """Serves one log, on the event loop that the log works on.

    Only the same user can reach the socket: its directory has mode 0700.
    """

    def __init__(
        self, handlers: Mapping[int, Handler], log_directory: str, socket_directory: str | None
    ) -> None:
        """handlers: by the code of the request. They are called on the loop, and their futures answered
        there.
        """
        self.path = os.path.join(socket_directory or private_directory(log_directory), "log.sock")
        self._handlers = handlers
        self._connections: set[_Connection] = set()
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Listen."""
        # left by a process that was killed; the log's lock says that it is gone
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(
            lambda: _Connection(self._handlers, self._connections), self.path
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
    def __init__(self, handlers: Mapping[int, Handler], connections: "set[_Connection]") -> None:
        self._handlers = handlers
        self._connections = connections
        self._reader = FrameReader()
        self._waiting: set[Future[Any]] = set()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._connections.discard(self)
        for future in tuple(self._waiting):
            future.cancel()  # nobody is there to be answered

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            future, encode = self._submit(frame)
            self._waiting.add(future)
            future.add_done_callback(partial(self._answer, frame.number, encode))

    def _submit(self, frame: Frame) -> "tuple[Future[Any], Callable[[Any], bytes]]":
        """Hand a request to the log; how to encode its result."""
        if handler := self._handlers.get(frame.code):
            return handler(frame.body)
        future: Future[None] = Future()
        future.set_exception(LogUnavailable(f"the log knows no request {frame.code}"))
        return future, encode_nothing

    def _answer(self, number: int, encode: Callable[[Any], bytes], done: "Future[Any]") -> None:
        """Called by the log on its thread, which is the loop's."""
        self._waiting.discard(done)
        if self._transport is None:
            return
        if done.cancelled():
            status, body = Status.ERROR, encode_error(OutcomeUnknown("the log has given the request up"))
        elif (error := done.exception()) is None:
            status, body = Status.OK, encode(done.result())
        else:
            status, body = Status.ERROR, encode_error(error, LogUnavailable)
        self._transport.write(encode_frame(status, number, body))
