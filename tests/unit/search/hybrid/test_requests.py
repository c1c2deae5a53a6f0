"""Searches with knn, rank and retrievers: what they answer, and what they refuse in which words."""

from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.hybrid import Bayesian, Linear, ReciprocalRank, scorer_of
from tests.unit.search.results.index import Index

MATCH = {"match": {"t": "fox"}}
KNN = {"field": "v", "query_vector": [1, 0], "k": 2, "num_candidates": 10}
STANDARD = {"standard": {"query": MATCH}}


@pytest.fixture(scope="module")
def index() -> Index:
    vector = {"type": "dense_vector", "dims": 2, "similarity": "cosine"}
    fields = {
        "t": {"type": "text"},
        "n": {"type": "integer"},
        "v": vector,
        "plain": {"type": "dense_vector", "dims": 2, "index": False},
    }
    documents = [
        {"t": "quick fox", "n": 3, "v": [0, 1]},
        {"t": "lazy dog", "n": 2, "v": [1, 0]},
        {"t": "fox and dog and fox", "n": 1, "v": [1, 1]},
        {"t": "nothing", "n": 0},
    ]
    return Index(fields, documents)


def ids(answer: Any) -> list[str]:
    return [hit["_id"] for hit in answer["hits"]["hits"]]


def test_knn_alone(index: Index) -> None:
    answer = index.search({"knn": KNN, "aggs": {"n": {"sum": {"field": "n"}}}})
    assert ids(answer) == ["1", "2"]
    assert answer["hits"]["total"] == {"value": 2, "relation": "eq"}
    assert answer["hits"]["max_score"] == 1.0
    assert answer["aggregations"]["n"]["value"] == 3.0
    assert ids(index.search({"knn": KNN, "from": 1})) == ["2"]
    assert ids(index.search({"knn": KNN, "sort": ["n"]})) == ["2", "1"]
    assert ids(index.search({"knn": KNN, "post_filter": {"term": {"n": 1}}})) == ["2"]


def test_knn_is_filtered_before(index: Index) -> None:
    assert ids(index.search({"knn": {**KNN, "filter": {"range": {"n": {"gte": 3}}}}})) == ["0"]
    assert ids(index.search({"knn": {**KNN, "filter": [MATCH, {"term": {"n": 1}}]}})) == ["2"]


def test_the_clause_is_filtered_after(index: Index) -> None:
    bool_query = {"must": {"knn": KNN}, "filter": {"range": {"n": {"lt": 2}}}}
    assert ids(index.search({"query": {"bool": bool_query}})) == ["2"]


def test_several_clauses_are_summed(index: Index) -> None:
    other = {**KNN, "query_vector": [0, 1], "boost": 2}
    answer = index.search({"knn": [KNN, other]})
    scores = {hit["_id"]: hit["_score"] for hit in answer["hits"]["hits"]}
    near = (1 + 0.5**0.5) / 2
    assert scores == pytest.approx({"0": 2.0, "1": 1.0, "2": 3 * near})


def test_k_is_size_unless_given(index: Index) -> None:
    knn = {"field": "v", "query_vector": [1, 0]}
    assert len(ids(index.search({"knn": knn}))) == 3
    assert index.search({"knn": knn, "size": 1})["hits"]["total"]["value"] == 1
    assert index.search({"query": {"knn": knn}, "size": 2})["hits"]["total"]["value"] == 2


def test_similarity_is_a_threshold_before_the_boost(index: Index) -> None:
    answer = index.search({"knn": {**KNN, "k": 3, "similarity": 0.7, "boost": 0.5}})
    assert ids(answer) == ["1", "2"]
    assert answer["hits"]["max_score"] == 0.5


def test_names_highlights_and_explanations(index: Index) -> None:
    body = {
        "query": {"match": {"t": {"query": "fox", "_name": "words"}}},
        "knn": {**KNN, "_name": "near"},
        "highlight": {"fields": {"t": {}}},
        "explain": True,
    }
    best = index.search(body)["hits"]["hits"][0]
    assert best["_id"] == "2"
    assert best["matched_queries"] == ["words", "near"]
    assert best["highlight"]["t"] == ["<em>fox</em> and dog and <em>fox</em>"]
    assert best["_explanation"]["value"] == pytest.approx(2 / 62)
    texts = [detail["description"] for detail in best["_explanation"]["details"]]
    assert texts[0].startswith("rank [2] and score [")
    assert texts[1].startswith("rank [2] and score [0.85")


def test_ranked_hits_are_highlighted_and_collapsed(index: Index) -> None:
    """As Elasticsearch does since 8.15, and Searchkit asks for."""
    lists = {"query": STANDARD["standard"]["query"], "knn": KNN}
    beside = {"highlight": {"fields": {"t": {}}}, "collapse": {"field": "n"}}
    ranked = index.search({**lists, "rank": {"rrf": {}}, **beside})
    retrievers = [STANDARD, {"knn": KNN}]
    assert (
        ranked["hits"] == index.search({"retriever": {"rrf": {"retrievers": retrievers}}, **beside})["hits"]
    )
    assert any("highlight" in hit for hit in ranked["hits"]["hits"])


def test_hits_are_of_the_window_and_totals_of_the_union(index: Index) -> None:
    rrf = {"retrievers": [STANDARD, {"knn": KNN}], "rank_window_size": 1}
    answer = index.search({"retriever": {"rrf": rrf}, "size": 1, "aggs": {"n": {"sum": {"field": "n"}}}})
    assert ids(answer) == ["0"]
    assert answer["hits"]["total"]["value"] == 3
    assert answer["aggregations"]["n"]["value"] == 6.0
    # "2" is second in both lists; "0" and "1" are each first in one, so the one written first comes first
    rrf = {**rrf, "rank_window_size": 2}
    assert ids(index.search({"retriever": {"rrf": rrf}, "from": 1, "size": 2})) == ["0"]


def test_a_window_says_how_many_hits_there_are(index: Index) -> None:
    rrf = {"retrievers": [STANDARD, {"knn": KNN}], "rank_window_size": 2}
    assert len(ids(index.search({"retriever": {"rrf": rrf}}))) == 2
    assert len(ids(index.search({"retriever": {"rrf": rrf}, "size": 1}))) == 1


RESCORE = {"query": {"rescore_query": {"match": {"t": "dog"}}, "rescore_query_weight": 10}}


def rescorer(retriever: dict[str, Any], window: int, **members: Any) -> dict[str, Any]:
    return {"rescorer": {"retriever": retriever, "rescore": {"window_size": window, **RESCORE}, **members}}


def test_a_rescorer_lists_what_it_has_rescored(index: Index) -> None:
    first = index.search({"query": MATCH})["hits"]
    rescored = index.search({"query": MATCH, "rescore": {"window_size": 2, **RESCORE}})["hits"]
    found = index.search({"retriever": rescorer(STANDARD, 2)})["hits"]
    assert found["total"] == first["total"]
    assert found["hits"] == rescored["hits"][:2]
    few = index.search({"retriever": rescorer(STANDARD, 2), "min_score": rescored["hits"][0]["_score"]})
    assert few["hits"]["hits"] == rescored["hits"][:1]


def test_a_rescorer_in_other_retrievers_and_others_in_it(index: Index) -> None:
    own = ids(index.search({"retriever": rescorer(STANDARD, 2)}))
    whole = {"rrf": {"retrievers": [rescorer(STANDARD, 2)], "rank_window_size": 2}}
    assert ids(index.search({"retriever": whole})) == own
    twice = index.search({"retriever": rescorer(rescorer(STANDARD, 2), 2)})["hits"]["hits"]
    once = index.search({"retriever": rescorer(STANDARD, 2)})["hits"]["hits"]
    dog = index.search({"query": {"match": {"t": "dog"}}})["hits"]["hits"]
    more = {hit["_id"]: 10 * hit["_score"] for hit in dog}
    assert {hit["_id"]: hit["_score"] for hit in twice} == pytest.approx(
        {hit["_id"]: hit["_score"] + more.get(hit["_id"], 0.0) for hit in once}
    )
    of_both = {"rrf": {"retrievers": [STANDARD, {"knn": KNN}], "rank_window_size": 2}}
    assert len(ids(index.search({"retriever": rescorer(of_both, 2)}))) == 2


def test_retrievers_inside_each_other(index: Index) -> None:
    inner = {"rrf": {"retrievers": [STANDARD, {"knn": KNN}]}}
    everything = {"retriever": {"standard": {}}, "weight": 0.5}
    linear = {"retrievers": [{"retriever": inner, "weight": 2, "normalizer": "minmax"}, everything]}
    answer = index.search({"retriever": {"linear": linear}})
    assert ids(answer)[0] == "2"
    assert answer["hits"]["max_score"] == 2.5
    assert len(ids(answer)) == 4


def test_a_standard_retriever_is_a_search_in_other_words(index: Index) -> None:
    standard = {"query": MATCH, "filter": {"term": {"n": 1}}, "sort": ["n"]}
    answer = index.search({"retriever": {"standard": standard}})
    assert [hit["sort"] for hit in answer["hits"]["hits"]] == [[1]]
    assert ids(index.search({"retriever": {"standard": {"query": MATCH, "min_score": 100}}})) == []
    assert ids(index.search({"retriever": {"knn": KNN}})) == ["1", "2"]
    assert ids(index.search({"retriever": {"knn": {**KNN, "min_score": 0.9}}})) == ["1"]


def test_what_has_no_vectors_is_not_near(index: Index) -> None:
    assert ids(index.search({"knn": {**KNN, "field": "unmapped"}})) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"k": 0}, "[k] must be greater than 0"),
        ({"k": 11}, "[num_candidates] cannot be less than [k]"),
        ({"num_candidates": 10_001}, "[num_candidates] cannot exceed [10000]"),
        ({"field": None}, "Required [field]"),
        ({"query_vector": None}, "either [query_vector_builder] or [query_vector] must be provided"),
        ({"shown": {}}, "[knn] unknown field [shown]"),
        (
            {"query_vector": [1, 2, 3]},
            "failed to create query: The query vector has a different number of dimensions [3] than the "
            "document vectors [2].",
        ),
        (
            {"field": "plain"},
            "failed to create query: to perform knn search on field [plain], its mapping must have [index] "
            "set to [true]",
        ),
        (
            {"field": "t"},
            "failed to create query: [knn] queries are only supported on [dense_vector] fields",
        ),
        (
            {"query_vector": [0, 0]},
            "failed to create query: The [cosine] similarity does not support vectors with zero magnitude. "
            "Preview of invalid vector: [0.0, 0.0]",
        ),
    ],
)
def test_what_knn_refuses(index: Index, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError) as refused:
        index.search({"knn": {**KNN, **changes}})
    assert refused.value.reason == reason
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"retriever": STANDARD, "query": MATCH, "knn": KNN}, "cannot specify [retriever] and [query, knn]"),
        (
            {"retriever": {"rrf": {"retrievers": [STANDARD], "rank_window_size": 5}}, "size": 10},
            "[rrf] requires [rank_window_size: 5] be greater than or equal to [size: 10]",
        ),
        (
            {"query": MATCH, "rank": {"rrf": {}}},
            "[rank] requires a minimum of [2] result sets using a combination of sub searches and/or knn "
            "searches",
        ),
        (
            {"query": MATCH, "knn": KNN, "rank": {"rrf": {}}, "sort": ["n"]},
            "[rank] cannot be used with [sort]",
        ),
        (
            {"query": MATCH, "knn": KNN, "rank": {"rrf": {"rank_window_size": 3}}},
            "[rank] requires [rank_window_size: 3] be greater than or equal to [size: 10]",
        ),
    ],
)
def test_what_does_not_go_together(index: Index, body: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError) as refused:
        index.search(body)
    assert refused.value.reason == f"Validation Failed: 1: {reason};"


def test_scorers_by_name() -> None:
    assert scorer_of("rrf") == ReciprocalRank(60)
    assert scorer_of("linear", [0.2, 0.8]) == Linear((0.2, 0.8), ("minmax", "minmax"))
    assert scorer_of("bayesian") == Bayesian()
    with pytest.raises(ValueError, match="unknown hybrid scorer 'best'"):
        scorer_of("best")
    with pytest.raises(ValueError, match="linear_weights must be two numbers"):
        scorer_of("linear", [1.0])
