"""ETag and If-None-Match: a client that holds the answer gets 304, and never for another state."""

import httpx
import pytest
from starlette.requests import Request

from graphdb.config import Settings
from serve.graph.caching import EntityTags
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.scripted_backend import ScriptedBackend
from tests.unit.serve.conftest import update

TAG = 'W/"a-1-json"'
CHEAP = "SELECT ?o { <http://x/s> <http://x/p> ?o }"
NOT_CHEAP = "SELECT ?o { ?s ?p ?o . ?s ?q ?o }"


def request(*lines: str) -> Request:
    headers = [(b"if-none-match", line.encode("latin-1")) for line in lines]
    return Request({"type": "http", "method": "GET", "headers": headers})


@pytest.mark.parametrize(
    ("lines", "is_known"),
    [
        ((), False),
        (("*",), True),
        ((" * ",), True),
        ((TAG,), True),
        (('"a-1-json"',), True),
        (('"a-1-json',), False),
        (("a-1-json",), False),
        (('w/"a-1-json"',), False),
        (('W/ "a-1-json"',), False),
        (('W/"a-2-json"',), False),
        (('W/"A-1-json"',), False),
        (('""',), False),
        (('"x", W/"a-1-json"',), True),
        (('"x" ,\t"y",,"a-1-json" , ',), True),
        (('"x" "a-1-json"',), False),
        (('"x,W/", "a-1-json"',), True),
        (('"x, W/"a-1-json""',), False),
        (('"\\", "a-1-json"',), True),
        (('"\xe9\x80", "a-1-json"',), True),
        (('"x y", "a-1-json"',), False),
        (('"x"', '"a-1-json"'), True),
        (('"x"', '"y"'), False),
        (('*, "a-1-json"',), False),
        (("",), False),
        ((", ,",), False),
    ],
)
def test_what_a_client_knows(lines: tuple[str, ...], is_known: bool) -> None:
    assert EntityTags.is_known(request(*lines), TAG) is is_known


def test_a_hostile_list_takes_no_time() -> None:
    assert not EntityTags.is_known(request('"x", ' * 13_000 + '"'), TAG)
    assert not EntityTags.is_known(request("," * 65_000 + "x"), TAG)
    assert not EntityTags.is_known(request('"x"' + " , " * 20_000 + "x"), TAG)


def test_tags_differ() -> None:
    tags = EntityTags()
    others = (tags.tag(2, "json", None), tags.tag(1, "xml", None), tags.tag(1, "json", "a view"))
    assert len({tags.tag(1, "json", None), *others, EntityTags().tag(1, "json", None)}) == 5
    assert tags.tag(1, "json", None) == tags.tag(1, "json", None)


# Over HTTP


@pytest.fixture(scope="module")
def backend() -> ScriptedBackend:
    return ScriptedBackend()


@pytest.fixture(autouse=True)
def data(client: httpx.Client, backend: ScriptedBackend) -> None:
    update(client, 'INSERT DATA { <http://x/s> <http://x/p> "a" GRAPH <http://g/1> { <a:> <b:> <c:> } }')
    backend.forget()


ADDRESSES = {
    "cheap": ("/sparql", {"query": CHEAP}),
    "not cheap": ("/sparql", {"query": NOT_CHEAP}),
    "the default graph": ("/data", {}),
    "a graph": ("/data", {"graph": "http://g/1"}),
    "everything": ("/data", {"dataset": "all"}),
}


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_client_that_asks_again(
    client: httpx.Client, backend: ScriptedBackend, address: str, method: str
) -> None:
    path, parameters = ADDRESSES[address]
    first = client.get(path, params=parameters)
    tag = first.headers["etag"]
    assert tag.startswith('W/"')
    assert client.head(path, params=parameters).headers["etag"] == tag
    backend.forget()

    again = client.request(method, path, params=parameters, headers={"If-None-Match": f'"x", {tag}'})
    assert (again.status_code, again.content) == (304, b"")
    for name in ("etag", "x-snapshot-index", "vary", "cache-control"):
        assert again.headers[name] == first.headers[name]
    assert "content-length" not in again.headers
    assert backend.requests == []

    update(client, 'INSERT DATA { <http://x/s> <http://x/p> "b" }')
    changed = client.request(method, path, params=parameters, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_connection_serves_on_after_304(client: httpx.Client, address: str) -> None:
    path, parameters = ADDRESSES[address]
    whole = client.get(path, params=parameters)
    for _ in range(3):
        assert client.get(path, params=parameters, headers={"If-None-Match": "*"}).status_code == 304
        assert client.get(path, params=parameters).content == whole.content


@pytest.mark.parametrize("query", [CHEAP, NOT_CHEAP])
def test_post_has_no_tag(client: httpx.Client, query: str) -> None:
    tag = client.get("/sparql", params={"query": query}).headers["etag"]
    answer = client.post("/sparql", data={"query": query}, headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert "etag" not in answer.headers


def test_formats_have_their_own(client: httpx.Client) -> None:
    for path, formats in (
        ("/sparql", ["json", "csv", "application/json"]),
        ("/data", ["turtle", "ntriples"]),
    ):
        tags = {client.get(path, params={"query": CHEAP, "format": name}).headers["etag"] for name in formats}
        assert len(tags) == len(formats)


@pytest.mark.parametrize("query", ["SELECT (RAND() AS ?x) {}", "SELECT (UUID() AS ?x) { ?s ?p ?o }"])
def test_what_is_not_repeatable_has_none(client: httpx.Client, query: str) -> None:
    for method in ("GET", "HEAD"):
        answer = client.request(method, "/sparql", params={"query": query}, headers={"If-None-Match": "*"})
        assert answer.status_code == 200
        assert "etag" not in answer.headers


@pytest.mark.parametrize("address", ADDRESSES)
def test_there_is_none_while_a_change_is_applied(
    client: httpx.Client, backend: ScriptedBackend, address: str
) -> None:
    path, parameters = ADDRESSES[address]
    headers = {"If-None-Match": "*", "Cache-Control": "no-cache"}
    backend.exact_indexes = [None] * 4
    answer = client.get(path, params=parameters, headers=headers)
    assert answer.status_code == 200
    if address != "not cheap":  # there the reader knows
        assert "etag" not in answer.headers


@pytest.mark.parametrize("address", ["cheap", "the default graph"])
def test_there_is_none_where_the_state_changes_meanwhile(
    client: httpx.Client, backend: ScriptedBackend, address: str
) -> None:
    path, parameters = ADDRESSES[address]
    index = backend.snapshot_index()
    before = [index] if address == "cheap" else [index, index]
    for after in (None, index + 1):
        backend.exact_indexes = [*before, after]
        answer = client.get(path, params=parameters)
        assert (answer.status_code, "etag" in answer.headers) == (200, False)
        assert backend.exact_indexes == []
        assert int(answer.headers["x-snapshot-index"]) == index


def test_a_new_start_has_new_tags(client: httpx.Client, backend: ScriptedBackend) -> None:
    tag = client.get("/sparql", params={"query": CHEAP}).headers["etag"]
    with serving(build_app(backend, Settings())) as url:
        answer = httpx.get(
            f"{url}/sparql", params={"query": CHEAP}, headers={"If-None-Match": tag}, trust_env=False
        )
    assert answer.status_code == 200
    assert answer.headers["etag"] != tag


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_no_query_beyond_the_limits_is_known(client: httpx.Client, method: str) -> None:
    query = "ASK {" + "OPTIONAL { ?s ?p ?o }" * 300 + "}"
    answer = client.request(method, "/sparql", params={"query": query}, headers={"If-None-Match": "*"})
    assert answer.status_code == 400


def test_no_tag_for_a_graph_that_is_not_there(client: httpx.Client) -> None:
    answer = client.get("/data", params={"graph": "http://g/none"}, headers={"If-None-Match": "*"})
    assert answer.status_code == 404


def test_browsers_see_it(client: httpx.Client) -> None:
    answer = client.get("/sparql", params={"query": CHEAP}, headers={"Origin": "http://app.example"})
    exposed = answer.headers["access-control-expose-headers"].split(", ")
    assert {"ETag", "X-Snapshot-Index", "Retry-After"} <= set(exposed)
