"""Whoever does not see everything gets from every interface what a store without the rest would answer.

Random annotated data in a real store, behind the application in this process; a twin holds what is visible.
"""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, Triple

from graphdb.access.annotations import ALLOWED_SID, REIFIES
from graphdb.access.api_keys import key_digest
from graphdb.access.permissions import Permission
from graphdb.access.visibility import FULL_VISIBILITY, Contexts, Visibility
from graphdb.access.writer_state import VisibleState
from graphdb.config import Settings
from graphdb.model import GraphName
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from serve.graph_app import build_app
from tests.support.shards import Shard, open_shard
from tests.support.timing import HANG_S

X, RDF_TYPE = "http://x/", NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
OWL, RDFS = "http://www.w3.org/2002/07/owl#", "http://www.w3.org/2000/01/rdf-schema#"
GEO = "http://www.opengis.net/ont/geosparql#"
WKT = NamedNode(GEO + "wktLiteral")
REIFIES_TERM = str(REIFIES)
GRAPHS: list[GraphName] = [DefaultGraph(), NamedNode("urn:g:a"), NamedNode("urn:g:b"), NamedNode("urn:h:c")]
SIDS = ["S-1-5-1", "S-1-5-2", "S-1-5-3"]
# roles beside `reader`, and SIDs
PRINCIPALS: dict[str, tuple[list[str], list[str]]] = {
    "plain": (["wide"], []),
    "one": (["wide"], ["S-1-5-1"]),
    "inner": (["narrow"], ["S-1-5-1", "S-1-5-2", "S-1-5-9"]),
    "two": (["narrow", "named"], ["S-1-5-2"]),
    "nobody": ([], ["S-1-5-1", "S-1-5-2", "S-1-5-3"]),
}
ACL = {
    "contexts": {
        "all": {"visible_graphs": ["**"]},
        "some": {"visible_graphs": ["urn:g:*"], "visible_default_graph": True},
        "one": {"visible_graphs": ["urn:h:c"]},
    },
    "role_contexts": {"wide": "all", "narrow": "some", "named": "one"},
}
PREFIXES = f"PREFIX : <{X}> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "
PREFIXES += "PREFIX text: <http://jena.apache.org/text#> "
NEAR = """FILTER(<http://www.opengis.net/def/function/geosparql/sfWithin>(?w,
    "POLYGON((-1 -1, 5 -1, 5 11, -1 11, -1 -1))"^^<http://www.opengis.net/ont/geosparql#wktLiteral>))"""
SPATIAL = f"SELECT ?s ?w {{ ?s <{GEO}asWKT> ?w {NEAR} }}"
QUERIES = [
    SPATIAL,
    f"SELECT (COUNT(*) AS ?n) {{ GRAPH ?g {{ ?s <{GEO}asWKT> ?w }} {NEAR} }}",
    "SELECT ?s ?l { (?s ?score ?l) text:query 'about said' }",
    "SELECT ?s ?t { (?s ?score ?l) text:query 'about said' . ?s a ?t }",
    f"SELECT ?s ?d {{ ?s text:query 'about' ; <{RDFS}comment> ?c ; <{RDFS}domain> ?d }}",
    "SELECT ?s ?g { GRAPH ?g { ?s text:query 'about' } }",
    "SELECT (COUNT(*) AS ?n) FROM <urn:g:a> FROM <urn:h:c> { ?s text:query 'a*' ; ?p ?o }",
    "SELECT * { ?s ?p ?o }",
    "SELECT * { GRAPH ?g { ?s ?p ?o } }",
    "SELECT ?g { GRAPH ?g { } }",
    "SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT ?s) AS ?m) { ?s ?p ?o }",
    "SELECT (COUNT(DISTINCT ?g) AS ?n) { GRAPH ?g { ?s ?p ?o } }",
    "SELECT ?s { ?s a ?c FILTER EXISTS { ?s :p0 ?v } }",
    "SELECT ?s { ?s a ?c FILTER NOT EXISTS { ?s :knows ?v } }",
    "SELECT ?s ?c { ?s a ?c MINUS { ?s :p1 ?v } }",
    "SELECT * { ?s :knows+ ?o }",
    "SELECT * { ?s !(:p0|rdf:type) ?o }",
    "SELECT ?s ?v { ?s a ?c OPTIONAL { ?s :p0 ?v } }",
    "SELECT * { ?r rdf:reifies ?t }",
    "SELECT * { ?r ?p <<( ?s ?q ?o )>> }",
    "SELECT (SUM(?v) AS ?sum) (MIN(?v) AS ?min) { ?s :p1 ?v }",
    "SELECT * FROM <urn:g:a> FROM <urn:h:c> { ?s ?p ?o }",
    "SELECT * FROM NAMED <urn:g:b> { GRAPH ?g { ?s ?p ?o } }",
    "ASK { :s0 :knows :s1 }",
    "ASK { GRAPH <urn:h:c> { ?s ?p ?o } }",
    "CONSTRUCT { ?o ?p ?s } { ?s ?p ?o FILTER isIRI(?o) }",
    "DESCRIBE :s0 :s1",
    "DESCRIBE ?s { ?s :p0 ?v }",
]
SHAPES = f"""PREFIX sh: <http://www.w3.org/ns/shacl#> PREFIX : <{X}>
:S sh:targetClass :C0, :C1 ; sh:property :P, :Q . :P sh:path :p0 ; sh:minCount 1 ; sh:maxCount 1 .
:Q sh:path ( :knows :p1 ) ; sh:maxCount 1 ; sh:nodeKind sh:Literal ."""
INTROSPECTION = "{ __schema { types { name description fields { name type { name ofType { name } } } } } }"


TOOLS: list[tuple[str, dict[str, str]]] = [
    ("schema", {}),
    ("schema", {"graph": "urn:h:c"}),
    ("find", {"words": "about c"}),
    ("find", {"words": "p1", "graph": "urn:g:a"}),
    ("query", {"query": "SELECT * { ?s ?p ?o }"}),
    ("query", {"query": "SELECT * { ?s <http://x/p7> ?o }"}),
    ("describe", {"iri": "http://x/s1"}),
    ("describe", {"iri": "http://x/s9"}),
    ("examples", {}),
]


def settings() -> dict[str, Any]:
    keys = [
        {"name": name, "key_sha256": key_digest(name), "roles": ["reader", *roles], "sids": sids}
        for name, (roles, sids) in PRINCIPALS.items()
    ]
    admin = {"name": "admin", "key_sha256": key_digest("admin"), "roles": ["admin"]}
    return {
        "authentication": {"enabled": True, "api_keys": [*keys, admin]},
        "acl": ACL,
        "server": {"views": 3},  # fewer than there are to be
        "holonic": {"enabled": True},
        "linked_data": {"base_iris": [X]},
        "search": {"enabled": False},  # it would be another service's
        "authorization": {},
        "text": {"predicates": ["*"]},
    }


@asynccontextmanager
async def node(directory: Path) -> AsyncIterator[tuple[Shard, httpx.AsyncClient]]:
    await asyncio.to_thread(directory.mkdir)
    sections = settings()
    async with open_shard(directory, **settings()) as shard:
        sections["server"] |= {"data_dir": directory}
        app = build_app(shard, Settings.model_validate(sections))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app),
                base_url="http://node",
                headers={"Accept": "*/*"},
                timeout=HANG_S,
            ) as client,
        ):
            yield shard, client


class Random(random.Random):
    """Random statements: data, an ontology for GraphQL, annotations, statements about statements."""

    def statement(self) -> Triple:
        node = NamedNode(f"{X}s{self.randrange(5)}")
        kind = NamedNode(f"{X}C{self.randrange(3)}")
        properties = [NamedNode(f"{X}p{number}") for number in range(2)]
        return self.choice(
            [
                Triple(node, RDF_TYPE, kind),
                Triple(node, self.choice(properties), Literal(self.randrange(100))),
                Triple(node, NamedNode(GEO + "asWKT"), Literal(self.point(), datatype=WKT)),
                Triple(node, NamedNode(X + "knows"), NamedNode(f"{X}s{self.randrange(5)}")),
                Triple(kind, RDF_TYPE, NamedNode(OWL + "Class")),
                Triple(self.choice(properties), RDF_TYPE, NamedNode(OWL + "DatatypeProperty")),
                Triple(self.choice(properties), NamedNode(RDFS + "domain"), kind),
                Triple(kind, NamedNode(RDFS + "comment"), Literal(f"about {kind.value}")),
            ]
        )

    def point(self) -> str:
        return f"POINT({self.randrange(10)} {self.randrange(10)})"

    def quads(self, count: int) -> list[Quad]:
        found: list[Quad] = []
        for _ in range(count):
            graph, one = self.choice(GRAPHS), self.statement()
            found.append(Quad(one.subject, one.predicate, one.object, graph))
            reifier = NamedNode(f"{X}r{self.randrange(40)}")
            if self.random() < 0.4:
                found.append(Quad(reifier, REIFIES, one, graph))
                found.append(Quad(reifier, ALLOWED_SID, Literal(self.choice(SIDS)), graph))
            if self.random() < 0.2:
                said = Triple(reifier, NamedNode(X + "says"), Literal(self.randrange(100)))
                found.append(Quad(said.subject, said.predicate, said.object, graph))
                found.append(Quad(NamedNode(f"{X}r{self.randrange(40)}"), REIFIES, said, graph))
            elif self.random() < 0.3:
                about = Triple(reifier, NamedNode(X + "says"), one)
                found.append(Quad(reifier, REIFIES, self.choice([one, about]), graph))
        return found


def nquads(quads: list[Quad]) -> bytes:
    return b"".join(f"{quad} .\n".encode() for quad in quads)


async def load(shard: Shard, quads: list[Quad]) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield nquads(quads)

    await shard.writes(FULL_VISIBILITY).write_graph(
        body(), RdfSyntax.N_QUADS, graph=None, whole_dataset=True, replace=False, base_iri=None
    )


async def update(shard: Shard, text: str) -> None:
    await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())


async def make_twin(shard: Shard, visibility: Visibility, twin: Shard) -> int:
    """How much is hidden."""
    assert shard.open is not None
    state = shard.open.quads
    visible = VisibleState(visibility, state)
    quads, seen = list(state.dataset_quads()), list(visible.dataset_quads())
    await update(twin, "DROP ALL")
    for graph in GRAPHS[1:]:
        assert isinstance(graph, NamedNode)
        if visible.graph_exists(graph):
            await update(twin, f"CREATE GRAPH {graph}")
    await load(twin, seen)
    return len(quads) - len(seen)


def canonical(answer: httpx.Response) -> object:
    """What an answer says, whatever its order."""
    if not answer.content:
        return answer.status_code, None
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if kind == "application/sparql-results+json" and "results" in answer.json():
        rows = answer.json()["results"]["bindings"]
        return answer.status_code, sorted(json.dumps(row, sort_keys=True) for row in rows)
    if kind.endswith("json"):
        return answer.status_code, _sorted(answer.json())
    return answer.status_code, sorted(answer.text.splitlines())


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        volatile = ("timestamp", "duration_ms", "snapshot_index", "index", "started_at", "extensions")
        return {key: _sorted(one) for key, one in sorted(value.items()) if key not in volatile}
    if isinstance(value, list):
        return sorted((_sorted(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


async def answers(client: httpx.AsyncClient, key: str) -> dict[str, object]:
    """Of all interfaces that read, each asked twice: the second answer may be one that is kept."""
    found: dict[str, object] = {}

    async def ask(name: str, method: str, path: str, **options: Any) -> httpx.Response:
        options["headers"] = {"X-API-Key": key, **options.get("headers", {})}
        answer = await client.request(method, path, **options)
        assert answer.status_code < 500, (name, answer.text)
        found[name] = canonical(answer)
        return answer

    for _ in range(2):
        for query in QUERIES:
            form = "text/turtle" if query.startswith(("CONSTRUCT", "DESCRIBE")) else "application/json"
            headers = {"Accept": "application/n-triples" if form == "text/turtle" else form}
            await ask(query, "GET", "/sparql", params={"query": PREFIXES + query}, headers=headers)
    for query in (SPATIAL, "SELECT ?s (COUNT(?o) AS ?n) { ?s a ?c ; :p0 ?o } GROUP BY ?s"):
        parameters = {"query": PREFIXES + query, "explain": "true"}
        explained = await ask(f"explain {query}", "GET", "/sparql", params=parameters)
        told = explained.json()
        told["evaluation"] = {name: told["evaluation"][name] for name in ("outcome", "rows")}
        for way in told["ways"]:  # of a restricted view nothing is estimated, and nothing kept of others
            assert way.pop("took_ms") is None or way["way"] == "reader"
            del way["estimated_ms"]  # on the event loop, the mean of all
        for lookup in told["lookups"]:
            del lookup["values"]  # an index may hold what was there before
        found[f"explain {query}"] = _sorted(told)
    triples = {"Accept": "application/n-triples"}
    await ask("default graph", "GET", "/data?default", headers=triples)
    for graph in ("urn:g:a", "urn:g:b", "urn:h:c", "urn:none"):
        await ask(graph, "GET", "/data", params={"graph": graph}, headers=triples)
        await ask(f"HEAD {graph}", "HEAD", "/data", params={"graph": graph}, headers=triples)
        await ask(
            f"SHACL of {graph}",
            "POST",
            "/shacl/validate",
            params={"data-graph": graph},
            content=SHAPES,
            headers={"Content-Type": "text/turtle"},
        )
    await ask("dump", "GET", "/data?dataset=all&format=nquads")
    await ask("Fuseki's dataset", "GET", "/ds", headers={"Accept": "application/n-quads"})
    await ask("Fuseki's graph", "GET", "/ds/get", params={"graph": "urn:h:c"}, headers=triples)
    await ask("Fuseki's query", "GET", "/ds/query", params={"query": "SELECT * { ?s ?p ?o }"})
    for name in ("s0", "s4", "r1", "C0"):
        await ask(f"resource {name}", "GET", f"/{name}", headers=triples)
    counts = await ask("VoID", "GET", "/.well-known/void", headers={**triples, "Cache-Control": "no-cache"})
    found["VoID"] = sorted(re.sub(r"_:\S+", "_:b", counts.text).splitlines())
    for name in ("p0", "p1", "p9", "C0", "c1"):
        await ask(f"hint {name}", "GET", "/sparql", params={"query": f"ASK {{ ?s x:{name} ?o }}"})
    for tool, given in TOOLS:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        called = await ask(
            tool,
            "POST",
            "/mcp",
            json={**message, "params": {"name": tool, "arguments": given}},
            headers={"Accept": "application/json, text/event-stream"},
        )
        result = called.json()["result"]
        found[f"{tool} {given}"] = result["isError"], sorted(result["content"][0]["text"].splitlines())
    await ask("SHACL", "POST", "/shacl/validate", content=SHAPES, headers={"Content-Type": "text/turtle"})
    await ask("schema", "GET", "/graphql/schema")
    names = await ask("introspection", "POST", "/graphql", json={"query": INTROSPECTION})
    for kind in names.json()["data"]["__schema"]["types"]:
        if kind["name"].endswith("Connection"):
            of = kind["name"].removesuffix("Connection").lower()
            for wanted in ("id", "p0 p1"):
                text = f"{{ {of}s {{ totalCount edges {{ node {{ {wanted} }} }} }} }}"
                await ask(text, "POST", "/graphql", json={"query": text})
    for text in ("{ c0s { edges { node { p0 } } } }", "{ c9s { id } }"):  # what unknown names are told
        await ask(text, "POST", "/graphql", json={"query": text})
    await ask("holons", "GET", "/holonic/holons")
    await _ask_as_rdf4j(ask)
    return found


async def _ask_as_rdf4j(ask: Callable[..., Awaitable[httpx.Response]]) -> None:
    """The same by RDF4J's REST API, in transactions too."""
    root = "/repositories/graphdb"
    begun = await ask("begin", "POST", f"{root}/transactions")
    assert begun.status_code == 201
    transaction = begun.headers["location"]
    quads, rows = {"Accept": "application/n-quads"}, {"Accept": "application/sparql-results+json"}
    union = {"query": f"{PREFIXES} SELECT * {{ ?s ?p ?o }}"}
    await ask("RDF4J: SELECT", "GET", root, params=union, headers=rows)
    await ask("RDF4J: contexts", "GET", f"{root}/contexts", headers=rows)
    await ask("RDF4J: for GraphDB", "GET", "/rest/repositories/graphdb/size")
    await ask(
        "in a transaction: SELECT", "PUT", transaction, params=union | {"action": "QUERY"}, headers=rows
    )
    patterns = [{}, {"context": "null"}, {"pred": f"<{X}p0>"}, {"subj": f"<{X}s1>", "context": "<urn:g:a>"}]
    for pattern in [*patterns, {"context": "<urn:h:c>"}, {"pred": REIFIES_TERM}]:
        name = json.dumps(pattern)
        await ask(f"statements {name}", "GET", f"{root}/statements", params=pattern, headers=quads)
        action = pattern | {"action": "GET"}
        await ask(f"in a transaction: {name}", "PUT", transaction, params=action, headers=quads)
        size = {"context": pattern["context"]} if "context" in pattern else {}
        await ask(f"size {name}", "GET", f"{root}/size", params=size)
        await ask(f"in a transaction: size {name}", "PUT", transaction, params=size | {"action": "SIZE"})
    for graph in ("urn:g:b", "urn:h:c", "urn:none"):
        path = f"{root}/rdf-graphs/service"
        await ask(f"RDF4J: {graph}", "GET", path, params={"graph": graph}, headers=quads)
    await ask("rollback", "DELETE", transaction)


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_twin_with_only_what_is_visible_answers_the_same(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    contexts = Contexts(Settings.model_validate(settings()).acl)
    hidden = 0
    async with node(tmp_path / "node") as (shard, client), node(tmp_path / "twin") as (twin, of_twin):
        for _ in range(3):
            await load(shard, rng.quads(60))
            await update(shard, f"DELETE WHERE {{ ?r <{ALLOWED_SID.value}> '{rng.choice(SIDS)}' }}")
            await update(shard, f"DELETE WHERE {{ <{X}r{rng.randrange(40)}> ?p ?o }}")
            await load(shard, rng.quads(20))
            for name, (roles, sids) in PRINCIPALS.items():
                visibility = contexts.visibility_of(
                    name, ["reader", *roles], frozenset(sids), Permission.READ
                )
                hidden += await make_twin(shard, visibility, twin)
                seen, expected = await answers(client, name), await answers(of_twin, "admin")
                for asked in expected.keys() | seen.keys():
                    assert seen.get(asked) == expected.get(asked), (name, asked)
    assert hidden > 100  # or nothing was tested


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_what_is_protected_comes_through_no_portal_into_a_graph(tmp_path: Path) -> None:
    async with node(tmp_path / "node") as (shard, client):

        async def post(path: str, **body: Any) -> httpx.Response:
            path = f"/holonic/{path}"
            answer = await client.post(path, json=body or None, headers={"X-API-Key": "admin"})
            assert answer.status_code == 200, answer.text
            return answer

        for holon in ("urn:h:from", "urn:h:to"):
            await post("holons", iri=holon)
        text = "CONSTRUCT { ?s <urn:through> ?o } WHERE { ?s ?p ?o }"
        await post("portals", iri="urn:portal", source="urn:h:from", target="urn:h:to", construct_query=text)
        turtle = (
            "<urn:a> <urn:p> 'open' . <urn:a> <urn:p> 'secret' {| <urn:graphdb:acl#allowedSid> 'S-1' |} ."
        )
        path = "holons/urn%3Ah%3Afrom/interior"
        await post(path, turtle=turtle)
        shown = await post("portals/urn%3Aportal/run")
        assert "secret" in shown.text
        await post("portals/urn%3Aportal/run?store=true")
        objects = {
            str(quad.object) for quad in shard.dataset_quads() if str(quad.predicate) == "<urn:through>"
        }
        assert objects == {'"open"'}
