"""The settings of the cluster that steer searches."""

from typing import Any

import httpx
import pytest

from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard


@pytest.fixture
def books(http: httpx.Client) -> httpx.Client:
    properties = {
        "t": {"type": "text"},
        "k": {"type": "keyword"},
        "n": {"type": "long"},
        "o": {"type": "nested"},
        "j": {"type": "join", "relations": {"a": "b"}},
    }
    http.put("/i", json={"mappings": {"properties": properties}}).raise_for_status()
    for number in range(3):
        document = {"k": f"k{number}", "n": number, "t": "some words"}
        http.put(f"/i/_doc/{number}?refresh=true", json=document).raise_for_status()
    return http


def put(http: httpx.Client, **settings: Any) -> httpx.Response:
    named = {f"search.{name}": value for name, value in settings.items()}
    return http.put("/_cluster/settings", json={"transient": named})


def test_how_many_buckets_an_answer_may_have(books: httpx.Client) -> None:
    body = {"size": 0, "aggs": {"k": {"terms": {"field": "k"}}}}
    assert books.post("/i/_search", json=body).status_code == 200
    put(books, max_buckets=2).raise_for_status()
    refused = books.post("/i/_search", json=body)  # though its answer has been kept
    assert "too many buckets. Must be less than or equal to: [2]" in refused.text
    put(books, max_buckets=None).raise_for_status()
    assert books.post("/i/_search", json=body).status_code == 200


SCRIPT = {"script": {"source": "1"}}


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ({"prefix": {"k": "k"}}, "[prefix] queries"),
        ({"wildcard": {"k": "k*"}}, "[wildcard] queries"),
        ({"regexp": {"k": "k."}}, "[regexp] queries"),
        ({"fuzzy": {"k": "kk"}}, "[fuzzy] queries"),
        ({"query_string": {"query": "wo*ds", "default_field": "t"}}, "[wildcard] queries"),
        ({"range": {"k": {"gte": "k"}}}, "[range] queries on [text] or [keyword] fields"),
        ({"nested": {"path": "o", "query": {"match_all": {}}}}, "[joining] queries"),
        ({"has_child": {"type": "b", "query": {"match_all": {}}}}, "[joining] queries"),
        ({"parent_id": {"type": "b", "id": "1"}}, "[joining] queries"),
        ({"script": {"script": {"source": "true"}}}, "[script] queries"),
        ({"script_score": {"query": {"match_all": {}}, **SCRIPT}}, "[script score] queries"),
    ],
)
def test_expensive_queries_may_be_disallowed(books: httpx.Client, query: Any, what: str) -> None:
    assert books.post("/i/_search", json={"query": query}).status_code == 200
    put(books, allow_expensive_queries=False).raise_for_status()
    answer = books.post("/i/_search", json={"query": query})
    assert answer.status_code == 400
    cause = answer.json()["error"]["root_cause"][0]["reason"]
    assert cause.startswith(
        f"{what} cannot be executed when 'search.allow_expensive_queries' is set to false."
    )
    for cheap in ({"term": {"k": "k1"}}, {"range": {"n": {"gte": 1}}}, {"match": {"t": "words"}}):
        assert books.post("/i/_search", json={"query": cheap}).status_code == 200


def test_how_long_a_context_may_live(books: httpx.Client) -> None:
    put(books, default_keep_alive="1m", max_keep_alive="1m").raise_for_status()
    assert books.post("/i/_search?scroll=1m", json={"size": 1}).status_code == 200
    pit = books.post("/i/_pit?keep_alive=1m").raise_for_status().json()["id"]
    scroll = books.post("/i/_search?scroll=1m", json={"size": 1}).json()["_scroll_id"]
    for answer in (
        books.post("/i/_search?scroll=2m", json={"size": 1}),
        books.post("/_search/scroll", json={"scroll_id": scroll, "scroll": "2m"}),
        books.post("/i/_pit?keep_alive=2m"),
        books.post("/_search", json={"pit": {"id": pit, "keep_alive": "2m"}}),
    ):
        assert reason_of(answer)[2].startswith("Keep alive for request (2m) is too large.")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("max_buckets", -1, "must be >= 0"),
        ("max_buckets", "x", "Failed to parse value [x]"),
        ("allow_expensive_queries", "no", "as only [true] or [false] are allowed"),
        ("max_keep_alive", "2d", "must be in [0,1d]"),
        ("max_keep_alive", "1m", "should be smaller than max keep alive"),
        ("default_keep_alive", "x", "as a time value"),
        ("nonsense", 1, "not recognized"),
    ],
)
def test_values_that_cannot_be(http: httpx.Client, name: str, value: Any, reason: str) -> None:
    status, _, found = reason_of(put(http, **{name: value}))
    assert (status, reason in found) == (400, True), found


def test_what_tools_for_restarts_set_is_kept(books: httpx.Client) -> None:
    for name, value in (("allocation", "primaries"), ("rebalance", "none")):
        body = {"persistent": {f"cluster.routing.{name}.enable": value}}
        books.put("/_cluster/settings", json=body).raise_for_status()
    kept = books.get("/_cluster/settings").json()["persistent"]["cluster"]["routing"]
    assert kept == {"allocation": {"enable": "primaries"}, "rebalance": {"enable": "none"}}
    refused = books.put("/_cluster/settings", json={"transient": {"cluster.routing.allocation.enable": "no"}})
    assert reason_of(refused)[2].endswith("must be one of [all, primaries, new_primaries, none]")
