"""`WireClient`: another process of the service, from the side of those who ask it something."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

from actors.wire.connection import Connection, Stream, open_stream
from actors.wire.deadlines import Deadlines
from actors.wire.messages import Frame, Messages, expect
from graphdb.errors import OutcomeUnknown, UnavailableError

__all__ = ["WireClient"]

T = TypeVar("T")
_KEPT_MAX = 8  # connections without a call


class WireClient:
    """Calls of a `WireServer`, any number at a time, for one event loop.

    There are two ways. `ask` is for many small calls: all go over one connection, and one that its caller
    gives up is performed all the same. `open` and `call` are for what takes long or has a long answer: it has
    a connection of its own, whose end cancels it, and whose reader sets the pace. Whoever has read such an
    answer to its end may hand the connection to `keep`, for a later `kept`.

    Where the process is, is asked at the first use, and again after it was away: it may listen elsewhere.
    """

    def __init__(
        self,
        messages: Messages,
        name: str,
        find_endpoint: Callable[[], Awaitable[str]],
        *,
        away: type[UnavailableError] = UnavailableError,
    ) -> None:
        """name stands in errors, as a plural or singular with its verb: "the readers do". find_endpoint
        answers the path of the socket, or raises UnavailableError. away: what is raised where the process
        does not answer.
        """
        self._messages, self._away = messages, away
        self._does, self._name = name, name.rpartition(" ")[0]
        self._find_endpoint = find_endpoint
        self._path: str | None = None
        self._channel: _Channel | None = None
        self._kept: list[Stream] = []
        self._connecting = asyncio.Lock()

    async def ask(self, request: object, answer: type[T], timeout_s: float | None) -> T:
        """A request that has one answer, of this kind. timeout_s: None where the caller waits for ever.

        Raises the error that is the answer; `away` where nothing was sent; OutcomeUnknown where the answer
        was lost, or has not come in time.
        """
        channel = self._channel
        if channel is None or channel.is_gone:
            channel = await self._connected()
        try:
            frame = await channel.request(request, timeout_s)
        except TimeoutError:
            raise OutcomeUnknown(f"{self._name} has not answered for {timeout_s:g} s") from None
        if frame is None:
            raise OutcomeUnknown(f"the connection to {self._name} was lost")
        return expect(answer, self._messages.decode(frame))

    async def open(self) -> Stream:
        """A connection for one call; whoever gets it closes it. Raises `away`."""
        if self._path is None:
            self._path = await self._find_endpoint()
        try:
            return await open_stream(self._messages, self._path)
        except OSError as error:
            self._path = None
            raise self._away(f"{self._does} not answer: {error.strerror}") from error

    def kept(self) -> Stream | None:
        """As `open`, without waiting: a connection that was kept, if one is there."""
        while self._kept:
            stream = self._kept.pop()
            if not stream.is_gone:
                return stream
        return None

    def keep(self, stream: Stream) -> None:
        """Take back a connection whose call is over: its last message was read."""
        if len(self._kept) < _KEPT_MAX and not stream.is_gone:
            self._kept.append(stream)
        else:
            stream.close()

    async def call(self, request: object, answer: type[T], timeout_s: float | None) -> T:
        """As `ask`, over a connection of its own. Raises `away` wherever no answer comes."""
        message = None
        try:
            async with asyncio.timeout(timeout_s):
                stream = await self.open()
                try:
                    stream.send(request)
                    message = await stream.read()
                finally:
                    stream.close()
        except TimeoutError:
            pass
        if message is None:
            raise self._away(f"{self._does} not answer")
        return expect(answer, message)

    async def adopt(self, connection: socket.socket) -> None:
        """Have `ask` use one end of a socket pair, which is closed at its end. Raises OSError."""
        loop = asyncio.get_running_loop()
        _, self._channel = await loop.create_unix_connection(
            lambda: _Channel(self._messages), sock=connection
        )

    async def until_gone(self) -> None:
        """Return when the connection of `ask`, which is there, has ended."""
        assert self._channel is not None
        await self._channel.ended.wait()

    def close(self) -> None:
        """End the connection of `ask`, whose calls under way fail, and those that are kept."""
        while self._kept:
            self._kept.pop().close()
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    async def _connected(self) -> "_Channel":
        async with self._connecting:
            if self._channel is None or self._channel.is_gone:
                path = await self._find_endpoint()
                loop = asyncio.get_running_loop()
                try:
                    _, self._channel = await loop.create_unix_connection(
                        lambda: _Channel(self._messages), path
                    )
                except OSError as error:
                    raise self._away(f"{self._does} not answer: {error.strerror}") from error
            return self._channel


class _Channel(Connection):
    """A connection of many calls, told apart by their numbers."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[Frame | None]] = {}
        self._deadlines = Deadlines(_expire)
        self._number = 0
        self.ended = asyncio.Event()

    async def request(self, message: object, timeout_s: float | None) -> Frame | None:
        """Send it, wait for the answer; None where the connection is lost before. Raises TimeoutError."""
        self._number = number = (self._number + 1) % (1 << 32)
        self.write(self.messages.encode(message, number))
        # what follows is done while it is on its way; the answer is taken in another turn of the loop
        answered: asyncio.Future[Frame | None] = self._loop.create_future()
        self._waiting[number] = answered
        if timeout_s is not None:
            self._deadlines.set(answered, timeout_s)
        try:
            return await answered
        finally:
            del self._waiting[number]
            self._deadlines.over(answered)

    def take(self, frame: Frame) -> None:
        answered = self._waiting.get(frame.number)
        if answered is not None and not answered.done():  # else its caller has gone
            answered.set_result(frame)

    def gone(self) -> None:
        self.ended.set()
        self._deadlines.close()
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_result(None)


def _expire(answered: "asyncio.Future[Frame | None]") -> None:
    if not answered.done():
        answered.set_exception(TimeoutError())
