"""How a port ends: no request that a client may rightly send meanwhile is lost."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from benchmarks.service import free_port
from graphdb.errors import ConfigError, NotLeader, UnavailableError
from serve.port import server
from serve.port.listen import Listen, answers, bind
from serve.port.server import PortServer
from tests.support.timing import HANG_S


async def slow(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers after as many seconds as the path says."""
    if scope["type"] == "http":
        await asyncio.sleep(float(Request(scope).url.path[1:]))
        await PlainTextResponse("done")(scope, receive, send)


class Hosted:
    speaks_websocket = False
    app: ASGIApp = staticmethod(slow)

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass


@pytest.fixture
def listen() -> Listen:
    return Listen("127.0.0.1", free_port())


async def host() -> Hosted:
    return Hosted()


@pytest.fixture
def port(listen: Listen) -> Iterator[PortServer]:
    started = PortServer(listen, host)
    assert started.ready.wait(HANG_S)
    yield started
    started.stop(HANG_S)
    assert not started.is_alive


@pytest.fixture
def connection(listen: Listen, port: PortServer) -> Iterator[HTTPConnection]:
    connected = HTTPConnection(listen.host, listen.port, timeout=HANG_S)
    yield connected
    connected.close()


def ask(connection: HTTPConnection, seconds: float) -> tuple[bytes, str | None]:
    """What is answered, and its Connection header."""
    connection.request("GET", f"/{seconds}")
    answer = connection.getresponse()
    return answer.read(), answer.headers["Connection"]


def stop_soon(port: PortServer) -> threading.Thread:
    stopping = threading.Thread(target=port.stop, args=(10,))
    stopping.start()
    time.sleep(0.3)
    return stopping


def test_a_kept_connection_is_told_that_it_ends(
    listen: Listen, port: PortServer, connection: HTTPConnection
) -> None:
    assert ask(connection, 0) == (b"done", None)
    stopping = stop_soon(port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((listen.host, listen.port))
    assert ask(connection, 0) == (b"done", "close")
    stopping.join()


def test_whether_it_answers_is_asked_without_the_application(listen: Listen, port: PortServer) -> None:
    with closing(HTTPConnection(listen.host, listen.port, timeout=HANG_S)) as connected:
        connected.request("OPTIONS", "*")
        answer = connected.getresponse()
        assert (answer.status, answer.read()) == (204, b"")
    assert answers(listen, timeout_s=10)
    port.stop(10)
    assert not answers(listen, timeout_s=10)


def test_a_request_under_way_is_answered(port: PortServer, connection: HTTPConnection) -> None:
    answered: list[Any] = []
    asking = threading.Thread(target=lambda: answered.append(ask(connection, 2)))
    asking.start()
    time.sleep(0.3)
    stop_soon(port).join()
    asking.join()
    assert answered == [(b"done", "close")]


def test_a_request_that_takes_too_long_is_answered_that_it_is_not_finished(
    listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_DRAIN_S", 0.2)
    stopped = PortServer(listen, host)
    assert stopped.ready.wait(HANG_S)
    with closing(HTTPConnection(listen.host, listen.port, timeout=HANG_S)) as connected:
        connected.request("GET", f"/{2 * HANG_S}")
        time.sleep(0.3)
        stopped.stop(HANG_S)
        answer = connected.getresponse()
        assert (answer.status, answer.headers["Retry-After"], answer.headers["Connection"]) == (
            503,
            "5",
            "close",
        )
        assert "the service is stopping" in json.loads(answer.read())["error"]
    assert not stopped.is_alive


def test_a_silent_connection_does_not_hold_the_end_up(port: PortServer, connection: HTTPConnection) -> None:
    ask(connection, 0)
    began = time.monotonic()
    port.stop(HANG_S)
    assert not port.is_alive
    assert time.monotonic() - began < HANG_S / 2


def refusing(error: BaseException) -> Callable[[], Coroutine[Any, Any, None]]:
    async def prepare() -> None:
        raise error

    return prepare


async def hang() -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    "prepare",
    [
        None,
        refusing(NotLeader("none leads")),
        refusing(ConfigError("no log")),
        refusing(ValueError("odd")),
        hang,
    ],
)
def test_it_stops_whatever_its_preparation_comes_to(
    port: PortServer, prepare: Callable[[], Coroutine[Any, Any, None]] | None
) -> None:
    began = time.monotonic()
    asyncio.run(port.prepare_and_stop(prepare, 0.3, HANG_S))
    assert not port.is_alive
    assert time.monotonic() - began < HANG_S / 2


def test_it_is_prepared_while_it_still_serves(port: PortServer, connection: HTTPConnection) -> None:
    answers: list[bytes] = []

    async def prepare() -> None:
        assert asyncio.get_running_loop() is port.loop
        answers.append((await asyncio.to_thread(ask, connection, 0))[0])

    asyncio.run(port.prepare_and_stop(prepare, 5, 10))
    assert answers == [b"done"]


def test_one_whose_loop_is_over_is_not_waited_for(port: PortServer) -> None:
    port.stop(10)
    with pytest.raises(UnavailableError, match="ended"):
        asyncio.run(port.perform(hang()))
    asyncio.run(port.prepare_and_stop(hang, 5, 10))


def test_preparing_and_stopping_share_their_time(port: PortServer, connection: HTTPConnection) -> None:
    """A request that takes longer than all of it does not keep the caller."""
    connection.request("GET", "/6")
    time.sleep(0.5)
    began = time.monotonic()
    asyncio.run(port.prepare_and_stop(hang, 0.5, 1.5))
    assert time.monotonic() - began > 1.3
    assert port.is_alive


def test_connections_to_machines_that_have_gone_are_found_out(listen: Listen) -> None:
    """An answer without an end may have nothing to send for a long time."""
    with closing(bind(listen)) as listening:
        listening.listen()
        assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        with closing(socket.create_connection((listen.host, listen.port))):
            listening.setblocking(True)
            accepted, _ = listening.accept()
            with closing(accepted):
                assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
