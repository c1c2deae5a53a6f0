"""Answers and bodies of any length over a real connection: bounded memory, no short answer, no idle work."""

import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, Store

from graphdb.config import Settings
from graphdb.errors import Overloaded
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S, quick_enough
from tests.unit.serve.conftest import error_of

TIME_LIMIT_S = 1.0
DUMP = "/data?dataset=all&format=nquads"


def quad(number: int) -> Quad:
    return Quad(NamedNode("http://x/s"), NamedNode("http://x/p"), Literal(f"number {number}"), DefaultGraph())


class Scripted(MemoryBackend):
    """A node whose dump is whatever a test wants to happen while it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.script: Callable[[], Iterator[Quad]] = lambda: iter(())

    def dataset_quads(self) -> Iterator[Quad]:
        return self.script()


@pytest.fixture(scope="module")
def backend() -> Scripted:
    return Scripted()


@pytest.fixture(scope="module")
def base_url(backend: Scripted) -> Iterator[str]:
    settings = Settings.model_validate(
        {"server": {"query_timeout_seconds": TIME_LIMIT_S}, "readers": {"result_cache_mb": 1}}
    )
    with serving(build_app(backend, settings)) as url:
        yield url


def forever(reached: list[int], ended: threading.Event) -> Iterator[Quad]:
    """Quads without end; reached[0] tells how many were taken, ended that nobody will take more."""
    try:
        while True:
            reached[0] += 1
            yield quad(reached[0])
    finally:
        ended.set()


def test_a_long_answer_streams_in_constant_memory(client: httpx.Client, backend: Scripted) -> None:
    store: Store = backend.store._store
    store.extend(quad(number) for number in range(500))
    query = "SELECT ?a ?b { ?s ?p ?a . ?t ?q ?b }"
    size = 0
    tracemalloc.start()
    try:
        with client.stream("GET", "/sparql", params={"query": query, "format": "tsv"}) as answer:
            assert answer.headers["transfer-encoding"] == "chunked"
            for chunk in answer.iter_bytes():
                size += len(chunk)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    lengths = [len(f'"number {number}"') for number in range(500)]
    assert size == len("?a\t?b\n") + 500 * sum(lengths) * 2 + 500 * 500 * len("\t\n")


@pytest.mark.parametrize("rows", [1, 500, 5_000])
def test_a_point_query_with_any_number_of_rows(client: httpx.Client, backend: Scripted, rows: int) -> None:
    """Few rows are sent by the event loop, many by a worker; nobody can tell from the rows."""
    store: Store = backend.store._store
    store.extend(quad(number) for number in range(rows))
    answer = client.get("/sparql", params={"query": "SELECT ?o { <http://x/s> <http://x/p> ?o }"})
    found = {row["o"]["value"] for row in answer.json()["results"]["bindings"]}
    assert found == {f"number {number}" for number in range(rows)}


def test_an_error_on_the_way_breaks_the_connection(client: httpx.Client, backend: Scripted) -> None:
    def script() -> Iterator[Quad]:
        yield from map(quad, range(20_000))
        raise RuntimeError("the disk is gone")

    backend.script = script
    with client.stream("GET", DUMP) as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            answer.read()


@pytest.mark.parametrize(
    ("error", "status"), [(Overloaded("too much is waiting", 7), 503), (RuntimeError("a bug"), 500)]
)
def test_an_error_before_the_first_byte_has_its_status(
    client: httpx.Client, backend: Scripted, error: Exception, status: int
) -> None:
    def script() -> Iterator[Quad]:
        yield quad(1)
        raise error

    backend.script = script
    answer = client.get(DUMP)
    assert answer.status_code == status
    assert error_of(answer) == ("internal server error" if status == 500 else str(error))
    assert answer.headers.get("retry-after") == ("7" if status == 503 else None)


def test_a_client_that_goes_away_stops_the_worker(client: httpx.Client, backend: Scripted) -> None:
    reached, ended = [0], threading.Event()
    backend.script = lambda: forever(reached, ended)
    with client.stream("GET", DUMP) as answer:
        next(answer.iter_raw())
    assert ended.wait(HANG_S)


def test_a_client_that_reads_slowly_holds_the_worker_back(client: httpx.Client, backend: Scripted) -> None:
    reached, ended = [0], threading.Event()
    backend.script = lambda: forever(reached, ended)
    with client.stream("GET", DUMP) as answer:
        next(answer.iter_raw())
        before = -1
        deadline = time.monotonic() + HANG_S
        while reached[0] != before and time.monotonic() < deadline:
            before = reached[0]
            time.sleep(0.3)
        assert reached[0] == before, "the worker runs on although nobody reads"
    assert ended.wait(HANG_S)


def slow_script() -> Iterator[Quad]:
    time.sleep(3 * TIME_LIMIT_S)
    yield quad(1)


def test_a_slow_answer_ends_with_503(client: httpx.Client, backend: Scripted) -> None:
    backend.script = slow_script
    for took in quick_enough(2.5 * TIME_LIMIT_S):
        with took:
            answer = client.get(DUMP)
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert "1 s" in error_of(answer)


def test_a_slow_answer_blocks_nobody(client: httpx.Client, backend: Scripted) -> None:
    backend.script = slow_script
    with ThreadPoolExecutor(1) as pool:
        for took in quick_enough(TIME_LIMIT_S):
            with took:
                slow = pool.submit(httpx.get, f"{client.base_url}{DUMP}", trust_env=False)
                assert client.get("/sparql", params={"query": "ASK {}"}).status_code == 200
            assert slow.result().status_code == 503


def test_an_answer_that_stalls_midway_breaks_off(client: httpx.Client, backend: Scripted) -> None:
    def script() -> Iterator[Quad]:
        yield from map(quad, range(20_000))
        time.sleep(3 * TIME_LIMIT_S)
        yield quad(1)

    backend.script = script
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(DUMP)


def test_time_that_the_client_takes_is_not_the_querys(client: httpx.Client, backend: Scripted) -> None:
    long = Quad(NamedNode("http://x/s"), NamedNode("http://x/p"), Literal("x" * 2_000), DefaultGraph())
    backend.script = lambda: (long for _ in range(15_000))
    size = 0
    with client.stream("GET", DUMP) as answer:
        for number, chunk in enumerate(answer.iter_raw()):
            size += len(chunk)
            if number == 10:
                time.sleep(1.5 * TIME_LIMIT_S)
    assert size == 15_000 * len(f"{long} .\n")


# Uploads, by hand: no client library would send these.


def exchange(client: httpx.Client, *pieces: bytes) -> bytes:
    """Send the pieces, then end the sending side; the answer, if there is one."""
    with socket.create_connection(
        (client.base_url.host, client.base_url.port or 80), timeout=HANG_S
    ) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.05)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while received := connection.recv(65_536):
            answer += received
        return answer


HEAD = b"PUT /data HTTP/1.1\r\nHost: x\r\nContent-Type: application/n-triples\r\n"
TRIPLE = b"<http://x/s> <http://x/p> <http://x/o> .\n"


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((HEAD + b"Content-Length: 1000\r\n\r\n", TRIPLE), id="shorter than announced"),
        pytest.param(
            (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"29\r\n" + TRIPLE + b"\r\n"), id="no last chunk"
        ),
        pytest.param(
            (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"29\r\n" + TRIPLE + b"\r\nzz\r\n"), id="bad chunk"
        ),
    ],
)
def test_an_upload_that_ends_early_stores_nothing(
    client: httpx.Client, backend: Scripted, pieces: tuple[bytes, ...]
) -> None:
    answer = exchange(client, *pieces)
    assert b"200 OK" not in answer
    assert list(backend.store.dataset_quads()) == []
    assert client.get("/health").status_code == 200


def test_an_upload_in_chunks(client: httpx.Client, backend: Scripted) -> None:
    answer = exchange(
        client, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"29\r\n" + TRIPLE + b"\r\n0\r\n\r\n"
    )
    assert b"200 OK" in answer
    assert len(list(backend.store.dataset_quads())) == 1


def test_http_1_0_needs_no_host(client: httpx.Client) -> None:
    answer = exchange(client, b"GET /sparql?query=ASK%7B%7D HTTP/1.0\r\n\r\n")
    assert b"200 OK" in answer
    assert b'"boolean":true' in answer
