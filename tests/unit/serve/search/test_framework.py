"""What all operations have in common: paths, methods, media types, parameters, errors, forms of answers."""

import gzip
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest

from graphdb.access.permissions import Permission
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.multi import Failure
from serve.search.frame.answer import Answer, envelope, query_failed
from serve.search.frame.exchange import Body, Endpoint, Exchange, SearchWork, endpoint
from serve.search.frame.router import SearchRouter
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.search.conftest import SETTINGS, one_shard, reason_of

pytestmark = one_shard

JSON = {"Content-Type": "application/json"}
VENDOR = "application/vnd.elasticsearch+json; compatible-with="


async def _echo(exchange: Exchange) -> Any:
    return {"index": exchange.get("index"), "body": await exchange.json(), "method": exchange.method}


async def _numbers(exchange: Exchange) -> Any:
    parameters = exchange.parameters
    return {
        "integer": parameters.integer("integer", 7),
        "long": parameters.long("long", None),
        "flag": parameters.boolean("flag", False),
        "time": parameters.time_ms("time", None),
        "names": parameters.strings("names"),
    }


async def _fail(exchange: Exchange) -> Any:
    raise RuntimeError("a secret")


async def _hold(exchange: Exchange) -> Any:
    return Answer("text" * 1_000)


ENDPOINTS = [
    *endpoint("GET POST", ["/_echo", "/{index}/_echo"], _echo, "routing", Body.JSON),
    *endpoint("GET", "/_numbers", _numbers, "integer long flag time names"),
    *endpoint("GET HEAD", "/_text", _hold),
    *endpoint("GET", "/_fail", _fail),
    *endpoint("PUT DELETE", "/{index}", _echo),
    *endpoint("POST", "/_lines", _echo, "", Body.LINES),
]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with serving(router_of(ENDPOINTS)) as url:
        yield url


def router_of(endpoints: list[Endpoint]) -> SearchRouter:
    """Of endpoints that the service does not have; everyone may use them."""
    needs = {(one.path, method): Permission.NONE for one in endpoints for method in one.methods}
    return SearchRouter(MemorySearch(), SETTINGS, SearchWork(10), endpoints, needs)


@pytest.fixture
def http(base_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base_url, trust_env=False, headers={"Accept-Encoding": ""}) as client:
        yield client


class TestPaths:
    def test_literal_segments_go_before_names(self, http: httpx.Client) -> None:
        assert http.get("/_echo").json()["index"] is None
        assert http.get("/a%2Fb%2Cc/_echo/").json()["index"] == "a/b,c"

    def test_nothing_is_there(self, http: httpx.Client) -> None:
        answer = http.get("/a/b/c/d?x=1")
        assert answer.status_code == 400
        assert answer.json() == {"error": "no handler found for uri [/a/b/c/d?x=1] and method [GET]"}
        assert answer.headers["x-elastic-product"] == "Elasticsearch"

    def test_another_method(self, http: httpx.Client) -> None:
        answer = http.patch("/_echo?x")
        text = "Incorrect HTTP method for uri [/_echo?x] and method [PATCH], "
        assert answer.status_code == 405
        assert answer.json() == {"error": text + "allowed: [DELETE, GET, POST, PUT]", "status": 405}
        assert answer.headers["allow"] == "DELETE,GET,POST,PUT"
        assert answer.headers["x-elastic-product"] == "Elasticsearch"

    def test_options(self, http: httpx.Client) -> None:
        answer = http.options("/_text")
        assert (answer.status_code, answer.headers["allow"]) == (200, "DELETE,GET,HEAD,PUT")

    @pytest.mark.parametrize("path", ["/%/_echo", "/%zz/_echo", "/%ff/_echo", "/_echo?routing=%f"])
    def test_broken_escapes(self, base_url: str, path: str) -> None:
        answer = raw_request(base_url, path)
        assert b"400 Bad Request" in answer
        assert b'"bad_parameter_exception"' in answer

    def test_what_is_no_http(self, base_url: str) -> None:
        answer = raw(base_url, b"\x00\x01 what\r\n\r\n")
        assert b"400 Bad Request" in answer
        assert b"x-elastic-product: Elasticsearch" in answer
        assert b'"illegal_argument_exception"' in answer


def raw_request(base_url: str, path: str) -> bytes:
    return raw(base_url, f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())


def raw(base_url: str, request: bytes) -> bytes:
    url = httpx.URL(base_url)
    with socket.create_connection((url.host, url.port or 0), timeout=HANG_S) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
    return answer


class TestMediaTypes:
    @pytest.mark.parametrize("version", ["7", "8"])
    def test_the_answer_is_of_the_type_that_is_asked_for(self, http: httpx.Client, version: str) -> None:
        headers = {"Accept": VENDOR + version, "Content-Type": VENDOR + version}
        answer = http.post("/_echo", content=b"{}", headers=headers)
        assert (
            answer.headers["content-type"] == f"application/vnd.elasticsearch+json;compatible-with={version}"
        )

    @pytest.mark.parametrize("accept", ["*/*", "application/json", "text/html,application/xml;q=0.9", ""])
    def test_json_for_everybody_else(self, http: httpx.Client, accept: str) -> None:
        assert http.get("/_echo", headers={"Accept": accept}).headers["content-type"] == "application/json"

    def test_text(self, http: httpx.Client) -> None:
        assert http.get("/_text").headers["content-type"] == "text/plain; charset=UTF-8"

    @pytest.mark.parametrize(
        ("given", "text"),
        [
            (None, "Content-Type header is missing"),
            ("text/plain", "Content-Type header [text/plain] is not supported"),
            ("application/x-ndjson", "Content-Type header [application/x-ndjson] is not supported"),
        ],
    )
    def test_bodies_that_are_not_read(self, http: httpx.Client, given: str | None, text: str) -> None:
        headers = {} if given is None else {"Content-Type": given}
        answer = http.post("/_echo", content=b"{}", headers=headers)
        assert (answer.status_code, answer.json()) == (406, {"error": text, "status": 406})

    @pytest.mark.parametrize("name", ["Accept", "Content-Type"])
    @pytest.mark.parametrize("value", ["application", "a/b/c", VENDOR + "9", "application/json; x"])
    def test_headers_that_mean_nothing(self, http: httpx.Client, name: str, value: str) -> None:
        answer = http.post("/_echo", content=b"{}", headers={**JSON, name: value})
        assert reason_of(answer)[:2] == (400, "media_type_header_exception")

    def test_a_body_where_none_is_read(self, http: httpx.Client) -> None:
        answer = http.request("GET", "/_numbers", json={})
        reason = "request [GET /_numbers] does not support having a body"
        assert reason_of(answer) == (400, "illegal_argument_exception", reason)

    def test_a_body_in_the_address(self, http: httpx.Client) -> None:
        query = {"source": '{"a": 1}', "source_content_type": "application/json"}
        assert http.get("/_echo", params=query).json()["body"] == {"a": 1}


class TestParameters:
    def test_values(self, http: httpx.Client) -> None:
        query = "integer=-3&long=4294967296&flag&time=90s&names=a,,b%2Cc"
        assert http.get(f"/_numbers?{query}").json() == {
            "integer": -3,
            "long": 4294967296,
            "flag": True,
            "time": 90_000,
            "names": ["a", "b", "c"],
        }

    @pytest.mark.parametrize(
        ("query", "reason"),
        [
            ("integer=x", "Failed to parse int parameter [integer] with value [x]"),
            ("integer=2147483648", "Failed to parse int parameter [integer] with value [2147483648]"),
            ("integer=1_0", "Failed to parse int parameter [integer] with value [1_0]"),
            ("long=" + "9" * 5_000, "Failed to parse long parameter [long] with value [" + "9" * 5_000 + "]"),
            ("flag=yes", "Failed to parse value [yes] as only [true] or [false] are allowed."),
            (
                "time=5",
                "failed to parse setting [time] with value [5] as a time value: "
                "unit is missing or unrecognized",
            ),
            (
                "flg=true",
                "request [/_numbers] contains unrecognized parameter: [flg] -> did you mean [flag]?",
            ),
            ("q1=1&q0=2", "request [/_numbers] contains unrecognized parameters: [q0], [q1]"),
        ],
    )
    def test_values_that_cannot_be(self, http: httpx.Client, query: str, reason: str) -> None:
        assert reason_of(http.get(f"/_numbers?{query}")) == (400, "illegal_argument_exception", reason)


class TestBodies:
    @pytest.mark.parametrize(
        ("body", "start"),
        [
            (b"{", "[1:2] Unexpected end-of-input"),
            (b'{"a":}', "[1:6] Unexpected character ('}' (code 125))"),
            (b'{"a":1,\n"b":{"c":1,"c":2}}', "[2:12] Duplicate field 'c'"),
            (b'{"a":"\xff"}', "["),
            (b'{"a":' * 300 + b"1" + b"}" * 300, "Document nesting depth"),
            (b"[" * 100_000, "[1:"),
        ],
    )
    def test_malformed(self, http: httpx.Client, body: bytes, start: str) -> None:
        status, kind, reason = reason_of(http.post("/_echo", content=body, headers=JSON))
        assert (status, kind) == (400, "x_content_parse_exception")
        assert reason.startswith(start)

    def test_the_deepest_that_is_read_can_be_answered(self, http: httpx.Client) -> None:
        body = b'{"a":' * 200 + b"1" + b"}" * 200
        assert http.post("/_echo?pretty", content=body, headers=JSON).status_code == 200
        too_deep = b'{"a":' + body + b"}"
        assert reason_of(http.post("/_echo", content=too_deep, headers=JSON))[0] == 400

    @pytest.mark.parametrize("body", [b'{"\\u0061":1,"a":2}', b'{"a\\u003a":":","a:":2}', b'{"a" :1,"a": 2}'])
    def test_names_that_come_twice_however_they_are_written(self, http: httpx.Client, body: bytes) -> None:
        _, _, reason = reason_of(http.post("/_echo", content=body, headers=JSON))
        assert "Duplicate field" in reason

    def test_colons_in_strings_are_no_members(self, http: httpx.Client) -> None:
        body = {"a:b": ':"\\":', "c": [{"a": 1}, {"a": 2}]}
        assert http.post("/_echo", json=body).json()["body"] == body

    @pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"a"'])
    def test_no_object(self, http: httpx.Client, body: bytes) -> None:
        answer = http.post("/_echo", content=body, headers=JSON)
        assert reason_of(answer)[:2] == (400, "parsing_exception")

    def test_nothing_and_blanks_are_no_body(self, http: httpx.Client) -> None:
        assert http.post("/_echo").json()["body"] is None
        assert http.post("/_echo", content=b" \n", headers=JSON).json()["body"] is None

    def test_compressed(self, http: httpx.Client) -> None:
        body = gzip.compress(b'{"a": 1}')
        answer = http.post("/_echo", content=body, headers={**JSON, "Content-Encoding": "gzip"})
        assert answer.json()["body"] == {"a": 1}


class TestAnswers:
    def test_pretty(self, http: httpx.Client) -> None:
        text = http.get("/_echo?pretty").text
        assert text == '{\n  "index": null,\n  "body": null,\n  "method": "GET"\n}\n'

    def test_compressed(self, http: httpx.Client) -> None:
        answer = http.get("/_text", headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.text == "text" * 1_000
        assert int(answer.headers["content-length"]) < 200
        assert "content-encoding" not in http.get("/_echo", headers={"Accept-Encoding": "gzip"}).headers

    def test_the_clients_own_id_comes_back(self, http: httpx.Client) -> None:
        assert http.get("/_echo", headers={"X-Opaque-Id": "mine"}).headers["x-opaque-id"] == "mine"

    def test_head(self, http: httpx.Client) -> None:
        answer = http.head("/_text")
        assert (answer.content, answer.headers["content-length"]) == (b"", "4000")

    def test_filtered(self, http: httpx.Client) -> None:
        assert http.get("/_echo?filter_path=met*").json() == {"method": "GET"}
        assert http.get("/_echo?filter_path=nothing").json() == {}

    def test_a_bug_is_told_by_its_id_alone(self, http: httpx.Client, caplog: Any) -> None:
        answer = http.get("/_fail")
        status, kind, reason = reason_of(answer)
        assert (status, kind) == (500, "exception")
        assert "secret" not in answer.text
        assert [record.getMessage() for record in caplog.records] == [
            f"a search request failed [{reason.partition('[')[2]}"
        ]

    def test_an_error_is_told_whatever_the_other_parameters(self, http: httpx.Client) -> None:
        assert reason_of(http.get("/_fail?pretty=maybe"))[0] == 500


def test_the_envelope_of_an_error_with_causes() -> None:
    cause = SearchError("number_format_exception", 'For input string: "x"')
    assert envelope(illegal_argument("wrong", cause)) == {
        "error": {
            "root_cause": [{"type": "illegal_argument_exception", "reason": "wrong"}],
            "type": "illegal_argument_exception",
            "reason": "wrong",
            "caused_by": {"type": "number_format_exception", "reason": 'For input string: "x"'},
        },
        "status": 400,
    }


def test_the_envelope_of_a_search_whose_shards_failed() -> None:
    inner = {"type": "query_shard_exception", "reason": "no", "index": "a"}
    failure = SearchError("query_shard_exception", "no", 400, {"index": "a"})
    assert envelope(query_failed([Failure("a", failure)], "node")) == {
        "error": {
            "root_cause": [inner],
            "type": "search_phase_execution_exception",
            "reason": "all shards failed",
            "phase": "query",
            "grouped": True,
            "failed_shards": [{"shard": 0, "index": "a", "node": "node", "reason": inner}],
        },
        "status": 400,
    }


def test_fragments_are_filtered_and_indented_too() -> None:
    source = orjson.Fragment(b'{"a":  {"b": 1, "c": 2}}')

    async def fetch(exchange: Exchange) -> Any:
        return {"_source": source}

    with serving(router_of(endpoint("GET", "/_fetch", fetch))) as url:
        http = httpx.Client(base_url=url, trust_env=False)
        with http:
            assert http.get("/_fetch").content == b'{"_source":{"a":  {"b": 1, "c": 2}}}'
            assert http.get("/_fetch?filter_path=**.c").json() == {"_source": {"a": {"c": 2}}}
            assert "\n" in http.get("/_fetch?pretty").text
