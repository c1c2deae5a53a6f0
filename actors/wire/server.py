"""`WireServer`: a process of the service that others ask, on its Unix domain socket, in a directory that this
user alone can enter.
"""

import asyncio
import contextlib
import hashlib
import os
import socket
import stat
import tempfile
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any, TypeVar

from actors.wire.connection import Connection
from actors.wire.messages import Frame, Messages
from graphdb.errors import OutcomeUnknown, UnavailableError

__all__ = ["Call", "ServerConnection", "WireServer", "private_directory"]


def private_directory(owned_directory: str) -> str:
    """A directory for the sockets of whoever serves this one. Its path is short: a socket's has 107 bytes at
    most.

    It is the same for every process that does so in turn, so that killed ones leave nothing behind.
    """
    digest = hashlib.sha256(os.path.realpath(owned_directory).encode()).hexdigest()[:16]
    path = os.path.join(tempfile.gettempdir(), f"graphdb-{os.getuid()}-{digest}")
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o700
        if not private or found.st_uid != os.getuid():  # somebody else was there first
            return tempfile.mkdtemp(prefix="graphdb-")
    return path


T = TypeVar("T")


class WireServer:
    """Serves calls, on the event loop that start() runs on.

    Only the same user can reach the socket: its directory has mode 0700 (`private_directory`).
    """

    def __init__(
        self,
        messages: Messages,
        name: str,
        path: str,
        serve: "Callable[[Call], None]",
        *,
        otherwise: type[UnavailableError] = UnavailableError,
    ) -> None:
        """serve is called for each request and does not wait: it sees to an answer (`Call`). name stands in
        errors. path is that of the socket; empty where all clients are adopted. otherwise: what a caller is
        told of an error that this project does not name.
        """
        self.messages, self.name, self.path = messages, name, path
        self.serve, self.otherwise = serve, otherwise
        self.connections: set[ServerConnection] = set()
        self.is_closed = False
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Listen."""
        # left by a process that was killed; whoever serves makes sure that there is one of it
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.is_closed = False
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: ServerConnection(self), self.path)

    async def adopt(self, connection: socket.socket) -> "ServerConnection":
        """Serve one end of a socket pair too, which is closed at its end. Raises OSError."""
        loop = asyncio.get_running_loop()
        _, adopted = await loop.create_unix_connection(lambda: ServerConnection(self), sock=connection)
        return adopted

    async def close(self) -> None:
        """Stop listening and end the connections, and with them what is under way: it is given up, or what
        the answer to it waits for happens unheard.
        """
        assert self._server is not None
        self.is_closed = True
        self._server.close()
        ending = tuple(self.connections)
        for connection in ending:
            connection.close()
        await asyncio.gather(*(connection.ended() for connection in ending))
        os.unlink(self.path)


class Call:
    """A request, and the way of what is answered: pieces, if any, then the last message or an error.

    It is over with the last message, or when the client has gone, which cancels it.
    """

    __slots__ = ("_connection", "_heard", "_listener", "_number", "is_over", "on_gone", "request")

    def __init__(self, connection: "ServerConnection", number: int, request: Any) -> None:
        self.request = request
        self.is_over = False
        self.on_gone: Callable[[], object] | None = None  # what there is to do where the client goes away
        self._connection, self._number = connection, number
        self._heard: list[Any] = []  # the next one first
        self._listener: asyncio.Future[None] | None = None

    def answer(self, *messages: object) -> None:
        """The last of the answer."""
        if not self.is_over:
            data = self._encoded(messages)
            self.end()
            self._connection.write(data)

    def fail(self, error: BaseException) -> None:
        """The same: the client raises this error."""
        if not self.is_over:
            self.end()
            server = self._connection.server
            self._connection.write(server.messages.encode_failure(error, self._number, server.otherwise))

    async def send(self, *messages: object) -> None:
        """Some of the answer, once the client has read most of what came before."""
        await self._connection.writable()
        if not self.is_over:
            self._connection.write(self._encoded(messages))

    def wait_no_more(self) -> None:
        """From now on send() does not wait for the client, who has this connection for this call until it has
        the whole answer.
        """
        self._connection.wait_no_more()

    async def receive(self) -> Any:
        """The next message that the client sends in the course of the call."""
        while not self._heard:
            self._listener = asyncio.get_running_loop().create_future()
            await self._listener
        return self._heard.pop(0)

    def answer_with(self, future: "Future[T]", message: Callable[[T], object]) -> None:
        """Answer what comes of a future, which is done on the loop's thread. It is cancelled where the client
        goes away.
        """
        self.on_gone = future.cancel
        future.add_done_callback(partial(self._settle, message))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Have a task see to the answer. It is cancelled where the client goes away, unless it sets on_gone
        to something else; what it raises is the answer.
        """
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self.on_gone = task.cancel
        self._connection.tasks.add(task)
        task.add_done_callback(self._connection.tasks.discard)

    def hear(self, message: Any) -> None:
        """For the connection: the client goes on."""
        self._heard.append(message)
        if self._listener is not None and not self._listener.done():
            self._listener.set_result(None)

    def end(self) -> None:
        """For the connection: nobody is there to be answered any more."""
        self.is_over = True
        self.on_gone = None
        self._connection.calls.pop(self._number, None)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 the client gets it
            self.fail(error)

    def _settle(self, message: Callable[[Any], object], done: "Future[Any]") -> None:
        if self.is_over:
            return
        try:
            self.answer(message(done.result()))
        except CancelledError:
            self.fail(OutcomeUnknown(f"{self._connection.server.name} has given the request up"))
        except Exception as error:  # noqa: BLE001 the client gets it
            self.fail(error)

    def _encoded(self, messages: tuple[object, ...]) -> bytes:
        encode, number = self._connection.messages.encode, self._number
        if len(messages) == 1:
            return encode(messages[0], number)
        return b"".join(encode(message, number) for message in messages)


class ServerConnection(Connection):
    """A client's calls, which end with it."""

    _hears_failures = False

    def __init__(self, server: WireServer) -> None:
        super().__init__(server.messages)
        self.server = server
        self.calls: dict[int, Call] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self._lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.server.connections.add(self)
        if self.server.is_closed:  # just now, and whoever came last is not left
            self.close()

    async def ended(self) -> None:
        """Return when it is closed and all that was done for it has ended."""
        await self._lost.wait()
        if self.tasks:
            await asyncio.wait(self.tasks)

    def gone(self) -> None:
        self.server.connections.discard(self)
        for call in tuple(self.calls.values()):
            on_gone = call.on_gone
            call.end()
            if on_gone is not None:
                on_gone()
        self._lost.set()

    def take(self, frame: Frame) -> None:
        call = self.calls.get(frame.number)
        try:
            message = self.messages.decode(frame)
        except ValueError as error:
            unknown = self.server.otherwise(f"{self.server.name} knows no request {frame.code}: {error}")
            self.write(self.messages.encode_failure(unknown, frame.number))
            return
        if call is not None:
            call.hear(message)
            return
        if not self.calls:
            self.wait_again()
        self.calls[frame.number] = call = Call(self, frame.number, message)
        try:
            self.server.serve(call)
        except Exception as error:  # noqa: BLE001 the client gets it
            call.fail(error)
