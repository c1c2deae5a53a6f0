"""What a mapping keeps of a text: no lengths, no frequencies, no places. Scores are Elasticsearch 8.19's."""

from typing import Any

import pytest

from graphdb.search.errors import SearchError
from tests.unit.search.results.index import Index

FIELDS: dict[str, Any] = {
    "plain": {"type": "text"},
    "short": {"type": "text", "norms": False},
    "once": {"type": "text", "index_options": "docs"},
    "both": {"type": "text", "index_options": "docs", "norms": False},
    "often": {"type": "text", "index_options": "freqs"},
    "r": {"type": "integer_range"},
    "k": {"type": "keyword"},
}
TEXTS = ["a", "a b c d e f", "a a b", ["a b", "b c d"], "c", ""]


@pytest.fixture(scope="module")
def index() -> Index:
    documents = [{name: text for name in FIELDS if name not in ("r", "k")} for text in TEXTS]
    return Index(FIELDS, [*documents, {"r": {"gte": 2, "lt": 5}, "k": "x"}, {"k": "y"}])


def scores(index: Index, **query: Any) -> dict[str, float]:
    return {hit["_id"]: round(hit["_score"], 5) for hit in index.hits(query=query)}


def test_without_norms_all_texts_are_as_long(index: Index) -> None:
    found = scores(index, match={"short": "a"})
    assert found["0"] == found["1"] == found["3"] < found["2"]
    assert len(set(scores(index, match={"plain": "a"}).values())) == 4


def test_without_frequencies_a_term_counts_once_and_so_does_its_length(index: Index) -> None:
    found = scores(index, match={"once": "a"})
    assert found["0"] > found["2"] > found["3"] > found["1"]  # of one, two, four and six terms
    assert len(set(scores(index, match={"both": "a"}).values())) == 1


def test_elasticsearch_scores_alike(index: Index) -> None:
    assert scores(index, match={"short": "a b"}) == {"3": 1.31903, "2": 1.24029, "1": 1.15016, "0": 0.40025}
    assert scores(index, match={"once": "a b"}) == {"2": 0.93609, "3": 0.70336, "1": 0.56331, "0": 0.39034}
    assert scores(index, match={"both": "a b"}) == {"1": 1.12166, "2": 1.12166, "3": 1.12166, "0": 0.39034}


@pytest.mark.parametrize("field", ["once", "both", "often"])
def test_without_places_there_are_no_phrases(index: Index, field: str) -> None:
    with pytest.raises(SearchError, match="indexed without position data"):
        index.hits(query={"match_phrase": {field: "a b"}})
    assert scores(index, match_phrase={field: "a"}) == scores(index, match={field: "a"})


def test_the_best_score_is_told_where_it_is_the_only_order(index: Index) -> None:
    query = {"match": {"plain": "a"}}
    assert index.search({"query": query, "sort": ["_score"]})["hits"]["max_score"] is not None
    assert index.search({"query": query, "sort": ["_score", "_doc"]})["hits"]["max_score"] is None
    tracked = {"query": query, "sort": ["_score", "_doc"], "track_scores": True}
    assert index.search(tracked)["hits"]["max_score"] is not None


def test_every_term_may_score(index: Index) -> None:
    every = {"value": "*", "rewrite": "scoring_boolean"}
    assert scores(index, wildcard={"k": every}) == scores(index, terms={"k": []}) | {
        **scores(index, term={"k": "x"}), **scores(index, term={"k": "y"}),
    }  # fmt: skip
    assert len(scores(index, wildcard={"k": {"value": "*", "rewrite": "top_terms_1"}})) == 1
    assert scores(index, wildcard={"k": "*"}) == {"6": 1.0, "7": 1.0}


def test_a_star_in_a_query_string_asks_for_its_fields(index: Index) -> None:
    assert set(scores(index, query_string={"query": "*", "fields": ["k"]})) == {"6", "7"}
    assert scores(index, query_string={"query": "*", "fields": ["k", "r^2"]}) == {"6": 2.0, "7": 1.0}
    assert len(scores(index, query_string={"query": "*"})) == len(TEXTS) + 2
    assert len(scores(index, query_string={"query": "*:*", "fields": ["k"]})) == len(TEXTS) + 2
    assert scores(index, query_string={"query": "*", "fields": ["none"]}) == {}


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"range": {"r": {"gte": 3.5}}}, "Value .3.5. has a decimal part"),
        ({"range": {"r": {"lt": 10**12}}}, "is out of range for an integer"),
        ({"term": {"r": 3.5}}, "Value .3.5. has a decimal part"),
    ],
)
def test_bounds_of_whole_ranges_are_whole(index: Index, query: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError, match=reason) as refused:
        index.hits(query=query)
    assert refused.value.reason.count("failed to create query") == 1
    assert set(scores(index, range={"r": {"gte": 3.0, "lte": "4"}})) == {"6"}
