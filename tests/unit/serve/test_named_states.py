"""`/snapshots`: names for states of the past, wherever a state can be asked for; who may give them."""

from collections.abc import Iterator

import httpx
import pytest

from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.unit.serve.access.accounts import key, settings_of

ADMIN, WRITER, READER = (key(role) for role in ("admin", "writer", "reader"))
VALUES = "SELECT ?o { <urn:s> <urn:p> ?o }"


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    settings = settings_of(tmp_path_factory.mktemp("accounts"), {"query_timeout_seconds": 1})
    with (
        serving(build_app(MemoryBackend(), settings)) as url,
        httpx.Client(base_url=url, trust_env=False) as client,
    ):
        yield client


def write(http: httpx.Client, value: int) -> int:
    text = f"DELETE WHERE {{ <urn:s> <urn:p> ?o }} ; INSERT DATA {{ <urn:s> <urn:p> {value} }}"
    answer = http.post("/update", data={"update": text}, headers=WRITER)
    index: int = answer.raise_for_status().json()["snapshot_index"]
    return index


def values(http: httpx.Client, text: str = VALUES, **parameters: str) -> list[str]:
    params = {"query": text, "format": "csv", **parameters}
    return http.get("/sparql", params=params, headers=READER).raise_for_status().text.split()[1:]


def names(http: httpx.Client) -> dict[str, int]:
    listed = http.get("/snapshots", headers=READER).raise_for_status().json()
    return {one["name"]: one["index"] for one in listed["snapshots"]}


def test_a_name_is_taken_wherever_the_past_is_asked_for(http: httpx.Client) -> None:
    first = write(http, 1)
    made = http.put("/snapshots/first", headers=ADMIN).raise_for_status().json()
    assert (made["name"], made["index"], made["named_by"], made["kept"]) == (
        *("first", first, "api_key:admin", True),
    )
    second = write(http, 2)
    assert http.put(f"/snapshots/v1.0-rc_2?at={second}", headers=ADMIN).json()["index"] == second
    assert http.put("/snapshots/same?at=first", headers=ADMIN).json()["index"] == first
    last = write(http, 3)
    assert values(http, as_of="first") == values(http, as_of="same") == ["1"]
    assert values(http, f"{VALUES[:9]} FROM <as-of:v1.0-rc_2> {VALUES[10:]}") == ["2"]
    graphql = http.post("/graphql?as_of=nobody", json={"query": "{ __typename }"}, headers=READER)
    assert graphql.status_code == 400
    told = http.get(f"/diff?from=first&to={last}", headers=READER).json()
    assert (told["from_index"], len(told["removed"]), len(told["added"])) == (first, 1, 1)
    entries = http.get("/history?from=first&to=v1.0-rc_2", headers=READER).json()["entries"]
    assert [entry["index"] for entry in entries] == [second]
    http.post("/revert?to=first&resource=urn:s", headers=WRITER).raise_for_status()
    assert values(http) == ["1"]


def test_a_name_means_one_state(http: httpx.Client) -> None:
    index = write(http, 4)
    address = f"/snapshots/one?at={index}"
    made = http.put(address, headers=ADMIN).json()
    assert http.put(address, headers=ADMIN).json() == made
    write(http, 5)
    refused = http.put("/snapshots/one", headers=ADMIN)
    assert refused.status_code == 409
    assert "one" in refused.json()["error"]
    headers = ADMIN | {"Idempotency-Key": "key"}
    again = [http.put("/snapshots/with-key", headers=headers).json() for _ in range(2)]
    write(http, 6)
    assert http.put("/snapshots/with-key", headers=headers).json() == again[0] == again[1]
    assert http.delete("/snapshots/one", headers=ADMIN).status_code == 200
    assert http.delete("/snapshots/one", headers=ADMIN).status_code == 404
    assert http.get("/snapshots/one", headers=READER).status_code == 404
    assert "one" not in names(http)
    assert http.get("/sparql", params={"query": VALUES, "as_of": "one"}, headers=READER).status_code == 400


@pytest.mark.parametrize("name", ["now", "1", "-a", "a b", "%C3%A9", "a%2Fb", "x" * 65, "2026-11-27"])
def test_what_is_no_name(http: httpx.Client, name: str) -> None:
    assert http.put(f"/snapshots/{name}", headers=ADMIN).status_code in (400, 404)
    assert http.get(f"/snapshots/{name}", headers=READER).status_code == 404


@pytest.mark.parametrize("at", ["-1", "yesterday", "99999999", "1969-01-01T00:00:00Z", "", "1&at=2"])
def test_what_is_no_state(http: httpx.Client, at: str) -> None:
    write(http, 7)
    refused = http.put(f"/snapshots/never?at={at}", headers=ADMIN)
    assert refused.status_code == 400
    assert refused.json()["error"].startswith("at: ")
    assert "never" not in names(http)


def test_a_time_before_the_first_entry_is_refused_alike(http: httpx.Client) -> None:
    time = "1969-01-01T00:00:00Z"
    for path in (f"/history?to={time}", f"/diff?from={time}", f"/diff?from=0&to={time}"):
        refused = http.get(path, headers=READER)
        assert refused.status_code == 400
        assert "is before the first change" in refused.json()["error"], path


def test_only_admins_name_and_all_read(http: httpx.Client) -> None:
    write(http, 8)
    for headers in (WRITER, READER):
        assert http.put("/snapshots/mine", headers=headers).status_code == 403
    assert http.put("/snapshots/mine", headers=ADMIN).status_code == 200
    for headers in (WRITER, READER):
        assert http.delete("/snapshots/mine", headers=headers).status_code == 403
        assert http.get("/snapshots/mine", headers=headers).status_code == 200
    assert http.get("/snapshots", headers=key("stranger")).status_code == 403
