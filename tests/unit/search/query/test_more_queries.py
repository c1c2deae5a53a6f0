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


def test_more_like_this_needs_an_example(index: Index) -> None:
    with pytest.raises(SearchError, match="requires 'like'"):
        like(index)


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
