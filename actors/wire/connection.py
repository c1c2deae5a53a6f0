"""A connection's ends in processes with an event loop: `Connection`, and `Stream`, which is read in order."""

import asyncio
import logging
import socket
from abc import ABC, abstractmethod
from collections import deque
from typing import Any, ClassVar, TypeVar, cast

from actors.wire.messages import Frame, Messages

__all__ = ["Connection", "Stream", "open_stream", "stream_over"]

T = TypeVar("T")
logger = logging.getLogger(__name__)
_OUTGOING_BYTES = 128 << 10  # that wait here for a slow reader; then `writable` waits
_INCOMING_BYTES = 128 << 10  # of messages that nobody has read yet, about; then the other end waits
_INCOMING_BYTES_LOW = 64 << 10


class Connection(asyncio.BufferedProtocol, ABC):
    """Frames in and out, until either end closes. Subclasses say what a frame means."""

    _hears_failures: ClassVar[bool] = True

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.is_gone = False
        self._frames_in = messages.reader(failures=self._hears_failures)
        self._writable = asyncio.Event()
        self._writable.set()
        self._waits_for_reader = True

    @abstractmethod
    def take(self, frame: Frame) -> None:
        """A frame has come."""

    def gone(self) -> None:
        """The connection has ended, by either end."""

    def write(self, data: bytes) -> None:
        """Send whole frames. Nothing happens where the other end is gone; gone() comes soon."""
        if not self._transport.is_closing():  # uvloop refuses what is closed
            self._transport.write(data)

    async def writable(self) -> None:
        """Return once the other end has read so much that more may be sent."""
        await self._writable.wait()

    def wait_no_more(self) -> None:
        """From now on writable() returns at once."""
        self._waits_for_reader = False
        self._writable.set()

    def wait_again(self) -> None:
        """From now on writable() waits as at first; everything that was sent has been read."""
        self._waits_for_reader = True

    def close(self) -> None:
        """End it at once; what waits to be sent is lost. Twice is allowed."""
        self._transport.abort()

    # what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_OUTGOING_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_gone = True
        self.wait_no_more()
        self.gone()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames_in.room()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            frames = self._frames_in.received(nbytes)
        except ValueError as error:
            logger.error(
                "a connection between processes is ended: the other end sends what makes no sense: %s", error
            )
            self.close()
            return
        for frame in frames:
            self.take(frame)

    def pause_writing(self) -> None:
        if self._waits_for_reader:
            self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()


class Stream(Connection):
    """A connection for one thing, a call or a child process. While its messages are not read, the other end
    waits; a client that closes it cancels the call.
    """

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        self._frames: deque[Frame] = deque()
        self._bytes = 0  # in these frames
        self._is_paused = False
        self._reader: asyncio.Future[None] | None = None

    async def read(self) -> Any | None:
        """The next message; None when the other end is gone. Raises the error that a failure is. One reader
        at a time.
        """
        while not self._frames:
            if self.is_gone:
                return None
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        frame = self._frames.popleft()
        self._bytes -= len(frame.body)
        if self._is_paused and self._bytes <= _INCOMING_BYTES_LOW:
            self._is_paused = False
            self._transport.resume_reading()
        return self.messages.decode(frame)

    def send(self, message: object) -> None:
        """Nothing happens where the other end is gone: read() tells."""
        self.write(self.messages.encode(message))

    def take(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._bytes += len(frame.body)
        if self._bytes > _INCOMING_BYTES and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def gone(self) -> None:
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


async def open_stream(messages: Messages, path: str) -> Stream:
    """To the process that listens there. Raises OSError."""
    loop = asyncio.get_running_loop()
    _, stream = await loop.create_unix_connection(lambda: Stream(messages), path)
    return stream


async def stream_over(messages: Messages, connection: socket.socket) -> Stream:
    """Over one end of a socket pair, which it closes at its end. Raises OSError."""
    loop = asyncio.get_running_loop()
    _, stream = await loop.create_unix_connection(lambda: Stream(messages), sock=connection)
    return stream
