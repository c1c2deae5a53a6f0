"""Plain updates are begun within the call that receives them, and answered as by the application."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPResponse

import httpx
import pytest

from graphdb.config import Settings
from graphdb.config.service import Server
from graphdb.errors import GraphDBError, LogUnavailable, OutcomeUnknown, StorageFull
from graphdb.model import Author, Confirmation, ForeseeingOutcome, Outcome
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.syntax import Update
from serve.graph.quick_updates import QuickUpdates
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S
from tests.unit.serve.conftest import dump

UPDATE = {"Content-Type": "application/sparql-update"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SLOWLY = {"X-Other": "a header that is not known"}
INSERT = 'PREFIX e: <urn:> INSERT DATA { e:s e:p "%s" }'


@pytest.fixture(scope="module")
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture(scope="module")
def base_url(backend: MemoryBackend) -> Iterator[str]:
    """Without CORS, which adds to every answer."""
    with serving(build_app(backend, Settings())) as url:
        yield url


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each request that was looked at, whether it was taken."""
    found: list[bool] = []
    answer = QuickUpdates._begin

    def noted(self, *arguments):  # type: ignore[no-untyped-def]
        found.append(False)
        made = answer(self, *arguments)
        found[-1] = made is not None
        return made

    monkeypatch.setattr(QuickUpdates, "_begin", noted)
    return found


def fail_with(monkeypatch: pytest.MonkeyPatch, backend: MemoryBackend, error: Exception) -> None:
    """Have every update end in this."""

    async def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(backend, "update", fail)


def connected(client: httpx.Client) -> socket.socket:
    made = socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=HANG_S)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def request(text: str, rest: bytes = b"") -> bytes:
    head = b"POST /update HTTP/1.1\r\nHost: x\r\nContent-Type: application/sparql-update\r\n" + rest
    return head + b"Content-Length: %d\r\n\r\n%s" % (len(text), text.encode())


def answered(connection: socket.socket) -> tuple[int, bytes]:
    answer = HTTPResponse(connection)
    answer.begin()
    return answer.status, answer.read()


def headers_of(answer: httpx.Response, *but: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in answer.headers.items() if name not in ("date", *but)]


@pytest.mark.parametrize("way", ["body", "form"])
@pytest.mark.parametrize("verb", ["INSERT", "DELETE"])
def test_the_same_answer(client: httpx.Client, quick: list[bool], way: str, verb: str) -> None:
    def send(value: str, headers: dict[str, str]) -> httpx.Response:
        text = INSERT.replace("INSERT", verb) % value
        if way == "form":
            return client.post("/update", data={"update": text}, headers=headers)
        return client.post("/update", content=text, headers=headers | UPDATE)

    if verb == "DELETE":
        client.post("/update", content=INSERT % "a", headers=UPDATE | SLOWLY)
        client.post("/update", content=INSERT % "b", headers=UPDATE | SLOWLY)
    quick.clear()
    answer = send("a", {})
    assert quick == [True]
    slow = send("b", SLOWLY)
    assert quick in ([True], [True, False])
    assert answer.status_code == slow.status_code == 200
    first, second = answer.json(), slow.json()
    assert first.pop("snapshot_index") + 1 == second.pop("snapshot_index")
    assert first == second
    assert first["affected_triples"] == 1
    of_numbers = "x-snapshot-index", "content-length"
    assert headers_of(answer, *of_numbers) == headers_of(slow, *of_numbers)
    assert answer.headers["x-snapshot-index"] == str(answer.json()["snapshot_index"])
    assert len(dump(client)) == (2 if verb == "INSERT" else 0)
    assert send("a", {}).json()["affected_triples"] == 0


@pytest.mark.parametrize(
    ("text", "headers", "path"),
    [
        ("INSERT nonsense", {}, "/update"),
        ("INSERT DATA { <urn:a> <urn:b> }", {}, "/update"),
        ("DELETE WHERE { ?s ?p ?o }", {}, "/update"),
        ("INSERT DATA { <urn:a> <urn:b> 1 } ; INSERT DATA { <urn:a> <urn:b> 2 }", {}, "/update"),
        (INSERT % "x", {"Content-Type": "text/plain"}, "/update"),
        (INSERT % "x", {"Content-Encoding": "identity"}, "/update"),
        (INSERT % "x", {"Idempotency-Key": '"k"'}, "/update"),
        (INSERT % "x", {"Origin": "http://app.example"}, "/update"),
        (INSERT % "x", {}, "/update?using-graph-uri=urn:g"),
        (INSERT % "x", {}, "/update?update=x"),
        (INSERT % "x", {}, "/update/"),
        (INSERT % "x", {}, "/updates"),
        ("query=ASK%7B%7D", FORM, "/update"),
        ("update=INSERT%20DATA%7B%7D&using-graph-uri=urn:g", FORM, "/update"),
        ("update=INSERT+DATA+{}%", FORM, "/update"),
    ],
)
def test_the_application_answers_the_rest(
    client: httpx.Client, quick: list[bool], text: str, headers: dict[str, str], path: str
) -> None:
    answer = client.post(path, content=text, headers=UPDATE | headers)
    assert True not in quick
    slow = client.post(path, content=text, headers=UPDATE | headers | SLOWLY)
    assert answer.status_code == slow.status_code
    if answer.status_code != 200:
        assert answer.content == slow.content


@pytest.mark.parametrize(
    "error",
    [StorageFull.for_inserts(), LogUnavailable("away", 3), OutcomeUnknown("lost", 5), ValueError("x")],
)
def test_the_same_failures(
    client: httpx.Client,
    backend: MemoryBackend,
    quick: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    fail_with(monkeypatch, backend, error)
    answer = client.post("/update", content=INSERT % "x", headers=UPDATE)
    assert quick == [True]
    slow = client.post("/update", content=INSERT % "x", headers=UPDATE | SLOWLY)
    assert answer.status_code == slow.status_code == (503 if isinstance(error, GraphDBError) else 500)
    assert answer.content == slow.content
    assert headers_of(answer) == headers_of(slow)


def test_a_node_that_takes_nothing(
    client: httpx.Client, backend: MemoryBackend, quick: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_update: Update, _outcome: Outcome) -> bool:
        raise LogUnavailable("starting")

    monkeypatch.setattr(backend, "begin_update", refuse)
    assert client.post("/update", content=INSERT % "x", headers=UPDATE).status_code == 200
    assert quick
    assert not any(quick)


def test_limits_hold(quick: list[bool]) -> None:
    settings = Settings(server=Server(max_body_bytes=60))
    with serving(build_app(MemoryBackend(), settings)) as url, httpx.Client(base_url=url) as client:
        assert client.post("/update", content=INSERT % "x", headers=UPDATE).status_code == 200
        assert client.post("/update", content=INSERT % ("x" * 30), headers=UPDATE).status_code == 413
    assert quick == [True]


def test_many_at_once_are_answered_in_order(client: httpx.Client, quick: list[bool]) -> None:
    numbers = range(20)
    with connected(client) as connection:
        connection.sendall(b"".join(request(INSERT % number) for number in numbers))
        received = connection.makefile("rb")
        last = 0
        for _ in numbers:
            assert received.readline() == b"HTTP/1.1 200 OK\r\n"
            length = index = 0
            while (line := received.readline()) != b"\r\n":
                name, _, value = line.lower().partition(b":")
                length = int(value) if name == b"content-length" else length
                index = int(value) if name == b"x-snapshot-index" else index
            received.read(length)
            assert index > last
            last = index
    assert quick[0]
    assert len(dump(client)) == len(numbers)


@pytest.mark.parametrize("size", [1, 40])
def test_in_pieces(client: httpx.Client, quick: list[bool], size: int) -> None:
    with connected(client) as connection:
        for number in range(3):
            sent = request(INSERT % number)
            for start in range(0, len(sent), size):
                connection.sendall(sent[start : start + size])
            assert answered(connection)[0] == 200
    assert quick == [True, True, True]


def test_a_head_that_is_known(client: httpx.Client, quick: list[bool]) -> None:
    """The parser reads it once; what follows in the same piece, or is cut off, it reads again."""
    plain, other = INSERT % "aa", "DELETE WHERE { <urn:s> <urn:p> ?o }".ljust(len(INSERT % "aa"))
    with connected(client) as connection:
        for text in (plain, INSERT % "bb", INSERT % "cc"):
            connection.sendall(request(text))
            assert answered(connection)[0] == 200
        assert len(dump(client)) == 3
        connection.sendall(request(other))
        assert answered(connection)[0] == 200
        assert dump(client) == []
        assert quick == [True, True, True, False, False]  # the last one is asked about twice
        connection.sendall(request(plain) + request(INSERT % "bb"))
        received = connection.makefile("rb")
        for _ in range(2):
            assert received.readline() == b"HTTP/1.1 200 OK\r\n"
            while received.readline() != b"\r\n":
                pass
            received.read(len(b'{"success":true,"message":"update applied","snapshot_index":'))
            while received.read(1) != b"}":
                pass
        assert len(dump(client)) == 2
        sent = request(INSERT % "dd")
        connection.sendall(sent[:-5])
        time.sleep(0.05)
        connection.sendall(sent[-5:])
        assert answered(connection)[0] == 200
        connection.sendall(request(plain)[:-1] + b"\n")
        assert answered(connection)[0] == 400
    assert len(dump(client)) == 3


def test_a_known_head_with_a_bad_body_length(client: httpx.Client, quick: list[bool]) -> None:
    sent = request(INSERT % "aa")
    with connected(client) as connection:
        for _ in range(2):
            connection.sendall(sent)
            assert answered(connection)[0] == 200
        connection.sendall(sent + b"x" * 10 + b"\r\n\r\n")
        received = connection.makefile("rb").read()
    assert received.count(b"HTTP/1.1 ") == 2
    assert received.index(b"HTTP/1.1 200") < received.index(b"HTTP/1.1 400")


def test_the_last_answer_of_a_connection(client: httpx.Client, quick: list[bool]) -> None:
    with connected(client) as connection:
        connection.sendall(request(INSERT % "x", b"Connection: close\r\n"))
        assert answered(connection)[0] == 200
        assert connection.recv(1) == b""
    assert not quick


def test_what_follows_an_update_waits_for_it(client: httpx.Client, quick: list[bool]) -> None:
    query = b"GET /sparql?query=ASK%7B%3Curn:s%3E%20%3Curn:p%3E%20%22late%22%7D HTTP/1.1\r\nHost: x\r\n\r\n"
    with connected(client) as connection:
        connection.sendall(request(INSERT % "late") + query + b"nonsense\r\n\r\n")
        received = connection.makefile("rb").read()
    assert quick == [True]
    assert received.count(b"HTTP/1.1 ") == 3
    assert received.index(b'"success":true') < received.index(b'"boolean":true') < received.index(b"400 ")


def test_a_client_that_goes_away(client: httpx.Client, quick: list[bool]) -> None:
    """Its update takes effect all the same."""
    with connected(client) as connection:
        connection.sendall(request(INSERT % "gone"))
        while not quick:
            time.sleep(0.001)
    deadline = time.monotonic() + 10
    while dump(client) != ['<urn:s> <urn:p> "gone" .'] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert dump(client) == ['<urn:s> <urn:p> "gone" .']


def test_a_port_that_stops_answers_what_it_has_begun(
    quick: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, update = MemoryBackend(), MemoryBackend.update
    stopping = threading.Event()

    async def wait(self: MemoryBackend, asked: Update, using: Dataset) -> Confirmation:
        await asyncio.to_thread(stopping.wait, 10)
        await asyncio.sleep(0.2)  # so long the port takes to tell its connections
        return await update(self, asked, using)

    monkeypatch.setattr(MemoryBackend, "update", wait)
    with serving(build_app(backend, Settings())) as url:
        connection = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=HANG_S)
        connection.sendall(request(INSERT % "last"))
        while not quick:
            time.sleep(0.001)
        stopping.set()
    with connection:
        received = connection.makefile("rb").read()
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nconnection: close\r\n" in received
    assert len([*backend.store.dataset_quads()]) == 1


@pytest.mark.parametrize("foreseen", [(7, 1), (6, 1), (7, 0)], ids=["right", "wrong index", "wrong count"])
@pytest.mark.parametrize("leaves", [False, True])
def test_the_answer_that_was_prepared_is_sent_where_it_is_right(
    client: httpx.Client,
    backend: MemoryBackend,
    quick: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    foreseen: tuple[int, int],
    leaves: bool,
) -> None:
    def begin(_update: Update, outcome: Outcome, _author: Author) -> bool:
        assert isinstance(outcome, ForeseeingOutcome)
        expected = Confirmation(*foreseen)
        result = expected if foreseen == (7, 1) else Confirmation(7, 1)
        loop = asyncio.get_running_loop()
        loop.call_soon(outcome.foresee, expected)
        if leaves:
            loop.call_soon(setattr, outcome, "keep_alive", False)
        loop.call_soon(outcome.set_result, result)
        return True

    monkeypatch.setattr(backend, "begin_update", begin)
    answer = client.post("/update", content=INSERT % "x", headers=UPDATE)
    assert quick == [True]
    assert answer.status_code == 200
    assert answer.headers["x-snapshot-index"] == "7"
    assert answer.json() == {
        "success": True,
        "message": "update applied",
        "snapshot_index": 7,
        "affected_triples": 1,
    }
    assert (answer.headers.get("connection") == "close") is leaves
    monkeypatch.undo()
    slow = client.post("/update", content=INSERT % "y", headers=UPDATE | SLOWLY)
    of_numbers = "x-snapshot-index", "content-length", "connection"
    assert headers_of(answer, *of_numbers) == headers_of(slow, *of_numbers)


def test_an_answer_that_was_prepared_is_not_sent_where_the_update_fails(
    client: httpx.Client, backend: MemoryBackend, quick: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(_update: Update, outcome: Outcome, _author: Author) -> bool:
        assert isinstance(outcome, ForeseeingOutcome)
        loop = asyncio.get_running_loop()
        loop.call_soon(outcome.foresee, Confirmation(7, 1))
        loop.call_soon(outcome.set_exception, StorageFull("full"))
        return True

    monkeypatch.setattr(backend, "begin_update", begin)
    answer = client.post("/update", content=INSERT % "x", headers=UPDATE)
    assert quick == [True]
    assert answer.status_code == 503
    assert answer.headers["x-snapshot-index"] != "7"
    assert "success" not in answer.json()
