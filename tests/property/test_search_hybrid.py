"""Fused lists against the formulas in plain Python, over the lists that the parts give when asked alone."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.hybrid import scorer_of
from graphdb.search.results import SearchOptions
from tests.unit.search.results.index import Index

PROPERTIES = {
    "t": {"type": "text"},
    "tag": {"type": "keyword"},
    "v": {"type": "dense_vector", "dims": 2, "similarity": "cosine"},
}
Ranked = list[tuple[str, float]]

elements = st.integers(-4, 4).map(float)
vectors = st.lists(elements, min_size=2, max_size=2).filter(any)
texts = st.lists(st.sampled_from(["red", "blue", "green"]), min_size=1, max_size=5).map(" ".join)
documents = st.fixed_dictionaries({"t": texts, "tag": st.sampled_from("ab")}, optional={"v": vectors})
corpora = st.lists(documents, min_size=1, max_size=12)


def hits(index: Index, body: Mapping[str, Any], scorer: str = "rrf") -> Ranked:
    answer = index.search({"size": 50, **body}, SearchOptions(hybrid=scorer_of(scorer, [0.3, 0.7])))
    return [(hit["_id"], hit["_score"]) for hit in answer["hits"]["hits"]]


def spread(ranked: Ranked) -> dict[str, float]:
    scores = [score for _, score in ranked]
    if not scores or max(scores) - min(scores) <= 1e-12 * max(map(abs, scores)):
        return {doc: 1.0 for doc, _ in ranked}
    return {doc: (score - min(scores)) / (max(scores) - min(scores)) for doc, score in ranked}


def reciprocal(ranked: Ranked, constant: int = 60) -> dict[str, float]:
    return {doc: 1 / (constant + rank) for rank, (doc, _) in enumerate(ranked, start=1)}


def log_odds(ranked: Ranked) -> dict[str, float]:
    likely = [(doc, min(max(score, 1e-7), 1 - 1e-7)) for doc, score in ranked]
    return spread([(doc, math.log(score / (1 - score))) for doc, score in likely])


def summed(*parts: tuple[float, dict[str, float]]) -> dict[str, float]:
    docs = {doc for _, part in parts for doc in part}
    return {doc: sum(weight * part.get(doc, 0.0) for weight, part in parts) for doc in docs}


NAIVE: dict[str, Callable[[Ranked, Ranked], dict[str, float]]] = {
    "rrf": lambda text, near: summed((1, reciprocal(text)), (1, reciprocal(near))),
    "linear": lambda text, near: summed((0.3, spread(text)), (0.7, spread(near))),
    "bayesian": lambda text, near: summed((0.5, spread(text)), (0.5, log_odds(near))),
}


def agree(found: Ranked, expected: Mapping[str, float]) -> None:
    assert dict(found) == pytest.approx(expected, rel=1e-3, abs=1e-3)
    assert found == sorted(found, key=lambda hit: (-hit[1], int(hit[0])))


@settings(deadline=None)
@given(corpora, vectors, texts, st.integers(1, 6), st.sampled_from(sorted(NAIVE)))
def test_query_and_knn(docs: list[Any], query: list[float], words: str, k: int, scorer: str) -> None:
    index = Index(PROPERTIES, docs)
    match = {"match": {"t": words}}
    knn = {"field": "v", "query_vector": query, "k": k, "num_candidates": 50}
    expected = NAIVE[scorer](hits(index, {"query": match}), hits(index, {"knn": knn}))
    body = {"query": match, "knn": knn}
    found = hits(index, body, scorer)
    agree(found, expected)
    pages = [hits(index, {**body, "from": start, "size": 2}, scorer) for start in range(0, 12, 2)]
    assert [hit for page in pages for hit in page] == found
    answer = index.search({**body, "aggs": {"tags": {"terms": {"field": "tag"}}}})
    assert answer["hits"]["total"]["value"] == len(expected)
    assert sum(one["doc_count"] for one in answer["aggregations"]["tags"]["buckets"]) == len(expected)


@settings(deadline=None)
@given(corpora, vectors, texts, st.integers(1, 6), st.integers(1, 3), st.booleans())
def test_rrf_retriever(
    docs: list[Any], query: list[float], words: str, window: int, constant: int, filtered: bool
) -> None:
    index = Index(PROPERTIES, docs)
    match, only = {"match": {"t": words}}, {"term": {"tag": "a"}}
    knn = {"field": "v", "query_vector": query, "k": 6, "num_candidates": 50}
    alone: dict[str, Any] = {"bool": {"must": [match], "filter": [only]}} if filtered else match
    near = hits(index, {"knn": {**knn, "filter": only} if filtered else knn})[:window]
    both = summed(
        (1, reciprocal(hits(index, {"query": alone})[:window], constant)), (1, reciprocal(near, constant))
    )
    best = sorted(both, key=lambda doc: (-both[doc], int(doc)))[:window]
    rrf = {
        "retrievers": [{"standard": {"query": match}}, {"knn": knn}],
        "rank_window_size": window,
        "rank_constant": constant,
    }
    if filtered:
        rrf["filter"] = only
    found = hits(index, {"retriever": {"rrf": rrf}, "size": window})
    assert dict(found) == pytest.approx({doc: both[doc] for doc in best}, rel=1e-5)
    if not filtered:
        rank = {"rrf": {"rank_constant": constant, "rank_window_size": window}}
        assert hits(index, {"query": match, "knn": knn, "rank": rank, "size": window}) == found


@settings(deadline=None)
@given(corpora, vectors, texts, st.sampled_from(["none", "minmax", "l2_norm"]), st.floats(0, 5))
def test_linear_retriever(
    docs: list[Any], query: list[float], words: str, normalizer: str, weight: float
) -> None:
    index = Index(PROPERTIES, docs)
    match = {"match": {"t": words}}
    knn = {"field": "v", "query_vector": query, "k": 5, "num_candidates": 50}
    text, near = hits(index, {"query": match}), hits(index, {"knn": knn})
    length = math.sqrt(sum(score**2 for _, score in text)) or 1.0
    normal = {
        "none": dict(text),
        "minmax": spread(text),
        "l2_norm": {doc: score / length for doc, score in text},
    }
    entries = [
        {"retriever": {"standard": {"query": match}}, "weight": weight, "normalizer": normalizer},
        {"retriever": {"knn": knn}},
    ]
    body = {"retriever": {"linear": {"retrievers": entries, "rank_window_size": 50}}}
    agree(hits(index, body), summed((weight, normal[normalizer]), (1, dict(near))))


names = st.sampled_from(["standard", "knn", "rrf", "linear", "query", "retriever"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "x", "t"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["standard", "knn", "rrf", "linear", "query", "retriever"]), inner, max_size=2
        )
    ),
    max_leaves=8,
)
members = st.sampled_from(
    [
        "retrievers",
        "rank_window_size",
        "rank_constant",
        "filter",
        "min_score",
        "_name",
        "weight",
    ]
)


@settings(deadline=None)
@given(
    st.sampled_from(["rrf", "linear", "bayesian", "standard", "knn", "none"]),
    st.dictionaries(members, json_values, max_size=4) | json_values,
)
def test_hostile_retrievers_are_errors_of_search(kind: str, body: Any) -> None:
    index = Index(PROPERTIES, [{"t": "red", "v": [1, 0]}])
    try:
        found = hits(index, {"retriever": {kind: body}})
    except SearchError:
        return
    assert len(found) <= 1
