"""What `_stats` and `_nodes/stats` count, over HTTP."""

from typing import Any

import httpx

from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard


def counted(http: httpx.Client, index: str = "a", parameters: str = "") -> dict[str, Any]:
    primaries = http.get(f"/{index}/_stats{parameters}").json()["indices"][index]["primaries"]
    assert isinstance(primaries, dict)
    return primaries


def not_zero(section: dict[str, Any]) -> dict[str, Any]:
    """Clients want the other members too."""
    return {name: value for name, value in section.items() if value}


def test_documents_and_searches_are_counted(http: httpx.Client) -> None:
    http.put("/a/_doc/1", json={"f": 1})
    http.put("/a/_doc/2", json={"f": "no number"})  # refused
    http.post("/a/_update/1", json={"doc": {"f": 1}})  # changes nothing
    http.post("/a/_update/1", json={"doc": {"f": 2}})
    http.delete("/a/_doc/1?refresh=true")
    http.get("/a/_doc/1")
    http.put("/a/_doc/3", json={"f": 3})
    http.get("/a/_doc/3")
    http.post("/a/_search", json={"stats": ["mine", "all"]})
    http.post("/a/_search", json={"stats": ["mine"], "size": 0, "query": {"term": {"f": 3}}})
    http.post("/a/_search", json={"stats": ["mine"], "size": 0, "query": {"term": {"f": 3}}})
    http.post("/a/_search?scroll=1m", json={})
    found = counted(http, parameters="?groups=m*")
    assert not_zero(found["indexing"]) == {
        "index_total": 3,
        "index_failed": 1,
        "delete_total": 1,
        "noop_update_total": 1,
    }
    assert found["indexing"]["is_throttled"] is False
    assert not_zero(found["get"]) == {"total": 2, "exists_total": 1, "missing_total": 1}
    assert (found["search"]["query_total"], found["search"]["scroll_total"]) == (3, 1)
    assert found["search"]["open_contexts"] == 1
    http.delete("/_search/scroll/_all")
    assert counted(http)["search"]["open_contexts"] == 0
    assert found["search"]["groups"] == {"mine": {"query_total": 3}}
    assert not_zero(found["request_cache"]) == {"hit_count": 1, "miss_count": 1}
    assert found["translog"]["uncommitted_operations"] == 6
    assert "groups" not in counted(http)["search"]
    both = http.get("/_stats/indexing,search").json()["_all"]["total"]
    assert (both.keys(), both["indexing"]["index_total"]) == ({"indexing", "search"}, 3)


def test_terms_that_are_looked_up_are_read(http: httpx.Client) -> None:
    http.put("/a/_doc/1", json={"f": [1, 2]})
    http.put("/b/_doc/1", json={"f": 2})
    for doc_id in ("1", "none"):
        looked_up = {"index": "a", "id": doc_id, "path": "f"}
        http.post("/b/_search", json={"query": {"terms": {"f": looked_up}}}).raise_for_status()
    assert not_zero(counted(http)["get"]) == {"total": 2, "exists_total": 1, "missing_total": 1}


def test_indexes_that_are_not_there_may_be_left_out(http: httpx.Client) -> None:
    http.put("/a").raise_for_status()
    assert list(http.get("/a,none/_stats?ignore_unavailable=true&level=shards").json()["indices"]) == ["a"]
    assert list(http.get("/_all/_stats?ignore_unavailable=true&allow_no_indices=true").json()["indices"]) == [
        "a"
    ]
    assert http.get("/a,none/_stats").status_code == 404


def test_flushes_are_counted_by_shard(http: httpx.Client) -> None:
    http.put("/a", json={"settings": {"number_of_shards": 2}})
    assert not_zero(counted(http)["flush"]) == {}
    http.post("/a/_flush").raise_for_status()
    http.post("/_flush?wait_if_ongoing=false").raise_for_status()
    assert not_zero(counted(http)["flush"]) == {"total": 4}


def test_a_closed_index_is_counted_where_the_request_allows_it(http: httpx.Client) -> None:
    http.put("/a/_doc/1?refresh=true", json={"f": 1})
    http.post("/a/_close").raise_for_status()
    assert reason_of(http.get("/a/_stats"))[1] == "index_closed_exception"
    assert counted(http, parameters="?forbid_closed_indices=false")["docs"]["count"] == 1


def test_the_pools_of_threads(http: httpx.Client) -> None:
    http.put("/a/_doc/1?refresh=true", json={"k": "x"})
    aggs = {"k": {"terms": {"field": "k.keyword"}}}
    http.post("/a/_search?request_cache=false", json={"aggs": aggs, "profile": True}).raise_for_status()
    rows = http.get(
        "/_cat/thread_pool?format=json&h=name,type,active,queue,rejected,completed,size,max"
    ).json()
    by_name = {row["name"]: row for row in rows}
    assert list(by_name) == sorted(by_name)
    assert by_name.keys() >= {"get", "generic", "management", "search", "write"}
    idle = {"active": "0", "queue": "0", "rejected": "0"}
    assert all(row.items() >= idle.items() for row in rows)
    assert int(by_name["write"]["completed"]) == int(by_name["write"]["size"]) == 1
    assert (by_name["search"]["type"], by_name["search"]["max"]) == ("fixed", None)
    assert int(by_name["search"]["completed"]) >= 1
    assert (by_name["generic"]["type"], by_name["generic"]["max"]) == ("scaling", "0")
    shown = http.get("/_cat/thread_pool/write,sea*h?v").text.splitlines()
    assert [line.split()[1:] for line in shown] == [
        ["name", "active", "queue", "rejected"],
        ["search", "0", "0", "0"],
        ["write", "0", "0", "0"],
    ]
    (node,) = http.get("/_nodes/stats/thread_pool").json()["nodes"].values()
    completed = int(by_name["search"]["completed"])
    assert node["thread_pool"]["search"].items() >= {"rejected": 0, "completed": completed}.items()
    (node,) = http.get("/_nodes/stats/indexing_pressure").json()["nodes"].values()
    memory = node["indexing_pressure"]["memory"]
    assert memory["current"]["all_in_bytes"] == 0
    assert (memory["total"]["coordinating_rejections"], memory["limit_in_bytes"] >= 0) == (0, True)
    (node,) = http.get("/_nodes/thread_pool").json()["nodes"].values()
    assert node["thread_pool"]["search"]["queue_size"] == 1000


def test_metrics_of_nodes(http: httpx.Client) -> None:
    http.put("/a/_doc/1?refresh=true", json={})
    (node,) = http.get("/_nodes/stats/indices/indexing,get?level=indices").json()["nodes"].values()
    assert node["indices"].keys() == {"indexing", "get", "indices"}
    assert node["indices"]["indices"]["a"]["indexing"]["index_total"] == 1
    (node,) = http.get("/_nodes/stats/indices/docs?level=shards").json()["nodes"].values()
    assert node["indices"].keys() == {"docs", "shards"}
    (shard,) = node["indices"]["shards"]["a"]
    assert (shard["0"]["docs"]["count"], shard["0"]["routing"]["primary"]) == (1, True)
    refused = reason_of(http.get("/_nodes/stats/transprot"))
    assert refused[2].endswith("unrecognized metric: [transprot] -> did you mean [transport]?")
    assert reason_of(http.get("/_stats/colour"))[0] == 400


def test_fields_in_memory(http: httpx.Client) -> None:
    suggested = {"type": "completion"}
    text = {"type": "text", "fielddata": True, "fields": {"suggested": suggested}}
    http.put("/a", json={"mappings": {"properties": {"f": text, "g": text}}})
    http.put("/a/_doc/1?refresh=true", json={"f": "x y", "g": "x"})
    before = counted(http, parameters="?fields=*")
    assert before["fielddata"]["memory_size_in_bytes"] == before["fielddata"]["evictions"] == 0
    assert before["fielddata"]["fields"] == {}
    assert list(before["completion"]["fields"]) == ["f.suggested", "g.suggested"]
    http.post("/a/_search", json={"sort": "f"})
    found = counted(http, parameters="?fielddata_fields=f,g&completion_fields=g*")
    assert list(found["fielddata"]["fields"]) == ["f"]
    assert found["fielddata"]["fields"]["f"]["memory_size_in_bytes"] > 0
    assert list(found["completion"]["fields"]) == ["g.suggested"]
    assert "fields" not in counted(http)["fielddata"]
    rows = http.get("/_cat/fielddata?format=json").json()
    assert [row["field"] for row in rows] == ["f"]
    assert http.get("/_cat/fielddata/g?format=json").json() == []
    after = counted(http)["completion"]["size_in_bytes"]
    http.put("/a/_doc/2?refresh=true", json={"f": "more"})
    assert counted(http)["completion"]["size_in_bytes"] > after


def test_a_segment_counts_as_a_file(http: httpx.Client) -> None:
    http.put("/a/_doc/1?refresh=true", json={"f": 1})
    wanted = "include_segment_file_sizes=true"
    kinds = [counted(http, parameters=f"/segments?{wanted}")["segments"]["file_sizes"]]
    (node,) = http.get(f"/_nodes/stats/indices/segments?{wanted}").json()["nodes"].values()
    kinds.append(node["indices"]["segments"]["file_sizes"])
    for kind in kinds:
        assert kind["segment"]["count"] == 1
        assert kind["segment"]["size_in_bytes"] == kind["segment"]["max_size_in_bytes"] > 0
    assert counted(http)["segments"]["file_sizes"] == {}


def test_what_a_node_measures_of_itself(http: httpx.Client) -> None:
    (node,) = http.get("/_nodes/stats").json()["nodes"].values()
    assert 0 < node["process"]["open_file_descriptors"] <= node["process"]["max_file_descriptors"]
    assert 0 < node["jvm"]["mem"]["heap_used_in_bytes"] < node["jvm"]["mem"]["heap_max_in_bytes"]
    assert node["jvm"]["threads"]["count"] > 0
    assert node["fs"]["data"][0]["total_in_bytes"] == node["fs"]["total"]["total_in_bytes"]
    (row,) = http.get("/_cat/nodes?format=json&h=pid,file_desc.*").json()
    assert 0 < int(row["file_desc.current"]) <= int(row["file_desc.max"])
    cluster = http.get("/_cluster/stats").json()["nodes"]
    assert (cluster["discovery_types"], cluster["packaging_types"][0]["count"]) == ({"single-node": 1}, 1)
