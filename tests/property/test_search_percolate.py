"""`percolate` finds the stored queries that, as searches of the given documents, find any of them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from tests.unit.search.results.index import Index

FIELDS = {"t": {"type": "text"}, "k": {"type": "keyword"}, "n": {"type": "long"}}
STORED = FIELDS | {"q": {"type": "percolator"}}
WORDS = st.sampled_from(["red", "fox", "dog", "cow"])
TEXTS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)

Body = dict[str, Any]
LEAVES = st.one_of(
    st.builds(lambda word: {"term": {"t": word}}, WORDS),
    st.builds(lambda word: {"term": {"k": word}}, WORDS),
    st.builds(lambda words: {"terms": {"k": words}}, st.lists(WORDS, min_size=1, max_size=2)),
    st.builds(
        lambda text, operator: {"match": {"t": {"query": text, "operator": operator}}},
        TEXTS,
        st.sampled_from(["or", "and"]),
    ),
    st.builds(lambda text: {"match_phrase": {"t": text}}, TEXTS),
    st.builds(lambda text: {"multi_match": {"query": text, "fields": ["t", "k"]}}, TEXTS),
    st.builds(lambda text: {"combined_fields": {"query": text, "fields": ["t"]}}, TEXTS),
    st.builds(
        lambda text: {"multi_match": {"query": text, "fields": ["t", "k"], "type": "cross_fields"}}, TEXTS
    ),
    st.builds(lambda number: {"range": {"n": {"gte": number}}}, st.integers(0, 9)),
    st.builds(lambda word: {"prefix": {"t": word[:1]}}, WORDS),
    st.builds(lambda word: {"fuzzy": {"t": word + "s"}}, WORDS),
    st.sampled_from([{"match_all": {}}, {"match_none": {}}, {"exists": {"field": "k"}}]),
)


def deeper(inner: st.SearchStrategy[Body]) -> st.SearchStrategy[Body]:
    some = st.lists(inner, max_size=2)
    return st.one_of(
        st.builds(
            lambda must, filter, should, must_not, minimum: {
                "bool": {
                    "must": must,
                    "filter": filter,
                    "should": should,
                    "must_not": must_not,
                    "minimum_should_match": minimum,
                }
            },
            some,
            some,
            some,
            some,
            st.sampled_from([0, 1, 2, -1]),
        ),
        st.builds(lambda query: {"constant_score": {"filter": query}}, inner),
        st.builds(lambda queries: {"dis_max": {"queries": queries}}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(
            lambda one, other: {"boosting": {"positive": one, "negative": other, "negative_boost": 0.5}},
            inner,
            inner,
        ),
        st.builds(lambda query: {"function_score": {"query": query, "boost": 2}}, inner),
    )


QUERIES = st.recursive(LEAVES, deeper, max_leaves=5)
DOCUMENTS = st.fixed_dictionaries({}, optional={"t": TEXTS, "k": WORDS, "n": st.integers(0, 9)})


@settings(max_examples=60, deadline=None)
@given(st.lists(QUERIES, min_size=1, max_size=6), st.lists(DOCUMENTS, min_size=1, max_size=3))
def test_stored_queries(queries: list[Body], documents: list[Body]) -> None:
    stored = Index(STORED, [{"q": query} for query in queries])
    searched = Index(FIELDS, documents)
    expected = {}
    for number, query in enumerate(queries):
        hits = searched.hits(query=query, size=10)
        if hits:
            slots = sorted(int(hit["_id"]) for hit in hits)
            expected[str(number)] = slots, pytest.approx(hits[0]["_score"], rel=1e-5)
    percolate = {"percolate": {"field": "q", "documents": documents}}
    found = stored.hits(query=percolate, size=10)
    slots_of = {hit["_id"]: hit["fields"]["_percolator_document_slot"] for hit in found}
    assert {hit["_id"]: (slots_of[hit["_id"]], hit["_score"]) for hit in found} == expected
    assert stored.ids(query={"bool": {"filter": [percolate, {"exists": {"field": "q"}}]}}) == sorted(expected)


def test_highlights_names_and_other_documents() -> None:
    index = Index(STORED, [{"q": {"match": {"t": "fox"}}}, {"q": {"term": {"k": "a"}}}, {"t": "fox"}])
    index.context = replace(
        index.context, terms_lookup=lambda *key: [{"t": "old fox"}] if key[1] == "1" else []
    )
    highlight: Body = {"fields": {"t": {}}}
    (hit,) = index.hits(query={"percolate": {"field": "q", "document": {"t": "a fox"}}}, highlight=highlight)
    assert hit["highlight"] == {"t": ["a <em>fox</em>"]}
    documents = [{"t": "dog"}, {"t": "fox", "k": "a"}]
    body = {"percolate": {"field": "q", "documents": documents, "name": "both"}}
    hits = index.hits(query=body, highlight=highlight, sort=["_doc"])
    assert [hit["fields"] for hit in hits] == [{"_percolator_document_slot_both": [1]}] * 2
    assert [hit.get("highlight") for hit in hits] == [{"both_1_t": ["<em>fox</em>"]}, None]
    stored = {"percolate": {"field": "q", "index": "books", "id": "1"}}
    assert index.ids(query=stored) == ["0"]
    with pytest.raises(SearchError, match="couldn't be found"):
        index.ids(query={"percolate": {"field": "q", "id": "2"}})


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"term": {"other": 1}}, r"No field mapping can be found for the field with name \[other\]"),
        ({"nope": {}}, r"unknown query \[nope\]"),
        ("x", "must start with start_object"),
        ({"percolate": {"field": "q", "document": {}}}, "unsupported inside a percolator query"),
        ({"terms": {"k": {"index": "i", "id": "1", "path": "k"}}}, "lookup is not supported here"),
        ({"term": {"k": "x" * 100_000}}, "at most 100000 characters"),
        ([{"match_all": {}}, {"match_all": {}}], "must start with start_object"),
    ],
)
def test_queries_that_cannot_be_stored(query: Any, reason: str) -> None:
    with pytest.raises(SearchError) as raised:
        Index(STORED, [{"q": query}])
    assert raised.value.cause is not None
    with pytest.raises(SearchError, match=reason):
        raise raised.value.cause


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"document": {}}, r"missing required \[field\]"),
        ({"field": "q"}, "nothing to percolate"),
        ({"field": "q", "document": {}, "documents": [{}]}, "specify one of"),
        ({"field": "q", "documents": []}, "takes 1 to 1000 documents"),
        ({"field": "q", "document": "x"}, "takes objects"),
        ({"field": "k", "document": {}}, r"to be of type \[percolator\], but is of type \[keyword\]"),
        ({"field": "z", "document": {}}, "does not exist"),
        ({"field": "q", "document": {"n": "x"}}, "failed to parse field"),
    ],
)
def test_requests_that_are_refused(body: Body, reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        Index(STORED, [{"q": {"match_all": {}}}]).ids(query={"percolate": body})
