"""SERVICE, LOAD and `_reindex` on a running service, however the request comes."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.remote_host import RemoteHost, answering, remote_host
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = pytest.mark.ray

JSON = "application/sparql-results+json"
ROWS = b'{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"literal","value":"far"}}]}}'


@pytest.fixture(scope="module")
def calling_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("calling")
    config = directory / "graphdb.toml"
    rules = 'service_allow = ["localhost"]\nload_allow = ["127.0.0.1"]\nreindex_allow = ["127.0.0.1"]\n'
    config.write_text(f"[security]\n{rules}")
    service = Service(directory / "data", "--config", str(config), search=True)
    try:
        service.start()
        yield service
    finally:
        service.close()


@pytest.fixture
def host() -> Iterator[RemoteHost]:
    with remote_host(answering(ROWS, JSON)) as there:
        yield there


def ask(service: Service, method: str, query: str) -> httpx.Response:
    url, parameters = f"{service.url}/sparql", {"query": query}
    if method == "GET":
        return httpx.get(url, params=parameters, trust_env=False, timeout=HANG_S)
    return httpx.post(url, data=parameters, trust_env=False, timeout=HANG_S)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_service(calling_service: Service, host: RemoteHost, method: str) -> None:
    endpoint = f"http://localhost:{host.port}/sparql"
    answer = ask(calling_service, method, f"SELECT * {{ SERVICE <{endpoint}> {{ ?s ?p ?x }} }}")
    assert answer.json()["results"]["bindings"] == [{"x": {"type": "literal", "value": "far"}}]
    host.answer = answering(status=500)
    answer = ask(calling_service, method, f"SELECT * {{ SERVICE <{endpoint}> {{ ?s ?p ?y }} }}")
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        f"SERVICE <{endpoint}>: the host answers 500",
    )
    assert len(host.requests) == 2
    answer = ask(calling_service, method, f"SELECT * {{ SERVICE <{host.url}> {{ ?s ?p ?x }} }}")
    assert (answer.status_code, answer.json()["error"]) == (
        403,
        f"SERVICE to {host.url} is not allowed by [security] service_allow",
    )
    assert len(host.requests) == 2


def test_updates(calling_service: Service, host: RemoteHost) -> None:
    def update(text: str) -> httpx.Response:
        url = f"{calling_service.url}/update"
        return httpx.post(url, data={"update": text}, trust_env=False, timeout=HANG_S)

    endpoint = f"http://localhost:{host.port}/sparql"
    answer = update(f"INSERT {{ <urn:a> <urn:b> ?x }} WHERE {{ SERVICE <{endpoint}> {{ ?s ?p ?x }} }}")
    assert answer.json()["affected_triples"] == 1
    host.answer = answering(b"<urn:a> <urn:b> 'loaded' .", "text/turtle")
    assert update(f"LOAD <{host.url}>").json()["affected_triples"] == 1
    assert update(f"LOAD SILENT <{endpoint}>").status_code == 403
    assert len(host.requests) == 2
    answer = ask(calling_service, "GET", "SELECT ?x { <urn:a> <urn:b> ?x } ORDER BY ?x")
    assert [row["x"]["value"] for row in answer.json()["results"]["bindings"]] == ["far", "loaded"]


def test_documents_of_another_cluster(calling_service: Service, host: RemoteHost) -> None:
    """The other one is the same service: it is called over its port like any."""
    with httpx.Client(base_url=calling_service.search_url, trust_env=False, timeout=HANG_S) as search:
        calling_service.wait_until(lambda: search.get("/_cat/indices").status_code == 200, HANG_S)
        for number in range(30):
            search.put(f"/films/_doc/{number}", json={"n": number}).raise_for_status()
        search.post("/films/_refresh").raise_for_status()
        source = {"remote": {"host": calling_service.search_url}, "index": "films", "size": 7}
        body = {"source": source, "dest": {"index": "moved"}}
        answer = search.post("/_reindex?refresh=true", json=body).json()
        assert (answer["created"], answer["failures"]) == (30, [])
        assert search.get("/moved/_count").json()["count"] == 30
        source["remote"] = {"host": f"http://localhost:{host.port}"}
        refused = search.post("/_reindex", json=body)
        assert (refused.status_code, "not allowlisted" in refused.text) == (400, True)
        assert host.requests == []
