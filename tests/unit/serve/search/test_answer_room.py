"""Answers that would show more of documents than stands in memory well."""

from typing import Any

import httpx
import orjson
import pytest

from graphdb.search import answer_room
from tests.unit.serve.search.conftest import reason_of

LONG = "x" * 20_000
ROOM = 100_000  # five of them do not fit


@pytest.fixture(autouse=True)
def _documents(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        http.put(f"/books/_doc/{number}", json={"n": number, "text": LONG, "texts": [LONG]})
        http.put(f"/notes/_doc/{number}", json={"n": number, "text": LONG[:100]})
    http.post("/_refresh")
    monkeypatch.setattr(answer_room, "ANSWER_BYTES_MAX", ROOM)


def search(http: httpx.Client, body: dict[str, Any], index: str = "books") -> httpx.Response:
    return http.post(f"/{index}/_search", json=body)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"size": 5, "sort": [{"n": "desc"}]},
        {"size": 101, "version": True},
        {"_source": ["text*"]},
        {"_source": False, "fields": ["text", "texts"]},
        {"size": 0, "aggs": {"all": {"top_hits": {"size": 5}}}},
        {"track_total_hits": False, "query": {"range": {"n": {"gte": 0}}}},
    ],
)
def test_a_search(http: httpx.Client, more: dict[str, Any]) -> None:
    answer = search(http, {"query": {"match_all": {}}, **more})
    assert reason_of(answer)[0] == 429
    (cause,) = answer.json()["error"]["root_cause"]
    assert (cause["type"], cause["bytes_limit"]) == ("circuit_breaking_exception", ROOM)
    fewer = {**more, "query": {"term": {"n": 3}}}
    assert search(http, fewer).status_code == 200
    assert search(http, more, "notes").status_code == 200


def test_short_parts_of_long_documents(http: httpx.Client) -> None:
    assert len(search(http, {"_source": ["n"]}).json()["hits"]["hits"]) == 5
    assert len(search(http, {"_source": False, "fields": ["n"]}).json()["hits"]["hits"]) == 5


def test_several_documents_and_searches(http: httpx.Client) -> None:
    docs = http.post("/books/_mget", json={"ids": [0, 1, 2, 3, 4]}).json()["docs"]
    assert [doc.get("found", doc.get("error", {}).get("type")) for doc in docs] == [
        True, True, "circuit_breaking_exception", "circuit_breaking_exception", "circuit_breaking_exception",
    ]  # fmt: skip
    one = orjson.dumps({"query": {"term": {"n": 3}}})
    lines = b"{}\n" + one + b"\n"
    headers = {"content-type": "application/x-ndjson"}
    answers = http.post("/books/_msearch", content=lines * 4, headers=headers).json()["responses"]
    assert sorted(one["status"] for one in answers) == [200, 200, 429, 429]
    assert http.get("/books/_doc/1").json()["_source"]["text"] == LONG


def test_pages_of_a_scroll(http: httpx.Client) -> None:
    page = http.post("/books/_search?scroll=1m", json={"size": 2}).json()
    assert len(page["hits"]["hits"]) == 2
    page = http.post("/_search/scroll", json={"scroll_id": page["_scroll_id"], "scroll": "1m"})
    assert page.status_code == 200
    assert reason_of(http.post("/books/_search?scroll=1m", json={"size": 5}))[0] == 429
