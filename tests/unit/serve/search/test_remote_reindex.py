"""`_reindex` from another cluster: two applications over real sockets, and hosts that misbehave."""

import base64
import json
from collections.abc import Iterator
from socket import socket
from typing import Any

import httpx
import orjson
import pytest

from graphdb.config.service import Security
from serve.search.documents import remote_documents
from serve.search_app import build_search_app
from tests.support.http_server import client_of, serving
from tests.support.memory_search import MemorySearch
from tests.support.remote_host import RemoteHost, answering, remote_host
from tests.support.timing import HANG_S, wait_until
from tests.unit.serve.search.conftest import SETTINGS, one_shard, reason_of

pytestmark = one_shard

# What a number and a text look like is kept, whatever a parser of JSON makes of them.
LITERAL = b'{"n": 7, "big": 123456789012345678901234567890, "exact": 1.10, "text": "caf\\u00e9"}'


@pytest.fixture
def node(shards: int) -> MemorySearch:
    return MemorySearch(security=Security.model_validate({"reindex_allow": ["127.0.0.1", "localhost"]}))


@pytest.fixture
def there(shards: int) -> Iterator[tuple[str, httpx.Client, MemorySearch]]:
    """The other cluster, with documents."""
    node = MemorySearch()
    with (
        serving(build_search_app(node, SETTINGS)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client,
    ):
        for number in range(25):
            client.put(f"/books/_doc/{number}?routing=r{number % 2}", json={"n": number, "m": 1})
        client.put("/books/_doc/7?routing=r1", json={"n": 7, "m": 2})
        client.put("/more/_doc/literal", content=LITERAL, headers={"Content-Type": "application/json"})
        client.post("/_refresh")
        yield url, client, node


def from_remote(host: str, source: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    remote = {"host": host, **members.pop("remote", {})}
    return {
        "source": {"remote": remote, "index": "books", **(source or {})},
        "dest": {"index": "copy", **members.pop("dest", {})},
        **members,
    }


def copied(http: httpx.Client) -> dict[str, Any]:
    found = http.post("/copy/_search?size=1000", json={"version": True}).json()
    return {hit["_id"]: hit for hit in found["hits"]["hits"]}


def test_all_of_an_index(http: httpx.Client, there: tuple[str, httpx.Client, MemorySearch]) -> None:
    url, _, node = there
    answer = http.post("/_reindex?refresh=true", json=from_remote(url, {"size": 10}))
    body = answer.json()
    assert (answer.status_code, body["total"], body["created"], body["batches"]) == (200, 25, 25, 3)
    found = copied(http)
    assert {one: hit["_source"] for one, hit in found.items()} == {
        str(n): {"n": n, "m": 2 if n == 7 else 1} for n in range(25)
    }
    assert {hit["_routing"] for hit in found.values()} == {"r0", "r1"}
    assert {hit["_version"] for hit in found.values()} == {1}
    assert len(node.contexts) == 0, "the scroll there is closed"


def test_versions_are_kept_where_they_are_asked_for(
    http: httpx.Client, there: tuple[str, httpx.Client, MemorySearch]
) -> None:
    body = from_remote(there[0], dest={"version_type": "external"})
    assert http.post("/_reindex?refresh=true", json=body).json()["created"] == 25
    assert {one: hit["_version"] for one, hit in copied(http).items() if hit["_version"] != 1} == {"7": 2}
    again = http.post("/_reindex", json={**body, "conflicts": "proceed"}).json()
    assert (again["version_conflicts"], again["updated"]) == (25, 0)


def test_a_query_a_filter_and_a_most(
    http: httpx.Client, there: tuple[str, httpx.Client, MemorySearch]
) -> None:
    source = {"query": {"range": {"n": {"lt": 20}}}, "_source": ["n"], "size": 4}
    body = from_remote(there[0], source, max_docs=10)
    answer = http.post("/_reindex?refresh=true", json=body).json()
    assert (answer["total"], answer["created"], answer["batches"]) == (10, 10, 3)
    assert all(hit["_source"].keys() == {"n"} for hit in copied(http).values())
    assert len(there[2].contexts) == 0


def test_a_document_stays_as_it_was_written(
    http: httpx.Client, there: tuple[str, httpx.Client, MemorySearch]
) -> None:
    http.post("/_reindex", json=from_remote(there[0], {"index": ["more"]})).raise_for_status()
    assert http.get("/copy/_source/literal").content == LITERAL


def test_scripts_and_pipelines_see_the_documents(
    http: httpx.Client, there: tuple[str, httpx.Client, MemorySearch]
) -> None:
    http.put("/_ingest/pipeline/p", json={"processors": [{"set": {"field": "piped", "value": True}}]})
    script = {"source": "if (ctx._source.n > 2) { ctx.op = 'noop' } else { ctx._source.n += 100 }"}
    body = from_remote(there[0], script=script, dest={"pipeline": "p"})
    answer = http.post("/_reindex?refresh=true", json=body).json()
    assert (answer["created"], answer["noops"]) == (3, 22)
    assert copied(http)["2"]["_source"] == {"n": 102, "m": 1, "piped": True}


def test_in_the_background(http: httpx.Client, there: tuple[str, httpx.Client, MemorySearch]) -> None:
    body = from_remote(there[0], {"size": 5}, remote={"username": "u", "password": "hush"})
    begun = http.post("/_reindex?wait_for_completion=false&requests_per_second=0.001", json=body).json()
    task = http.get(f"/_tasks/{begun['task']}").json()
    assert (task["completed"], "hush" in json.dumps(task)) == (False, False)
    assert task["task"]["description"] == f"reindex from [host={there[0]}][books] to [copy]"
    http.post(f"/_reindex/{begun['task']}/_rethrottle?requests_per_second=-1").raise_for_status()
    ended = http.get(f"/_tasks/{begun['task']}?wait_for_completion=true").json()
    assert ended["response"]["created"] == 25
    assert len(there[2].contexts) == 0


def test_one_that_is_cancelled_lets_go_of_its_scroll(
    http: httpx.Client, there: tuple[str, httpx.Client, MemorySearch]
) -> None:
    body = from_remote(there[0], {"size": 5})
    begun = http.post("/_reindex?wait_for_completion=false&requests_per_second=0.001", json=body).json()
    wait_until(lambda: len(there[2].contexts) == 1)
    http.post(f"/_tasks/{begun['task']}/_cancel").raise_for_status()
    ended = http.get(f"/_tasks/{begun['task']}?wait_for_completion=true").json()
    assert ended["response"]["canceled"] == "by user request"
    assert len(there[2].contexts) == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (from_remote("http://10.1.2.3:9200"), "[10.1.2.3:9200] not allowlisted in reindex.remote.whitelist"),
        (from_remote("http://other.example:9200"), "[other.example:9200] not allowlisted"),
        (from_remote("127.0.0.1:9200"), "[host] must be of the form [scheme]://[host]:[port]"),
        (from_remote("http://127.0.0.1"), "[host] must be of the form"),
        (from_remote("ftp://127.0.0.1:9200"), "[host] must be of the form"),
        (from_remote("http://a:b@127.0.0.1:9200"), "[host] must be of the form"),
        (from_remote("http://127.0.0.1:9200/?x=1"), "[host] must be of the form"),
        (
            {"source": {"remote": {}, "index": "a"}, "dest": {"index": "b"}},
            "[host] must be specified to reindex from a remote cluster",
        ),
        (
            {"source": {"remote": [], "index": "a"}, "dest": {"index": "b"}},
            "[remote] must be an object",
        ),
        (from_remote("http://127.0.0.1:9", remote={"proxy": 1}), "Unsupported fields in [remote]: [proxy]"),
        (from_remote("http://127.0.0.1:9", remote={"socket_timeout": "x"}), "failed to parse setting"),
        (from_remote("http://127.0.0.1:9", remote={"username": 7}), "Expected [username] to be a string"),
        (from_remote("http://127.0.0.1:9", remote={"username": "u"}), "both [username] and [password]"),
        (
            from_remote("http://127.0.0.1:9", remote={"username": "u", "password": "p", "api_key": "k"}),
            "either [api_key] or [username]",
        ),
        (from_remote("http://127.0.0.1:9", remote={"headers": {"Host": "x"}}), "cannot set [Host]"),
        (from_remote("http://127.0.0.1:9", remote={"headers": {"A": "x\r\nB: y"}}), "an invalid header"),
        (from_remote("http://127.0.0.1:9", {"slice": {"id": 0, "max": 2}}), "doesn't support [slice]"),
    ],
)
def test_requests_that_cannot_be(http: httpx.Client, body: dict[str, Any], reason: str) -> None:
    status, _, said = reason_of(http.post("/_reindex", json=body))
    assert (status, reason in said) == (400, True), said
    assert http.head("/copy").status_code == 404


@pytest.mark.parametrize(("slices", "shown"), [("2", "2"), ("auto", "-1")])
def test_slices(http: httpx.Client, slices: str, shown: str) -> None:
    answer = http.post(f"/_reindex?slices={slices}", json=from_remote("http://127.0.0.1:9"))
    assert reason_of(answer) == (
        400,
        "action_request_validation_exception",
        f"Validation Failed: 1: reindex from remote sources doesn't support slices > 1 but was [{shown}];",
    )


def test_nobody_may_be_read_from_without_a_list() -> None:
    with remote_host(answering()) as host, client_of(build_search_app(MemorySearch(), SETTINGS)) as client:
        answer = client.post("/_reindex", json=from_remote(host.url))
        assert (answer.status_code, "not allowlisted" in answer.text) == (400, True)
        assert host.requests == []


@pytest.fixture
def host() -> Iterator[RemoteHost]:
    with remote_host(answering(page())) as there:
        yield there


def page(*ids: str, scroll_id: str | None = None, total: Any = 0) -> bytes:
    hits = [{"_index": "books", "_id": one, "_source": {"n": 1}} for one in ids]
    return orjson.dumps({"_scroll_id": scroll_id, "hits": {"total": total, "hits": hits}})


def head_of(request: bytes) -> list[bytes]:
    return request.partition(b"\r\n\r\n")[0].split(b"\r\n")


def test_who_asks(http: httpx.Client, host: RemoteHost) -> None:
    given = {"username": "ann", "password": "sécret:x", "headers": {"X-Opaque-Id": "moving"}}
    body = from_remote(host.url + "prefix/", {"index": ["a*", "b c", "<d-{now/d}>"]}, remote=given)
    http.post("/_reindex", json=body).raise_for_status()
    head = head_of(host.requests[0])
    path = b"/prefix/a*,b%20c,%3Cd-%7Bnow%2Fd%7D%3E/_search?scroll=5m"
    assert head[0] == b"POST " + path + b" HTTP/1.1"
    credentials = base64.b64encode("ann:sécret:x".encode())
    assert {b"Authorization: Basic " + credentials, b"X-Opaque-Id: moving"} <= set(head)
    http.post("/_reindex", json=from_remote(host.url, remote={"api_key": "a2V5"})).raise_for_status()
    assert b"Authorization: ApiKey a2V5" in head_of(host.requests[1])


def test_a_redirect_is_not_followed(http: httpx.Client, host: RemoteHost) -> None:
    with remote_host(answering(page())) as other:
        host.answer = answering(status=302, headers=(f"Location: {other.url}",))
        answer = http.post("/_reindex", json=from_remote(host.url, remote={"api_key": "a2V5"}))
        assert reason_of(answer)[:2] == (502, "status_exception")
        assert other.requests == []


@pytest.mark.parametrize(
    ("answer", "status", "kind", "said"),
    [
        (answering(b"no such index", status=404), 404, "status_exception", "body=no such index"),
        (answering(b"who are you", status=401), 401, "status_exception", "answers 401"),
        (answering(b"<html>"), 400, "illegal_argument_exception", "likely not an Elasticsearch"),
        (answering(b'{"hits": 7}'), 400, "illegal_argument_exception", "likely not an Elasticsearch"),
        (lambda connection: None, 500, "connect_exception", "REINDEX <http://127.0.0.1"),
        (
            answering(b'{"hits": {"hits": []}, "_shards": {"failures": [{"reason": {"type": "x"}}]}}'),
            503,
            "status_exception",
            'failed: {"type": "x"}',
        ),
        (
            answering(b'{"hits": {"total": 1, "hits": [{"_index": "b", "_id": "1"}]}}'),
            400,
            "illegal_argument_exception",
            "[b][1] didn't store _source",
        ),
    ],
)
def test_hosts_that_fail(
    http: httpx.Client, host: RemoteHost, answer: Any, status: int, kind: str, said: str
) -> None:
    host.answer = answer
    found = reason_of(http.post("/_reindex", json=from_remote(host.url)))
    assert (found[:2], said in found[2]) == ((status, kind), True), found


def test_a_host_that_is_silent(http: httpx.Client, host: RemoteHost) -> None:
    def wait(connection: socket) -> None:
        connection.recv(1)  # until the other side has gone

    host.answer = wait
    given = {"socket_timeout": "100ms", "connect_timeout": "100ms"}
    found = reason_of(http.post("/_reindex", json=from_remote(host.url, remote=given)))
    assert (found[:2], "no answer within 0.2 s" in found[2]) == ((500, "connect_exception"), True)


def test_a_busy_cluster_is_asked_again(
    http: httpx.Client, host: RemoteHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_documents, "_AGAIN_S", (0.0, 0.0))
    answers = iter([(b"busy", 429), (b"busy", 429), (page("1", total=1), 200)])

    def answer(connection: Any) -> None:
        body, status = next(answers)
        answering(body, status=status)(connection)

    host.answer = answer
    done = http.post("/_reindex", json=from_remote(host.url)).json()
    assert (done["created"], done["retries"]) == (1, {"bulk": 0, "search": 2})
    host.answer = answering(b"busy", status=429)
    assert reason_of(http.post("/_reindex", json=from_remote(host.url)))[0] == 429
    assert len(host.requests) == 6


def test_totals_of_before_version_7(http: httpx.Client, host: RemoteHost) -> None:
    host.answer = answering(page("1", "2", total={"value": 2, "relation": "eq"}))
    assert http.post("/_reindex", json=from_remote(host.url)).json()["total"] == 2
    host.answer = answering(page("1", "2", total=2))
    assert http.post("/_reindex", json=from_remote(host.url)).json()["total"] == 2
