"""The paths of Fuseki: the dataset under its name, and the administration protocol."""

import gzip
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphdb.config import Settings
from graphdb.errors import ConfigError
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S
from tests.unit.serve.access.accounts import key, settings_of
from tests.unit.serve.conftest import dump, error_of, update

S, P = "<http://x/s>", "<http://x/p>"
INSERT = f'INSERT DATA {{ {S} {P} "a" }}'
NQ, PATCH, UPDATE = "application/n-quads", "application/rdf-patch", "application/sparql-update"
ONE = f'{S} {P} "one" .'
TWO = f'{S} {P} "two" <http://g/1> .'


def send(client: httpx.Client, method: str, path: str, body: str, kind: str) -> httpx.Response:
    return client.request(method, path, content=body, headers={"Content-Type": kind})


@pytest.mark.parametrize("path", ["/ds", "/ds/query", "/ds/sparql", "/sparql"])
def test_queries(client: httpx.Client, path: str) -> None:
    update(client, INSERT)
    query = "SELECT ?o { ?s ?p ?o }"
    for answer in (
        client.get(path, params={"query": query}),
        client.post(path, data={"query": query}),
        send(client, "POST", path, query, "application/sparql-query"),
    ):
        assert answer.json()["results"]["bindings"] == [{"o": {"type": "literal", "value": "a"}}]


@pytest.mark.parametrize("path", ["/ds", "/ds/update", "/sparql"])
@pytest.mark.parametrize("is_form", [True, False])
def test_updates(client: httpx.Client, path: str, is_form: bool) -> None:
    if is_form:
        answer = client.post(path, data={"update": INSERT, "using-graph-uri": "http://g/1"})
    else:
        answer = send(client, "POST", path, INSERT, UPDATE)
    assert answer.json()["affected_triples"] == 1
    assert dump(client) == [f'{S} {P} "a" .']


@pytest.mark.parametrize("path", ["/ds", "/sparql"])
def test_what_is_no_update_changes_nothing(client: httpx.Client, path: str) -> None:
    for answer in (
        client.get(path, params={"update": INSERT}),
        client.post(path, params={"update": INSERT}, data={"a": "b"}),
        client.post(path, data={"update": INSERT, "query": "ASK {}"}),
        client.post(path, data={"update": "INSERT DATA {"}),
    ):
        assert (path, answer.request.method, answer.status_code) in [
            ("/ds", "GET", 200),  # the dataset
            (path, answer.request.method, 400),
        ]
    assert dump(client) == []


@pytest.mark.parametrize("path", ["/ds", "/ds/data"])
def test_without_a_graph_the_dataset_is_meant(client: httpx.Client, path: str) -> None:
    assert send(client, "PUT", path, f"{ONE}\n{TWO}\n", NQ).json()["affected_triples"] == 2
    assert sorted(client.get(path, headers={"Accept": NQ}).text.splitlines()) == dump(client)
    assert send(client, "POST", path, f'{S} {P} "three" <http://g/2> .\n', NQ).status_code == 200
    assert len(dump(client)) == 3
    assert send(client, "PUT", path, f"{TWO}\n", NQ).status_code == 200
    assert dump(client) == [TWO]
    assert client.get("/data", params={"graph": "http://g/2"}).status_code == 404
    assert client.delete(path).json()["affected_triples"] == 1
    assert dump(client) == []


@pytest.mark.parametrize("path", ["/ds", "/ds/data"])
def test_a_graph_by_its_name(client: httpx.Client, path: str) -> None:
    graph = {"graph": "http://g/1"}
    answer = client.put(path, params=graph, content=ONE, headers={"Content-Type": "text/turtle"})
    assert answer.status_code == 200
    assert client.get(path, params=graph, headers={"Accept": "application/n-triples"}).text.strip() == ONE
    assert client.get("/ds/get", params=graph).status_code == 200
    assert client.get(f"{path}?default", headers={"Accept": "text/turtle"}).text == ""
    assert client.delete(path, params=graph).status_code == 200
    assert dump(client) == []


@pytest.mark.parametrize("path", ["/ds", "/ds/patch", "/ds/data", "/data"])
def test_a_patch(client: httpx.Client, path: str) -> None:
    update(client, INSERT)
    rows = f'TX .\nD {S} {P} "a" .\nA {TWO}\nTC .\n'
    assert send(client, "POST", path, rows, PATCH).json()["affected_triples"] == 2
    assert dump(client) == [TWO]
    refused = send(client, "POST", path, f"TX .\nA {ONE}\n", PATCH)
    assert refused.status_code == 400
    assert "TC" in error_of(refused)
    assert send(client, "POST", f"{path}?graph=http://g/1", rows, PATCH).status_code == 400
    assert dump(client) == [TWO]


def test_another_name_is_an_unknown_path(client: httpx.Client) -> None:
    for path in ("/other", "/other/query", "/other/data", "/$/nothing"):
        assert client.get(path).status_code == 404
    for path in ("/$/stats/other", "/$/datasets/other", "/$/tasks/99"):
        assert client.get(path).status_code == 404
    assert client.post("/$/backup/other").status_code == 404


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(ConfigError, match="dataset_name"):
        build_app(MemoryBackend(), Settings.model_validate({"server": {"dataset_name": "alerts"}}))


def test_the_server_describes_itself(client: httpx.Client) -> None:
    assert client.get("/$/ping").headers["content-type"].startswith("text/plain")
    assert client.post("/$/ping").status_code == 200
    server = client.get("/$/server").json()
    assert server["datasets"] == client.get("/$/datasets").json()["datasets"]
    assert client.get("/$/datasets/ds").json()["ds.name"] == "/ds"
    before = client.get("/$/stats/ds").json()["datasets"]["/ds"]
    client.get("/ds", params={"query": "ASK {}"})
    client.get("/ds", params={"query": "ASK"})
    after = client.get("/$/stats").json()["datasets"]["/ds"]
    assert [after[name] - before[name] for name in ("RequestsGood", "RequestsBad")] == [1, 1]


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[httpx.Client]:
    settings = Settings.model_validate({"server": {"data_dir": str(tmp_path)}})
    with (
        serving(build_app(MemoryBackend(), settings)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client,
    ):
        yield client


def test_a_backup_is_a_file_of_everything(owner: httpx.Client, tmp_path: Path) -> None:
    update(owner, f"INSERT DATA {{ {S} {P} 'one' . GRAPH <http://g/1> {{ {S} {P} 'two' }} }}")
    task = ended(owner, owner.post("/$/backup/ds").json()["taskId"])
    assert (task["task"], task["success"]) == ("Backup", True)
    [name] = owner.get("/$/backups-list").json()["backups"]
    lines = gzip.decompress((tmp_path / "backups" / name).read_bytes()).decode().splitlines()
    assert sorted(lines) == sorted([ONE, TWO])
    compacted = owner.post("/$/compact/ds").json()["taskId"]
    assert ended(owner, compacted)["success"] is True
    assert [one["taskId"] for one in owner.get("/$/tasks").json()] == [task["taskId"], compacted]


def test_a_backup_that_fails_leaves_no_file(owner: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "backups").write_text("not a directory")
    assert ended(owner, owner.post("/$/backup/ds").json()["taskId"])["success"] is False
    assert owner.get("/$/backups-list").json() == {"backups": []}


def ended(client: httpx.Client, task_id: str) -> dict[str, Any]:
    for _ in range(int(HANG_S * 20)):
        task: dict[str, Any] = client.get(f"/$/tasks/{task_id}").json()
        if "finished" in task:
            return task
        time.sleep(0.05)
    raise AssertionError("the task did not end")


def test_rights_are_those_of_the_native_operations(tmp_path: Path) -> None:
    with (
        serving(build_app(MemoryBackend(), settings_of(tmp_path))) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client,
    ):

        def status(role: str, method: str, path: str, body: str = "", kind: str = NQ) -> int:
            headers = {"Content-Type": kind, **key(role)}
            return client.request(method, path, content=body, headers=headers).status_code

        for path in ("/sparql", "/ds", "/ds/update"):
            assert status("reader", "POST", path, INSERT, UPDATE) == 403
            assert status("writer", "POST", path, INSERT, UPDATE) == 200
        form = "application/x-www-form-urlencoded"
        assert status("reader", "POST", "/sparql", "update=CLEAR+ALL", form) == 403
        for path in ("/ds", "/ds/data", "/ds/patch"):
            assert status("reader", "POST", path, f"A {ONE}\n", PATCH) == 403
        for path in ("/ds", "/ds/data"):
            for method in ("PUT", "POST", "DELETE"):
                assert status("reader", method, path, ONE) == 403
            assert status("reader", "GET", path) == 200
        for method, path in (("POST", "/$/backup/ds"), ("POST", "/$/compact/ds"), ("GET", "/$/tasks")):
            assert status("writer", method, path) == 403
            assert status("admin", method, path) in (200, 503)  # 503: the backup is running
        assert client.get("/$/ping").status_code == 401
