"""Connections that a port lends: who answers, and what happens when clients or the borrower do not behave."""

import asyncio
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from actors.search.search_processes import SharedMemory
from serve.port import borrowing
from serve.port.application import Answering, WholeAnswer
from serve.port.borrowing import Borrower
from serve.port.ledger import BYTES_EACH, Ledger
from serve.port.lending import Borrowable, Lender
from serve.port.protocol import PortProtocol
from tests.support.mortal_borrower import DEATH, LONG_DEATH
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

_PORTS = b"of the port"
_LARGE = b"large"
_LARGE_BYTES = 40 << 20


class _Quick:
    """Answers POST / with its name and the body; to _LARGE with much."""

    def __init__(self, name: bytes, offer: Any = None) -> None:
        self.name, self.offer = name, offer
        self.answered = 0

    def may_answer(self, method: bytes, target: bytes, body_bytes: int) -> bool:
        return method == b"POST" and target == b"/"

    def understood(self, method: bytes, target: bytes, scheme: str, headers: Any) -> Answering | None:
        return self._answer

    def _answer(self, body: bytes) -> WholeAnswer | None:
        if body == _PORTS and self.offer is None:
            return None
        self.answered += 1
        text = b"x" * _LARGE_BYTES if body == _LARGE else self.name + b":" + body
        answer = WholeAnswer([(b"content-type", b"text/plain")], text)
        answer.offer = self.offer
        return answer


class _App:
    def __init__(self, quick: _Quick) -> None:
        self.quick = quick

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        text = b"app:" + (await receive())["body"]
        headers = [(b"content-length", b"%d" % len(text))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})


class _Lent:
    """A port that lends each connection that it has answered, and who borrows them."""

    def __init__(self) -> None:
        self.memory = SharedMemory.new("lent", 8 * BYTES_EACH)
        self.ledger = Ledger(self.memory.view)
        ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.lender = Lender(ours, self.ledger, lambda done: None, lambda count: None)
        self.quick = _Quick(b"port", self._offer)
        self.borrowed = _Quick(b"borrower")
        self.connections: set[Borrowable] = set()
        self.port = 0

    def _offer(self, connection: Borrowable) -> None:
        self.connections.add(connection)
        self.lender.lend(connection)


@contextmanager
def _borrowing(lent: _Lent) -> Iterator[None]:
    with lent.theirs:
        beat = memoryview(bytearray(8)).cast("Q")
        borrower = Borrower(lent.theirs, lent.ledger, beat, lent.borrowed, lambda: [], [(b"x-one", b"1")])
        thread = threading.Thread(target=borrower.run)
        thread.start()
        try:
            yield
        finally:
            lent.lender.close()  # which the borrower sees
            thread.join(HANG_S)
            borrower.close()
    assert not thread.is_alive()


@asynccontextmanager
async def _port() -> AsyncIterator[_Lent]:
    lent = _Lent()
    config = uvicorn.Config(
        _App(lent.quick), http=PortProtocol, lifespan="off", log_level="critical", proxy_headers=False
    )
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: PortProtocol(config, state, {}), "127.0.0.1", 0)
    lent.port = server.sockets[0].getsockname()[1]
    try:
        yield lent
    finally:
        server.close()
        lent.lender.close()
        for connection in list(state.connections):
            connection.shutdown()
        async with asyncio.timeout(HANG_S):
            while state.connections:  # noqa: ASYNC110 they close
                await asyncio.sleep(0.01)


def _request(body: bytes, method: bytes = b"POST") -> bytes:
    return b"%s / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (method, len(body), body)


class _Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def answer(self) -> bytes:
        async with asyncio.timeout(HANG_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n"), head
            length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
            return await self.reader.readexactly(int(length.partition(b":")[2]))

    async def ask(self, body: bytes, method: bytes = b"POST") -> bytes:
        self.writer.write(_request(body, method))
        return await self.answer()


@asynccontextmanager
async def _client(lent: _Lent) -> AsyncIterator[_Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", lent.port)
    try:
        yield _Client(reader, writer)
    finally:
        writer.close()


async def _until_lent(client: _Client, lent: _Lent) -> None:
    """The head is known after the first request, and the connection lent after the next."""
    async with asyncio.timeout(HANG_S):
        while await client.ask(b"1") != b"borrower:1":
            pass
    assert len(lent.lender) == 1


async def test_what_the_borrower_cannot_answer_is_the_ports() -> None:
    async with _port() as lent, _client(lent) as client:
        with _borrowing(lent):
            for _ in range(20):
                await _until_lent(client, lent)
                assert await client.ask(_PORTS) == b"port:" + _PORTS
                await _until_lent(client, lent)
                assert await client.ask(b"", b"GET") == b"app:"
        assert lent.borrowed.answered >= 40


async def test_requests_in_pieces_and_several_at_a_time_are_answered_in_turn() -> None:
    async with _port() as lent, _client(lent) as client:
        with _borrowing(lent):
            await _until_lent(client, lent)
            client.writer.write(_request(b"a") + _request(b"bc") + _request(b"def"))
            found = [(await client.answer()).partition(b":")[2] for _ in range(3)]
            assert found == [b"a", b"bc", b"def"]
            await _until_lent(client, lent)
            for piece in (b"POST / HT", b"TP/1.1\r\nHost: a\r\nContent-Le", b"ngth: 4\r\n\r\n12", b"34"):
                client.writer.write(piece)
                await asyncio.sleep(0.05)
            assert (await client.answer()).endswith(b":1234")


@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n1",  # without Host
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n1",
        b"POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 1\r\n\r\n1",
        b"POST / HTTP/1.1\r\nHost : a\r\nContent-Length: 1\r\n\r\n1",
        b"\x00\r\n\r\n",
    ],
)
async def test_invalid_requests_are_refused_by_the_port(head: bytes) -> None:
    async with _port() as lent, _client(lent) as client:
        with _borrowing(lent):
            await _until_lent(client, lent)
            before = lent.borrowed.answered
            client.writer.write(head)
            async with asyncio.timeout(HANG_S):
                answer = await client.reader.read()
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert lent.borrowed.answered == before


async def test_a_client_that_leaves_leaves_the_port_too() -> None:
    async with _port() as lent:
        with _borrowing(lent):
            async with _client(lent) as client:
                await _until_lent(client, lent)
            async with asyncio.timeout(HANG_S):
                while len(lent.lender):  # noqa: ASYNC110 it is given back
                    await asyncio.sleep(0.01)


async def test_clients_that_reset_their_connections_end_nothing_else() -> None:
    """Whenever they do, also between a look at their request and its answer."""
    async with _port() as lent, _client(lent) as other:
        with _borrowing(lent):
            for _ in range(100):
                async with _client(lent) as client:
                    client.writer.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                    for number in range(4):
                        assert (await client.ask(b"%d" % number)).endswith(b":%d" % number)
                    client.writer.write(_request(b"last"))
                    client.writer.transport.abort()
            await _until_lent(other, lent) if len(lent.lender) == 0 else None
            assert await other.ask(b"2") in (b"port:2", b"borrower:2")
        assert lent.borrowed.answered > 0


async def test_idle_connections_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(borrowing, "_IDLE_S", 0.0)
    async with _port() as lent, _client(lent) as client:
        with _borrowing(lent):
            await _until_lent(client, lent)
            async with asyncio.timeout(HANG_S):
                while len(lent.lender):  # noqa: ASYNC110 it is given back
                    await asyncio.sleep(0.01)
            assert await client.ask(b"2") in (b"port:2", b"borrower:2")


async def test_answers_that_are_read_slowly_arrive_whole_and_keep_nobody_waiting() -> None:
    async with _port() as lent, _client(lent) as slow, _client(lent) as other:
        with _borrowing(lent):
            await _until_lent(slow, lent)
            slow.writer.write(_request(_LARGE))
            async with asyncio.timeout(HANG_S):
                while await other.ask(b"2") != b"borrower:2":
                    pass
            assert len(await slow.answer()) == _LARGE_BYTES
            assert await slow.ask(b"3") in (b"port:3", b"borrower:3")


async def test_who_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(borrowing, "_UNREAD_S", 0.1)
    async with _port() as lent, _client(lent) as client:
        with _borrowing(lent):
            await _until_lent(client, lent)
            client.writer.write(_request(_LARGE))
            async with asyncio.timeout(HANG_S):
                while len(lent.lender):  # noqa: ASYNC110 it is given back
                    await asyncio.sleep(0.01)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                await client.answer()


async def test_a_port_that_stops_gets_its_connections_back() -> None:
    async with _port() as lent, _client(lent) as client:
        with _borrowing(lent):
            await _until_lent(client, lent)
            for connection in lent.connections:
                connection.shutdown()  # type: ignore[attr-defined] # it is a `PortProtocol`
            async with asyncio.timeout(HANG_S):
                assert await client.reader.read() == b""


@contextmanager
def _borrowing_process(lent: _Lent, place: str) -> Iterator[subprocess.Popen[bytes]]:
    fds = lent.theirs.fileno(), lent.memory.fd
    program = [sys.executable, "-m", "tests.support.mortal_borrower", *map(str, fds), place]
    with subprocess.Popen(program, pass_fds=fds) as process:
        lent.theirs.close()
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("place", ["answered", "begun", "sent", "taken", "ended"])
async def test_when_the_borrower_is_killed_the_port_goes_on_where_it_was(place: str) -> None:
    """It kills itself there when it is to answer DEATH."""
    async with _port() as lent, _client(lent) as client:
        with _borrowing_process(lent, place) as process:
            await _until_lent(client, lent)
            for body in (b"2", b"three"):
                assert await client.ask(body) == b"borrower:" + body
            answered = b"borrower:" if place in ("sent", "taken", "ended") else b"port:"
            assert await client.ask(DEATH) == answered + DEATH
            assert process.wait(HANG_S) == -signal.SIGKILL
            assert await client.ask(b"4") == b"port:4"
            assert len(lent.lender) == 0


@pytest.mark.parametrize("place", ["begun", "sent", "taken"])
async def test_when_the_borrower_is_killed_a_client_that_has_ended_is_answered(place: str) -> None:
    async with _port() as lent, _client(lent) as client:
        with _borrowing_process(lent, place):
            await _until_lent(client, lent)
            client.writer.write(_request(DEATH))
            client.writer.write_eof()
            assert (await client.answer()).endswith(b":" + DEATH)
            async with asyncio.timeout(HANG_S):
                assert await client.reader.read() == b""


async def test_when_the_borrower_is_killed_with_a_part_of_an_answer_sent_the_connection_is_closed() -> None:
    async with _port() as lent, _client(lent) as client:
        with _borrowing_process(lent, "sent"):
            await _until_lent(client, lent)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                await client.ask(LONG_DEATH)
            assert len(lent.lender) == 0


async def test_a_borrower_that_dies_between_requests_costs_nothing() -> None:
    """Nobody serves: the borrower has read what was lent to it, and is gone."""
    async with _port() as lent, _client(lent) as client:
        assert await client.ask(b"1") == b"port:1"
        assert await client.ask(b"1") == b"port:1"
        assert len(lent.lender) == 1
        client.writer.write(_request(b"2"))
        await client.writer.drain()
        lent.theirs.close()
        assert await client.answer() == b"port:2"
        assert len(lent.lender) == 0


async def test_several_connections_at_a_time() -> None:
    async with _port() as lent:
        with _borrowing(lent):

            async def talk(number: int) -> None:
                async with _client(lent) as client:
                    for count in range(200):
                        body = b"%d-%d" % (number, count) if count % 9 else _PORTS
                        assert (await client.ask(body)).endswith(b":" + body)

            await asyncio.gather(*(talk(number) for number in range(12)))
        assert lent.borrowed.answered > 100
