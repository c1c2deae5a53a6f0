"""Writing over every interface of the graph port by whoever does not see everything."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphdb.config.access import Acl
from serve.graph_app import build_app
from tests.support.shards import open_shard
from tests.unit.serve.access.accounts import key, settings_of

pytestmark = pytest.mark.anyio

ACL = {
    "contexts": {"some": {"visible_graphs": ["urn:open*"], "visible_default_graph": True}},
    "role_contexts": {"writer": "some"},
}
DATA = """
    GRAPH <urn:open> {
        <urn:b> <urn:name> "public" , "hidden" .
        << <urn:b> <urn:name> "hidden" >> <urn:graphdb:acl#allowedSid> "S-1" . }
    GRAPH <urn:secret> { <urn:s> <urn:p> 1 }
    GRAPH <urn:openmodel> { <urn:v:Thing> a <http://www.w3.org/2002/07/owl#Class> .
        <urn:v:size> a <http://www.w3.org/2002/07/owl#FunctionalProperty> ;
            <http://www.w3.org/2000/01/rdf-schema#domain> <urn:v:Thing> }
"""
UPDATE = {"Content-Type": "application/sparql-update"}
TURTLE = {"Content-Type": "text/turtle"}


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Asked as the writer, who sees a part, where a test does not say otherwise."""
    settings = settings_of(tmp_path).model_copy(update={"acl": Acl.model_validate(ACL)})
    async with open_shard(tmp_path) as shard:
        transport = httpx.ASGITransport(build_app(shard, settings))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://node", headers=key("writer")
        ) as http:
            await update(http, f"INSERT DATA {{ {DATA} }}", key("admin"))
            yield http


async def update(http: httpx.AsyncClient, text: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
    answer = await http.post("/update", content=text, headers=UPDATE | (headers or {}))
    assert answer.status_code == 200, answer.text
    confirmation: dict[str, Any] = answer.json()
    return confirmation


async def everything(http: httpx.AsyncClient) -> list[str]:
    answer = await http.get("/data?dataset=all&format=nquads", headers=key("admin"))
    assert answer.status_code == 200
    return sorted(line for line in answer.text.splitlines() if "_:" not in line)


async def refused(http: httpx.AsyncClient, answer: httpx.Response, before: list[str]) -> None:
    assert answer.status_code == 403, answer.text
    assert "not visible" in answer.text or "only an admin" in answer.text
    assert await everything(http) == before


async def test_updates(port: httpx.AsyncClient) -> None:
    before = await everything(port)
    for text in (
        "INSERT DATA { GRAPH <urn:secret> { <urn:x> <urn:p> 1 } }",
        "CREATE SILENT GRAPH <urn:nowhere>",
        "INSERT DATA { <urn:r> <urn:graphdb:acl#allowedSid> 'S-1' }",
    ):
        await refused(port, await port.post("/update", content=text, headers=UPDATE), before)
    deleted = await update(port, "DELETE WHERE { GRAPH ?g { <urn:b> ?p ?o } }")
    assert deleted["affected_triples"] == 1
    assert [line for line in await everything(port) if "urn:b>" in line and "<<" not in line] == [
        '<urn:b> <urn:name> "hidden" <urn:open> .'
    ]


async def test_the_graph_store(port: httpx.AsyncClient) -> None:
    before = await everything(port)
    body = "<urn:x> <urn:p> 1 ."
    for method in ("PUT", "POST", "DELETE"):
        for graph in ("urn:secret", "urn:nowhere"):
            answer = await port.request(
                method, "/data", params={"graph": graph}, content=body, headers=TURTLE
            )
            await refused(port, answer, before)
    quads = f"<urn:open> {{ {body} }} <urn:secret> {{ {body} }}"
    await refused(
        port, await port.post("/data", content=quads, headers={"Content-Type": "application/trig"}), before
    )
    annotated = "<< <urn:b> <urn:name> 'public' >> <urn:graphdb:acl#allowedSid> 'S-1' ."
    for method in ("PUT", "POST"):
        answer = await port.request(method, "/data?graph=urn:open", content=annotated, headers=TURTLE)
        await refused(port, answer, before)
    put = await port.put("/data?graph=urn:open", content=body, headers=TURTLE)
    assert put.json()["affected_triples"] == 2
    deleted = await port.delete("/data?graph=urn:open")
    assert deleted.json()["affected_triples"] == 1
    assert (await port.delete("/data?graph=urn:open")).status_code == 404
    assert '<urn:b> <urn:name> "hidden" <urn:open> .' in await everything(port)


async def test_graphql(port: httpx.AsyncClient) -> None:
    before = await everything(port)
    create = 'mutation { createThing(input: {id: "urn:x", size: "1"}, graph: "%s") { id } }'
    answer = await port.post("/graphql", json={"query": create % "urn:secret"})
    assert answer.json()["errors"][0]["extensions"]["code"] == "FORBIDDEN"
    assert await everything(port) == before
    answer = await port.post("/graphql", json={"query": create % "urn:open"})
    assert answer.json()["data"] == {"createThing": {"id": "urn:x"}}


async def test_holons(port: httpx.AsyncClient) -> None:
    before = await everything(port)
    answer = await port.post("/holonic/holons", json={"iri": "urn:holon"})
    await refused(port, answer, before)


async def test_a_key_is_its_senders_own(port: httpx.AsyncClient) -> None:
    text, once = "INSERT DATA { <urn:k> <urn:p> 1 }", {"Idempotency-Key": "k-1"}
    first = await update(port, text, once | key("admin"))
    assert (first["message"], first["affected_triples"]) == ("update applied", 1)
    other = await update(port, text, once)
    assert (other["message"], other["affected_triples"]) == ("update applied", 0)
    again = await update(port, text, once | key("admin"))
    assert (again["message"], again["affected_triples"]) == ("applied before", 1)
