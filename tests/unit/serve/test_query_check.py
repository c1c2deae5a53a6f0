"""`/sparql/check`: texts that would be accepted, and refused; and `X-Evaluated` of answers."""

from typing import Any

import httpx
import pytest

from graphdb.config import Settings
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.unit.serve.conftest import update

QUERY, UPDATE = "application/sparql-query", "application/sparql-update"


def checked(client: httpx.Client, text: str, media_type: str = QUERY, plan: bool = False) -> dict[str, Any]:
    address = "/sparql/check?plan=true" if plan else "/sparql/check"
    answer = client.post(address, content=text, headers={"Content-Type": media_type})
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize(
    ("text", "media_type", "form"),
    [
        ("SELECT * { ?s ?p ?o }", QUERY, "SELECT"),
        ("ASK {}", QUERY, "ASK"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", QUERY, "CONSTRUCT"),
        ("INSERT DATA { <urn:checked> <urn:b> 1 }", UPDATE, "UPDATE"),
        (f"INSERT DATA {{ {'<urn:checked> <urn:b> 1 . ' * 5000} }}", UPDATE, "UPDATE"),
    ],
)
def test_a_correct_text(client: httpx.Client, text: str, media_type: str, form: str) -> None:
    found = checked(client, text, media_type)
    assert found == {"valid": True, "form": form, "error": None, "line": None, "column": None, "plan": None}


@pytest.mark.parametrize(
    ("text", "media_type", "place", "word"),
    [
        ("SELECT * {\n  ?s ?p }", QUERY, (2, 9), "expected"),
        ("SELECT * { ?s m:p ?o }", QUERY, (1, 15), "prefix"),
        ("INSERT DATA { ?s <urn:b> 1 }", UPDATE, (1, 15), "?s"),
        ("INSERT DATA { <urn:a> <urn:b> 1 }", QUERY, (1, 1), "expected"),
        ("SELECT * { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }", QUERY, (None, None), "127.0.0.1"),
    ],
)
def test_a_text_that_is_refused(
    client: httpx.Client, text: str, media_type: str, place: tuple[int | None, int | None], word: str
) -> None:
    found = checked(client, text, media_type)
    assert not found["valid"]
    assert (found["line"], found["column"]) == place
    assert word in found["error"]


def test_nothing_is_changed(client: httpx.Client) -> None:
    checked(client, "INSERT DATA { <urn:checked> <urn:b> 1 }", UPDATE)
    assert not client.get("/sparql", params={"query": "ASK { <urn:checked> ?p ?o }"}).json()["boolean"]


def test_a_plan_says_why(client: httpx.Client) -> None:
    assert checked(client, "SELECT * { <urn:a> ?p ?o }", plan=True)["plan"]["evaluated"] == "at once"
    plan = checked(client, "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p", plan=True)["plan"]
    assert plan["evaluated"] == "by a reader"
    assert any("rows first" in one for one in plan["reasons"])
    assert plan["warnings"] == []
    assert checked(client, "ASK {", plan=True)["plan"] is None


def test_a_plan_warns_of_limits_that_are_close() -> None:
    settings = Settings.model_validate({"security": {"max_patterns": 3}})
    with serving(build_app(MemoryBackend(), settings)) as url, httpx.Client(base_url=url) as client:
        plan = checked(client, "SELECT * { ?a ?b ?c . ?c ?d ?e . ?e ?f ?g }", plan=True)["plan"]
    assert plan["warnings"] == ["patterns: 3 of 3 (security.max_patterns)"]


def test_another_type_is_refused(client: httpx.Client) -> None:
    assert client.post("/sparql/check", json={}).status_code == 415


def test_an_answer_says_where_it_was_made(client: httpx.Client) -> None:
    update(client, "INSERT DATA { <urn:where> <urn:b> 1 }")
    cheap, dear = "SELECT * { <urn:where> ?p ?o }", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
    assert client.get("/sparql", params={"query": cheap}).headers["x-evaluated"] == "at once"
    assert client.get("/sparql", params={"query": dear}).headers["x-evaluated"] not in ("at once", "cache")
    assert client.get("/sparql", params={"query": dear}).headers["x-evaluated"] == "cache"
