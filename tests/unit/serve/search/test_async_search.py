"""Searches that go on without their client; rated searches; the old address of nearest vectors."""

import math
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.serve.search.asking import Asking, principal_of
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard


@pytest.fixture(autouse=True)
def _documents(http: httpx.Client) -> None:
    for doc_id, text in (("a", "amber sea"), ("b", "amber amber"), ("c", "sea")):
        http.put(f"/books/_doc/{doc_id}", json={"text": text})
    http.post("/books/_refresh")


QUERY: dict[str, Any] = {"query": {"match": {"text": "amber"}}}
WAIT = "wait_for_completion_timeout=5m"


def test_a_short_search_is_answered_and_forgotten(http: httpx.Client) -> None:
    body = http.post(f"/books/_async_search?{WAIT}", json=QUERY).json()
    assert (body["is_running"], body["is_partial"], "id" in body) == (False, False, False)
    assert [hit["_id"] for hit in body["response"]["hits"]["hits"]] == ["b", "a"]


def test_an_answer_is_kept_until_it_is_deleted(http: httpx.Client) -> None:
    body = http.post(f"/books/_async_search?{WAIT}&keep_on_completion=true", json=QUERY).json()
    again = http.get(f"/_async_search/{body['id']}").json()
    assert again == body
    status = http.get(f"/_async_search/status/{body['id']}").json()
    assert (status["completion_status"], status["_shards"]["successful"]) == (200, 1)
    assert http.delete(f"/_async_search/{body['id']}").json() == {"acknowledged": True}
    gone = http.get(f"/_async_search/{body['id']}")
    assert reason_of(gone)[:2] == (404, "resource_not_found_exception")


def test_one_does_not_have_to_wait(http: httpx.Client) -> None:
    begun = http.post(
        "/books/_async_search?wait_for_completion_timeout=0&keep_on_completion=true&q=text:amber"
    ).json()
    body = http.get(f"/_async_search/{begun['id']}?{WAIT}").json()
    assert len(body["response"]["hits"]["hits"]) == 2


def test_a_failure_is_kept_too(http: httpx.Client) -> None:
    wrong: dict[str, Any] = {"query": {"nope": {}}}
    assert reason_of(http.post(f"/books/_async_search?{WAIT}", json=wrong))[0] == 400
    kept = http.post(f"/books/_async_search?{WAIT}&keep_on_completion=true", json=wrong)
    assert (kept.status_code, kept.json()["error"]["type"]) == (400, "parsing_exception")
    assert http.get(f"/_async_search/status/{kept.json()['id']}").json()["completion_status"] == 400


def test_one_user_cannot_take_all_places(http: httpx.Client) -> None:
    for _ in range(100):
        http.post(f"/books/_async_search?{WAIT}&keep_on_completion=true").raise_for_status()
    assert reason_of(http.post("/books/_async_search"))[0] == 429


def test_what_is_kept_is_its_authors(tmp_path: Path) -> None:
    ask = Asking(tmp_path)
    anna, berta = principal_of("anna"), principal_of("berta")
    ask(anna, "PUT", "/logs-1/_doc/1?refresh=true", {"n": 1})
    body = ask(anna, "POST", f"/logs-1/_async_search?{WAIT}&keep_on_completion=true").json()
    assert body["response"]["hits"]["total"]["value"] == 1
    for method, path in (("GET", ""), ("GET", "status/"), ("DELETE", "")):
        assert ask(berta, method, f"/_async_search/{path}{body['id']}").status_code == 404
    assert ask(anna, "GET", f"/_async_search/{body['id']}").status_code == 200


def evaluated(http: httpx.Client, metric: dict[str, Any], **ratings: int) -> dict[str, Any]:
    rated = [{"_index": "books", "_id": doc_id, "rating": one} for doc_id, one in ratings.items()]
    body = {"requests": [{"id": "q", "request": QUERY, "ratings": rated}], "metric": metric}
    answer: dict[str, Any] = http.post("/books/_rank_eval", json=body).raise_for_status().json()
    assert answer["metric_score"] == answer["details"]["q"]["metric_score"]
    return answer


# The query finds b, then a.
@pytest.mark.parametrize(
    ("metric", "ratings", "score", "details"),
    [
        ({"precision": {}}, {"b": 1}, 0.5, {"relevant_docs_retrieved": 1, "docs_retrieved": 2}),
        (
            {"precision": {"ignore_unlabeled": True}},
            {"b": 1},
            1.0,
            {"relevant_docs_retrieved": 1, "docs_retrieved": 1},
        ),
        ({"recall": {"k": 1}}, {"a": 1, "b": 2}, 0.5, {"relevant_docs_retrieved": 1, "relevant_docs": 2}),
        ({"mean_reciprocal_rank": {}}, {"a": 1}, 0.5, {"first_relevant": 2}),
        ({"mean_reciprocal_rank": {}}, {"c": 1}, 0.0, {"first_relevant": -1}),
        (
            {"dcg": {}},
            {"b": 3, "a": 2},
            7 + 3 / math.log2(3),
            {"dcg": 7 + 3 / math.log2(3), "unrated_docs": 0},
        ),
        (
            {"expected_reciprocal_rank": {"maximum_relevance": 3}},
            {"b": 3, "a": 2},
            7 / 8 + (1 / 8) * (3 / 8) / 2,
            {"unrated_docs": 0},
        ),
    ],
)
def test_metrics(http: httpx.Client, metric: Any, ratings: Any, score: float, details: Any) -> None:
    found = evaluated(http, metric, **ratings)["details"]["q"]
    assert found["metric_score"] == pytest.approx(score)
    [named] = found["metric_details"].values()
    assert named == pytest.approx(details)


def test_a_normalized_gain_is_one_for_the_best_order(http: httpx.Client) -> None:
    best = evaluated(http, {"dcg": {"normalize": True}}, b=3, a=2)
    worse = evaluated(http, {"dcg": {"normalize": True}}, b=2, a=3)
    assert best["metric_score"] == 1.0 > worse["metric_score"]


def test_hits_and_failures_of_rated_searches(http: httpx.Client) -> None:
    rated = [{"_index": "books", "_id": "b", "rating": 1}]
    requests = [
        {"id": "right", "request": QUERY, "ratings": rated, "summary_fields": ["text"]},
        {"id": "wrong", "request": {"query": {"nope": {}}}, "ratings": rated},
    ]
    body = http.post("/_rank_eval", json={"requests": requests, "metric": {"recall": {}}}).json()
    assert body["failures"]["wrong"]["error"]["type"] == "parsing_exception"
    right = body["details"]["right"]
    assert right["unrated_docs"] == [{"_index": "books", "_id": "a"}]
    assert right["hits"][0]["hit"]["_source"] == {"text": "amber amber"}
    assert [hit["rating"] for hit in right["hits"]] == [1, None]


@pytest.mark.parametrize(
    "body",
    [
        {"metric": {"precision": {}}},
        {"requests": [], "metric": {"precision": {}}},
        {"requests": [{"id": "q", "request": QUERY, "ratings": []}], "metric": {"nope": {}}},
        {"requests": [{"id": "q", "request": QUERY, "ratings": []}], "metric": {"precision": {"k": 0}}},
        {"requests": [{"id": "q", "request": QUERY, "ratings": []}] * 2, "metric": {"precision": {}}},
        {"requests": [{"id": "q", "request": {"aggs": {}}, "ratings": []}], "metric": {"recall": {}}},
        {"requests": [], "templates": [], "metric": {"recall": {}}},
        {
            "requests": [
                {"id": "q", "request": QUERY, "ratings": [{"_index": "b", "_id": "1", "rating": 10**9}]}
            ],
            "metric": {"dcg": {}},
        },
    ],
)
def test_evaluations_that_cannot_be(http: httpx.Client, body: Any) -> None:
    assert reason_of(http.post("/books/_rank_eval", json=body))[0] == 400


def test_nearest_vectors_at_the_old_address(http: httpx.Client) -> None:
    field = {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"}
    http.put("/places", json={"mappings": {"properties": {"at": field, "kind": {"type": "keyword"}}}})
    for doc_id, at, kind in ((1, [0, 0], "x"), (2, [0, 1], "y"), (3, [5, 5], "x")):
        http.put(f"/places/_doc/{doc_id}", json={"at": at, "kind": kind})
    http.post("/places/_refresh")
    knn = {"field": "at", "query_vector": [0, 0], "k": 2, "num_candidates": 3}
    asked = {"knn": knn, "filter": {"term": {"kind": "x"}}, "fields": ["kind"]}
    hits = http.post("/places/_knn_search", json=asked).json()["hits"]["hits"]
    assert [(hit["_id"], hit["fields"]["kind"]) for hit in hits] == [("1", ["x"]), ("3", ["x"])]
    assert reason_of(http.post("/places/_knn_search", json={}))[0] == 400
