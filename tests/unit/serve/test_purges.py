"""`/history/purge`: who may, what is asked for, and what readers of earlier states are told."""

from collections.abc import Iterator

import httpx
import pytest

from graphdb.history.purges import scope_digest
from graphdb.history.purging import PurgeScope
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.unit.serve.access.accounts import key, settings_of

ADMIN, WRITER, READER = (key(role) for role in ("admin", "writer", "reader"))
FAILING = "service_service_purge_failing "
PERSON = "https://example.org/person/1"


@pytest.fixture(scope="module")
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture(scope="module")
def http(backend: MemoryBackend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    settings = settings_of(tmp_path_factory.mktemp("accounts"), {"query_timeout_seconds": 1})
    with (
        serving(build_app(backend, settings)) as url,
        httpx.Client(base_url=url, trust_env=False) as client,
    ):
        yield client


def write(http: httpx.Client) -> int:
    answer = http.post("/update", data={"update": "INSERT DATA { <urn:s> <urn:p> 1 }"}, headers=WRITER)
    index: int = answer.raise_for_status().json()["snapshot_index"]
    return index


def test_only_who_administers_may(http: httpx.Client) -> None:
    for headers in (WRITER, READER, key("stranger")):
        refused = http.post("/history/purge", params={"resource": PERSON}, headers=headers)
        assert refused.status_code == 403
        assert http.get("/history/purge", headers=headers).status_code == 403
    assert http.post("/history/purge", params={"resource": PERSON}).status_code == 401
    assert http.get("/history/purge", headers=ADMIN).json() == {"purges": []}


def test_a_purge_is_told_without_what_was_purged(http: httpx.Client) -> None:
    made = http.post("/history/purge", params={"resource": PERSON}, headers=ADMIN)
    assert made.status_code == 200
    record = made.json()
    assert (record["scope"], record["purged_by"], record["done"]) == ("resource", "api_key:admin", True)
    assert record["digest"] == scope_digest(PurgeScope("resource", PERSON), record["salt"])
    listed = http.get("/history/purge", headers=ADMIN)
    assert listed.json()["purges"][-1] == record
    assert PERSON not in made.text + listed.text


@pytest.mark.parametrize(
    "query", ["", "resource=", "resource=no iri", "resource=_:b", f"resource={PERSON}&graph=urn:g", "graph=a"]
)
def test_what_is_no_resource_and_no_graph(http: httpx.Client, query: str) -> None:
    refused = http.post(f"/history/purge?{query}", headers=ADMIN)
    assert refused.status_code == 400


def test_answers_of_states_before_a_purge_say_so(http: httpx.Client) -> None:
    before = write(http)
    purged = http.post("/history/purge", params={"graph": "urn:g"}, headers=ADMIN).json()["index"]
    params = {"query": "ASK {}", "as_of": str(before)}
    past = http.get("/sparql", params=params, headers=READER).raise_for_status()
    assert past.headers["x-history-purged"] == str(purged)
    data = http.get("/data", params={"dataset": "all", "as_of": str(before)}, headers=READER)
    assert data.raise_for_status().headers["x-history-purged"] == str(purged)
    graphql = http.post(f"/graphql?as_of={before}", json={"query": "{ __typename }"}, headers=READER)
    assert graphql.headers.get("x-history-purged") == str(purged)
    told = http.get("/diff", params={"from": str(before), "to": str(purged)}, headers=READER).json()
    assert told["purged_index"] == purged
    assert http.get("/history", headers=READER).json()["purged_index"] == purged
    present = http.get("/sparql", params={"query": "ASK {}"}, headers=READER)
    assert "x-history-purged" not in present.headers


def test_a_purge_that_does_not_get_on_is_told(http: httpx.Client, backend: MemoryBackend) -> None:
    def failing() -> str:
        lines = http.get("/metrics", headers=ADMIN).text.splitlines()
        [line] = [line for line in lines if line.startswith(FAILING)]
        return line.removeprefix(FAILING)

    assert "purge_error" not in http.get("/health", headers=ADMIN).json()
    assert failing() == "0.0"
    backend.purging.error = "the disk is full"
    try:
        assert http.get("/health", headers=ADMIN).json()["purge_error"] == "the disk is full"
        assert failing() == "1.0"
    finally:
        backend.purging.error = None
    assert "service_service_purges_open 0.0" in http.get("/metrics", headers=ADMIN).text
