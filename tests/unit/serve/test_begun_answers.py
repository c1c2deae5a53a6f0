"""Queries that are begun without a task (`BegunAnswer`): the client cannot tell the difference."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from graphdb.config import Settings
from graphdb.errors import Overloaded
from serve.backend import AnswerStream, QueryOutcome, QueryRequest
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.scripted_backend import ScriptedBackend, ScriptedStream, Step
from tests.support.timing import HANG_S
from tests.unit.serve.conftest import update

QUERY = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
TIME_LIMIT_S = 1.0
SPARQL = {"Content-Type": "application/sparql-query"}
SLOWLY = {"X-Other": "a header that is not known, so that the request has a task"}


class Beginning(ScriptedBackend):
    """Begins queries, and has tell called with each on the event loop."""

    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.tell: Callable[[QueryOutcome], None] | None = None
        self.begun = 0
        self.ended = threading.Event()

    def begin_query(self, request: QueryRequest, outcome: QueryOutcome) -> Callable[[], None] | None:
        if self.tell is None:
            return None
        self.begun += 1
        self.loop = asyncio.get_running_loop()
        self.loop.call_soon(self.tell, outcome)
        return self.ended.set


def streams(*steps: Step) -> Callable[[QueryOutcome], None]:
    async def start() -> AnswerStream:
        return ScriptedStream(*steps)

    return lambda outcome: outcome.goes_on(start)


@pytest.fixture(scope="module")
def backend() -> Beginning:
    return Beginning()


@pytest.fixture(scope="module")
def base_url(backend: Beginning) -> Iterator[str]:
    settings = Settings.model_validate({"server": {"query_timeout_seconds": TIME_LIMIT_S}})
    with serving(build_app(backend, settings)) as url:
        yield url


@pytest.fixture
def known(client: httpx.Client, backend: Beginning) -> httpx.Client:
    """A client of a port that knows the query's text, and keeps no answer."""
    update(client, "INSERT DATA { <urn:s> <urn:p> 1 }")  # so that what a test before has kept is not found
    backend.forget()
    backend.tell, backend.begun = None, 0
    backend.ended.clear()
    backend.answer_with(ScriptedStream(b"known", is_exact=False))
    assert ask(client, SLOWLY).status_code == 200
    return client


def ask(client: httpx.Client, headers: dict[str, str] | None = None) -> httpx.Response:
    return client.post("/sparql", content=QUERY, headers=SPARQL | (headers or {}))


def test_a_short_answer_is_sent_as_it_comes_and_kept(known: httpx.Client, backend: Beginning) -> None:
    index = backend.exact_index() or 0
    short = ScriptedStream(snapshot_index=index)
    backend.tell = lambda outcome: outcome.answered(short, b"all of it")
    answer = ask(known)
    assert (answer.status_code, answer.content, backend.begun) == (200, b"all of it", 1)
    assert answer.headers["content-length"] == "9"
    assert answer.headers["x-evaluated"] == "script"
    kept = ask(known)
    assert (kept.content, kept.headers["x-evaluated"], backend.begun) == (b"all of it", "cache", 1)
    with_task = ask(known, SLOWLY)
    for one in (kept, with_task):
        del one.headers["date"]
    assert (with_task.content, with_task.headers) == (kept.content, kept.headers)
    metrics = known.get("/metrics").text
    assert 'service_service_query_outcomes_total{outcome="cached"} 2.0' in metrics


def test_a_long_answer_is_streamed(known: httpx.Client, backend: Beginning) -> None:
    backend.tell = streams(b"one, ", b"two, ", b"three")
    answer = ask(known)
    assert (answer.status_code, answer.content, backend.begun) == (200, b"one, two, three", 1)
    assert answer.headers["transfer-encoding"] == "chunked"
    backend.tell = streams(b"another")  # on the same connection
    assert ask(known).content == b"another"


@pytest.mark.parametrize("error", [Overloaded("everybody is busy"), ValueError("a fault")])
def test_a_failure_has_its_status(known: httpx.Client, backend: Beginning, error: Exception) -> None:
    backend.tell = streams(error)
    answer = ask(known)
    backend.answer_with(error)
    with_task = ask(known, SLOWLY)
    assert backend.begun == 1
    for one in (answer, with_task):
        del one.headers["date"]
    assert (answer.status_code, answer.content) == (with_task.status_code, with_task.content)
    assert answer.headers == with_task.headers


def test_an_answer_that_breaks_off_closes_the_connection(known: httpx.Client, backend: Beginning) -> None:
    backend.tell = streams(b"one, ", b"two, ", Overloaded("everybody is busy"))
    with pytest.raises(httpx.RemoteProtocolError):
        ask(known)


def test_a_backend_that_tells_nothing_is_given_up(known: httpx.Client, backend: Beginning) -> None:
    backend.tell = lambda _outcome: None
    answer = ask(known)
    assert answer.status_code == 503
    assert f"took longer than {TIME_LIMIT_S:g} s" in answer.text
    assert backend.ended.is_set()


def test_a_client_that_leaves_ends_its_query(known: httpx.Client, backend: Beginning) -> None:
    told: list[QueryOutcome] = []
    backend.tell = told.append
    with _connected(known) as connection:
        connection.sendall(_request(known))
        _wait_until(lambda: bool(told))
    assert backend.ended.wait(HANG_S)
    told[0].answered(ScriptedStream(), b"too late")
    backend.tell = streams(b"the next")
    assert ask(known).content == b"the next"
    assert 'outcomes_total{outcome="disconnected"} 1.0' in known.get("/metrics").text


def test_requests_of_one_connection_are_answered_in_their_order(
    known: httpx.Client, backend: Beginning
) -> None:
    """The second comes while the first waits for its answer."""
    told: list[QueryOutcome] = []
    backend.tell = told.append
    backend.answer_with(ScriptedStream(b"second", is_exact=False))
    for stream, first in ((ScriptedStream(is_exact=False), b"first"), (None, b"first, streamed")):
        with _connected(known) as connection:
            connection.sendall(_request(known))
            _wait_until(lambda: bool(told))
            connection.sendall(_request(known, b"X-Other: y\r\nConnection: close\r\n"))
            time.sleep(0.05)
            outcome = told.pop()
            loop = backend.loop
            if stream is not None:
                loop.call_soon_threadsafe(outcome.answered, stream, first)
            else:
                loop.call_soon_threadsafe(streams(first), outcome)
            received = b""
            while piece := connection.recv(1 << 16):
                received += piece
        assert received.count(b"HTTP/1.1 200") == 2
        assert received.index(first) < received.index(b"second")
        backend.answer_with(ScriptedStream(b"second", is_exact=False))


def _request(client: httpx.Client, rest: bytes = b"") -> bytes:
    lines = [
        "POST /sparql HTTP/1.1",
        f"Host: {client.base_url.netloc.decode()}",
        "Content-Type: application/sparql-query",
        f"Content-Length: {len(QUERY)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n" + rest + b"\r\n" + QUERY.encode()


def _connected(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=HANG_S)


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
