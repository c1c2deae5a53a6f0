"""Documents that are written without the application are written, and answered, as by the application."""

import re
import socket
from collections.abc import Iterator, Mapping
from http.client import HTTPResponse
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphdb.config import Settings
from graphdb.config.service import Server
from graphdb.errors import LogUnavailable, OutcomeUnknown, StorageFull
from serve.port.bounded_protocol import BoundedProtocol
from serve.search.documents.quick_puts import QuickPuts
from serve.search_app import build_search_app
from tests.support.http_server import client_of
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.search.conftest import one_shard

pytestmark = one_shard
_MAPPING = {"properties": {"size": {"type": "integer"}, "text": {"type": "text"}}}
_JSON = {"Content-Type": "application/json"}


class _Both:
    """Two nodes with the same indexes; what the first has taken without its application is counted."""

    def __init__(self, quick: httpx.Client, slow: httpx.Client, node: MemorySearch) -> None:
        self.quick, self.slow, self.node = quick, slow, node
        self.taken = 0

    def same(self, method: str, path: str, body: Any, **headers: str) -> httpx.Response:
        """The answer of both, but for generated ids."""
        text = body if isinstance(body, bytes) else orjson.dumps(body)
        sent = _JSON | {name.replace("_", "-"): value for name, value in headers.items()}
        answers = [port.request(method, path, content=text, headers=sent) for port in (self.slow, self.quick)]
        shown, other = map(_shown, answers)
        assert shown == other
        return answers[1]


def _shown(answer: httpx.Response) -> tuple[int, bytes, Mapping[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name != "date"}
    headers["location"] = re.sub(r"_doc/[\w-]{20}$", "_doc/*", headers.get("location", ""))
    text = re.sub(rb'"_id":"[\w-]{20}"', b"", answer.content)
    return answer.status_code, re.sub(rb"\[[0-9a-f]{16}\]", b"", text), headers


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Both]:
    nodes = [MemorySearch() for _ in range(2)]
    quick, slow = (build_search_app(node, Settings()) for node in nodes)
    slow.quick = None
    with client_of(quick) as first, client_of(slow) as second:
        found = _Both(first, second, nodes[0])
        answer = QuickPuts._answer

        def counted(*arguments: Any) -> Any:
            made = answer(*arguments)
            found.taken += made is not None
            return made

        monkeypatch.setattr(QuickPuts, "_answer", counted)
        for port in (first, second):
            port.put("/i", json={"mappings": _MAPPING}).raise_for_status()
        yield found


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/i/_doc/1"), ("POST", "/i/_doc/a-b_c.d~e"), ("POST", "/i/_doc"), ("PUT", "/i/_create/2")],
)
def test_taken_and_the_same(both: _Both, method: str, path: str) -> None:
    for number in range(3):
        answer = both.same(method, path, {"size": number, "text": "grey owl"})
        assert both.taken == number + 1
    assert answer.status_code == {"/i/_doc": 201, "/i/_create/2": 409}.get(path, 200)
    assert both.same("POST", "/i/_refresh", b"").status_code == 200
    for port in (both.quick, both.slow):
        assert port.get("/i/_count").json()["count"] == (3 if path == "/i/_doc" else 1)
    if path != "/i/_doc":
        assert both.same("GET", path.replace("_create", "_doc"), b"").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/i/_doc/1?refresh=true", {"size": 1}),
        ("PUT", "/i/_doc/1?routing=a", {"size": 1}),
        ("PUT", "/i/_doc/1?nonsense=1", {"size": 1}),
        ("PUT", "/i/_doc/a%2Fb", {"size": 1}),
        ("PUT", "/i/_doc/1", b'{"size": 1'),
        ("PUT", "/i/_doc/1", b'{"size": 1, "size": 2}'),
        ("PUT", "/i/_doc/1", [1]),
        ("PUT", "/i/_doc/1", b" "),
        ("PUT", "/i/_doc/1", b""),
        ("PUT", "/i/_doc", {"size": 1}),
        ("POST", "/i/_create", {"size": 1}),
        ("PUT", "/i/_doc/1/2", {"size": 1}),
        ("PUT", "/other/_doc/1", {"size": 1}),
        ("PUT", "/Other/_doc/1", {"size": 1}),
        ("PUT", "/i/_doc/" + "x" * 600, {"size": 1}),
        ("PUT", "/i/_doc/1", {"text": "x" * 40_000}),
        ("DELETE", "/i/_doc/1", b""),
    ],
)
def test_for_the_application(both: _Both, method: str, path: str, body: Any) -> None:
    both.same(method, path, body)
    assert both.taken == 0


def test_pipelines_and_what_the_node_leaves_are_for_the_application(both: _Both) -> None:
    uppercase = {"processors": [{"uppercase": {"field": "text"}}]}
    for port in (both.quick, both.slow):
        port.put("/_ingest/pipeline/p", json=uppercase).raise_for_status()
        port.put("/i/_settings", json={"index.default_pipeline": "p"}).raise_for_status()
    both.same("PUT", "/i/_doc/1", {"text": "a"})
    assert both.quick.get("/i/_source/1").json() == {"text": "A"}
    for port in (both.quick, both.slow):
        port.put("/i/_settings", json={"index.default_pipeline": None}).raise_for_status()
    both.node.begins_no_write = True
    both.same("PUT", "/i/_doc/2", {"text": "a"})
    assert both.taken == 0


def test_documents_that_an_index_refuses(both: _Both) -> None:
    refused = both.same("PUT", "/i/_doc/1", {"size": "many"})
    assert refused.status_code == 400
    assert refused.json()["error"]["type"] == "document_parsing_exception"
    for port in (both.quick, both.slow):
        port.put("/i/_settings", json={"index.blocks.write": True}).raise_for_status()
    assert both.same("PUT", "/i/_doc/1", {"size": 1}).status_code == 403
    assert both.taken == 2


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StorageFull("full"), 429),
        (LogUnavailable("away", 7), 503),
        (OutcomeUnknown("lost", 5), 503),
        (ValueError("ours"), 500),
    ],
)
def test_failures(both: _Both, error: Exception, status: int) -> None:
    both.node.failing = error
    answer = both.quick.put("/i/_doc/1", json={"size": 1})
    assert both.taken == 1
    both.node.begins_no_write = True
    other = both.quick.put("/i/_doc/1", json={"size": 1})
    assert both.taken == 1
    assert _shown(answer) == _shown(other)
    assert answer.status_code == status


@pytest.mark.parametrize("name", ["X_Opaque_Id", "Authorization", "X_Other"])
def test_headers_that_are_not_known(both: _Both, name: str) -> None:
    both.same("PUT", "/i/_doc/1", {"size": 1}, **{name: "a"})
    assert both.taken == 0


def test_compatible_media_types_and_compressed_errors(both: _Both) -> None:
    own = "application/vnd.elasticsearch+json; compatible-with=8"
    for accept in (own, "application/json", "*/*"):
        both.same("PUT", "/i/_doc/1", {"size": 1}, Content_Type=own, Accept=accept)
    both.same("PUT", "/i/_doc/1", {"size": "many" * 300}, Accept_Encoding="gzip")
    assert both.taken >= 2


def test_a_head_is_not_kept_for_each_document(both: _Both) -> None:
    """Requests in turn on one connection, which differ by their ids alone."""
    host, port = both.quick.base_url.host, both.quick.base_url.port or 0
    with socket.create_connection((host, port), timeout=HANG_S) as connection:
        for number in range(50):
            head = f"POST /i/_doc/{number} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            connection.sendall(head.encode() + b"Content-Length: 10\r\n\r\n" + b'{"size":1}')
            answer = HTTPResponse(connection)
            answer.begin()
            assert (answer.status, orjson.loads(answer.read())["_id"]) == (201, str(number))
    assert both.taken == 50


class _Raw:
    """A connection on which each request comes in one piece."""

    def __init__(self, port: httpx.Client) -> None:
        host, number = port.base_url.host, port.base_url.port or 0
        self._socket = socket.create_connection((host, number), timeout=HANG_S)

    def __enter__(self) -> "_Raw":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def answer(self, line: bytes, fields: bytes, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        self._socket.sendall(b"%s\r\n%sContent-Length: %d\r\n\r\n%s" % (line, fields, len(body), body))
        answer = HTTPResponse(self._socket)
        answer.begin()
        text, headers = answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        del headers["date"]
        return answer.status, re.sub(rb"\[[0-9a-f]{16}\]", b"", text), headers


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the parser was given, of both nodes."""
    seen: list[bytes] = []
    parse = BoundedProtocol.data_received

    def noted(self: BoundedProtocol, data: bytes) -> None:
        seen.append(data)
        parse(self, data)

    monkeypatch.setattr(BoundedProtocol, "data_received", noted)
    return seen


_FIELDS = b"Host: x\r\nContent-Type: application/json\r\n"


def test_only_the_first_line_is_read_where_all_else_is_known(both: _Both, parsed: list[bytes]) -> None:
    with _Raw(both.quick) as connection:
        for number in range(10):
            status, text, _ = connection.answer(
                b"PUT /i/_doc/%d HTTP/1.1" % number, _FIELDS, b'{"size":%d}' % number
            )
            assert (status, orjson.loads(text)["_id"]) == (201, str(number))
    assert (len(parsed), both.taken) == (1, 10)


@pytest.mark.parametrize(
    "line",
    [
        b"PUT /i/_doc/1?refresh=true HTTP/1.1",
        b"PUT /i/_doc/%61 HTTP/1.1",
        b"PUT http://y/i/_doc/1 HTTP/1.1",
        b"PUT /i/_doc/1#a HTTP/1.1",
        b"PUT /i/_doc/1 HTTP/1.0",
        b"PUT /i/_doc/1  HTTP/1.1",
        b"PUT /i/_doc/\xc3\xa4 HTTP/1.1",
        b"DELETE /i/_doc/1 HTTP/1.1",
    ],
)
def test_other_first_lines_are_for_the_parser(both: _Both, parsed: list[bytes], line: bytes) -> None:
    answers = []
    for port in (both.quick, both.slow):
        with _Raw(port) as connection:
            connection.answer(b"PUT /i/_doc/0 HTTP/1.1", _FIELDS, b'{"size":7}')
            before = len(parsed)
            answers.append(connection.answer(line, _FIELDS, b'{"size":8}'))
            assert len(parsed) > before
    assert answers[0] == answers[1]


def test_a_path_that_is_too_long_is_refused_though_all_else_is_known(both: _Both) -> None:
    with _Raw(both.quick) as connection:
        for _ in range(2):
            assert connection.answer(b"PUT /i/_doc/0 HTTP/1.1", _FIELDS, b'{"size":7}')[0] in (200, 201)
        long = b"a" * Server().max_uri_bytes
        assert connection.answer(b"PUT /i/_doc/%s HTTP/1.1" % long, _FIELDS, b'{"size":7}')[0] == 414


_LINES = st.tuples(
    st.sampled_from([b"PUT", b"POST", b"DELETE"]),
    st.sampled_from([b"/i/_doc/a", b"/i/_create/b", b"/i/_doc/a?pretty", b"/none/_doc", b"/_bulk"]),
    st.sampled_from([b"", b"Accept: application/json\r\n", b"X-Other: 1\r\n", b"Accept-Encoding: gzip\r\n"]),
    st.sampled_from([b'{"size":1}', b'{"size":2}', b'{"size":"a"}', b'{"text":"grey"}', b"{"]),
)


@settings(
    max_examples=25,
    deadline=None,  # real servers, on a machine that may be busy
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(_LINES, max_size=12))
def test_any_requests_in_one_piece_are_answered_the_same(both: _Both, lines: list[Any]) -> None:
    with _Raw(both.quick) as quick, _Raw(both.slow) as slow:
        for method, path, more, body in lines:
            sent = b"%s %s HTTP/1.1" % (method, path), _FIELDS + more, body
            answers = [_without_chance(connection.answer(*sent)) for connection in (quick, slow)]
            assert answers[0] == answers[1]


def _without_chance(answer: tuple[int, bytes, dict[str, str]]) -> tuple[int, bytes, dict[str, str]]:
    """Without times and generated ids."""
    status, text, headers = answer
    del headers["content-length"]
    headers["location"] = re.sub(r"_doc/[\w-]{20}$", "_doc/*", headers.get("location", ""))
    text = re.sub(rb'"(took|_id)":("[\w-]{20}"|\d+)', b"", text)
    return status, re.sub(rb"with id '[\w-]{20}'", b"", text), headers


_DOCUMENTS = st.fixed_dictionaries(
    {}, optional={"size": st.integers(-5, 5) | st.text(max_size=3), "text": st.text(max_size=9)}
)
_WRITES = st.tuples(
    st.sampled_from([("PUT", "_doc"), ("POST", "_doc"), ("PUT", "_create"), ("DELETE", "_doc")]),
    st.sampled_from(["a", "b", "c"]),
    _DOCUMENTS,
)


@settings(
    max_examples=25,
    deadline=None,  # real servers, on a machine that may be busy
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(_WRITES, max_size=12))
def test_any_writes_leave_the_same(both: _Both, writes: list[Any]) -> None:
    for (method, kind), doc_id, document in writes:
        both.same(method, f"/i/{kind}/{doc_id}", b"" if method == "DELETE" else document)
    for doc_id in ("a", "b", "c"):
        both.same("GET", f"/i/_doc/{doc_id}", b"")
