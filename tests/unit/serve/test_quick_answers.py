"""Cheap queries are answered within the call that receives them, as the application answers them."""

import socket
from collections.abc import Iterator
from http.client import HTTPResponse
from urllib.parse import quote

import httpx
import pytest

from graphdb.config import Settings
from serve.graph.quick_answers import QuickAnswers
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S
from tests.unit.serve.conftest import update

POINT = "SELECT ?p ?o WHERE { <urn:%d> ?p ?o }"
JOIN = "SELECT * { <urn:%d> <urn:p> ?a . ?a <urn:p> ?b }"
SPARQL = {"Content-Type": "application/sparql-query"}
SLOWLY = {"X-Other": "a header that is not known"}


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """Without CORS, which adds to every answer."""
    backend = MemoryBackend()
    backend.entries_at_once = 128
    with serving(build_app(backend, Settings())) as url:
        yield url


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each request that was looked at, whether it was answered."""
    found: list[bool] = []
    answer = QuickAnswers._answer

    def noted(self, *arguments):  # type: ignore[no-untyped-def]
        found.append(False)
        made = answer(self, *arguments)
        found[-1] = made is not None
        return made

    monkeypatch.setattr(QuickAnswers, "_answer", noted)
    return found


@pytest.fixture
def filled(client: httpx.Client) -> httpx.Client:
    update(client, "INSERT DATA {" + "".join(f"<urn:{n}> <urn:p> <urn:{n + 1}> ." for n in range(100)) + "}")
    for text in (POINT, JOIN):  # a shape is known by the third of its texts
        for number in (97, 98):
            client.post("/sparql", content=text % number, headers=SPARQL)
            client.post("/sparql", content=text % number, headers=SPARQL | {"Host": "x"})
    return client


def test_the_past_where_it_is_there(filled: httpx.Client, quick: list[bool]) -> None:
    index = update(filled, "INSERT DATA { <urn:5> <urn:p> <urn:then> }").json()["snapshot_index"]
    update(filled, "INSERT DATA { <urn:5> <urn:p> <urn:now> }")
    asked = {"query": POINT % 5, "as_of": str(index)}
    first = filled.post("/sparql", data=asked)
    assert not quick[-1]  # it has to be made
    again = filled.post("/sparql", data=asked)
    assert quick[-1]
    slowly = filled.post("/sparql", data=asked, headers=SLOWLY)
    for answer in (first, again, slowly):
        assert answer.headers["X-Snapshot-Index"] == str(index)
        assert "urn:then" in answer.text
        assert "urn:now" not in answer.text
    filled.post("/sparql", data=asked | {"as_of": "yesterday"})
    assert not quick[-1]
    # then the answer says that something is missing
    filled.post("/history/purge", params={"resource": "urn:99"}).raise_for_status()
    marked = filled.post("/sparql", data=asked)
    assert not quick[-1]
    assert int(marked.headers["X-History-Purged"]) > index


def connected(client: httpx.Client) -> socket.socket:
    made = socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=HANG_S)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def answered(connection: socket.socket) -> tuple[int, bytes]:
    answer = HTTPResponse(connection)
    answer.begin()
    return answer.status, answer.read()


def headers_of(answer: httpx.Response) -> list[tuple[str, str]]:
    return [(name, value) for name, value in answer.headers.items() if name != "date"]


def request(text: str, rest: bytes = b"") -> bytes:
    head = b"POST /sparql HTTP/1.1\r\nHost: x\r\nContent-Type: application/sparql-query\r\n" + rest
    return head + b"Content-Length: %d\r\n\r\n%s" % (len(text), text.encode())


@pytest.mark.parametrize("text", [POINT, JOIN])
@pytest.mark.parametrize(
    "accept", ["*/*", "text/csv", "application/sparql-results+xml", "text/html;q=0.1, */*"]
)
@pytest.mark.parametrize("way", ["GET", "POST", "form", "parameter"])
def test_the_same_answer(filled: httpx.Client, quick: list[bool], text: str, accept: str, way: str) -> None:
    def ask(number: int, headers: dict[str, str]) -> httpx.Response:
        query, headers = text % number, headers | {"Accept": accept}
        if way == "GET":
            return filled.get("/sparql", params={"query": query}, headers=headers)
        if way == "form":
            return filled.post("/sparql", data={"query": query}, headers=headers)
        path = "/sparql" if way == "POST" else "/sparql?format=tsv"
        return filled.post(path, content=query, headers=headers | SPARQL)

    quick.clear()
    answer = ask(3, {})
    assert quick == [True]
    slow = ask(3, SLOWLY)
    assert quick in ([True], [True, False])
    assert answer.status_code == slow.status_code == 200
    assert answer.content == slow.content
    assert b"urn:4" in answer.content
    assert headers_of(answer) == headers_of(slow)


@pytest.mark.parametrize(
    ("text", "headers", "path"),
    [
        ("SELECT nonsense", {}, "/sparql"),
        ("SELECT * { ?s ?p ?o } ORDER BY ?s", {}, "/sparql"),
        (POINT % 1, {"X-Consistency": "leader"}, "/sparql"),
        (POINT % 1, {"X-Consistency": "nonsense"}, "/sparql"),
        (POINT % 1, {"Accept": "image/png"}, "/sparql"),
        (POINT % 1, {"Content-Type": "text/plain"}, "/sparql"),
        (POINT % 1, {"Content-Encoding": "identity"}, "/sparql"),
        (POINT % 1, {"Origin": "http://app.example"}, "/sparql"),
        (POINT % 1, {}, "/sparql?min_index=1"),
        (POINT % 1, {}, "/sparql?explain=true"),
        (POINT % 1, {}, "/sparql?query=ASK%7B%7D"),
        (POINT % 1, {}, "/sparql?default-graph-uri=urn:g"),
        (POINT % 1, {}, "/sparql?timeout=nonsense"),
        (POINT % 1, {}, "/sparql/"),
        (POINT % 1, {}, "/sparqls"),
    ],
)
def test_the_application_answers_the_rest(
    filled: httpx.Client, quick: list[bool], text: str, headers: dict[str, str], path: str
) -> None:
    answer = filled.post(path, content=text, headers=SPARQL | headers)
    assert True not in quick
    slow = filled.post(path, content=text, headers=SPARQL | headers | SLOWLY)
    assert answer.status_code == slow.status_code
    if not path.endswith("explain=true"):  # which has times
        assert answer.content == slow.content


def test_an_etag_is_known_again(filled: httpx.Client, quick: list[bool]) -> None:
    url = "/sparql?query=" + quote(POINT % 5)
    tags = {filled.get(url).headers["etag"] for _ in range(2)}
    (tag,) = tags
    assert True in quick
    assert filled.get(url, headers={"If-None-Match": tag}).status_code == 304


def test_a_long_answer(filled: httpx.Client, quick: list[bool]) -> None:
    update(filled, "INSERT DATA {" + "".join(f"<urn:0> <urn:many> '{n:0200}' ." for n in range(2_000)) + "}")
    for _ in range(2):
        answer = filled.post("/sparql", content=POINT % 0, headers=SPARQL)
        assert len(answer.json()["results"]["bindings"]) == 2_001
    assert True not in quick


@pytest.mark.parametrize("size", [1, 40, 200])
def test_in_pieces(filled: httpx.Client, quick: list[bool], size: int) -> None:
    sent = request(POINT % 7)
    with connected(filled) as connection:
        for _ in range(3):
            for start in range(0, len(sent), size):
                connection.sendall(sent[start : start + size])
            status, body = answered(connection)
            assert (status, b"urn:8" in body) == (200, True)
    assert quick == [True, True, True]


def test_many_at_once_are_answered_in_order(filled: httpx.Client, quick: list[bool]) -> None:
    numbers = range(20)
    with connected(filled) as connection:
        connection.sendall(b"".join(request(POINT % number) for number in numbers))
        received = connection.makefile("rb")
        for number in numbers:
            assert received.readline() == b"HTTP/1.1 200 OK\r\n"
            length = 0
            while (line := received.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            assert b'"urn:%d"' % (number + 1) in received.read(length)
    assert quick[0]


def test_a_body_that_does_not_come(filled: httpx.Client, quick: list[bool]) -> None:
    sent = request(POINT % 7)
    with connected(filled) as connection:
        connection.sendall(sent[:-1])
        connection.shutdown(socket.SHUT_WR)
        status, body = answered(connection)
        assert (status, b"cut short" in body) == (400, True)
    with connected(filled) as connection:
        connection.sendall(sent[:-1])
    assert not quick
    assert filled.post("/sparql", content=POINT % 7, headers=SPARQL).status_code == 200


def test_the_last_answer_of_a_connection(filled: httpx.Client, quick: list[bool]) -> None:
    with connected(filled) as connection:
        connection.sendall(request(POINT % 7, b"Connection: close\r\n"))
        assert answered(connection)[0] == 200
        assert connection.recv(1) == b""
    assert not quick


def test_it_is_counted(filled: httpx.Client, quick: list[bool]) -> None:
    def count() -> float:
        lines = filled.get("/metrics").text.splitlines()
        return float(
            next(line for line in lines if line.startswith("service_service_queries_total")).split()[1]
        )

    before = count()
    filled.post("/sparql", content=POINT % 7, headers=SPARQL)
    assert quick == [True]
    assert count() == before + 1
