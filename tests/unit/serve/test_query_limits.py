"""Time limits, waiting for an index, and every way in which an answer can end before its end."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NoReturn

import httpx
import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from graphdb.config import Settings
from graphdb.errors import (
    EvaluationFailed,
    NotAcceptable,
    Overloaded,
    QueryCancelled,
    QueryMemoryExceeded,
    QueryTimeout,
)
from graphdb.planning.gate import SHORT_TEXT_CHARACTERS
from serve.backend import AnswerStream, QueryRequest
from serve.graph import asked_query
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.leaving_client import leave
from tests.support.scripted_backend import HANG, ScriptedBackend, ScriptedStream
from tests.support.timing import quick_enough, wait_until
from tests.unit.serve.conftest import error_of, update

TIME_LIMIT_S = 1.0
BACKSTOP_S = 0.5
FORM = "application/x-www-form-urlencoded"
QUERY = "application/sparql-query"
NOT_CHEAP = "SELECT ?o { ?s ?p ?o . ?s ?q ?r }"
CHEAP = "SELECT ?o { <http://x/s> <http://x/p> ?o }"
ENDLESS = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
SILENT = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
CHUNK = b"x" * 65_536


@pytest.fixture(scope="module")
def backend() -> ScriptedBackend:
    return ScriptedBackend()


@pytest.fixture(scope="module")
def base_url(backend: ScriptedBackend) -> Iterator[str]:
    settings = Settings.model_validate({"server": {"query_timeout_seconds": TIME_LIMIT_S}})
    with serving(build_app(backend, settings)) as url:
        yield url


@pytest.fixture(autouse=True)
def as_usual(backend: ScriptedBackend) -> Iterator[None]:
    yield
    backend.forget()


def fill(backend: ScriptedBackend, triples: int) -> None:
    s, p = NamedNode("http://x/s"), NamedNode("http://x/p")
    backend.store._store.extend(Quad(s, p, Literal(f"number {n}"), DefaultGraph()) for n in range(triples))


def ask(client: httpx.Client, query: str = NOT_CHEAP, **parameters: str | float) -> httpx.Response:
    return client.get("/sparql", params={"query": query, **parameters})


def wait_closed(stream: ScriptedStream) -> None:
    wait_until(lambda: stream.is_closed)


# The parameter


NO_NUMBERS = [
    "",
    "0",
    "0.0",
    "0s",
    "0ms",
    "-1",
    "-1s",
    "+1s",
    "abc",
    "inf",
    "nan",
    "infs",
    "NaNms",
    "1e3",
    "1e3ms",
]
NO_UNITS = [
    "s",
    "ms",
    ".s",
    "1S",
    "1MS",
    "1m",
    "1min",
    "1h",
    "1sec",
    "1ss",
    "1sms",
    "1_0",
    " 1",
    "1 s",
    "1s ",
    "1s\n",
]


@pytest.mark.parametrize("value", [*NO_NUMBERS, *NO_UNITS, "\u0661", "0." + "0" * 400 + "1s"])
@pytest.mark.parametrize("query", [CHEAP, NOT_CHEAP])
def test_a_timeout_that_is_none(client: httpx.Client, query: str, value: str) -> None:
    answers = [
        ask(client, query, timeout=value),
        client.post("/sparql", data={"query": query, "timeout": value}),
        client.post("/sparql", params={"timeout": value}, content=query, headers={"Content-Type": QUERY}),
    ]
    for answer in answers:
        assert answer.status_code == 400
        assert "timeout" in error_of(answer)


def test_two_timeouts(client: httpx.Client) -> None:
    assert client.get("/sparql", params={"query": CHEAP, "timeout": ["1", "2"]}).status_code == 400


@pytest.mark.parametrize(
    ("given", "counted"),
    [
        (None, 1.0),
        ("0.5", 0.5),
        (".25", 0.25),
        ("1.", 1.0),
        ("1000", 1.0),
        ("9" * 400, 1.0),
        ("0.5s", 0.5),
        (".25s", 0.25),
        ("120s", 1.0),
        ("500ms", 0.5),
        ("250.5ms", 0.2505),
        ("1500ms", 1.0),
        ("9" * 400 + "ms", 1.0),
    ],
)
def test_the_lower_limit_counts(
    client: httpx.Client, backend: ScriptedBackend, given: str | None, counted: float
) -> None:
    fields = {"query": NOT_CHEAP} | ({"timeout": given} if given else {})
    fresh = {"Cache-Control": "no-cache"}
    began = time.monotonic()
    assert client.get("/sparql", params=fields, headers=fresh).status_code == 200
    assert client.post("/sparql", data=fields, headers=fresh).status_code == 200
    taken_s = time.monotonic() - began
    for request in backend.requests:
        assert counted - taken_s < request.timeout_s <= counted
    assert len(backend.requests) == 2


@pytest.mark.parametrize(("timeout", "seconds"), [("0.3", 0.3), ("1000", TIME_LIMIT_S)])
def test_past_the_limit_before_the_first_byte(
    client: httpx.Client, backend: ScriptedBackend, timeout: str, seconds: float
) -> None:
    fill(backend, 230)
    for took in quick_enough(seconds + 3):
        with took:
            answer = ask(client, SILENT, timeout=timeout)
        assert took.seconds >= seconds
        assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert int(answer.headers["x-snapshot-index"]) >= 0
    assert error_of(answer) == f"the query took longer than {seconds:g} s and was ended"
    assert backend.running_queries() == []


def test_past_the_limit_midway(client: httpx.Client, backend: ScriptedBackend) -> None:
    fill(backend, 300)
    for took in quick_enough(1.5):
        with took, client.stream("GET", "/sparql", params={"query": ENDLESS, "timeout": "0.5"}) as answer:
            assert answer.status_code == 200
            with pytest.raises(httpx.RemoteProtocolError):
                answer.read()
    assert backend.running_queries() == []


def test_time_that_the_client_takes_counts(client: httpx.Client, backend: ScriptedBackend) -> None:
    fill(backend, 300)
    with client.stream("GET", "/sparql", params={"query": ENDLESS}) as answer:
        pieces = answer.iter_raw()
        next(pieces)
        time.sleep(TIME_LIMIT_S + 0.5)
        with pytest.raises(httpx.RemoteProtocolError):
            list(pieces)


# The port's own watch, should the reader not keep its limits


def test_a_reader_that_hangs(client: httpx.Client, backend: ScriptedBackend) -> None:
    for took in quick_enough(0.3 + BACKSTOP_S + 3):
        stream = ScriptedStream(CHUNK, HANG)
        backend.answer_with(stream)
        with took:
            answer = ask(client, timeout="0.3")
        assert took.seconds >= 0.3 + BACKSTOP_S
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert stream.is_closed


def test_a_reader_that_hangs_midway(client: httpx.Client, backend: ScriptedBackend) -> None:
    stream = ScriptedStream(CHUNK, CHUNK, HANG)
    backend.answer_with(stream)
    with client.stream("GET", "/sparql", params={"query": NOT_CHEAP, "timeout": "0.3"}) as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            answer.read()
    assert stream.is_closed


def test_a_client_that_stops_reading(client: httpx.Client, backend: ScriptedBackend) -> None:
    stream = ScriptedStream(*[CHUNK] * 10_000)
    backend.answer_with(stream)
    with client.stream("GET", "/sparql", params={"query": NOT_CHEAP, "timeout": "0.3"}) as answer:
        assert answer.status_code == 200
        wait_closed(stream)


class Waiting:
    """A start that never comes; is_over once the one who waits for it has given up."""

    def __init__(self, backend: ScriptedBackend) -> None:
        self.has_begun = self.is_over = False
        backend.start = self

    async def __call__(self, _request: QueryRequest) -> AnswerStream:
        self.has_begun = True
        try:
            await asyncio.Event().wait()
        finally:
            self.is_over = True
        raise AssertionError


def test_a_queue_that_hangs(client: httpx.Client, backend: ScriptedBackend) -> None:
    waiting = Waiting(backend)
    answer = ask(client, timeout="0.2")
    assert answer.status_code == 503
    assert waiting.is_over


# A client that goes away


def test_a_client_that_leaves_the_queue(base_url: str, backend: ScriptedBackend) -> None:
    waiting = Waiting(backend)
    leave(f"{base_url}/sparql", lambda: waiting.has_begun, query=NOT_CHEAP)
    wait_until(lambda: waiting.is_over)


@pytest.mark.parametrize("steps", [[HANG], [CHUNK, HANG], [CHUNK, CHUNK, CHUNK, HANG]])
def test_a_client_that_leaves_its_query(
    base_url: str, backend: ScriptedBackend, steps: list[bytes | type[asyncio.Event]]
) -> None:
    for took in quick_enough(0.5):
        stream = ScriptedStream(*steps)
        backend.answer_with(stream)
        leave(f"{base_url}/sparql", partial(getattr, stream, "hangs_since"), query=NOT_CHEAP)
        with took:
            wait_closed(stream)


# Errors


FAILURES = [
    (Overloaded("too much is waiting", 7), 503, "7"),
    (QueryTimeout("the query took longer than 1 s and was ended"), 503, "1"),
    (QueryMemoryExceeded("the query took more than 64 MB"), 503, "1"),
    (QueryCancelled("the query was cancelled"), 503, "1"),
    (EvaluationFailed("the engine will not"), 400, None),
    (NotAcceptable("text/csv", ("text/turtle",)), 406, None),
    (RuntimeError("a bug"), 500, None),
]


@pytest.mark.parametrize(("failure", "status", "retry_after"), FAILURES)
@pytest.mark.parametrize("steps", [None, [], [CHUNK]], ids=["at the start", "at once", "after one piece"])
def test_an_error_before_the_head(
    client: httpx.Client,
    backend: ScriptedBackend,
    failure: Exception,
    status: int,
    retry_after: str | None,
    steps: list[bytes] | None,
) -> None:
    backend.answer_with(failure if steps is None else ScriptedStream(*steps, failure))
    answer = ask(client)
    assert answer.status_code == status
    assert error_of(answer) == ("internal server error" if status == 500 else str(failure))
    assert answer.headers.get("retry-after") == retry_after


@pytest.mark.parametrize(("failure", "status", "retry_after"), FAILURES)
def test_an_error_after_the_head(
    client: httpx.Client,
    backend: ScriptedBackend,
    failure: Exception,
    status: int,
    retry_after: str | None,
) -> None:
    stream = ScriptedStream(CHUNK, CHUNK, failure)
    backend.answer_with(stream)
    with client.stream("GET", "/sparql", params={"query": NOT_CHEAP}) as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            answer.read()
    assert stream.is_closed


@pytest.mark.parametrize(
    ("steps", "length"), [([], "0"), ([b"abc"], "3"), ([b"", b""], None), ([CHUNK, b"abc"], None)]
)
def test_the_length_of_what_is_whole(
    client: httpx.Client, backend: ScriptedBackend, steps: list[bytes], length: str | None
) -> None:
    backend.answer_with(ScriptedStream(*steps, is_exact=False))
    answer = ask(client)
    assert answer.content == b"".join(steps)
    assert answer.headers.get("content-length") == length
    assert ("transfer-encoding" in answer.headers) == (length is None)


def test_the_connection_serves_on(client: httpx.Client, backend: ScriptedBackend) -> None:
    for steps in ([b"abc"], [CHUNK, b"abc"], []):
        backend.answer_with(ScriptedStream(*steps, is_exact=False))
        assert ask(client).content == b"".join(steps)


# Indexes


@pytest.mark.parametrize("path", ["/sparql", "/data"])
@pytest.mark.parametrize("value", ["-1", "1.5", "abc", "", "+1", "9" * 30])
def test_an_index_that_is_none(client: httpx.Client, path: str, value: str) -> None:
    answer = client.get(path, params={"query": CHEAP, "min_index": value})
    assert answer.status_code == 400
    assert "min_index" in error_of(answer)


REQUESTS = {
    "a cheap query": ("GET", "/sparql", {"query": CHEAP}),
    "another query": ("GET", "/sparql", {"query": NOT_CHEAP}),
    "HEAD of a query": ("HEAD", "/sparql", {"query": NOT_CHEAP}),
    "a graph": ("GET", "/data", {}),
    "HEAD of a graph": ("HEAD", "/data", {}),
    "a dataset": ("GET", "/data", {"dataset": "all"}),
}


@pytest.mark.parametrize("request_", REQUESTS)
def test_an_index_that_is_reached(client: httpx.Client, request_: str) -> None:
    written = int(update(client, "INSERT DATA { <http://x/s> <http://x/p> 1 }").headers["x-snapshot-index"])
    method, path, parameters = REQUESTS[request_]
    for index in (0, 1, written):
        answer = client.request(method, path, params={**parameters, "min_index": index})
        assert (answer.status_code, answer.headers["x-snapshot-index"]) == (200, str(written))


@pytest.mark.parametrize("request_", REQUESTS)
def test_an_index_that_is_not_reached(client: httpx.Client, backend: ScriptedBackend, request_: str) -> None:
    method, path, parameters = REQUESTS[request_]
    now = backend.snapshot_index()
    waited_s = TIME_LIMIT_S if path == "/data" else 0.3
    for took in quick_enough(waited_s + 0.7):
        with took:
            answer = client.request(
                method, path, params={**parameters, "min_index": now + 1, "timeout": "0.3"}
            )
        assert took.seconds > waited_s * 0.9
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.headers["x-snapshot-index"] == str(now)
    if method != "HEAD":
        assert str(now + 1) in error_of(answer)


def test_the_index_on_every_answer(client: httpx.Client) -> None:
    written = update(client, "INSERT DATA { <http://x/s> <http://x/p> 1 }").headers["x-snapshot-index"]
    query = {"query": NOT_CHEAP}
    turtle = {"Content-Type": "text/turtle"}
    answers = {
        "wrong query": client.get("/sparql", params={"query": "SELECT"}),
        "no query": client.post("/sparql", data={"a": "b"}),
        "wrong update": client.post("/update", data={"update": "INSERT"}),
        "wrong Accept": client.get("/sparql", params=query, headers={"Accept": "image/png"}),
        "no graph": client.get("/data?graph=http://x/none"),
        "wrong body": client.put("/data", content="<a", headers=turtle),
        "made": client.get("/sparql", params=query),
        "kept": client.get("/sparql", params=query),
        "known": client.get("/sparql", params=query, headers={"If-None-Match": "*"}),
        "cheap": client.get("/sparql", params={"query": CHEAP}),
        "head": client.head("/sparql", params=query),
        "graph": client.get("/data"),
        "known graph": client.get("/data", headers={"If-None-Match": "*"}),
    }
    found = {name: answer.headers.get("x-snapshot-index") for name, answer in answers.items()}
    assert found == dict.fromkeys(answers, written)
    put = client.put("/data", content="<http://x/a> <http://x/b> 1 .", headers=turtle)
    assert int(put.headers["x-snapshot-index"]) == put.json()["snapshot_index"] == int(written) + 1
    deleted = client.delete("/data")
    assert int(deleted.headers["x-snapshot-index"]) == int(written) + 2


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"ASK {} #" + b"x" * 300_000, "application/sparql-query"),
        (b"query=ASK%7B%7D" + b"%20" * 300_000, "application/x-www-form-urlencoded"),
    ],
)
def test_a_body_that_can_only_be_too_long_is_not_read(
    client: httpx.Client, body: bytes, media_type: str
) -> None:
    answer = client.post("/sparql", content=body, headers={"Content-Type": media_type})
    assert answer.status_code == 400
    assert answer.headers["connection"] == "close"
    assert answer.json()["error"] == (
        f"query bytes (security.max_query_bytes) is {len(body)}, at most 262144 is allowed"
    )


def test_long_texts_are_parsed_one_at_a_time(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that parse side by side would keep the event loop from its turn."""
    at_it, most = 0, 0

    def read(text: str, *_: object) -> NoReturn:
        nonlocal at_it, most
        at_it += 1
        most = max(most, at_it)
        time.sleep(0.05)
        at_it -= 1
        raise EvaluationFailed("read")

    monkeypatch.setattr(asked_query, "read_query", read)
    with ThreadPoolExecutor(4) as clients:
        texts = (f"{CHEAP} # {'x' * SHORT_TEXT_CHARACTERS} {number}" for number in range(4))
        answers = clients.map(lambda text: ask(client, text), texts)
    assert [error_of(answer) for answer in answers] == ["read"] * 4
    assert most == 1


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("SELECT * { SERVICE <http://elsewhere.example/> { ?s ?p ?o } }", 403),
        ("SELECT * { " + "?s ?p ?o . " * 41 + "}", 400),
    ],
)
def test_head_refuses_what_get_refuses(client: httpx.Client, query: str, status: int) -> None:
    assert client.get("/sparql", params={"query": query}).status_code == status
    assert client.head("/sparql", params={"query": query}).status_code == status
