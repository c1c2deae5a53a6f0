"""`significant_text` of sources: passages that count once, texts of other fields; scripts as heuristics."""

from typing import Any

import pytest

from graphdb.search.errors import SearchError
from tests.unit.search.results.index import Index

FIELDS = {
    "t": {"type": "text"},
    "u": {"type": "text"},
    "k": {"type": "keyword"},
    "part": {"type": "nested", "properties": {"t": {"type": "text"}}},
}
NOTICE = "spam eggs ham toast jam tea milk"


@pytest.fixture(scope="module")
def index() -> Index:
    copied = [{"t": f"{NOTICE} {word}", "u": "moon", "k": "a"} for word in ("red", "blue", "red")]
    others = [{"t": f"plain words here {number}", "u": "sun star", "k": "b"} for number in range(9)]
    return Index(FIELDS, [*copied, *others])


def found(index: Index, query: dict[str, Any] | None = None, **members: Any) -> dict[str, int]:
    """How many of the documents of a query have each term."""
    body = {"field": "t", "min_doc_count": 1, "size": 50, **members}
    search = {"size": 0, "aggs": {"x": {"significant_text": body}}}
    answer = index.search({**search, "query": query or {"term": {"k": "a"}}})["aggregations"]["x"]
    return {bucket["key"]: bucket["doc_count"] for bucket in answer["buckets"]}


def test_a_passage_that_is_copied_counts_once(index: Index) -> None:
    whole = dict.fromkeys(NOTICE.split(), 3)
    assert found(index) == {**whole, "red": 2, "blue": 1}
    # what follows six copied tokens is copied with them, if it was so before: "... tea milk red"
    once = dict.fromkeys(NOTICE.split(), 1)
    assert found(index, filter_duplicate_text=True) == {**once, "red": 1, "blue": 1}


def test_passages_are_those_of_a_bucket(index: Index) -> None:
    inner = {
        "significant_text": {"field": "t", "min_doc_count": 1, "filter_duplicate_text": True, "size": 50}
    }
    each = {
        "filters": {"filters": {name: {"match": {"t": name}} for name in ("red", "blue")}},
        "aggs": {"x": inner},
    }
    buckets = index.search({"size": 0, "aggs": {"each": each}})["aggregations"]["each"]["buckets"]
    counts = {
        name: {one["key"]: one["doc_count"] for one in bucket["x"]["buckets"]}
        for name, bucket in buckets.items()
    }
    assert (counts["red"]["spam"], counts["red"]["red"], counts["blue"]["spam"]) == (1, 1, 1)


def test_short_texts_and_values_side_by_side() -> None:
    lists = [["a b c", "d e f g"], ["a b c", "d e f h"], ["a b", "x"]]
    index = Index(FIELDS, [{"t": texts, "k": "a"} for texts in lists] + [{"t": "z", "k": "b"}] * 9)
    # "a b c d e f" goes over two values. As in Elasticsearch, the first six tokens of the second are copied.
    assert found(index, filter_duplicate_text=True) == {
        **dict.fromkeys("abc", 2), "a": 3, "b": 3, **dict.fromkeys("defgx", 1),
    }  # fmt: skip


def test_texts_of_other_fields(index: Index) -> None:
    assert found(index, {"term": {"k": "b"}}, source_fields=["u"]) == {}  # t has none of its words
    assert found(index, field="u", source_fields=["u"]) == {"moon": 3}
    assert found(index, field="u", source_fields=["t", "u"]) == {"moon": 3}
    assert found(index, source_fields="t") == found(index)


def heuristic(index: Index, source: str, **params: Any) -> dict[str, float]:
    script = {"script": {"source": source, "params": params}}
    body = {"field": "k", "min_doc_count": 1, "script_heuristic": script}
    search = {"size": 0, "query": {"match": {"u": "moon"}}, "aggs": {"x": {"significant_terms": body}}}
    buckets = index.search(search)["aggregations"]["x"]["buckets"]
    return {bucket["key"]: bucket["score"] for bucket in buckets}


def test_a_script_says_how_significant_terms_are(index: Index) -> None:
    whole = "params._subset_freq * 1000 + params._subset_size * 100 + params._superset_freq * 10"
    assert heuristic(index, f"{whole} + params._superset_size + params.more", more=0.5) == {"a": 3342.5}
    assert heuristic(index, "0") == {}  # of 0 and less there are no buckets
    with pytest.raises(SearchError, match="runtime error"):
        heuristic(index, "'x'")
