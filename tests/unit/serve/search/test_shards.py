"""Indexes of several shards over HTTP: routing, which shards are searched, and what is told of them."""

from typing import Any

import httpx
import pytest

from tests.support.memory_search import MemorySearch
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard

BODY = {
    "settings": {"number_of_shards": 3, "number_of_replicas": 1},
    "mappings": {"properties": {"t": {"type": "text"}, "n": {"type": "integer"}}},
    "aliases": {"of-a": {"routing": "a"}, "of-two": {"search_routing": "a,b"}},
}
DOCUMENTS = 30
NO_COPY = "no Preference for [_nowhere]"


@pytest.fixture
def books(http: httpx.Client) -> httpx.Client:
    """Documents 0 to 29, each third one with the routing `a`, `b`, or none."""
    assert http.put("/books", json=BODY).status_code == 200
    for number in range(DOCUMENTS):
        routing = ({"routing": "a"}, {"routing": "b"}, {})[number % 3]
        answer = http.put(f"/books/_doc/{number}", json={"t": f"word w{number}", "n": number}, params=routing)
        assert answer.status_code == 201
    http.post("/books/_refresh")
    return http


def shard_of(node: MemorySearch, doc_id: str, routing: str | None = None) -> int:
    index = node.catalog.find("books")
    assert index is not None
    return index.shards.routing.shard_of(doc_id, routing)


def ids(answer: httpx.Response) -> set[str]:
    assert answer.status_code == 200, answer.text
    return {hit["_id"] for hit in answer.json()["hits"]["hits"]}


def test_a_document_is_found_with_its_routing(books: httpx.Client, node: MemorySearch) -> None:
    assert books.get("/books/_doc/0?routing=a").json()["_routing"] == "a"
    elsewhere = next(
        number for number in range(0, 30, 3) if shard_of(node, str(number)) != shard_of(node, "", "a")
    )
    path = f"/books/_doc/{elsewhere}"
    assert books.get(path).status_code == 404
    assert books.delete(path).json()["result"] == "not_found"
    assert books.get(f"/of-a/_doc/{elsewhere}").json()["found"]
    docs = {"docs": [{"_id": str(elsewhere), "routing": "a"}, {"_id": str(elsewhere)}]}
    assert [one["found"] for one in books.post("/books/_mget", json=docs).json()["docs"]] == [True, False]
    changed = books.post(f"/books/_update/{elsewhere}?routing=a", json={"doc": {"n": 99}}).json()
    assert changed["result"] == "updated"
    assert books.post(f"/books/_update/{elsewhere}", json={"doc": {"n": 9}}).status_code == 404
    explained = books.post(f"/books/_explain/{elsewhere}", json={"query": {"match_all": {}}})
    assert explained.status_code == 404
    explained = books.post(f"/books/_explain/{elsewhere}?routing=a", json={"query": {"match_all": {}}})
    assert explained.json()["matched"]
    lookup = {"terms": {"n": {"index": "books", "id": str(elsewhere), "path": "n", "routing": "a"}}}
    books.post("/books/_refresh")
    assert ids(books.post("/books/_search", json={"query": lookup})) == {str(elsewhere)}
    assert books.delete(f"{path}?routing=a").json()["result"] == "deleted"


def test_an_alias_with_routing_takes_no_other(books: httpx.Client) -> None:
    expected = (
        400,
        "illegal_argument_exception",
        "Alias [of-a] has index routing associated with it [a], and was provided with routing value [b], "
        "rejecting operation",
    )
    assert reason_of(books.get("/of-a/_doc/1?routing=b")) == expected
    assert reason_of(books.put("/of-a/_doc/1?routing=b", json={})) == expected


def test_a_search_asks_the_shards_of_its_routing(books: httpx.Client, node: MemorySearch) -> None:
    of_a, of_b = shard_of(node, "", "a"), shard_of(node, "", "b")
    assert of_a != of_b, "the test is about two shards"
    routings = ("a", "b", None)
    by_shard: dict[int, set[str]] = {0: set(), 1: set(), 2: set()}
    for number in range(DOCUMENTS):
        by_shard[shard_of(node, str(number), routings[number % 3])].add(str(number))

    def found(path: str, **body: Any) -> tuple[set[str], int]:
        answer = books.post(path, json={"size": 100, **body})
        return ids(answer), answer.json()["_shards"]["total"]

    every = set(map(str, range(DOCUMENTS)))
    both = by_shard[of_a] | by_shard[of_b]
    assert found("/books/_search") == (every, 3)
    assert found("/books/_search?routing=a") == (by_shard[of_a], 1)
    assert found("/books/_search?routing=a,b") == (both, 2)
    assert found("/of-a/_search") == (by_shard[of_a], 1)
    assert found("/of-two/_search") == (both, 2)
    assert found("/of-two/_search?routing=b,c") == (by_shard[of_b], 1)
    assert found("/of-a,books/_search") == (every, 3)
    for number in range(3):
        assert found(f"/books/_search?preference=_shards:{number}") == (by_shard[number], 1)
    assert found("/books/_search?preference=_shards:0,2|_local") == (by_shard[0] | by_shard[2], 2)
    assert found("/books/_search?preference=_shards:7") == (set(), 0)
    assert found("/books/_search?preference=somebody") == (every, 3)
    count = books.get("/books/_count?routing=a").json()
    assert (count["count"], count["_shards"]["total"]) == (len(by_shard[of_a]), 1)
    lines = b'{"index":"books","routing":"a"}\n{"size":100}\n'
    headers = {"content-type": "application/x-ndjson"}
    answered = books.post("/_msearch", content=lines, headers=headers).json()["responses"][0]
    assert {hit["_id"] for hit in answered["hits"]["hits"]} == by_shard[of_a]
    pit = books.post("/books/_pit?keep_alive=1m&routing=a").json()
    assert pit["_shards"]["total"] == 1
    assert found("/_search", pit={"id": pit["id"]}) == (by_shard[of_a], 1)
    scroll = books.post("/books/_search?scroll=1m&routing=b", json={"size": 100}).json()
    assert {hit["_id"] for hit in scroll["hits"]["hits"]} == by_shard[of_b]
    deleted = books.post("/books/_delete_by_query?routing=a", json={"query": {"match_all": {}}}).json()
    assert deleted["deleted"] == len(by_shard[of_a])


def test_scores_are_by_all_shards(books: httpx.Client) -> None:
    body = {"query": {"match": {"t": "w4 word"}}, "size": 100}
    scores = [
        {hit["_id"]: hit["_score"] for hit in books.post(path, json=body).json()["hits"]["hits"]}
        for path in ("/books/_search", "/books/_search?routing=b")
    ]
    assert 0 < len(scores[1]) < len(scores[0])
    assert scores[1].items() <= scores[0].items()


@pytest.mark.parametrize(
    ("preference", "expected"),
    [
        ("_nowhere", (400, "illegal_argument_exception", NO_COPY)),
        ("_shards:0|_nowhere", (400, "illegal_argument_exception", NO_COPY)),
        ("_shards:x", (400, "number_format_exception", 'For input string: "x"')),
    ],
)
def test_preferences_that_cannot_be(books: httpx.Client, preference: str, expected: tuple[Any, ...]) -> None:
    assert reason_of(books.get("/books/_search", params={"preference": preference})) == expected


def test_a_failure_counts_all_shards(books: httpx.Client) -> None:
    books.put("/other/_doc/1?refresh=true", json={"m": 1})
    shards = books.post("/books,other/_search", json={"sort": ["m"]}).json()["_shards"]
    assert (shards["total"], shards["successful"], shards["failed"]) == (4, 1, 3)
    assert [one["index"] for one in shards["failures"]] == ["books"]


def test_where_a_search_would_run(books: httpx.Client, node: MemorySearch) -> None:
    shards = books.get("/books/_search_shards").json()["shards"]
    assert [copies[0]["shard"] for copies in shards] == [0, 1, 2]
    (routed,) = books.get("/books/_search_shards?routing=a").json()["shards"]
    assert routed[0]["shard"] == shard_of(node, "", "a")


def test_what_is_told_of_each_shard(books: httpx.Client, node: MemorySearch) -> None:
    index = node.catalog.find("books")
    assert index is not None
    documents = [str(shard.stats().documents) for shard in index.shards]
    rows = books.get("/_cat/shards/books?format=json").json()
    assert [(row["shard"], row["prirep"], row["state"], row["docs"]) for row in rows] == [
        row
        for number in range(3)
        for row in (
            (str(number), "p", "STARTED", documents[number]),
            (str(number), "r", "UNASSIGNED", None),
        )
    ]
    assert {row["shard"] for row in books.get("/_cat/segments/books?format=json").json()} == {"0", "1", "2"}
    assert books.get("/_cat/indices/books?format=json&h=pri,rep,docs.count,health").json() == [
        {"pri": "3", "rep": "1", "docs.count": str(DOCUMENTS), "health": "yellow"}
    ]
    allocation = books.get("/_cat/allocation?format=json&h=shards,node").json()
    assert [row["shards"] for row in allocation] == ["3", "3"]
    assert allocation[1]["node"] == "UNASSIGNED"
    health = books.get("/_cluster/health?level=shards").json()
    assert (health["active_primary_shards"], health["unassigned_shards"]) == (3, 3)
    assert sorted(health["indices"]["books"]["shards"]) == ["0", "1", "2"]
    stats = books.get("/books/_stats/docs?level=shards").json()
    assert stats["_shards"] == {"total": 6, "successful": 3, "failed": 0}
    found = stats["indices"]["books"]["shards"]
    assert [str(found[str(number)][0]["docs"]["count"]) for number in range(3)] == documents
    assert found["0"][0]["routing"]["primary"] is True
    segments = books.get("/books/_segments").json()["indices"]["books"]["shards"]
    assert sorted(segments) == ["0", "1", "2"]
    state = books.get("/_cluster/state").json()
    assert state["metadata"]["indices"]["books"]["routing_num_shards"] == 768
    copies = state["routing_table"]["indices"]["books"]["shards"]["1"]
    assert [(copy["state"], copy["primary"]) for copy in copies] == [("STARTED", True), ("UNASSIGNED", False)]
    assert len(state["routing_nodes"]["unassigned"]) == 3
    assert books.post("/books/_forcemerge?max_num_segments=1").status_code == 200
    segments = books.get("/books/_segments").json()["indices"]["books"]["shards"]
    assert [shard[0]["num_search_segments"] for shard in segments.values()] == [1, 1, 1]


def test_why_a_copy_has_no_node(books: httpx.Client) -> None:
    path = "/_cluster/allocation/explain"
    found = books.get(path).json()
    assert (found["index"], found["shard"], found["primary"]) == ("books", 0, False)
    assert (found["current_state"], found["can_allocate"]) == ("unassigned", "no")
    (decision,) = found["node_allocation_decisions"]
    assert decision["deciders"][0]["decider"] == "same_shard"
    assert "cluster_info" not in found
    (disk,) = books.get(f"{path}?include_disk_info=true").json()["cluster_info"]["nodes"].values()
    assert 0 < disk["least_available"]["free_bytes"] < disk["least_available"]["total_bytes"]
    started = books.post(path, json={"index": "books", "shard": 2, "primary": True}).json()
    assert (started["current_state"], started["can_remain_on_current_node"]) == ("started", "yes")
    missing = books.post(path, json={"index": "books", "shard": 3, "primary": True})
    assert reason_of(missing) == (404, "shard_not_found_exception", "no such shard")
    assert reason_of(books.post(path, json={"index": "books"}))[1] == "action_request_validation_exception"
    books.put("/books/_settings", json={"number_of_replicas": 0})
    assert reason_of(books.get(path))[:2] == (400, "illegal_argument_exception")
    assert books.get("/_cluster/health").json()["status"] == "green"


def test_shards_are_not_moved_by_hand(books: httpx.Client) -> None:
    assert books.post("/_cluster/reroute").json() == {"acknowledged": True}
    command = {"commands": [{"move": {"index": "books", "shard": 0, "from_node": "a", "to_node": "b"}}]}
    refused = reason_of(books.post("/_cluster/reroute", json=command))
    assert refused[:2] == (400, "illegal_argument_exception")
    cancel = {"cancel": {"index": "books", "shard": 9, "node": "a"}}
    asked = {"commands": [cancel, *command["commands"]]}
    first, second = books.post("/_cluster/reroute?explain=true", json=asked).json()["explanations"]
    assert first["parameters"] == {**cancel["cancel"], "allow_primary": False}
    assert (first["command"], first["decisions"][0]["decision"]) == ("cancel", "NO")
    assert second["decisions"][0]["decider"] == "move_allocation_command"
    state = books.post("/_cluster/reroute?metric=metadata").json()["state"]
    assert list(state["metadata"]["indices"]) == ["books"]
    assert "nodes" not in state
    assert reason_of(books.post("/_cluster/reroute?metric=metdata"))[0] == 400


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"number_of_shards": 0},
            "Failed to parse value [0] for setting [index.number_of_shards] must be >= 1",
        ),
        (
            {"number_of_shards": 4, "number_of_routing_shards": 6},
            "the number of source shards [4] must be a factor of [6]",
        ),
        (
            {"number_of_shards": 4, "routing_partition_size": 2},
            "mapping type [_doc] must have routing required for partitioned index [new]",
        ),
    ],
)
def test_settings_that_cannot_be(http: httpx.Client, settings: dict[str, int], reason: str) -> None:
    answer = reason_of(http.put("/new", json={"settings": settings}))
    assert answer == (400, "illegal_argument_exception", reason)


def test_there_is_room_for_a_thousand_shards(http: httpx.Client) -> None:
    assert http.put("/most", json={"settings": {"number_of_shards": 998}}).status_code == 200
    refused = reason_of(http.put("/more", json={"settings": {"number_of_shards": 3}}))
    assert refused == (
        400,
        "validation_exception",
        "Validation Failed: 1: this action would add [3] shards, but this cluster currently has [998]/[1000] "
        "maximum normal shards open;",
    )
    answer = http.put("/most/_doc/1?refresh=true", json={"a": 1}).json()
    assert answer["result"] == "created"
    assert http.get("/most/_search").json()["_shards"]["total"] == 998


def test_a_partitioned_routing_is_in_some_shards(http: httpx.Client) -> None:
    settings = {"number_of_shards": 8, "number_of_routing_shards": 8, "routing_partition_size": 3}
    http.put("/p", json={"settings": settings, "mappings": {"_routing": {"required": True}}})
    for number in range(40):
        assert http.put(f"/p/_doc/{number}?routing=r", json={"n": number}).status_code == 201
    http.post("/p/_refresh")
    answer = http.get("/p/_search?routing=r&size=0").json()
    assert (answer["hits"]["total"]["value"], answer["_shards"]["total"]) == (40, 3)
    assert http.get("/p/_doc/7?routing=r").json()["found"]


def test_the_first_document_with_a_field_decides_its_type(http: httpx.Client) -> None:
    http.put("/m", json={"settings": {"number_of_shards": 5}})
    values = [b"1", *[b'"x"'] * 7]
    lines = b"".join(
        b'{"index":{"_id":"%d"}}\n{"f":%s}\n' % (number, value) for number, value in enumerate(values)
    )
    headers = {"content-type": "application/x-ndjson"}
    items = http.post("/m/_bulk", content=lines, headers=headers).json()["items"]
    assert [item["index"]["status"] for item in items] == [201] + [400] * 7
