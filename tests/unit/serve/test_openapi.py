"""`/openapi.json` is valid, names every operation, and describes real answers; `/docs` shows it."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from graphdb.config import Settings
from graphdb.holonic.names import Layer
from serve.graph.browser_pages import DOCS
from serve.graph.operations import OPERATIONS, ROOMS
from serve.graph_app import build_app, described
from serve.openapi import _REASONS
from tests.support.chromium import browser, why_no_browser
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.stored_pages import check_file, check_page, vendored_files
from tests.support.timing import HANG_S
from tests.unit.serve.access.accounts import key, settings_of

SETTINGS = Settings.model_validate(
    {
        "linked_data": {"base_iris": ["http://x/id/"]},
        "holonic": {"enabled": True},
        "security": {"webhook_allow": ["127.0.0.1"]},
    }
)
HTTP_DOCS = (Path(__file__).parents[3] / "docs/http.md").read_text()


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with (
        serving(build_app(MemoryBackend(settings=SETTINGS), SETTINGS)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def document(http: httpx.Client) -> dict[str, Any]:
    answer = http.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()
    return found


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (path, method.upper()): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_it_is_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    OpenAPIV31SpecValidator(document).validate()


def test_it_names_every_route_and_method(document: dict[str, Any]) -> None:
    """All of the application have an entry, none that it lacks has one, and all are in the document."""
    app = build_app(MemoryBackend(), SETTINGS)
    assert set(described(app.routes)) == set(OPERATIONS)
    assert set(operations(document)) == {(path.replace(":path}", "}"), method) for path, method in OPERATIONS}


def test_what_is_switched_off_is_not_in_it() -> None:
    off = Settings.model_validate({"graphql": {"enabled": False}})
    paths = build_app(MemoryBackend(), off).openapi()["paths"]
    assert [path for path in paths if path.startswith(("/graphql", "/holonic"))] == ["/holonic/health"]


def test_every_operation_is_described_in_full(document: dict[str, Any]) -> None:
    """Parameters of its path, a summary, a body where it takes one, its answers, and its errors."""
    failure = {"$ref": "#/components/schemas/Failure"}
    for (path, method), operation in operations(document).items():
        parameters = [(one["in"], one["name"]) for one in operation.get("parameters", [])]
        assert sorted(name for place, name in parameters if place == "path") == sorted(
            re.findall(r"{(\w+)}", path)
        ), (method, path)
        assert len(set(parameters)) == len(parameters)
        assert operation["summary"]
        assert all(one["description"] and one["schema"] for one in operation.get("parameters", []))
        responses = operation["responses"]
        assert responses["default"]["content"]["application/json"]["schema"] == failure
        [status] = responses.keys() & {"200", "201", "204", "426"}
        assert (status == "426") == (path in SOCKETS)
        answer = responses[status]
        assert bool(answer.get("content")) == ((method, path) not in WITHOUT_BODY), (method, path)
        assert all("schema" in one for one in answer.get("content", {}).values())
        body = operation.get("requestBody")
        assert (body is not None) == ((method, path) in BODIES), (method, path)
        assert body is None or all(one["schema"] for one in body["content"].values())


def test_answers_of_the_log_name_its_index(http: httpx.Client, document: dict[str, Any]) -> None:
    for method, path, address in [
        ("GET", "/sparql", "/sparql?query=ASK{}"),
        ("GET", "/data", "/data"),
        ("GET", "/graphql/schema", "/graphql/schema"),
        ("GET", "/holonic/depth", "/holonic/depth"),
        ("GET", "/changes", "/changes?follow=false"),
        ("GET", "/health", "/health"),
        ("GET", "/cluster", "/cluster"),
        ("GET", "/alerts", "/alerts"),
    ]:
        described = operations(document)[path, method]["responses"]["200"].get("headers", {})
        given = http.request(method, address).headers
        assert ("X-Snapshot-Index" in described) == ("x-snapshot-index" in given), path


def test_every_room_has_operations(document: dict[str, Any]) -> None:
    assert {tag for one in operations(document).values() for tag in one["tags"]} == set(ROOMS)
    assert [tag["name"] for tag in document["tags"]] == list(ROOMS)


def test_statuses_are_those_of_the_documentation() -> None:
    told = {
        int(number) for row in re.findall(r"^\| ([\d, ]+) \|", HTTP_DOCS, re.M) for number in row.split(",")
    }
    assert set(_REASONS) - told == {426}


SOCKETS = ("/ws", "/graphql/ws")
REPOSITORY = "/repositories/{id}"
GRAPHS = ("rdf-graphs/service", "rdf-graphs/{name}")
WITHOUT_BODY = {
    *((method, f"{REPOSITORY}/statements") for method in ("POST", "PUT", "DELETE")),
    *((method, f"{REPOSITORY}/{path}") for method in ("POST", "PUT", "DELETE") for path in GRAPHS),
    ("DELETE", f"{REPOSITORY}/namespaces"),
    *((method, f"{REPOSITORY}/namespaces/{{prefix}}") for method in ("PUT", "DELETE")),
    ("POST", f"{REPOSITORY}/transactions"),
    ("DELETE", f"{REPOSITORY}/transactions/{{transaction}}"),
}
BODIES = {
    *((method, path) for method in ("PUT", "POST") for path in ("/data", "/data/{name}")),
    *(("POST", f"/holonic/{path}") for path in ("holons", "portals", "portals/{iri}/run")),
    *(("POST", f"/holonic/holons/{{iri}}/{layer.value}") for layer in Layer),
    *(
        ("POST", path)
        for path in ("/sparql", "/sparql/check", "/update", "/graphql", "/shacl/validate", "/alerts")
    ),
    *(("POST", "/{dataset}" + path) for path in ("", "/query", "/sparql", "/update", "/data", "/patch")),
    *(("PUT", "/{dataset}" + path) for path in ("", "/data")),
    *(("POST", "/saved-queries"), ("PUT", "/saved-queries/{id}")),
    *(("POST", REPOSITORY), ("PUT", f"{REPOSITORY}/namespaces/{{prefix}}")),
    *(
        (method, f"{REPOSITORY}/{path}")
        for method in ("POST", "PUT")
        for path in ("statements", *GRAPHS, "transactions/{transaction}")
    ),
    *(("POST", path) for path in ("/geospatial/evaluate", "/cluster/members", "/cluster/leader")),
}
HOLON = quote("urn:h", safe="")
JSON, TURTLE = {"Content-Type": "application/json"}, {"Content-Type": "text/turtle"}
QUERY = {"Content-Type": "application/sparql-query"}
ALERT = {
    "name": "a",
    "query": "ASK {}",
    "condition": "result > 3",
    "interval_seconds": 3600,
    "webhook": "http://127.0.0.1:9/",
}
CALL = {"function": "isEmpty", "args": ["POINT(1 2)"]}
PORTAL = {
    "iri": "urn:p",
    "source": "urn:h",
    "target": "urn:t",
    "construct_query": "CONSTRUCT WHERE { ?s ?p ?o }",
}
SHAPES = "[] a <http://www.w3.org/ns/shacl#NodeShape> ; <http://www.w3.org/ns/shacl#targetNode> <urn:x> ; "
SHAPES += "<http://www.w3.org/ns/shacl#nodeKind> <http://www.w3.org/ns/shacl#Literal> ."
# method, path as described, the request: in an order in which each finds what it needs
REQUESTS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("GET", "/", "/", {}),
    ("POST", "/update", "/update", {"data": {"update": "INSERT DATA { <urn:a> <urn:b> 1 }"}}),
    ("PUT", "/data", "/data?graph=urn:g", {"content": "<urn:a> <urn:b> 1 .", "headers": TURTLE}),
    ("DELETE", "/data", "/data?graph=urn:g", {}),
    ("PUT", "/data/{name}", "/data/g", {"content": "<urn:a> <urn:b> 1 .", "headers": TURTLE}),
    ("GET", "/sparql", "/sparql?query=ASK{}&format=json", {}),
    ("POST", "/sparql/check", "/sparql/check?plan=true", {"content": "ASK {}", "headers": QUERY}),
    ("POST", "/graphql", "/graphql", {"json": {"query": "{ __typename }"}}),
    ("POST", "/graphql/schema/refresh", "/graphql/schema/refresh", {}),
    ("POST", "/shacl/validate", "/shacl/validate", {"content": SHAPES, "headers": TURTLE}),
    ("POST", "/geospatial/evaluate", "/geospatial/evaluate", {"json": CALL}),
    ("GET", "/health", "/health", {}),
    ("GET", "/cluster", "/cluster", {}),
    ("GET", "/queries", "/queries", {}),
    ("POST", "/alerts", "/alerts", {"json": ALERT}),
    ("GET", "/alerts", "/alerts", {}),
    ("GET", "/alerts/{alert}", "/alerts/a", {}),
    ("POST", "/alerts/{alert}/pause", "/alerts/a/pause", {}),
    ("POST", "/alerts/{alert}/resume", "/alerts/a/resume", {}),
    ("GET", "/alerts/{alert}/history", "/alerts/a/history", {}),
    ("DELETE", "/alerts/{alert}", "/alerts/a", {}),
    ("GET", "/holonic/health", "/holonic/health", {}),
    ("POST", "/holonic/holons", "/holonic/holons", {"json": {"iri": "urn:h"}}),
    (
        "POST",
        "/holonic/holons/{iri}/interior",
        f"/holonic/holons/{HOLON}/interior",
        {"json": {"turtle": "<urn:x> <urn:y> 1 ."}},
    ),
    ("GET", "/holonic/holons", "/holonic/holons", {}),
    ("GET", "/holonic/holons/{iri}", f"/holonic/holons/{HOLON}", {}),
    ("GET", "/holonic/holons/{iri}/membrane", f"/holonic/holons/{HOLON}/membrane", {}),
    (
        "POST",
        "/holonic/portals",
        "/holonic/portals",
        {"json": PORTAL},
    ),
    ("GET", "/holonic/portals", "/holonic/portals", {}),
    ("GET", "/holonic/depth", "/holonic/depth", {}),
]  # fmt: skip
FAILURES: list[tuple[str, str, str, dict[str, Any], int]] = [
    ("GET", "/sparql", "/sparql?query=SELEC", {}, 400),
    ("GET", "/sparql", "/sparql?query=ASK{}&format=turtle", {}, 406),
    ("POST", "/sparql", "/sparql", {"content": b"x", "headers": TURTLE}, 415),
    ("GET", "/data", "/data?graph=urn:none", {}, 404),
    ("POST", "/cluster/members", "/cluster/members", {"json": {"node_id": 0}}, 400),
    ("DELETE", "/cluster/members/{node_id}", "/cluster/members/2", {}, 409),
    ("GET", "/alerts/{alert}", "/alerts/none", {}, 404),
    ("DELETE", "/queries/{id}", "/queries/none", {}, 404),
    ("POST", "/geospatial/evaluate", "/geospatial/evaluate", {"json": {"function": "none", "args": []}}, 400),
    ("GET", "/ws", "/ws", {}, 426),
]


def check(document: dict[str, Any], answer: httpx.Response, method: str, path: str) -> None:
    """The answer's body against the schema that the document has for it."""
    responses = operations(document)[path, method]["responses"]
    media_type = answer.headers["content-type"].partition(";")[0]
    schema = responses[str(answer.status_code)]["content"][media_type].get("schema", {})
    whole = {**schema, "components": document["components"]}
    OAS31Validator(whole).validate(answer.json())


def test_answers_are_as_described(http: httpx.Client, document: dict[str, Any]) -> None:
    for method, path, address, request in REQUESTS:
        answer = http.request(method, address, **request)
        assert answer.status_code == 200, (address, answer.text)
        check(document, answer, method, path)


@pytest.mark.parametrize(("method", "path", "address", "request_", "status"), FAILURES)
def test_errors_are_as_described(
    http: httpx.Client,
    document: dict[str, Any],
    method: str,
    path: str,
    address: str,
    request_: dict[str, Any],
    status: int,
) -> None:
    answer = http.request(method, address, **request_)
    assert answer.status_code == status, answer.text
    check(document, answer, method, path)


def test_credentials_are_described_where_they_are_needed(tmp_path: Path, document: dict[str, Any]) -> None:
    assert "security" not in document
    app = build_app(MemoryBackend(), settings_of(tmp_path))
    with serving(app) as url, httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client:
        for path in ("/openapi.json", "/docs", "/docs/docs.js"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers=key("stranger")).status_code == 403
        told = client.get("/openapi.json", headers=key("reader")).json()
    OpenAPIV31SpecValidator(told).validate()
    assert told["security"] == [{"password": []}, {"token": []}, {"key": []}]
    assert told["paths"]["/holonic/health"]["get"]["security"] == []
    assert {"401", "403", "429"} <= set(told["paths"]["/health"]["get"]["responses"])


def test_the_page_asks_no_other_host(http: httpx.Client) -> None:
    check_page(http.get("/docs"), "docs")


@pytest.mark.parametrize("name", DOCS.files)
@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_its_files_are_served(http: httpx.Client, name: str, coding: str) -> None:
    answer = http.get(f"/docs/{name}", headers={"Accept-Encoding": coding})
    check_file(answer, DOCS, name)


@pytest.mark.parametrize("name", ["docs.html", "__init__.py", "VENDORED.md", "x.js"])
def test_nothing_else_is(http: httpx.Client, name: str) -> None:
    assert http.get(f"/docs/{name}").status_code == 404


def test_what_is_not_ours_is_what_it_is_said_to_be() -> None:
    assert vendored_files(DOCS) == {"swagger-ui-bundle.js", "swagger-ui.css"}


@pytest.mark.slow
@pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))
def test_a_request_can_be_tried_in_it(http: httpx.Client, document: dict[str, Any]) -> None:
    own = str(http.base_url).rstrip("/")
    with browser() as page:
        page.open(f"{own}/docs")
        count = page.wait_for("document.querySelectorAll('.opblock').length")
        deadline = time.monotonic() + 30
        while count < len(operations(document)):
            assert time.monotonic() < deadline, (count, page.complaints)
            count = page.evaluate("document.querySelectorAll('.opblock').length")
        assert count == len(operations(document))
        block = "document.querySelector('#operations-service-get_health')"
        page.evaluate(f"{block}.querySelector('.opblock-summary-control').click()")
        page.wait_for(f"!!{block}.querySelector('button.execute')")
        page.evaluate(f"{block}.querySelector('button.execute').click()")
        page.wait_for(f"/healthy/.test({block}.querySelector('.live-responses-table')?.textContent)")
        assert page.complaints == []
        assert [one for one in page.requested if not one.startswith((f"{own}/", "data:"))] == []
        assert f"{own}/health" in page.requested
