"""`more_like_this` and `terms_set`."""

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
