"""What is shown of how a search goes: its profile, and the shards that it asks."""

from typing import Any

import httpx
import pytest

from tests.unit.serve.search.conftest import one_shard

pytestmark = one_shard


def test_each_aggregation_is_measured(http: httpx.Client) -> None:
    for number in range(4):
        path = f"/i/_doc/{number}?refresh=true"
        http.put(path, json={"k": f"k{number % 2}", "n": number}).raise_for_status()
    terms = {"terms": {"field": "k.keyword"}, "aggs": {"m": {"max": {"field": "n"}}}}
    aggs = {"k": terms, "h": {"histogram": {"field": "n", "interval": 1}}}
    body = {"size": 0, "profile": True, "aggs": aggs}
    (shard,) = http.post("/i/_search", json=body).raise_for_status().json()["profile"]["shards"]
    first, second = shard["aggregations"]
    assert (first["type"], first["description"]) == ("GlobalOrdinalsStringTermsAggregator", "k")
    assert (second["type"], second["description"]) == ("NumericHistogramAggregator", "h")
    (below,) = first["children"]
    assert (below["type"], below["description"]) == ("MaxAggregator", "m")
    assert [one["breakdown"]["collect_count"] for one in (first, second, below)] == [4, 4, 4]
    assert [one.get("debug") for one in (first, second, below)] == [
        {"result_strategy": "terms", "total_buckets": 2},
        {"total_buckets": 4},
        None,
    ]
    assert 0 < below["time_in_nanos"] <= first["time_in_nanos"]


@pytest.mark.parametrize(("field", "used"), [("n", "numeric"), ("k.keyword", "ordinals"), ("x", "empty")])
def test_the_steps_of_a_cardinality(http: httpx.Client, field: str, used: str) -> None:
    for number in range(4):
        http.put(f"/i/_doc/{number}?refresh=true", json={"k": f"k{number % 2}", "n": number})
    body = {"size": 0, "profile": True, "aggs": {"c": {"cardinality": {"field": field}}}}
    answer = http.post("/i/_search", json=body).raise_for_status().json()
    assert answer["aggregations"]["c"]["value"] == {"numeric": 4, "ordinals": 2, "empty": 0}[used]
    (shown,) = answer["profile"]["shards"][0]["aggregations"]
    steps = ("initialize", "build_leaf_collector", "collect", "post_collection", "build_aggregation")
    taken = [shown["breakdown"][step] for step in steps]
    assert min(taken) > 0
    assert sum(taken) <= shown["time_in_nanos"]
    counts = {name.removesuffix("_collectors_used"): count for name, count in shown["debug"].items()}
    assert {name for name, count in counts.items() if count} == {used}
    assert counts["ordinals_collectors_overhead_too_high"] == 0


def test_shards_are_listed_with_the_aliases_that_name_them(http: httpx.Client) -> None:
    some = {"filter": {"term": {"k": "x"}}}
    http.put("/i", json={"aliases": {"all": {}, "some": some}}).raise_for_status()

    def named(names: str) -> Any:
        return http.get(f"/{names}/_search_shards").raise_for_status().json()["indices"]["i"]

    assert named("i") == {}
    assert named("all") == {"aliases": ["all"]}
    written_out = {"term": {"k": {"value": "x", "boost": 1.0}}}
    assert named("some") == {"aliases": ["some"], "filter": written_out}
    assert named("some,all") == {"aliases": ["all", "some"]}
    other = {"range": {"n": {"gt": 1}}}
    http.put("/i/_alias/other", json={"filter": other}).raise_for_status()
    both = {"should": [other, written_out], "adjust_pure_negative": True, "boost": 1.0}
    assert named("some,other")["filter"] == {"bool": both}
