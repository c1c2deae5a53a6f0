"""What is wrong with a search, as clients are told."""

from typing import Any

import httpx
import pytest

from tests.support.memory_search import MemorySearch
from tests.unit.serve.search.conftest import one_shard, reason_of


@pytest.fixture
def two(http: httpx.Client) -> httpx.Client:
    """`a` where n is a number, `b` where it is a keyword and m there is too."""
    http.put("/a", json={"mappings": {"properties": {"n": {"type": "integer"}, "t": {"type": "text"}}}})
    fields = {"n": {"type": "keyword"}, "m": {"type": "integer"}}
    http.put("/b", json={"mappings": {"properties": fields}})
    for index, source in (("a", {"n": 1, "t": "x"}), ("b", {"n": "1", "m": 2})):
        http.put(f"/{index}/_doc/1?refresh=true", json=source)
    return http


@pytest.mark.parametrize(
    ("path", "body", "status", "kind"),
    [
        ("/a/_search", {"query": {"foo": {}}}, 400, "parsing_exception"),
        ("/a/_search", {"qury": {}}, 400, "parsing_exception"),
        ("/a/_search", {"size": -1}, 400, "illegal_argument_exception"),
        ("/a/_search", {"from": 9_999, "size": 2}, 400, "search_phase_execution_exception"),
        ("/a/_search", {"sort": "t"}, 400, "search_phase_execution_exception"),
        ("/a/_search", {"sort": "zz"}, 400, "search_phase_execution_exception"),
        ("/a/_search", {"query": {"range": {"n": {"gte": "x"}}}}, 400, "search_phase_execution_exception"),
        ("/a,b/_search", {"aggs": {"n": {"terms": {"field": "n"}}}}, 400, "search_phase_execution_exception"),
        ("/a/_search?scroll=1m", {"from": 1}, 400, "action_request_validation_exception"),
        ("/a/_search?scroll=100d", {}, 400, "illegal_argument_exception"),
        ("/a/_search?nonsense=1", {}, 400, "illegal_argument_exception"),
        ("/a/_search?search_type=scan", {}, 400, "illegal_argument_exception"),
        ("/_search/scroll", {"scroll_id": "no id!"}, 400, "illegal_argument_exception"),
        ("/_search/scroll", {}, 400, "action_request_validation_exception"),
        ("/_search", {"pit": {"id": "0" * 32}}, 404, "search_phase_execution_exception"),
        ("/a/_pit", {}, 400, "action_request_validation_exception"),
        ("/a/_explain/1", {}, 400, "action_request_validation_exception"),
        ("/a/_explain/1", {"query": {"range": {"n": {"gte": "x"}}}}, 400, "search_phase_execution_exception"),
        ("/a/_search?scroll=1m", {"sort": "zz"}, 400, "search_phase_execution_exception"),
        ("/zz/_count", {}, 404, "index_not_found_exception"),
        ("/_field_caps", {}, 400, "action_request_validation_exception"),
    ],
)
def test_errors(two: httpx.Client, path: str, body: dict[str, Any], status: int, kind: str) -> None:
    assert reason_of(two.post(path, json=body))[:2] == (status, kind)


def test_the_shards_of_a_failed_search_say_why(two: httpx.Client) -> None:
    error = two.post("/a/_search", json={"sort": "zz"}).json()["error"]
    assert (error["phase"], error["reason"]) == ("query", "all shards failed")
    (shard,) = error["failed_shards"]
    assert (shard["index"], shard["reason"]["type"]) == ("a", "query_shard_exception")
    assert error["root_cause"][0]["reason"] == "No mapping found for [zz] in order to sort on"


@one_shard
def test_an_index_that_cannot_be_searched_does_not_hide_the_others(two: httpx.Client) -> None:
    answer = two.post("/a,b/_search", json={"sort": "m"}).json()
    assert [hit["_index"] for hit in answer["hits"]["hits"]] == ["b"]
    shards = answer["_shards"]
    assert (shards["total"], shards["successful"], shards["failed"]) == (2, 1, 1)
    assert shards["failures"][0]["index"] == "a"
    whole = two.post("/a,b/_search?allow_partial_search_results=false", json={"sort": "m"})
    assert whole.status_code == 400
    helped = two.post("/a,b/_search", json={"sort": [{"m": {"unmapped_type": "long"}}]}).json()
    assert [hit["_index"] for hit in helped["hits"]["hits"]] == ["b", "a"]


def test_a_field_of_two_types_can_be_queried(two: httpx.Client) -> None:
    answer = two.post("/a,b/_search", json={"query": {"term": {"n": "1"}}}).json()
    assert answer["hits"]["total"]["value"] == 2


def test_a_multi_search_has_to_end_with_a_newline(two: httpx.Client) -> None:
    lines = {"content-type": "application/x-ndjson"}
    assert reason_of(two.post("/_msearch", content="{}\n{}", headers=lines))[0] == 400
    assert two.post("/_msearch", content="{}\n{}\n", headers=lines).json()["responses"][0]["status"] == 200


def test_a_kept_answer_goes_when_documents_come(two: httpx.Client, node: MemorySearch) -> None:
    body = {"size": 0, "aggs": {"s": {"sum": {"field": "m"}}}}
    sums = []
    for number in range(3):
        sums += [two.post("/b/_search", json=body).json()["aggregations"]["s"]["value"] for _ in range(2)]
        two.put(f"/b/_doc/more{number}?refresh=true", json={"m": 10})
    assert sums == [2, 2, 12, 12, 22, 22]


def test_no_time_at_all_is_an_answer_without_hits(two: httpx.Client) -> None:
    body = {"query": {"query_string": {"query": "x*"}}, "timeout": "0ms", "sort": ["_doc"], "size": 3}
    answer = two.post("/a/_search", json=body).json()
    assert answer["timed_out"] is True
    assert answer["hits"]["hits"] == []


def test_the_root_cause_is_the_innermost_error_of_elasticsearch(http: httpx.Client) -> None:
    answer = http.put("/a", json={"mappings": {"properties": {"n": {"type": "nothing"}}}})
    error = answer.json()["error"]
    assert error["reason"].startswith("Failed to parse mapping: The mapper type [nothing]")
    assert error["root_cause"][0]["reason"].startswith("The mapper type [nothing]")
    http.put("/b", json={"mappings": {"properties": {"n": {"type": "long"}}}})
    error = http.put("/b/_doc/1", json={"n": "x"}).json()["error"]
    assert error["caused_by"]["type"] == "illegal_argument_exception"
    assert error["root_cause"][0]["reason"] == error["reason"]  # the cause is Java's


def test_filter_path_leaves_errors_whole(http: httpx.Client) -> None:
    assert http.get("/none?filter_path=nothing").json() == http.get("/none").json()
