"""How long a port waits for its clients, and how many of them it lets in."""

import asyncio
import contextlib
import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from graphdb.config import Settings
from graphdb.config.service import Server
from serve.port.listen import Listen
from serve.port.server import PortServer
from serve.port.watch import PortWatch, private_limits
from serve.search_app import build_search_app
from tests.support.certificate import certificate_and_key, needs_openssl
from tests.support.memory_search import MemorySearch
from tests.support.service import free_port
from tests.support.timing import HANG_S, wait_until

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"


class App:
    """Answers with how many bytes a body had; /endless without an end, /early without reading the body."""

    def __init__(self) -> None:
        self.broken = 0  # requests whose clients went away, or were sent away

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        if scope["path"] == "/endless":
            await self._send_endlessly(receive, send)
            return
        try:
            size = 0 if scope["path"] == "/early" else len(await request.body())
        except ClientDisconnect:
            self.broken += 1
            return
        await PlainTextResponse(str(size))(scope, receive, send)

    async def _send_endlessly(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await receive()
        while not self.broken:
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
            with contextlib.suppress(TimeoutError):
                self.broken += await _gone(receive)


async def _gone(receive: Receive) -> bool:
    async with asyncio.timeout(0.001):
        return bool((await receive())["type"] == "http.disconnect")


@pytest.fixture
def app() -> App:
    return App()


class Hosted:
    speaks_websocket = False

    def __init__(self, app: Any) -> None:
        self.app = app

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass


class Serving:
    """Starts ports with settings of `[server]`."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._servers: list[PortServer] = []

    def __call__(
        self, certificate: tuple[Path, Path] | None = None, app: Any = None, **settings: Any
    ) -> Listen:
        async def host() -> Hosted:
            return Hosted(app or self._app)

        certificate_file, key_file = certificate or (None, None)
        listen = Listen("127.0.0.1", free_port(), certificate_file, key_file, Server(**settings))
        server = PortServer(listen, host)
        assert server.ready.wait(HANG_S)
        self._servers.append(server)
        return listen

    def stop(self) -> None:
        for server in self._servers:
            server.stop(10)
            assert not server.is_alive


@pytest.fixture
def serving(app: App) -> Iterator[Serving]:
    ports = Serving(app)
    yield ports
    ports.stop()


def connected(listen: Listen) -> AbstractContextManager[socket.socket]:
    return contextlib.closing(socket.create_connection((listen.host, listen.port), timeout=HANG_S))


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(1 << 20):
            received += more
    return received


def statuses(received: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]


def drip(connection: socket.socket, byte: bytes) -> bytes:
    """Send the byte again and again until something is answered; all that is."""
    connection.settimeout(0.1)
    for _ in range(100):
        with contextlib.suppress(TimeoutError):
            return connection.recv(1 << 20) + rest(connection)
        connection.sendall(byte)
    raise AssertionError("it was not answered")


@pytest.mark.parametrize("head", [b"", GET], ids=["the first", "a later one"])
@pytest.mark.parametrize(
    "half", [b"G", GET[:-2], GET[:-2] + b"A: "], ids=["a byte", "lines", "half a header"]
)
def test_half_a_head_is_answered_and_closed(serving: Serving, head: bytes, half: bytes) -> None:
    with connected(serving(head_timeout_seconds=0.5)) as connection:
        connection.sendall(head + half)
        received = rest(connection)
    assert statuses(received) == ([200] if head else []) + [408]
    assert orjson.loads(received[received.index(b'{"error"') :])["status"] == 408
    assert b"connection: close" in received.lower()


def test_a_head_that_drips_in_is_not_given_more_time(serving: Serving) -> None:
    with connected(serving(head_timeout_seconds=0.5)) as connection:
        connection.sendall(GET[:-2] + b"A: ")
        assert statuses(drip(connection, b"x")) == [408]


@pytest.mark.parametrize("sent", [b"", b"\r\n"], ids=["nothing", "an empty line"])
def test_a_connection_without_a_request_is_closed(serving: Serving, sent: bytes) -> None:
    """Without an answer, which a client could take for that to its next request."""
    with connected(serving(head_timeout_seconds=0.5)) as connection:
        connection.sendall(sent)
        assert rest(connection) == b""


def test_an_idle_connection_is_closed(serving: Serving) -> None:
    with connected(serving(idle_timeout_seconds=0.5)) as connection:
        connection.sendall(GET)
        assert statuses(rest(connection)) == [200]


def test_an_idle_connection_is_kept_for_as_long_as_is_set(serving: Serving) -> None:
    with connected(serving(head_timeout_seconds=0.2, body_timeout_seconds=0.2)) as connection:
        for _ in range(3):
            connection.sendall(GET)
            assert statuses(connection.recv(1 << 20)) == [200]
            time.sleep(0.6)


@pytest.mark.parametrize(
    "half",
    [
        pytest.param(b"Content-Length: 100\r\n\r\n", id="nothing of it"),
        pytest.param(b"Content-Length: 100\r\n\r\nabc", id="a part"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", id="chunks"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b", id="a trailer"),
        pytest.param(
            b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 100\r\n\r\nabc", id="behind an upgrade"
        ),
    ],
)
def test_half_a_body_is_answered_and_nothing_done(serving: Serving, app: App, half: bytes) -> None:
    with connected(serving(body_timeout_seconds=0.5)) as connection:
        connection.sendall(POST + half)
        received = rest(connection)
    assert statuses(received) == [408]
    assert orjson.loads(received[received.index(b'{"error"') :])["status"] == 408
    wait_until(lambda: app.broken == 1)


def test_a_body_that_drips_in_is_too_slow(serving: Serving) -> None:
    with connected(serving(body_timeout_seconds=0.5)) as connection:
        connection.sendall(POST + b"Content-Length: 1000000\r\n\r\n")
        assert statuses(drip(connection, b"x")) == [408]


def test_a_slow_body_that_comes_steadily_is_read(serving: Serving) -> None:
    """However long all of it takes."""
    with connected(serving(body_timeout_seconds=0.4, min_body_bytes_per_second=100)) as connection:
        connection.sendall(POST + b"Content-Length: 1000\r\n\r\n")
        for _ in range(20):
            connection.sendall(b"x" * 50)
            time.sleep(0.1)
        received = connection.recv(1 << 20)
        assert (statuses(received), received[-4:]) == ([200], b"1000")


def test_a_client_that_waits_to_be_told_to_continue_is_not_too_slow(serving: Serving) -> None:
    with connected(serving(body_timeout_seconds=0.5)) as connection:
        connection.sendall(POST + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert statuses(connection.recv(1 << 20)) == [100]
        connection.sendall(b"abc")
        assert statuses(connection.recv(1 << 20)) == [200]


def test_half_a_body_that_was_answered_already_is_not_answered_again(serving: Serving) -> None:
    with connected(serving(body_timeout_seconds=0.5)) as connection:
        connection.sendall(b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
        assert statuses(rest(connection)) == [200]


def test_a_client_that_takes_nothing_is_cut_off(serving: Serving, app: App) -> None:
    with connected(serving(write_timeout_seconds=0.5)) as connection:
        connection.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: app.broken == 1)
        assert b"\r\n0\r\n\r\n" not in rest(connection)[-10:]


def test_a_client_that_takes_its_answer_slowly_gets_it(serving: Serving, app: App) -> None:
    with connected(serving(write_timeout_seconds=2)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        connection.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(60):
            time.sleep(0.05)
            assert connection.recv(1 << 20)
        assert not app.broken


def is_let_in(listen: Listen) -> bool:
    with connected(listen) as connection:
        connection.sendall(GET)
        return statuses(connection.recv(1 << 20)) == [200]


def refused(connection: socket.socket) -> None:
    received = rest(connection)
    assert statuses(received) == [503]
    assert b"retry-after: 1\r\n" in received.lower()
    assert orjson.loads(received[received.index(b'{"error"') :])["status"] == 503


@pytest.mark.parametrize(("of_all", "of_one"), [(2, 1_000), (1_000, 2)], ids=["in all", "of an address"])
def test_one_connection_too_many_is_told_so(serving: Serving, of_all: int, of_one: int) -> None:
    listen = serving(max_connections=of_all, max_connections_per_address=of_one)
    with connected(listen) as first:
        first.sendall(GET)
        assert statuses(first.recv(1 << 20)) == [200]
        with connected(listen) as second, connected(listen) as third:
            third.sendall(GET)
            refused(third)
            second.sendall(GET)
            assert statuses(second.recv(1 << 20)) == [200]
        first.sendall(GET)
        assert statuses(first.recv(1 << 20)) == [200]
        wait_until(lambda: is_let_in(listen))  # there is room again


def test_those_of_trusted_proxies_are_not_counted_by_address(serving: Serving) -> None:
    listen = serving(max_connections_per_address=1, trusted_proxies=("127.0.0.0/8",))
    with connected(listen) as first, connected(listen) as second:
        for connection in (first, second):
            connection.sendall(GET)
            assert statuses(connection.recv(1 << 20)) == [200]


class _Connection:
    look_at = 0.0

    def look(self) -> None:
        pass


def test_addresses_of_one_network_of_ipv6_count_as_one() -> None:
    async def entered() -> list[bool]:
        watch = PortWatch(Server(max_connections_per_address=1))
        peers = ["2001:db8::1", "2001:db8::2", "2001:db8:1::1", "192.0.2.1", "::ffff:192.0.2.1", None, None]
        return [watch.enter(_Connection(), peer) for peer in peers]

    assert asyncio.run(entered()) == [True, False, True, True, False, True, True]


def test_a_header_between_the_processes_of_a_node_may_be_long() -> None:
    server = Server(max_header_bytes=1_024, head_timeout_seconds=3)
    private = private_limits(server)
    assert private.max_header_bytes > 1_000_000
    assert private.head_timeout_seconds == 3


def test_refusals_of_the_search_port_have_its_envelope(serving: Serving) -> None:
    listen = serving(
        app=build_search_app(MemorySearch(), Settings()), head_timeout_seconds=0.5, max_connections=1
    )
    sent = {
        408: (GET[:-2], "timeout_exception"),
        414: (b"GET /" + b"x" * 70_000, "too_long_http_line_exception"),
        431: (GET[:-2] + b"A: " + b"x" * 70_000, "too_long_http_header_exception"),
        400: (GET.replace(b"Host", b"Hast"), "illegal_argument_exception"),
        505: (GET.replace(b"1.1", b"2.0"), "illegal_argument_exception"),
    }
    for status, (asked, kind) in sent.items():
        with connected(listen) as connection:
            connection.sendall(asked)
            check_envelope(rest(connection), status, kind)
        wait_until(lambda: is_let_in(listen))
    with connected(listen) as first, connected(listen) as second:
        first.sendall(GET)
        check_envelope(rest(second), 503, "es_rejected_execution_exception")


def check_envelope(received: bytes, status: int, kind: str) -> None:
    head, _, body = received.partition(b"\r\n\r\n")
    assert statuses(received) == [status]
    assert b"x-elastic-product: elasticsearch" in head.lower()
    answer = orjson.loads(body)
    assert (answer["status"], answer["error"]["type"]) == (status, kind)


@needs_openssl
class TestWithTls:
    @pytest.fixture
    def certificate(self, tmp_path: Path) -> tuple[Path, Path]:
        return certificate_and_key(tmp_path)

    def shaken(self, connection: socket.socket) -> ssl.SSLSocket:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(connection)

    def test_a_client_that_does_not_shake_hands_is_cut_off(
        self, serving: Serving, certificate: tuple[Path, Path]
    ) -> None:
        listen = serving(certificate, tls_handshake_timeout_seconds=0.5)
        with connected(listen) as connection:
            assert rest(connection) == b""
        with connected(listen) as connection, self.shaken(connection) as shaken:
            shaken.sendall(GET)
            assert statuses(shaken.recv(1 << 20)) == [200]

    def test_those_who_shake_hands_are_counted(
        self, serving: Serving, certificate: tuple[Path, Path]
    ) -> None:
        listen = serving(certificate, max_connections=2, tls_handshake_timeout_seconds=1)
        with connected(listen) as first, connected(listen) as second:
            with connected(listen) as third:
                assert rest(third) == b""
            assert rest(first) == rest(second) == b""  # their time is over
        wait_until(lambda: self.is_let_in(listen))

    def is_let_in(self, listen: Listen) -> bool:
        with contextlib.suppress(OSError), connected(listen) as connection, self.shaken(connection) as shaken:
            shaken.sendall(GET)
            return statuses(shaken.recv(1 << 20)) == [200]
        return False

    def test_a_half_head_is_answered(self, serving: Serving, certificate: tuple[Path, Path]) -> None:
        listen = serving(certificate, head_timeout_seconds=0.5)
        with connected(listen) as connection, self.shaken(connection) as shaken:
            shaken.sendall(GET[:-2])
            assert statuses(shaken.recv(1 << 20)) == [408]

    def test_the_port_ends_while_clients_shake_hands(
        self, serving: Serving, certificate: tuple[Path, Path]
    ) -> None:
        listen = serving(certificate)
        with connected(listen) as first, connected(listen) as second:
            with self.shaken(second) as shaken:
                shaken.sendall(GET)
                assert statuses(shaken.recv(1 << 20)) == [200]
            serving.stop()
            assert rest(first) == b""
