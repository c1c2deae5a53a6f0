"""A connection's ends in processes with an event loop: `Connection`, and `Stream`, which is read in order."""

import asyncio
import logging
import socket
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
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

    def taken(self) -> None:
        """All frames that had come together were taken."""

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
        self.taken()

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
        self._on_heard: Callable[[], None] | None = None

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

    def once_heard(self, call: Callable[[], None]) -> None:
        """Have something called, once, as soon as anything has come or the other end is gone: in place of a
        task that waits in read().
        """
        self._on_heard = call

    def all_with(self, last: type[Any]) -> list[Any] | None:
        """All messages that nobody has read, if the last one is of this kind; None, and they are still to be
        read, if it is another, or too many have come to be held.

        Raises ValueError for what is not a message.
        """
        frames = self._frames
        if not frames or self._is_paused or not self.messages.is_of(last, frames[-1]):
            return None
        messages = [self.messages.decode(frame) for frame in frames]
        frames.clear()
        self._bytes = 0
        return messages

    def send(self, message: object) -> None:
        """Nothing happens where the other end is gone: read() tells."""
        self.write(self.messages.encode(message))

    def take(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._bytes += len(frame.body)
        if self._bytes > _INCOMING_BYTES and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def taken(self) -> None:
        call, self._on_heard = self._on_heard, None
        if call is not None:
            call()
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def gone(self) -> None:
        self.taken()


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
