"""The listening sockets of a service outlive the processes that serve its ports."""

import functools
import socket
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from benchmarks.service import free_port
from graphdb.errors import UnavailableError
from serve.deployments.listening import HeldSockets, take_socket
from serve.port.listen import Listen, answers
from serve.port.server import PortServer
from tests.support.timing import HANG_S


class Hosted:
    """Says who it is."""

    speaks_websocket = False

    def __init__(self, name: str) -> None:
        self.app: ASGIApp = PlainTextResponse(name)

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass


@pytest.fixture
def listen() -> Listen:
    return Listen("127.0.0.1", free_port())


@pytest.fixture
def held(listen: Listen, tmp_path: Path) -> Iterator[HeldSockets]:
    sockets = HeldSockets([listen])
    sockets.hand_out(str(tmp_path))
    yield sockets
    sockets.close()


Serve = Callable[[str], PortServer]


@pytest.fixture
def serve(listen: Listen, tmp_path: Path) -> Iterator[Serve]:
    """Has a port served by somebody of this name, as a replica does."""
    servers: list[PortServer] = []

    def begin(name: str) -> PortServer:
        async def host() -> Hosted:
            return Hosted(name)

        servers.append(PortServer(listen, host, get_socket=functools.partial(take_socket, str(tmp_path))))
        assert servers[-1].ready.wait(10), servers[-1].failure
        return servers[-1]

    yield begin
    for server in servers:
        server.stop(10)


def begin_to_ask(listen: Listen) -> HTTPConnection:
    connection = HTTPConnection(listen.host, listen.port, timeout=HANG_S)
    connection.request("GET", "/")
    return connection


@pytest.mark.usefixtures("held")
def test_who_connects_while_nobody_serves_is_answered_by_the_next(listen: Listen, serve: Serve) -> None:
    serve("first").stop(10)
    waiting = [begin_to_ask(listen) for _ in range(20)]
    serve("second")
    for connection in waiting:
        assert connection.getresponse().read() == b"second"
        connection.close()


@pytest.mark.usefixtures("held")
def test_a_service_that_starts_is_nobodys_to_wait_for(listen: Listen, serve: Serve) -> None:
    with pytest.raises(ConnectionRefusedError):
        begin_to_ask(listen)
    serve("first")
    assert answers(listen, timeout_s=10)


def test_at_the_stop_connections_are_refused_once_the_port_is_closed(
    listen: Listen, held: HeldSockets, serve: Serve
) -> None:
    server = serve("first")
    held.close()
    assert answers(listen, timeout_s=10)  # it serves until its own time
    server.stop(10)
    with pytest.raises(ConnectionRefusedError):
        begin_to_ask(listen)


def test_who_waits_when_the_service_stops_is_not_left_waiting(
    listen: Listen, held: HeldSockets, serve: Serve
) -> None:
    serve("first").stop(10)
    with begin_to_ask(listen).sock as waiting:
        held.close()
        with pytest.raises(ConnectionResetError):
            waiting.recv(1)


def test_a_port_that_is_anothers_is_one_error_and_nothing_is_kept(listen: Listen) -> None:
    first = Listen("127.0.0.1", free_port())
    with socket.create_server((listen.host, listen.port)):
        with pytest.raises(UnavailableError) as refused:
            HeldSockets([first, listen])
        HeldSockets([first]).close()
    assert str(refused.value) == f"cannot listen on 127.0.0.1:{listen.port}: Address already in use"


@pytest.mark.usefixtures("held")
def test_of_two_that_start_at_once_on_a_port_the_second_says_why_it_cannot(
    listen: Listen, serve: Serve, tmp_path: Path
) -> None:
    second = HeldSockets([listen])  # nobody listens there yet
    (tmp_path / "second").mkdir()
    second.hand_out(str(tmp_path / "second"))
    serve("first")
    with pytest.raises(UnavailableError, match=r"cannot listen on .*: Address already in use"):
        take_socket(str(tmp_path / "second"), listen)
    second.close()
    assert answers(listen, timeout_s=10)


def test_a_service_that_is_gone_has_no_sockets(listen: Listen, held: HeldSockets, tmp_path: Path) -> None:
    held.close()
    with pytest.raises(UnavailableError):
        take_socket(str(tmp_path), listen)
    with pytest.raises(UnavailableError):
        take_socket(str(tmp_path / "nowhere"), listen)


@pytest.mark.usefixtures("held")
def test_who_asks_badly_keeps_nobody_from_a_socket(listen: Listen, serve: Serve, tmp_path: Path) -> None:
    for asked in (b"", b"\0\0", b"\xff\xff\xff"):
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(tmp_path / "ports.sock"))
            asking.sendall(asked)
    serve("first")
    assert answers(listen, timeout_s=10)
