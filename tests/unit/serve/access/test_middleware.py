"""Both applications with authentication on: who comes in, what they may do, and how they are told no."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import orjson
import pytest

from graphdb.access.permissions import Permission
from serve.access.authorization import GRAPH_PERMISSIONS, SEARCH_PERMISSIONS, WEBSOCKET
from serve.graph_app import build_app
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.memory_graph import MemoryGraph
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.access.accounts import KEYS, basic, key, settings_of, token

TOLERANT = {"rate_limiting": {"whitelist": ["127.0.0.0/8"]}}
SERVER = {"cors": ["http://app.example"]}
CALLS = [("graph", *call) for call in GRAPH_PERMISSIONS if call[1] != WEBSOCKET]
CALLS += [("search", *call) for call in SEARCH_PERMISSIONS]
NEEDS = {"graph": GRAPH_PERMISSIONS, "search": SEARCH_PERMISSIONS}
AT_ONCE = {"/changes": "?follow=false", "/_cluster/health/{index}": "?timeout=1ms"}  # else they wait
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def graph_of_search() -> MemoryGraph:
    return MemoryGraph("INSERT DATA { <urn:a> <urn:p> 1 }")


@pytest.fixture(scope="module")
def ports(
    tmp_path_factory: pytest.TempPathFactory, graph_of_search: MemoryGraph
) -> Iterator[dict[str, httpx.Client]]:
    settings = settings_of(tmp_path_factory.mktemp("gate"), SERVER, **TOLERANT)
    with (
        serving(build_app(MemoryBackend(), settings)) as graph,
        serving(build_search_app(MemorySearch(graph_of_search), settings)) as search,
        httpx.Client(base_url=graph, trust_env=False, timeout=HANG_S) as graph_client,
        httpx.Client(base_url=search, trust_env=False, timeout=HANG_S) as search_client,
    ):
        yield {"graph": graph_client, "search": search_client}


def path_of(template: str) -> str:
    return re.sub(r"\{[^}]*\}", "x", template) + AT_ONCE.get(template, "")


def checked(answer: httpx.Response) -> str:
    """What a refusal says; its shape is its port's."""
    body = answer.json()
    assert body["status"] == answer.status_code
    if "x-elastic-product" not in answer.headers:
        assert set(body) == {"error", "status"}
        return str(body["error"])
    assert body["error"]["type"] == body["error"]["root_cause"][0]["type"] == "security_exception"
    return str(body["error"]["reason"])


@pytest.mark.parametrize(("port", "template", "method"), CALLS)
def test_every_route(ports: dict[str, httpx.Client], port: str, template: str, method: str) -> None:
    """Nobody gets in without credentials, and with them nobody beyond what the table says."""
    client, path, need = ports[port], path_of(template), NEEDS[port][template, method]
    methods = [method, "HEAD"] if method == "GET" else [method]
    for each in methods:
        anonymous = client.request(each, path)
        if need is Permission.NONE:
            assert anonymous.status_code in (200, 404)  # of the workbench there is no file x
            continue
        assert anonymous.status_code == 401
        if each == "HEAD" and port == "search":
            continue  # few have it, and the path may be read as that of another route
        for role, permission in (("stranger", 0), ("reader", 1), ("writer", 2), ("admin", 3)):
            if permission < need:
                answer = client.request(each, path, headers=key(role))
                assert answer.status_code == 403, role
                if each != "HEAD":
                    assert checked(answer).startswith(f"{role} does not have the permission ")
            elif permission == need:
                status = client.request(each, path, headers=key(role)).status_code
                assert status not in (401, 403), role


@pytest.mark.parametrize("port", ["graph", "search"])
@pytest.mark.parametrize(
    "path",
    ["/nothing", "/", "//", "/sparql/", "/%73parql", "/health/", "/holonic/health/", "/holonic/%68ealth/x",
     "/graphql/playground/graphiql.min.js", "/../health", "/_search/", "/x/y/z/a/b/c", "/health%2f"],
)  # fmt: skip
@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"]
)
def test_nobody_learns_which_paths_there_are(
    ports: dict[str, httpx.Client], port: str, path: str, method: str
) -> None:
    assert ports[port].request(method, path).status_code == 401
    assert ports[port].request(method, path, headers=key("stranger")).status_code == 403


def test_the_challenge_names_both_schemes(ports: dict[str, httpx.Client]) -> None:
    for client in ports.values():
        answer = client.get("/health")
        header = answer.headers["www-authenticate"]
        assert header.startswith('Bearer realm="graphdb", error="invalid_token", error_description="')
        assert 'Basic realm="graphdb"' in header
        assert checked(answer) == "this needs credentials"


@pytest.mark.parametrize("port", ["graph", "search"])
@pytest.mark.parametrize(
    "headers",
    [
        basic("reader"),
        key("reader"),
        token("reader"),
        {"Authorization": f"ApiKey {KEYS['reader']}"},
        {"Authorization": "ApiKey " + "eDpnZGJfcmVhZGVy"},  # x:gdb_reader
        {**key("reader"), **basic("reader", "wrong")},
    ],
)
def test_every_kind_of_credentials(
    ports: dict[str, httpx.Client], port: str, headers: dict[str, str]
) -> None:
    answer = ports[port].get("/", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "private"


@pytest.mark.parametrize("port", ["graph", "search"])
@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (basic("reader", "wrong"), "the user name or the password is wrong"),
        (basic("nobody", "x"), "the user name or the password is wrong"),
        ({"X-API-Key": "wrong"}, "the API key is not known"),
        ({**basic("reader"), "X-API-Key": "wrong"}, "the API key is not known"),
        (token("reader", -100), "the token has expired"),
        ({"Authorization": f"Bearer {token('reader', bare=True)[:-3]}AAA"}, "the token is malformed, or"),
        ({"Authorization": "Digest x"}, "only Bearer, Basic and ApiKey"),
    ],
)
def test_wrong_credentials(
    ports: dict[str, httpx.Client], port: str, headers: dict[str, str], reason: str
) -> None:
    answer = ports[port].get("/", headers=headers)
    assert answer.status_code == 401
    assert checked(answer).startswith(reason)


def test_credentials_in_the_query_string_are_for_sockets_alone(ports: dict[str, httpx.Client]) -> None:
    assert ports["graph"].get("/health", params={"api_key": KEYS["admin"]}).status_code == 401


def test_two_authorizations_are_refused(ports: dict[str, httpx.Client]) -> None:
    twice = [("Authorization", token("admin")["Authorization"]), *basic("reader").items()]
    assert ports["graph"].get("/health", headers=twice).status_code == 401


def test_an_update_is_no_query(ports: dict[str, httpx.Client]) -> None:
    client = ports["graph"]
    text = "INSERT DATA { <urn:a> <urn:b> <urn:c> }"
    assert client.post("/sparql", data={"query": text}, headers=key("reader")).status_code == 400
    assert client.post("/sparql", data={"update": text}, headers=key("reader")).status_code == 403
    assert client.post("/sparql", data={"update": text}, headers=key("writer")).status_code == 200
    assert client.post("/update", data={"update": text}, headers=key("reader")).status_code == 403
    assert client.post("/update", data={"update": text}, headers=key("writer")).status_code == 200


def test_all_scrolls_are_everyones(ports: dict[str, httpx.Client]) -> None:
    assert ports["search"].delete("/_search/scroll/_all", headers=key("writer")).status_code == 403
    assert ports["search"].delete("/_search/scroll/_all", headers=key("admin")).status_code == 200


def test_a_search_asks_the_graph_for_its_user(
    ports: dict[str, httpx.Client], graph_of_search: MemoryGraph
) -> None:
    client = ports["search"]
    client.put("/books/_doc/urn:a?refresh=true", json={"n": 1}, headers=key("writer"))
    body = {"_ext": {"sparql_filter": {"ask": "ASK { <{id}> <urn:p> 1 }"}}}
    lines = b"{}\n" + orjson.dumps(body) + b"\n"
    client.post("/books/_search", json=body, headers=basic("reader"))
    client.post(
        "/_msearch", content=lines, headers=token("writer") | {"Content-Type": "application/x-ndjson"}
    )
    client.post("/books/_search?scroll=1m", json=body, headers=key("admin"))
    asked = [(one.name, one.provider) for one in graph_of_search.principals]
    assert asked == [("reader", "basic"), ("writer", "jwt"), ("admin", "api_key")]


def test_pages_of_others_may_not_change_anything(ports: dict[str, httpx.Client]) -> None:
    client = ports["graph"]

    def status(origin: str, headers: dict[str, str]) -> int:
        text = "update=DELETE WHERE { <urn:x> ?p ?o }"
        return client.post("/update", content=text, headers={**FORM, **headers, "Origin": origin}).status_code

    for foreign in ("https://evil.example", "null", "http://app.example.evil.example"):
        assert status(foreign, basic("writer")) == 403
    assert status("http://app.example", basic("writer")) == 200
    assert status(str(client.base_url).rstrip("/"), basic("writer")) == 200


def test_a_preflight_needs_no_credentials_and_tells_nothing(ports: dict[str, httpx.Client]) -> None:
    asked = {"Origin": "http://app.example", "Access-Control-Request-Method": "POST"}
    asked |= {"Access-Control-Request-Headers": "authorization"}
    answers = [ports["graph"].options(path, headers=asked) for path in ("/sparql", "/nothing")]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [dict(answer.headers) | {"date": ""} for answer in answers] == [
        dict(answers[0].headers) | {"date": ""}
    ] * 2
    refused = ports["graph"].options("/sparql", headers=asked | {"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in refused.headers
    answer = ports["graph"].get("/health", headers={"Origin": "http://app.example"})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == "http://app.example"


Make = Callable[..., httpx.Client]


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Make]:
    """Makes clients of graph ports that have other settings."""
    opened = []

    def make(server: dict[str, object] | None = None, **authentication: object) -> httpx.Client:
        settings = settings_of(tmp_path, server, **authentication)
        running = serving(build_app(MemoryBackend(), settings))
        client = httpx.Client(base_url=running.__enter__(), trust_env=False, timeout=HANG_S)
        opened.append((client, running))
        return client

    yield make
    for client, running in opened:
        client.close()
        running.__exit__(None, None, None)


def test_public_probes(graph: Make) -> None:
    client = graph({"public_probes": True})
    assert client.get("/health").status_code == client.head("/metrics").status_code == 200
    assert client.get("/health", headers=basic("nobody", "wrong")).status_code == 200
    for path in ("/health/", "/health%2F", "/healthx", "/cluster"):
        assert client.get(path).status_code == 401
    assert client.post("/health").status_code == 401


def test_lockout(graph: Make) -> None:
    client = graph(rate_limiting={"max_attempts": 3, "lockout_duration": 60})
    for _ in range(5):
        assert client.get("/health").status_code == 401  # missing credentials are no attempt
        assert client.get("/health", headers=token("reader", -100)).status_code == 401
    assert client.get("/health", headers={"X-API-Key": "wrong"}).status_code == 401
    assert client.get("/health", headers=basic("reader", "wrong")).status_code == 401
    assert client.get("/health", headers=key("reader")).status_code == 200  # resets nothing
    assert client.get("/health", headers={"Authorization": "Bearer a.b.c"}).status_code == 401
    for headers in (key("admin"), {}, basic("reader")):
        answer = client.get("/health", headers=headers)
        assert answer.status_code == 429
        assert 0 < int(answer.headers["retry-after"]) <= 60
        checked(answer)
    assert client.get("/holonic/health").status_code == 200


def test_a_forwarded_address_counts_where_the_proxy_is_trusted(graph: Make) -> None:
    limits = {"max_attempts": 1, "lockout_duration": 60}
    direct, behind = (
        graph(rate_limiting=limits),
        graph({"trusted_proxies": ["127.0.0.1"]}, rate_limiting=limits),
    )
    wrong = {"X-API-Key": "wrong", "X-Forwarded-For": "203.0.113.5"}
    other = {**key("reader"), "X-Forwarded-For": "203.0.113.6"}
    for client, status in ((direct, 429), (behind, 200)):
        assert client.get("/health", headers=wrong).status_code == 401
        assert client.get("/health", headers=other).status_code == status
    mine = {**key("reader"), "X-Forwarded-For": "198.51.100.1, 203.0.113.5"}
    assert behind.get("/health", headers=mine).status_code == 429


def test_the_node_s_own_headers_mean_nothing_on_a_port(graph: Make) -> None:
    header = {"X-Graphdb-Principal": '["node","node",["admin"],[],"ADMIN",null]'}
    assert graph().get("/health", headers=header).status_code == 401


def test_without_authorization_nobody_writes_holons(tmp_path: Path) -> None:
    settings = settings_of(tmp_path).model_copy(update={"authorization": None})
    with serving(build_app(MemoryBackend(), settings)) as url, httpx.Client(base_url=url) as client:
        answer = client.post("/holonic/holons", json={}, headers=key("admin"))
        assert answer.status_code == 403
        assert checked(answer) == "nobody may write holons: there is no section [authorization]"
        assert client.get("/holonic/holons", headers=key("reader")).status_code == 200
        assert client.put("/update", headers=key("writer")).status_code == 405
