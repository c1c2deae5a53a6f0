"""`more_like_this` and `terms_set`; values in queries as a normalizer writes them."""

from dataclasses import replace
from typing import Any

import pytest

from graphdb.search.errors import SearchError
from tests.unit.search.results.index import Index

FIELDS = {
    "t": {"type": "text"},
    "k": {"type": "keyword"},
    "need": {"type": "integer"},
}
DOCS: list[dict[str, Any]] = [
    {"t": "amber amber wave", "k": ["a", "b"], "need": 1},
    {"t": "amber field of grain", "k": ["a", "c"], "need": 2},
    {"t": "purple mountain amber", "k": ["a", "b", "c"], "need": 2},
    {"t": "the fruited plain", "k": ["d"], "need": 1},
    {"t": "amber light, amber night", "k": ["b"]},
]


@pytest.fixture(scope="module")
def index() -> Index:
    index = Index(FIELDS, DOCS)

    def lookup(name: str, doc_id: str, path: str, routing: str | None) -> list[Any]:
        value = DOCS[int(doc_id)].get(path, [])
        return value if isinstance(value, list) else [value]

    index.context = replace(index.context, terms_lookup=lookup)
    return index


def like(index: Index, **members: Any) -> set[str]:
    return set(index.ids(query={"more_like_this": {"fields": ["t"], "min_doc_freq": 1, **members}}))


def test_terms_have_to_be_frequent_enough_in_the_text(index: Index) -> None:
    assert like(index, like="amber amber mountain") == {"0", "1", "2", "4"}
    assert like(index, like="amber amber mountain", min_term_freq=1, minimum_should_match=2) == {"2"}
    assert like(index, like="amber mountain") == set()


def test_what_is_given_is_not_found_unless_included(index: Index) -> None:
    assert like(index, like={"_id": "0"}) == {"1", "2", "4"}
    assert like(index, like={"_id": "0"}, include=True) == {"0", "1", "2", "4"}


def test_rare_terms_may_be_left_out_and_unlike_takes_terms_away(index: Index) -> None:
    assert like(index, like="amber amber plain plain", max_doc_freq=2) == {"3"}
    assert like(index, like="amber amber plain plain", unlike="amber") == {"3"}
    assert like(index, like=[{"doc": {"t": "plain plain"}}]) == {"3"}


def scored(index: Index, **members: Any) -> list[tuple[str, float]]:
    clause = {"fields": ["t"], "min_doc_freq": 1, "min_term_freq": 1, **members}
    hits = index.hits(query={"more_like_this": clause})
    return [(hit["_id"], round(hit["_score"], 4)) for hit in hits]


def test_what_elasticsearch_finds_and_scores_alike(index: Index) -> None:
    """Answers of Elasticsearch 8.19 of these documents."""
    some = "0%"  # of the terms
    two = {"like": "amber grain plain", "max_query_terms": 2, "minimum_should_match": some}
    assert scored(index, **two) == [("3", 1.4564), ("1", 1.293)]
    # The least term has the boost itself, and a rarer one more.
    assert scored(index, like="amber grain", boost_terms=2, minimum_should_match=some) == [
        ("1", 5.1266),
        ("0", 0.8182),
        ("4", 0.7537),
        ("2", 0.6045),
    ]
    # A term of a text is looked for in the field that has it most often; each document's in its own.
    assert scored(index, like="a amber", fields=["t", "k"], minimum_should_match=some) == [
        ("0", 1.0679),
        ("2", 0.961),
        ("1", 0.9271),
        ("4", 0.3769),
    ]
    given = {"doc": {"t": "plain", "k": ["b", "d"]}}
    assert scored(index, like=given, minimum_should_match=some) == [
        ("3", 3.1507),
        ("0", 0.6588),
        ("2", 0.6588),
        ("4", 0.6588),
    ]
    # Texts and documents each need the minimum of their own terms.
    both = ["plain fruited", {"_id": "2"}]
    assert scored(index, like=both, minimum_should_match="100%") == [("3", 2.9128)]
    as_written = {"doc": {"t": "amber GRAIN"}, "per_field_analyzer": {"t": "whitespace"}}
    assert [doc for doc, _ in scored(index, like=as_written)] == ["0", "4", "2", "1"]
    # Without documents to like, those not to like are not looked at.
    unliked = {"unlike": {"_id": "3"}, "minimum_should_match": some}
    assert scored(index, like="plain", **unliked) == [("3", 1.4564)]
    assert scored(index, like=[given, "plain"], **unliked) == [
        ("3", 1.6944),
        ("0", 0.6588),
        ("2", 0.6588),
        ("4", 0.6588),
    ]


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({}, "requires 'like'"),
        ({"like": {}}, "neither \\[id\\] nor \\[doc\\] is specified"),
        ({"like": {"_id": "1", "doc": {}}}, "can be specified, but not both"),
        ({"like": {"_id": "1", "x": 1}}, "unknown field \\[x\\]"),
        ({"like": "amber", "fields": ["need"]}, "only supports text/keyword fields: \\[need\\]"),
        ({"like": "amber", "fields": ["t^2"]}, "No analyzer configured for field t\\^2"),
        ({"like": "amber", "fields": None}, "cannot infer the field"),
    ],
)
def test_more_like_this_refuses(index: Index, members: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        like(index, **members)


def test_fields_that_hold_no_terms_may_be_left_out(index: Index) -> None:
    assert like(index, like="amber", fields=["need"], fail_on_unsupported_field=False) == set()


def test_of_equal_terms_those_are_chosen_that_elasticsearch_chooses() -> None:
    """By the order of a Java HashMap, of Lucene's queue; answers of Elasticsearch 8.19."""
    words = [f"w{number}" for number in range(40)]
    index = Index({"t": {"type": "text"}}, [{"t": word} for word in words])
    clause = {"fields": ["t"], "like": " ".join(words), "min_doc_freq": 1, "min_term_freq": 1}
    clause |= {"max_query_terms": 7, "minimum_should_match": 1}
    assert set(index.ids(query={"more_like_this": clause}, size=50)) == {
        "10",
        "11",
        "13",
        "30",
        "31",
        "32",
        "33",
    }


def test_each_document_says_how_many_terms_it_needs(index: Index) -> None:
    body = {"k": {"terms": ["a", "b"], "minimum_should_match_field": "need"}}
    assert set(index.ids(query={"terms_set": body})) == {"0", "2"}
    fixed = {"k": {"terms": ["a", "b", "c"], "minimum_should_match": 3}}
    assert index.ids(query={"terms_set": fixed}) == ["2"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"k": {"terms": ["a"]}}, "No minimum should match has been specified"),
        ({"k": {"terms": ["a"], "minimum_should_match_field": "zz"}}, "failed to find"),
        ({"k": {"terms": "a", "minimum_should_match": 1}}, "an array of values"),
    ],
)
def test_terms_set_refuses(index: Index, body: Any, reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        index.ids(query={"terms_set": body})


@pytest.fixture(scope="module")
def lowered() -> Index:
    fields = {"k": {"type": "keyword", "normalizer": "lowercase"}, "t": {"type": "text"}}
    return Index(fields, [{"k": "Apple", "t": "Apple"}, {"k": "BANANA", "t": "banana"}, {"k": "c*D"}])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"range": {"k": {"gte": "APPLE", "lt": "B"}}}, {"0"}),
        ({"range": {"k": {"gt": "APPLE", "lte": "BANANA"}}}, {"1"}),
        ({"fuzzy": {"k": {"value": "APPEL"}}}, {"0"}),
        ({"fuzzy": {"k": {"value": "APPLE", "fuzziness": 0}}}, {"0"}),
        ({"regexp": {"k": "BAN.*"}}, {"1"}),
        ({"regexp": {"k": {"value": "BAN.*", "case_insensitive": True}}}, {"1"}),
        ({"prefix": {"k": "APP"}}, {"0"}),
        ({"wildcard": {"k": "B*NA"}}, {"1"}),
        ({"wildcard": {"k": "C\\*D"}}, {"2"}),
        ({"terms": {"k": ["APPLE", "C*D"]}}, {"0", "2"}),
        ({"query_string": {"query": "k:[APPLE TO B]"}}, {"0"}),
        ({"query_string": {"query": "k:/BAN.*/"}}, {"1"}),
        ({"query_string": {"query": "k:B?NANA"}}, {"1"}),
        ({"query_string": {"query": "t:[APPLE TO B]"}}, {"0"}),
        ({"query_string": {"query": "t:>=BA"}}, {"1"}),
        ({"simple_query_string": {"query": "BANA*", "fields": ["k"]}}, {"1"}),
        # The bounds of a text, its prefixes and patterns are its terms, as they are.
        ({"range": {"t": {"gte": "APPLE", "lt": "B"}}}, set()),
        ({"wildcard": {"t": "B*"}}, set()),
    ],
)
def test_values_are_written_as_the_normalizer_does(
    lowered: Index, query: dict[str, Any], found: set[str]
) -> None:
    assert set(lowered.ids(query=query)) == found


def test_query_string_takes_fields_or_a_default_one(lowered: Index) -> None:
    both = {"query": "apple", "fields": ["k"], "default_field": "t"}
    with pytest.raises(SearchError, match="in conjunction with \\[default_field\\]"):
        lowered.ids(query={"query_string": both})
    assert lowered.ids(query={"query_string": {**both, "fields": []}}) == ["0"]
