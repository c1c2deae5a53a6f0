"""`PortServer`: one HTTP port served by uvicorn on a thread and an event loop of its own.

Requests and the other work of the process, such as Ray's calls of its actor, do not wait for each other.
This module does not know Ray or the application.
"""

import asyncio
import contextlib
import functools
import logging
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

import uvicorn
import uvloop
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from graphdb.errors import UnavailableError
from graphdb.timestamps import until_whole
from serve.access.request_scope import InternalApplication
from serve.answers import AnswerBroken
from serve.errors import unread_response
from serve.port.listen import BACKLOG, Listen, bind
from serve.port.protocol import PortProtocol
from serve.port.watch import PortWatch, private_limits
from serve.port.websocket import MESSAGE_BYTES_MAX, PortWebSocket

__all__ = ["SAFE_HEADERS", "Hosted", "PortServer"]

T = TypeVar("T")
logger = logging.getLogger(__name__)

_DRAIN_S = 5  # how long running requests may take when the port stops
_UNFINISHED = (
    "the service is stopping, and did not finish this request; what it was to change may be changed or not"
)
_RETRY_AFTER_S = "5"
_LEAVE_S = 1.0  # how long an idle connection is kept open then
_LOOK_S = 0.02
_DATE_S = 1.0  # in which dates count
_ACCEPTED_AT_ONCE = 100
_ACCEPT_AGAIN_S = 1.0
_TLS_CLOSING_S = 5.0  # how long a client may take to confirm the end of TLS
# Of every answer: browsers must not guess its type, nor show it in a frame.
SAFE_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"x-frame-options", b"DENY"))


class _OneLine(logging.Filter):
    """Logs a broken answer as one line, because its traceback adds nothing."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, AnswerBroken):
            record.msg, record.args, record.exc_info = str(error), (), None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


_ONE_LINE = _OneLine()


class Hosted(Protocol):
    """An application, and its state, which may take a while to start."""

    speaks_websocket: bool  # if not, a request for a WebSocket is answered as any other

    @property
    def app(self) -> ASGIApp:
        """Answers the requests."""

    async def start(self) -> None:
        """Start the state. The application answers meanwhile."""

    async def close(self) -> None:
        """Stop the state. No request is running any more."""


class _CalmServer(uvicorn.Server):
    """uvicorn's server, which does not look ten times a second whether it is to end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._asked = asyncio.Event()

    def end(self) -> None:
        """On the event loop."""
        self.should_exit = True
        self._asked.set()

    async def main_loop(self) -> None:
        """Keep the date of the answers right until the end."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(until_whole(_DATE_S, time.monotonic())):
                    await self._asked.wait()


class _Server(_CalmServer):
    """The server of a port, with two changes more.

    When uvicorn stops, it closes persistent connections at once, so that a request in transit is lost. Here
    the next answer on each connection has `Connection: close`. With TLS, a connection counts from its
    beginning, not from the end of its handshake.
    """

    def __init__(self, config: uvicorn.Config, watch: PortWatch) -> None:
        super().__init__(config)
        self._watch = watch

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        if sockets is None or self.config.ssl is None:
            return await super().startup(sockets)
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise RuntimeError("the application did not start")
        self.servers = [_TlsListener(one, self._protocol, self.config.ssl, self._watch) for one in sockets]  # type: ignore[misc]
        self.started = True

    def _protocol(self) -> PortProtocol:
        return PortProtocol(self.config, self.server_state, self.lifespan.state, watch=self._watch)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no connections, let clients leave the existing ones, then continue as uvicorn does."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            if isinstance(connection, PortProtocol):
                connection.leave()
        deadline = time.monotonic() + _LEAVE_S
        # uvicorn has no event for a closed connection
        while self.server_state.connections and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
        await super().shutdown(sockets)


class _TlsListener:
    """Accepts connections, with as many TLS handshakes at a time as there may be connections."""

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[], PortProtocol],
        context: ssl.SSLContext,
        watch: PortWatch,
    ) -> None:
        self._listening, self._protocol, self._context, self._watch = listening, protocol, context, watch
        self._loop = asyncio.get_running_loop()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._again: asyncio.TimerHandle | None = None
        self._listen()

    def _listen(self) -> None:
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                connection, peer = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no more files may be opened; trying again at once would not help
                logger.warning("connections are not accepted: %r", error)
                self._loop.remove_reader(self._listening)
                self._again = self._loop.call_later(_ACCEPT_AGAIN_S, self._listen)
                return
            connection.setblocking(False)
            protocol = self._protocol()
            if not self._watch.enter(protocol, str(peer[0])):
                connection.close()  # nothing can be sent before the handshake
                continue
            task = self._loop.create_task(self._shake_hands(connection, protocol))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, connection: socket.socket, protocol: PortProtocol) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._watch.server.tls_handshake_timeout_seconds,
                ssl_shutdown_timeout=_TLS_CLOSING_S,
            )
        except BaseException as error:
            self._watch.leave(protocol)
            if not isinstance(error, OSError | asyncio.CancelledError):
                raise

    def close(self) -> None:
        """Accept no more."""
        if self._again is not None:
            self._again.cancel()
        self._loop.remove_reader(self._listening)

    async def wait_closed(self) -> None:
        """Cancel the handshakes, and wait for their end."""
        for task in self._handshakes:
            task.cancel()
        await asyncio.gather(*self._handshakes, return_exceptions=True)


def _listening(listen: Listen) -> socket.socket:
    bound = bind(listen)
    bound.listen(BACKLOG)
    return bound


class PortServer:
    """Serves the application that `host` makes until it is stopped. `failure` is the reason if it cannot."""

    def __init__(
        self,
        listen: Listen,
        host: Callable[[], Awaitable[Hosted]],
        socket_path: str | None = None,
        get_socket: Callable[[Listen], socket.socket] = _listening,
        note_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Start. host is called on the port's event loop.

        socket_path: a Unix domain socket on which the same application is served without TLS to other
        processes of this node. The mode of its directory decides who may connect. get_socket: returns the
        listening socket. note_end: called on the port's thread when it has ended.
        """
        self._listen = listen
        self._host = host
        self._socket_path = socket_path
        self._get_socket = get_socket
        self._note_end = note_end
        self._loop = uvloop.new_event_loop()
        self._server: _CalmServer | None = None
        self._stopping = threading.Event()
        self.ready = threading.Event()
        self.failure: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"port-{listen.port}", daemon=True)
        self._thread.start()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The port's event loop, for coroutines of its state."""
        return self._loop

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    async def perform(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the port's loop, from another loop. Raises UnavailableError after the port's
        end.
        """
        if not self.is_alive:
            coroutine.close()
            raise UnavailableError("the port has ended")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    async def prepare_and_stop(
        self, prepare: Callable[[], Coroutine[Any, Any, None]] | None, prepare_s: float, timeout_s: float
    ) -> None:
        """Run prepare for at most prepare_s while the port still serves, then stop it even if that failed.

        Takes at most timeout_s. Called from another loop than the port's.
        """
        deadline = time.monotonic() + timeout_s
        try:
            if prepare is not None:
                async with asyncio.timeout(prepare_s):
                    await self.perform(prepare())
        except Exception as error:  # noqa: BLE001 the port is to stop
            logger.warning("the port stops unprepared: %r", error)
        finally:
            await asyncio.to_thread(self.stop, deadline - time.monotonic())

    def stop(self, timeout_s: float) -> None:
        """Stop accepting, finish running requests within the time, and stop the state."""
        self._stopping.set()
        if self._server is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                self._loop.call_soon_threadsafe(self._server.end)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            asyncio.set_event_loop(self._loop)
            self._loop.run_until_complete(self._serve())
        except Exception as error:  # noqa: BLE001 kept as the reason why the port is not ready
            self.failure = str(error) or repr(error)
        self._note_end()

    async def _serve(self) -> None:
        listening = self._get_socket(self._listen)
        hosted = await self._host()
        tls = {"ssl_certfile": self._listen.tls_cert_file, "ssl_keyfile": self._listen.tls_key_file}
        websocket = PortWebSocket if hosted.speaks_websocket else "none"
        watch = PortWatch(self._listen.limits)
        self._server = _Server(_configuration(_Ported(hosted.app), watch, ws=websocket, **tls), watch)
        logging.getLogger("uvicorn.error").addFilter(_ONE_LINE)
        self._server.should_exit = self._stopping.is_set()
        starting = asyncio.ensure_future(self._start(hosted))
        try:
            async with self._served_privately(hosted.app):
                await self._server.serve(sockets=[listening])
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await hosted.close()

    @contextlib.asynccontextmanager
    async def _served_privately(self, app: ASGIApp) -> AsyncIterator[None]:
        """Serve the application on the Unix domain socket too. Only the port runs its lifespan."""
        if self._socket_path is None:
            yield
            return
        watch = PortWatch(private_limits(self._listen.limits))
        server = _CalmServer(
            _configuration(_Ported(InternalApplication(app)), watch, uds=self._socket_path, lifespan="off")
        )
        serving = asyncio.ensure_future(server.serve())
        serving.add_done_callback(self._note_private_end)
        try:
            yield
        finally:
            server.end()
            await asyncio.gather(serving, return_exceptions=True)

    def _note_private_end(self, serving: "asyncio.Future[None]") -> None:
        """If the internal socket fails, the port ends, so that it is restarted."""
        if (
            not serving.cancelled()
            and (error := serving.exception()) is not None
            and self._server is not None
        ):
            self.failure = f"cannot serve {self._socket_path}: {error!r}"
            self._server.end()

    async def _start(self, hosted: Hosted) -> None:
        try:
            await hosted.start()
        except Exception as error:  # noqa: BLE001 the port continues, so that /health reports the reason
            self.failure = str(error) or repr(error)
        else:
            self.ready.set()


class _Ported:
    """An application as a port runs it.

    `OPTIONS *`, a ping of the server (RFC 9110, section 9.3.7), is answered before the application, which
    would authenticate and log it; and what it has not finished when the port has no more time, after it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.quick = getattr(app, "quick", None)

    def malformed(self, message: str, status: int) -> Response:
        """See `unread_response`."""
        return unread_response(self._app, status, message)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "OPTIONS" and scope["raw_path"] == b"*":
            await Response(status_code=204)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            cycle = getattr(send, "__self__", None)  # of uvicorn, which alone cancels these tasks
            if (
                scope["type"] != "http"
                or not isinstance(cycle, RequestResponseCycle)
                or cycle.response_started
            ):
                raise
            logger.warning("not finished when the port stopped: %s %s", scope["method"], scope["path"])
            answer = unread_response(self._app, 503, _UNFINISHED)
            answer.headers["Retry-After"], answer.headers["Connection"] = _RETRY_AFTER_S, "close"
            await answer(scope, receive, send)


def _configuration(app: ASGIApp, watch: PortWatch, **where: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        **{"ws": "none"} | where,
        loop="none",  # it runs in the port's loop
        http=functools.partial(PortProtocol, watch=watch),  # type: ignore[arg-type] # it is only called
        headers=[(name.decode(), value.decode()) for name, value in SAFE_HEADERS],
        ws_max_size=MESSAGE_BYTES_MAX,
        ws_max_queue=1,
        ws_per_message_deflate=False,  # each message would be compressed once for each client
        proxy_headers=False,  # uvicorn would trust any local client
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_S,
    )
