"""`index.sort.*` over HTTP: the order of hits, what is refused, and what keeps the order."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from graphdb.config import Settings
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard

MAPPINGS = {
    "properties": {
        "rank": {"type": "integer"},
        "at": {"type": "alias", "path": "rank"},
        "inner": {"type": "nested", "properties": {"n": {"type": "integer"}}},
    }
}
RANKS = [4, 1, 3, 2, None, 8, 6, 5, 7]
ORDER = ["8", "7", "6", "5", "4", "3", "2", "1", "None"]


def fill(http: httpx.Client, name: str = "ranks", **settings: Any) -> None:
    sort = {"field": "rank", "order": "desc"}
    body = {"settings": {"index": {"sort": sort, **settings}}, "mappings": MAPPINGS}
    assert http.put(f"/{name}", json=body).status_code == 200
    for number, rank in enumerate(RANKS):
        inner = [{"n": number}] * (number % 3)
        http.put(f"/{name}/_doc/{rank}", json={"rank": rank, "inner": inner})
        if number == 5:
            http.post(f"/{name}/_refresh")
    http.put(f"/{name}/_doc/7", json={"rank": 7})  # a second time
    in_one_segment(http, name)


def in_one_segment(http: httpx.Client, name: str) -> None:
    http.post(f"/{name}/_refresh")
    assert http.post(f"/{name}/_forcemerge?max_num_segments=1").status_code == 200


def ids(http: httpx.Client, name: str, body: dict[str, Any] | None = None) -> list[str]:
    answer = http.post(f"/{name}/_search", json={"size": 20, **(body or {})}).json()
    return [hit["_id"] for hit in answer["hits"]["hits"]]


@pytest.mark.parametrize(
    "body", [{}, {"sort": "_doc"}, {"query": {"range": {"rank": {"gte": 0}}}, "sort": "_doc"}]
)
def test_hits_come_in_the_order_of_the_index(http: httpx.Client, body: dict[str, Any]) -> None:
    fill(http)
    assert ids(http, "ranks", body) == [one for one in ORDER if one != "None" or "query" not in body]
    http.post("/ranks/_update/3", json={"doc": {"rank": 9}})
    http.delete("/ranks/_doc/8")
    in_one_segment(http, "ranks")
    assert ids(http, "ranks", body)[:3] == ["3", "7", "6"]
    found = http.get("/ranks/_doc/3").json()
    assert (found["_version"], found["_source"]["rank"]) == (2, 9)
    assert http.get("/ranks/_doc/7").json()["_version"] == 2


def test_a_search_in_that_order_counts_as_far_as_it_is_asked(http: httpx.Client) -> None:
    fill(http)
    body = {"sort": [{"rank": "desc"}], "size": 2}

    def hits(**more: Any) -> Any:
        return http.post("/ranks/_search", json={**body, **more}).json()["hits"]

    assert [hit["_id"] for hit in hits()["hits"]] == ["8", "7"]
    assert hits()["total"] == {"value": 9, "relation": "eq"}
    assert "total" not in hits(track_total_hits=False)
    assert hits(track_total_hits=4)["total"] == {"value": 4, "relation": "gte"}
    assert [hit["_id"] for hit in hits(search_after=[6])["hits"]] == ["5", "4"]


def test_a_scroll_goes_through_all_in_that_order(http: httpx.Client) -> None:
    fill(http)
    for sort in ("_doc", {"rank": "desc"}):
        body = {"size": 4, "sort": [sort]}
        answer = http.post("/ranks/_search?scroll=1m", json=body).json()
        found: list[str] = []
        while answer["hits"]["hits"]:
            found += [hit["_id"] for hit in answer["hits"]["hits"]]
            again = {"scroll": "1m", "scroll_id": answer["_scroll_id"]}
            answer = http.post("/_search/scroll", json=again).json()
        assert found == ORDER


@pytest.mark.parametrize(
    ("sort", "reason"),
    [
        ({"field": "none"}, "unknown index sort field:[none]"),
        ({"field": "at"}, "Cannot use alias [at] as an index sort field"),
        ({"field": "inner.n"}, "cannot apply index sort to field [inner.n] under nested object [inner]"),
        ({"field": "rank", "order": "up"}, "Illegal sort order:[up], must be one of [asc, desc]"),
        ({"field": ["rank"], "order": ["asc", "desc"]}, "size mismatch"),
    ],
)
def test_what_an_index_cannot_be_sorted_by(http: httpx.Client, sort: dict[str, Any], reason: str) -> None:
    refused = http.put("/ranks", json={"settings": {"index": {"sort": sort}}, "mappings": MAPPINGS})
    status, kind, said = reason_of(refused)
    assert (status, kind) == (400, "illegal_argument_exception")
    assert reason in said


def test_an_order_does_not_change(http: httpx.Client) -> None:
    fill(http)
    change = {"index.sort.field": "rank"}
    status, _, said = reason_of(http.put("/ranks/_settings", json=change))
    assert status == 400
    assert "Can't update non dynamic settings [[index.sort.field]]" in said
    http.post("/ranks/_close")
    status, _, said = reason_of(http.put("/ranks/_settings", json=change))
    assert status == 400
    assert "final ranks setting [index.sort.field], not updateable" in said


@pytest.mark.parametrize(("kind", "many"), [("_clone", 2), ("_split", 4), ("_shrink", 1)])
def test_resized_indexes_keep_the_order(http: httpx.Client, kind: str, many: int) -> None:
    fill(http, number_of_shards=2)
    http.put("/ranks/_settings", json={"index.blocks.write": True})
    other = {"settings": {"index.sort.field": "rank"}}
    assert reason_of(http.put(f"/ranks/{kind}/new", json=other)) == (
        400,
        "illegal_argument_exception",
        "can't override index sort when resizing an index",
    )
    body = {"settings": {"number_of_shards": many, "index.blocks.write": None}}
    assert http.put(f"/ranks/{kind}/new", json=body).status_code == 200
    in_one_segment(http, "new")
    assert http.get("/new").json()["new"]["settings"]["index"]["sort"] == {"field": "rank", "order": "desc"}
    for number in range(many):
        answer = http.post(f"/new/_search?preference=_shards:{number}", json={"size": 20}).json()
        places = [ORDER.index(hit["_id"]) for hit in answer["hits"]["hits"]]
        assert places == sorted(places)


def test_a_restored_index_keeps_the_order(node: MemorySearch, tmp_path: Path) -> None:
    settings = Settings.model_validate({"search": {"snapshot_paths": [str(tmp_path)]}})
    with (
        serving(build_search_app(node, settings)) as base,
        httpx.Client(base_url=base, timeout=HANG_S, trust_env=False) as http,
    ):
        fill(http)
        http.put("/_snapshot/r", json={"type": "fs", "settings": {"location": str(tmp_path / "r")}})
        assert http.put("/_snapshot/r/s?wait_for_completion=true", json={"indices": "ranks"}).is_success
        http.delete("/ranks")
        assert http.post("/_snapshot/r/s/_restore?wait_for_completion=true").is_success
        in_one_segment(http, "ranks")
        assert ids(http, "ranks") == ORDER
