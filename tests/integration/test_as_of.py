"""The past of a running service: over its interfaces, with rights, and after kill -9."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from graphdb.access.api_keys import key_digest
from tests.support.service import COMMAND, Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CONFIGURATION = """
[server]
public_probes = true  # by which the test knows that it is ready

[history]
as_of_states = 30  # each is made once

[authentication]
enabled = true

[[authentication.api_keys]]
name = "admin"
key_sha256 = "{admin}"
roles = ["admin"]

[[authentication.api_keys]]
name = "trusted"
key_sha256 = "{trusted}"
roles = ["reader"]
sids = ["S-1-5-21-7"]

[[authentication.api_keys]]
name = "reader"
key_sha256 = "{reader}"
roles = ["reader"]

[[authentication.api_keys]]
name = "visitor"
key_sha256 = "{visitor}"
roles = ["visitor"]

[authorization.role_permissions]
visitor = "Read"

[acl.contexts.all]
visible_graphs = ["**"]

[acl.contexts.public]
visible_graphs = ["urn:public:*"]

[acl.role_contexts]
reader = "all"
visitor = "public"
"""
PREFIXES = "PREFIX : <urn:x:> PREFIX acl: <urn:graphdb:acl#>"
# what is there after each of these updates: see EXPECTED
UPDATES = [
    "INSERT DATA { :a :p 1 . GRAPH <urn:public:g> { :a :q 1 } GRAPH <urn:private:h> { :a :r 1 } }",
    'INSERT DATA { :a :early 2 {| acl:allowedSid "S-1-5-21-7" |} . :a :late 2 }',
    "DELETE DATA { :a :p 1 }",
    "DELETE WHERE { ?r acl:allowedSid ?sid ; ?p ?o }",  # :early is for all again
    'INSERT DATA { << :a :late 2 >> acl:allowedSid "S-1-5-21-7" }',
    "DROP GRAPH <urn:public:g>",
]
ALL = (
    "SELECT DISTINCT ?p { { ?a ?p ?o } UNION { GRAPH ?g { ?a ?p ?o } } FILTER(STRSTARTS(STR(?p), 'urn:x:')) }"
)
EXPECTED = {
    "admin": [
        "p q r",
        "p q r early late",
        "q r early late",
        "q r early late",
        "q r early late",
        "r early late",
    ],
    "trusted": [
        "p q r",
        "p q r early late",
        "q r early late",
        "q r early late",
        "q r early late",
        "r early late",
    ],
    # :late has become hidden since: it is hidden in all of the past
    "reader": ["p q r", "p q r", "q r", "q r early", "q r early", "r early"],
    "visitor": ["q", "q", "q", "q", "q", ""],
}


class Past:
    """A service, and the log index after each update."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.indexes = [self._update(text) for text in UPDATES]

    def _update(self, text: str) -> int:
        return int(
            self.ask("admin", "/update", "POST", data={"update": f"{PREFIXES} {text}"}).json()[
                "snapshot_index"
            ]
        )

    def ask(self, key: str, path: str, method: str = "GET", **options: Any) -> httpx.Response:
        headers = {"X-API-Key": key} | options.pop("headers", {})
        answer = httpx.request(
            method, f"{self.service.url}{path}", headers=headers, timeout=HANG_S, trust_env=False, **options
        )
        assert answer.status_code == 200, answer.text
        return answer

    def properties(self, key: str, index: int, name: str = "") -> set[str]:
        """name: that the state at index has, to ask by."""
        params = {"query": ALL, "format": "csv", "as_of": name or str(index)}
        answer = self.ask(key, "/sparql", params=params)
        assert answer.headers["X-Snapshot-Index"] == str(index)
        return {line.removeprefix("urn:x:") for line in answer.text.split()[1:]}


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    directory = tmp_path_factory.mktemp("past")
    keys = {name: key_digest(name) for name in ("admin", "trusted", "reader", "visitor")}
    configuration = directory / "graphdb.toml"
    configuration.write_text(CONFIGURATION.format(**keys))
    service = Service(directory / "data", "--config", str(configuration))
    try:
        service.start()
        yield Past(service)
    finally:
        service.close()


def check(past: Past, key: str) -> None:
    for index, state in zip(past.indexes, EXPECTED[key], strict=True):
        assert past.properties(key, index) == set(state.split()), index


@pytest.mark.parametrize("key", EXPECTED)
def test_what_each_sees_of_each_state(past: Past, key: str) -> None:
    check(past, key)


def test_dumps_show_no_more(past: Past) -> None:
    asked = {"dataset": "all", "format": "nq", "as_of": str(past.indexes[1])}
    assert "late" in past.ask("trusted", "/data", params=asked).text
    seen = past.ask("reader", "/data", params=asked).text
    assert "late" not in seen
    assert "early" not in seen
    assert "allowedSid" not in past.ask("trusted", "/data", params=asked).text


@pytest.mark.parametrize(
    ("key", "properties", "changes"),
    [
        ("trusted", "p q r early late", [5, 2, 1, 0]),
        # :early was hidden when it came, and :late is hidden now
        ("reader", "p q r", [5, 2, 0]),
        ("visitor", "q", [5, 0]),
    ],
)
def test_the_history_tells_no_more(past: Past, key: str, properties: str, changes: list[int]) -> None:
    entries = past.ask(key, "/history", params={"resource": "urn:x:a"}).json()["entries"]
    assert [past.indexes.index(entry["index"]) for entry in entries] == changes
    lines = [line for entry in entries for line in entry["removed"] + entry["added"]]
    assert {line.split()[1].removeprefix("<urn:x:").rstrip(">") for line in lines} == set(properties.split())
    assert {(entry["author"], entry["interface"]) for entry in entries} == {
        ("api_key:admin", "sparql-update")
    }
    difference = past.ask(key, "/diff", params={"from": past.indexes[0]}).json()
    assert "allowedSid" not in str(difference)
    assert ("urn:x:late" in str(difference)) == (key == "trusted")
    refused = httpx.post(f"{past.service.url}/revert?to={past.indexes[0]}", headers={"X-API-Key": key})
    assert refused.status_code == 403


def test_after_kill_9(past: Past) -> None:
    for number, index in enumerate(past.indexes):
        past.ask("admin", f"/snapshots/n{number}?at={index}", "PUT")
    past.service.kill()
    past.service.start()
    check(past, "reader")
    listed = past.ask("visitor", "/snapshots").json()["snapshots"]
    assert [(one["index"], one["named_by"], one["kept"]) for one in listed] == [
        (index, "api_key:admin", True) for index in past.indexes
    ]
    for number, state in enumerate(EXPECTED["reader"]):
        assert past.properties("reader", past.indexes[number], f"n{number}") == set(state.split())


def test_commands(past: Past) -> None:
    environment = os.environ | {"GRAPHDB_API_KEY": "admin", "GRAPHDB_ENDPOINT": past.service.url}

    def run(*arguments: str) -> str:
        return subprocess.run(
            [COMMAND, *arguments], env=environment, capture_output=True, text=True, check=True, timeout=HANG_S
        ).stdout

    first, last = str(past.indexes[0]), str(past.indexes[-1])
    text = "ASK { <urn:x:a> <urn:x:p> 1 }"
    assert run("query", text, "--as-of", first) == "true\n"
    assert run("query", text, "--as-of", last) == "false\n"
    assert "urn:x:p" in run("dump", "--as-of", first)
    assert "urn:x:p" not in run("dump", "--as-of", last)
    assert json.loads(run("query", text, "--as-of", first, "--explain", "--format", "json"))


def test_processes_end(past: Past) -> None:
    past.properties("reader", past.indexes[2])
    assert past.service.pids("actors.history.state_process") == []
