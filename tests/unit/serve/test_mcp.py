"""`/mcp` by the client of the official package: tools, rights, and messages that are none."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from graphdb.access.principal import Principal
from graphdb.config import Settings
from serve.graph.local_search import LocalSearch
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S
from tests.unit.serve.access.accounts import key, settings_of
from tests.unit.serve.conftest import SETTINGS, update

PEOPLE = """
PREFIX : <https://people.example/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX sh: <http://www.w3.org/ns/shacl#>
INSERT DATA {
  :ada a :Person ; :name "Ada Lovelace" ; :knows :charles . :charles a :Person ; :name "Charles Babbage" .
  :Person rdfs:label "person" .
  GRAPH <https://people.example/queries> {
    :q1 a sh:SPARQLExecutable ; rdfs:comment "Who knows whom?" ; sh:select "SELECT * { ?a :knows ?b }" .
    :q2 a sh:SPARQLExecutable ; rdfs:comment "All names" ; sh:select "SELECT ?n { ?a :name ?n }" } }
"""
MESSAGES = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def call(url: str, name: str, headers: dict[str, str] | None = None, **arguments: Any) -> tuple[bool, str]:
    """Whether a tool failed, and its text."""

    async def run() -> tuple[bool, str]:
        async with (
            httpx2.AsyncClient(headers=headers or {}, timeout=HANG_S) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            result = await client.call_tool(name, arguments)
            return bool(result.is_error), result.content[0].text  # type: ignore[union-attr]

    return asyncio.run(run())


class OneHit(LocalSearch):
    """A search port on which everything finds one document, about who asks and what."""

    async def post(self, path: str, body: Mapping[str, Any], caller: Principal) -> httpx.Response:
        words = body["query"]["multi_match"]["query"]
        if words == "nothing":
            return httpx.Response(404, json={"error": {"reason": f"no such index [{path}]"}, "status": 404})
        hit = {"_index": path, "_id": caller.name, "_score": 1, "_source": {"words": words}}
        return httpx.Response(200, json={"hits": {"hits": [hit]}})


def searching() -> LocalSearch:
    return OneHit("/nowhere", 5, 10)


@pytest.fixture(scope="module")
def base_url(backend: MemoryBackend) -> Iterator[str]:
    with serving(build_app(backend, SETTINGS, search=searching())) as url:
        yield url


@pytest.fixture
def people(client: httpx.Client) -> str:
    update(client, PEOPLE)
    return str(client.base_url).rstrip("/")


def test_the_tools_are_listed(people: str) -> None:
    async def names() -> list[str]:
        async with Client(f"{people}/mcp") as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert asyncio.run(names()) == ["schema", "find", "query", "describe", "examples", "search"]


def test_schema(people: str) -> None:
    _, text = call(people, "schema")
    assert "  <https://people.example/Person> 2 (person)" in text
    assert "  <https://people.example/name> 2" in text
    assert "  <https://people.example/queries> 6" in text
    _, text = call(people, "schema", class_iri="https://people.example/Person")
    assert "<https://people.example/knows> 1; IRI" in text
    assert "xsd:string" in text
    failed, text = call(people, "schema", class_iri="https://people.example/Persona")
    assert failed
    assert "<https://people.example/Person>" in text


def test_find(people: str) -> None:
    assert call(people, "find", words="love ADA") == (
        False,
        "<https://people.example/ada> name: Ada Lovelace",
    )
    assert "is a predicate or class" in call(people, "find", words="knows")[1]
    assert "nothing" in call(people, "find", words="zebra")[1]


def test_query(people: str) -> None:
    query = "PREFIX : <https://people.example/> SELECT ?n { ?p :name ?n } ORDER BY ?n"
    assert call(people, "query", query=query) == (False, '?n\n"Ada Lovelace"\n"Charles Babbage"')
    _, text = call(people, "query", query=query, limit=1)
    assert text.splitlines()[1:] == ['"Ada Lovelace"', "(cut: there are more rows)"]
    explained = json.loads(call(people, "query", query=query, explain=True)[1])
    assert explained["scans"][0]["quads"] == 2
    assert "true" in call(people, "query", query="ASK { ?s ?p ?o }")[1]
    assert "<https://people.example/ada>" in call(people, "query", query="CONSTRUCT WHERE { ?s ?p ?o }")[1]


def test_a_query_without_rows_tells_what_is_near(people: str) -> None:
    query = "SELECT ?n { ?p <https://people.example/names> ?n }"
    failed, text = call(people, "query", query=query)
    assert not failed
    assert "Nothing matches" in text
    assert "<https://people.example/name>" in text


def test_an_error_says_how_to_mend_the_query(people: str) -> None:
    failed, text = call(people, "query", query="SELECT ?n { ?p foaf:name ?n }")
    assert failed
    assert "line 1, column 16" in text
    assert "PREFIX foaf: <http://xmlns.com/foaf/0.1/>" in text


def test_describe_and_examples(people: str) -> None:
    _, text = call(people, "describe", iri="https://people.example/charles")
    assert '<https://people.example/name>\t"Charles Babbage"' in text
    assert "<https://people.example/ada>\t<https://people.example/knows>" in text
    assert call(people, "describe", iri="https://people.example/nobody")[0]
    assert call(people, "describe", iri="no iri")[0]
    _, text = call(people, "examples", words="who knows")
    assert text == "# Who knows whom?\nSELECT * { ?a :knows ?b }"


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("nothing", {}, "there is no tool"),
        ("update", {"update": "CLEAR ALL"}, "there is no tool"),
        ("query", {}, "query: Field required"),
        ("query", {"query": "ASK {}", "other": 1}, "other"),
        ("query", {"query": "ASK {}", "limit": 10**9}, "limit"),
        ("query", {"query": "INSERT DATA { <urn:a> <urn:b> 1 }"}, "INSERT"),
        ("find", {"words": "x", "graph": "> } } #"}, "not an absolute IRI"),
        ("search", {"index": "../_all", "words": "x"}, "index"),
    ],
)
def test_what_cannot_be_called(people: str, name: str, arguments: dict[str, Any], message: str) -> None:
    failed, text = call(people, name, **arguments)
    assert failed
    assert message in text


def test_words_are_no_part_of_the_query(people: str) -> None:
    failed, text = call(people, "find", words='") } INSERT \\ " } #')
    assert (failed, text) == (False, "nothing was found; try fewer or other words")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"jsonrpc": "2.0", "id": 1, "method": "nothing"}',
        b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 1}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}',
        b'{"jsonrpc": "2.0", "method": "notifications/nothing"}',
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * 1_000_000 + b'"}',
        b"\xff\xfe",
        b"x" * (5 << 20),
    ],
)
def test_hostile_messages(people: str, body: bytes) -> None:
    with httpx.Client(base_url=people, trust_env=False, timeout=HANG_S) as client:
        answer = client.post("/mcp", content=body, headers=MESSAGES)
        assert answer.status_code in (200, 202, 400, 413), answer.text
        assert "Traceback" not in answer.text
        assert client.get("/sparql", params={"query": "ASK {}"}).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_without_sessions_there_is_no_stream(people: str, method: str) -> None:
    """A stream for which no message will ever come would stay open for nothing."""
    answer = httpx.request(method, f"{people}/mcp", headers=MESSAGES, trust_env=False)
    assert answer.status_code == 405


def test_pages_of_other_origins_are_refused(people: str) -> None:
    headers = MESSAGES | {"Origin": "https://evil.example"}
    assert httpx.post(f"{people}/mcp", content=b"{}", headers=headers, trust_env=False).status_code == 403


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    settings = settings_of(tmp_path)
    settings = settings.model_copy(update={"mcp": Settings.model_validate({"mcp": {"updates": True}}).mcp})
    with serving(build_app(MemoryBackend(), settings, search=searching())) as url:
        yield url


def test_tools_have_the_rights_of_their_caller(guarded: str) -> None:
    insert = "INSERT DATA { <urn:a> <urn:b> 'c' }"
    failed, text = call(guarded, "update", key("reader"), update=insert)
    assert failed
    assert "reader" in text
    assert call(guarded, "query", key("reader"), query="ASK { ?s ?p ?o }")[1].count("false") == 1
    assert call(guarded, "update", key("writer"), update=insert)[0] is False
    assert "true" in call(guarded, "query", key("reader"), query="ASK { ?s ?p ?o }")[1]
    assert httpx.post(f"{guarded}/mcp", content=b"{}", headers=MESSAGES, trust_env=False).status_code == 401


def test_a_search_is_its_caller_s(guarded: str) -> None:
    for role in ("reader", "writer"):
        failed, text = call(guarded, "search", key(role), index="books", words="red wine")
        assert (failed, text) == (False, f'/books/_search {role} (score 1.000): {{"words":"red wine"}}')
    failed, text = call(guarded, "search", key("reader"), index="books", words="nothing")
    assert (failed, text) == (True, "no such index [/books/_search]")


def test_without_a_search_port_there_is_no_search(tmp_path: Path) -> None:
    settings = Settings.model_validate({"server": {"data_dir": tmp_path}})
    with serving(build_app(MemoryBackend(), settings)) as url:
        failed, text = call(url, "search", index="books", words="a")
        assert failed
        assert text.startswith("there is no tool 'search'; there are")


def test_a_state_before_a_purge_is_marked(client: httpx.Client, people: str) -> None:
    before = client.get("/health").json()["snapshot_index"]
    found = client.post("/history/purge", params={"graph": "https://people.example/none"})
    purged = found.raise_for_status().json()["index"]
    note = f"(something was purged at log index {purged}: this state of the past lacks it)"
    for query in ("SELECT ?s { ?s ?p ?o } LIMIT 1", "SELECT ?s { ?s <urn:none> ?o }", "ASK {}"):
        is_error, past = call(people, "query", query=query, as_of=str(before))
        assert not is_error
        assert past.endswith("\n" + note)
        assert call(people, "query", query=query, as_of=before) == (is_error, past)  # models write a number
        assert note not in call(people, "query", query=query)[1]
