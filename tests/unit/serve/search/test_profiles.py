"""What is shown of how a search goes: its profile, and the shards that it asks."""

from typing import Any

import httpx

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


def test_shards_are_listed_with_the_aliases_that_name_them(http: httpx.Client) -> None:
    some = {"filter": {"term": {"k": "x"}}}
    http.put("/i", json={"aliases": {"all": {}, "some": some}}).raise_for_status()

    def named(names: str) -> Any:
        return http.get(f"/{names}/_search_shards").raise_for_status().json()["indices"]["i"]

    assert named("i") == {}
    assert named("all") == {"aliases": ["all"]}
    assert named("some") == {"aliases": ["some"], **some}
    assert named("some,all") == {"aliases": ["all", "some"]}
