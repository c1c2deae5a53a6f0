"""`/saved-queries`, whose queries one sees and changes; `/queries` of one's own."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.unit.serve.access.accounts import key, settings_of

MINE = {"name": "Works", "query": "ASK {}"}


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """With authentication; see `tests.unit.serve.access.accounts`."""
    settings = settings_of(tmp_path_factory.mktemp("accounts"))
    with (
        serving(build_app(MemoryBackend(), settings)) as url,
        httpx.Client(base_url=url, trust_env=False) as client,
    ):
        yield client


def create(http: httpx.Client, role: str, **members: Any) -> httpx.Response:
    return http.post("/saved-queries", json=MINE | members, headers=key(role))


def names(http: httpx.Client, role: str) -> set[str]:
    return {one["name"] for one in http.get("/saved-queries", headers=key(role)).json()["queries"]}


def test_ones_own_are_seen_by_nobody_else(http: httpx.Client) -> None:
    made = create(http, "reader", name="Own", view="chart").json()
    assert made["view"] == "chart"
    assert not made["shared"]
    address = f"/saved-queries/{made['id']}"
    assert "Own" in names(http, "reader")
    for role in ("writer", "admin"):
        assert "Own" not in names(http, role)
        for method in ("GET", "DELETE"):
            assert http.request(method, address, headers=key(role)).status_code == 404
        assert http.put(address, json=MINE, headers=key(role)).status_code == 404
    changed = http.put(address, json=MINE | {"name": "Renamed"}, headers=key("reader")).json()
    assert changed["name"] == "Renamed"
    assert http.delete(address, headers=key("reader")).status_code == 200
    assert http.get(address, headers=key("reader")).status_code == 404


def test_sharing_needs_write(http: httpx.Client) -> None:
    assert create(http, "reader", shared=True).status_code == 403
    shared = create(http, "writer", name="Shared", shared=True).json()
    address = f"/saved-queries/{shared['id']}"
    assert "Shared" in names(http, "reader")
    assert http.put(address, json=MINE, headers=key("reader")).status_code == 403
    assert http.delete(address, headers=key("reader")).status_code == 403
    assert http.delete(address, headers=key("admin")).status_code == 200


@pytest.mark.parametrize("members", [{"name": ""}, {"query": ""}, {"other": 1}, {"name": "x" * 201}])
def test_a_malformed_one_is_refused(http: httpx.Client, members: dict[str, Any]) -> None:
    assert create(http, "reader", **members).status_code == 400


def test_of_an_id_that_is_none_there_is_nothing(http: httpx.Client) -> None:
    assert http.get("/saved-queries/x", headers=key("reader")).status_code == 404


def test_the_same_request_again_keeps_one(http: httpx.Client) -> None:
    headers = key("reader") | {"Idempotency-Key": '"one and the same"'}
    made = [http.post("/saved-queries", json=MINE, headers=headers).json()["id"] for _ in range(2)]
    assert made[0] == made[1]
    assert http.post("/saved-queries", json=MINE | {"name": "b"}, headers=headers).status_code == 422
    others = key("writer") | {"Idempotency-Key": '"one and the same"'}
    assert http.post("/saved-queries", json=MINE, headers=others).json()["id"] != made[0]
