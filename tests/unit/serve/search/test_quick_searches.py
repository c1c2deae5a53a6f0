"""Searches that are answered within the call that receives them are answered as by the application."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import orjson
import pytest

from graphdb.config import Settings
from graphdb.errors import LogUnavailable
from graphdb.search import answer_room
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.query import phrase
from serve.port.application import PortApplication
from serve.search.searching import quick_searches
from serve.search_app import build_search_app
from tests.support.http_server import client_of
from tests.support.memory_search import MemorySearch
from tests.unit.serve.search.conftest import one_shard

pytestmark = one_shard

_MAPPING = {
    "properties": {
        "description": {"type": "text"},
        "labels": {"type": "keyword"},
        "size": {"type": "integer"},
        "price": {"type": "double"},
        "day": {"type": "date"},
        "vector": {"type": "dense_vector", "dims": 3},
    }
}
_MATCH = {"match": {"description": "grey owl script"}}
_DAYS = {"date_histogram": {"field": "day", "calendar_interval": "month"}}
# Each is answered at once.
_QUICK: list[dict[str, Any]] = [
    {"query": _MATCH},
    {"query": {"match": {"description": {"query": "grey owl", "operator": "and"}}}, "size": 3, "from": 2},
    {"query": {"match_phrase": {"description": "grey owl"}}, "track_total_hits": 2},
    {"query": _MATCH, "_source": False},
    {"query": _MATCH, "track_total_hits": False, "size": 100},
    {"query": _MATCH, "sort": [{"size": "desc"}, {"day": "asc"}]},
    {"query": _MATCH, "sort": [{"price": {"order": "asc", "missing": "_first"}}], "track_scores": True},
    {"query": _MATCH, "sort": ["_score", {"size": "asc"}], "search_after": [0.5, 10]},
    {"size": 0, "query": _MATCH, "aggs": {"a": {"terms": {"field": "labels"}}}},
    {"size": 0, "aggs": {"a": {"terms": {"field": "labels", "order": {"_key": "desc"}, "size": 3}}}},
    {"size": 0, "query": _MATCH, "aggs": {"a": {"histogram": {"field": "size", "interval": 7}}}},
    {"size": 0, "query": _MATCH, "aggs": {"a": _DAYS}},
    {"size": 0, "query": {"match": {"description": "nowhere"}}, "aggs": {"a": _DAYS}},
    {"query": {"bool": {"must": [_MATCH], "filter": [{"term": {"labels": "l1"}}]}}},
    {"query": {"bool": {"must": _MATCH, "filter": {"range": {"day": {"gte": "2024-01-05"}}}}}},
    {"knn": {"field": "vector", "query_vector": [1, 0.5, 0], "k": 3, "num_candidates": 10}},
    {},
]
# Each is for the application: it needs more, takes longer, or is wrong.
_OTHERS: list[Any] = [
    {"query": _MATCH, "nonsense": 1},
    {"query": {"match": {"description": {"query": "a", "nonsense": 1}}}},
    {"query": _MATCH, "size": 20_000},
    {"query": _MATCH, "timeout": "1s"},
    {"query": _MATCH, "highlight": {"fields": {"description": {}}}},
    {"query": {"script_score": {"query": _MATCH, "script": "_score + 1"}}},
    {"query": {"match_phrase_prefix": {"description": "grey o"}}},
    {"sort": [{"_script": {"type": "number", "script": "1", "order": "asc"}}]},
    {"query": _MATCH, "suggest": {"a": {"text": "gray", "term": {"field": "description"}}}},
    {"size": 0, "aggs": {"a": {"terms": {"field": "description"}}}},
    [1],
]


class _Both:
    """The same indexes behind two ports; what the first has answered at once is counted."""

    def __init__(self, quick: httpx.Client, slow: httpx.Client) -> None:
        self.quick, self.slow = quick, slow
        self.answered = 0

    def same(self, body: Any, path: str = "/i/_search", **headers: str) -> httpx.Response:
        """The answer of both."""
        text = body if isinstance(body, bytes) else orjson.dumps(body)
        headers = {"Content-Type": "application/json"} | headers
        answers = [port.post(path, content=text, headers=headers) for port in (self.slow, self.quick)]
        shown, other = map(_shown, answers)
        assert shown == other
        return answers[1]


def _shown(answer: httpx.Response) -> tuple[int, bytes, Mapping[str, str]]:
    """All but how long it took."""
    headers = {name: value for name, value in answer.headers.items() if name != "date"}
    length = int(headers.pop("content-length"))
    assert length
    text = re.sub(rb'"took":\d+', b"", answer.content)
    return answer.status_code, re.sub(rb"\[[0-9a-f]{16}\]", b"", text), headers


async def _reach(name: str, log_index: int) -> None:
    """Every index has every log entry."""


@pytest.fixture
def both(node: MemorySearch, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Both]:
    quick, slow = (build_search_app(node, Settings(), reach=_reach) for _ in range(2))
    slow.quick = None
    with client_of(quick) as first, client_of(slow) as second:
        found = _Both(first, second)
        _count(quick, found, monkeypatch)
        _fill(second)
        yield found


def _count(app: PortApplication, found: _Both, monkeypatch: pytest.MonkeyPatch) -> None:
    answering = quick_searches.QuickSearches._answer

    def counted(*arguments: Any) -> Any:
        answer = answering(*arguments)
        found.answered += answer is not None
        return answer

    searches = next(one for one in app.quick._several if isinstance(one, quick_searches.QuickSearches))  # type: ignore[union-attr]
    monkeypatch.setattr(searches, "_answer", counted.__get__(searches))


def _fill(port: httpx.Client) -> None:
    port.put("/i", json={"mappings": _MAPPING}).raise_for_status()
    lines = []
    for number in range(60):
        words = [("grey", "owl", "script", "day")[place % 4] for place in range(number % 7, 7)]
        document: dict[str, Any] = {
            "description": " ".join(words),
            "labels": [f"l{number % 5}", f"l{number % 3}"],
            "day": f"2024-{number % 12 + 1:02}-05",
            "vector": [number % 7 + 1, number % 3, 1],
        }
        document |= {"size": number * 3 % 50} if number % 4 else {}
        document |= {"price": number / 8} if number % 3 else {}
        lines += [{"index": {"_id": f"é{number}"}}, document]
        if number in (20, 40, 59):
            text = b"".join(orjson.dumps(line) + b"\n" for line in lines)
            headers = {"Content-Type": "application/x-ndjson"}
            port.post("/i/_bulk?refresh=true", content=text, headers=headers).raise_for_status()
            lines = []
    for gone in ("é3", "é40"):
        port.delete(f"/i/_doc/{gone}?refresh=true").raise_for_status()


def test_short_searches_are_answered_at_once_and_as_the_application_does(both: _Both) -> None:
    for body in _QUICK:
        before = both.answered
        answer = both.same(body)
        assert answer.status_code == 200
        assert both.answered == before + 1, body


def test_short_searches_with_long_answers_are_the_applications(
    both: _Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So they fill no memory and take no time of others."""
    monkeypatch.setattr(answer_room, "_SHORT_ANSWER_BYTES_MAX", 1_000)
    for size, at_once in ((2, 1), (50, 0), (3, 1), (50, 0)):
        before = both.answered
        answer = both.same({"query": _MATCH, "size": size, "track_total_hits": False})
        assert len(answer.json()["hits"]["hits"]) == size
        assert both.answered == before + at_once


def test_searches_that_differ_in_their_query_alone_are_answered_for_theirs(both: _Both) -> None:
    queries: list[dict[str, Any] | None] = [
        _MATCH,
        {"match": {"description": "owl"}},
        None,
        {"match_phrase": {"description": "owl script"}},
        {"bool": {"must": [_MATCH], "filter": [{"term": {"labels": "l1"}}]}},
        {"match": {"labels": "l2"}},
    ]
    rests: list[dict[str, Any]] = [
        {},
        {"size": 4, "sort": [{"size": "desc"}], "_source": False},
        {"size": 0, "aggs": {"one": {"terms": {"field": "labels"}, "meta": {"a": 1}}}},
        {"size": 2, "aggs": {"two": {"terms": {"field": "labels"}, "meta": {"a": 1}}}},
        {"size": 0, "aggs": {"one": _DAYS, "two": {"avg": {"field": "size"}}}},
    ]
    for rest in rests:
        for query in queries:
            both.same(rest if query is None else {"query": query} | rest)
    assert both.answered == len(rests) * len(queries)
    both.slow.put("/i/_mapping", json={"properties": {"more": {"type": "text"}}}).raise_for_status()
    wrong = {"query": {"match": {"description": {"query": "owl", "nonsense": 1}}}}
    for rest in rests:
        assert both.same(rest | wrong).status_code == 400
        both.same({"query": _MATCH} | rest)


def test_searches_that_differ_in_their_vectors_alone_are_answered_for_theirs(both: _Both) -> None:
    near = {"field": "vector", "query_vector": [1, 0.5, 0]}
    nearest: list[dict[str, Any]] = [
        near,
        {**near, "query_vector": [0, 3, 1], "k": 3, "num_candidates": 10},
        {**near, "query_vector": [2, 0, 1], "filter": {"term": {"labels": "l1"}}, "boost": 2},
        {**near, "k": 20, "num_candidates": 20, "similarity": 0.9},
    ]
    rests: list[dict[str, Any]] = [
        {},
        {"size": 4, "_source": False},
        {"from": 1, "size": 2, "track_total_hits": False},
        {"size": 3, "_source": False, "version": True},
    ]
    found = [both.same({"knn": knn} | rest).json()["hits"]["hits"] for rest in rests for knn in nearest]
    inside = [
        both.same({"query": {"knn": knn}} | rest).json()["hits"]["hits"] for rest in rests for knn in nearest
    ]
    assert found == inside
    assert both.answered == 2 * len(found)
    assert [len(hits) for hits in found] == [10, 3, 10, 10, 4, 3, 4, 4, 1, 2, 1, 2, 3, 3, 3, 3]
    for rest in rests:
        both.same({"query": _MATCH, "knn": near} | rest)
        assert both.same({"knn": {**near, "query_vector": [1]}} | rest).status_code == 400
        assert both.same({"knn": {**near, "k": 5, "num_candidates": 4}} | rest).status_code == 400


def test_hits_of_stored_queries_say_which_documents_they_match(both: _Both) -> None:
    stored = {"properties": {"stored": {"type": "percolator"}, "text": {"type": "text"}}}
    both.slow.put("/p", json={"mappings": stored}).raise_for_status()
    document = {"stored": {"match": {"text": "owl"}}}
    both.slow.put("/p/_doc/1?refresh=true", json=document).raise_for_status()
    asked = {"percolate": {"field": "stored", "document": {"text": "a grey owl"}}}
    for rest in ({}, {"_source": False}):
        (hit,) = both.same({"query": asked} | rest, "/p/_search").json()["hits"]["hits"]
        assert hit["fields"] == {"_percolator_document_slot": [0]}
        assert ("_source" in hit) is not bool(rest)


def test_a_request_that_is_known_is_refused_once_a_setting_forbids_it(both: _Both) -> None:
    body = {"query": _MATCH, "docvalue_fields": ["labels", "size"]}
    assert [both.same(body).status_code for _ in range(2)] == [200, 200]
    limit = {"index": {"max_docvalue_fields_search": 1}}
    both.slow.put("/i/_settings", json=limit).raise_for_status()
    assert both.same(body).status_code == 400


def test_phrases_are_the_same_however_positions_are_read(
    both: _Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers() -> list[Any]:
        phrases = ("grey owl", "owl script day", "owl grey", "grey nowhere", "day grey owl script day")
        bodies = [{"query": {"match_phrase": {"description": each}}, "size": 60} for each in phrases]
        return [both.same(body).json()["hits"] for body in bodies]

    packed = answers()
    assert packed[0]["total"]["value"] > packed[3]["total"]["value"] == 0
    monkeypatch.setattr(phrase, "reads_packed", False)
    assert answers() == packed


def test_a_counted_answer_is_kept_until_the_index_changes(both: _Both) -> None:
    body = {"size": 0, "aggs": {"a": {"terms": {"field": "labels"}}}}
    first = both.same(body).json()["aggregations"]
    assert both.same(body).json()["aggregations"] == first
    both.slow.delete("/i/_doc/é5?refresh=true").raise_for_status()
    assert both.same(body).json()["aggregations"] != first
    assert both.answered == 3


def test_a_search_that_comes_often_is_answered_as_the_index_is_now(both: _Both) -> None:
    """By then it is known by its text alone."""

    def ask() -> list[Any]:
        found = []
        for word in ("grey", "owl day", "nowhere", "script grey", "day") * 2:
            body = {"query": {"match": {"description": word}}, "size": 60, "track_total_hits": True}
            found.append(both.same(body).json().get("hits"))
        return found

    first = ask()
    both.slow.delete("/i/_doc/é4?refresh=true").raise_for_status()
    second = ask()
    assert first[0]["total"]["value"] == second[0]["total"]["value"] + 1
    window = {"index": {"max_result_window": 59}}
    both.slow.put("/i/_settings", json=window).raise_for_status()
    assert ask() == [None] * 10
    both.slow.put("/i/_settings", json={"index": {"max_result_window": 60}}).raise_for_status()
    assert ask() == second
    blocked = {"index": {"blocks": {"read": True}}}
    both.slow.put("/i/_settings", json=blocked).raise_for_status()
    assert ask() == [None] * 10
    both.slow.put("/i/_settings", json={"index": {"blocks": {"read": False}}}).raise_for_status()
    assert ask() == second
    both.slow.post("/i/_close").raise_for_status()
    assert ask() == [None] * 10
    both.slow.delete("/i").raise_for_status()
    assert ask() == [None] * 10
    _fill(both.slow)
    assert ask() == first


def test_the_application_is_made_before_the_indexes_are_open() -> None:
    build_search_app(_Closed(), Settings())


class _Closed(MemorySearch):
    """A node that is starting."""

    @property
    def catalog(self) -> Catalog:
        raise LogUnavailable("the search indexes are being opened")

    @catalog.setter
    def catalog(self, opened: Catalog) -> None:
        """The one of memory is never seen."""


def test_all_others_go_to_the_application(both: _Both) -> None:
    for body in _OTHERS:
        both.same(body)
    for text in (b"{", b"{}}", b'{"size": 1, "size": 2}', b'{"qu\\u0065ry": {"match_all": {}}}', b"[" * 300):
        both.same(text)
    assert "profile" in both.quick.post("/i/_search", json={"profile": True}).json()
    both.same({}, "/nowhere/_search")
    both.same({}, "/i,i/_search")
    both.same({}, "/i/_search?size=3")
    both.same({}, **{"Content-Type": "text/plain"})
    both.same({}, **{"Content-Type": "application/x-ndjson"})
    both.same({}, **{"Accept": "nonsense"})
    both.same({}, **{"X-Opaque-Id": "7"})
    assert both.answered == 0


def test_the_media_type_and_the_compression_are_those_that_the_client_asks_for(both: _Both) -> None:
    vendor = "application/vnd.elasticsearch+json; compatible-with=8"
    assert both.same({}, **{"Content-Type": vendor, "Accept": vendor}).headers["content-type"] != ""
    assert "content-encoding" not in both.same({}, **{"Accept-Encoding": "identity"}).headers
    assert both.same({}, **{"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"
    assert both.answered == 3


def test_aliases_show_what_they_do(both: _Both) -> None:
    actions = [{"add": {"index": "i", "alias": "some", "filter": {"term": {"labels": "l1"}}}}]
    both.slow.post("/_aliases", json={"actions": actions}).raise_for_status()
    total = both.same({"size": 0}, "/some/_search").json()["hits"]["total"]["value"]
    assert 0 < total < both.same({"size": 0}).json()["hits"]["total"]["value"]
    both.same({"query": _MATCH}, "/some/_search")


def test_what_was_long_lately_is_tried_now_and_then() -> None:
    shapes, shape = quick_searches._LongShapes(), ("i", "query", "match")
    tried = 0
    for _ in range(200):
        if not shapes.skips(shape):
            tried += 1
            shapes.note(shape, True)
    assert 10 < tried < 20
    assert not shapes.skips(("i", "query", "term"))
    while shapes.skips(shape):
        pass
    shapes.note(shape, False)
    assert not shapes.skips(shape)
