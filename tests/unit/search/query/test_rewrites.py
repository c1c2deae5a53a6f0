"""`rewrite`, fuzzy words, and the two query strings, beside what Elasticsearch 8.19 answered.

`rewrite_answers.json` has the documents, the mapping and each query with its hits and their scores.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.query import parse_query
from tests.unit.search.query.corpus import Corpus

FACTS = json.loads(Path(__file__).with_name("rewrite_answers.json").read_text())
TEXTS = ["a b", "b c", "c a", "a-b x", "ab (c", "zeta"]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus(FACTS["documents"], FACTS["mappings"], 3)


@pytest.fixture(scope="module")
def texts() -> Corpus:
    whitespace = {"type": "text", "analyzer": "whitespace"}
    return Corpus([{"t": text} for text in TEXTS], {"properties": {"t": whitespace}}, 2)


@pytest.mark.parametrize(("query", "hits"), FACTS["answers"], ids=lambda value: json.dumps(value)[:80])
def test_hits_and_scores_are_elasticsearchs(corpus: Corpus, query: Any, hits: dict[str, float]) -> None:
    assert dict(corpus.hits(query)) == pytest.approx(hits, rel=2e-5)


@pytest.mark.parametrize("rewrite", ["top_terms", "top_terms_x", "best", ""])
def test_rewrites_that_are_none(corpus: Corpus, rewrite: str) -> None:
    with pytest.raises(SearchError, match="Failed to parse rewrite_method"):
        parse_query({"prefix": {"t": {"value": "q", "rewrite": rewrite}}}, corpus.context)


@pytest.mark.parametrize("rewrite", ["top_terms_0", "top_terms_boost_0", "top_terms_blended_freqs_0"])
def test_the_best_of_no_terms_are_none(corpus: Corpus, rewrite: str) -> None:
    for kind, text in (("prefix", "q"), ("wildcard", "q*")):
        assert corpus.hits({kind: {"t": {"value": text}}}) != []
        assert corpus.hits({kind: {"t": {"value": text, "rewrite": rewrite}}}) == []


def _found(corpus: Corpus, text: str, **members: Any) -> set[str]:
    body = {"query": text, "fields": ["t"], "default_operator": "and", **members}
    return {key for key, _ in corpus.hits({"simple_query_string": body})}


@pytest.mark.parametrize(
    ("text", "flags", "found"),
    [
        ("a b", "ALL", {"0"}),
        ("a | c", "ALL", {"0", "1", "2"}),
        ("a | c", "NONE", set()),  # one word with spaces, of which the analyzer makes three
        ("a +b", "AND|WHITESPACE", {"0"}),
        ("b -c", "NOT|WHITESPACE", {"0"}),
        ("a-b", "WHITESPACE", {"3"}),
        ("(a | b) c", "ALL", {"1", "2"}),
        ("(c", "WHITESPACE", {"4"}),
        ("(c", "ALL", {"1", "2"}),  # what is never closed counts for nothing
        ("))a((", "ALL", {"0", "2"}),
        ('"b c"', "PHRASE", {"1"}),
        ("zet*", "PREFIX", {"5"}),
        ("zet*", "WHITESPACE", set()),
        ("zeto~1", "FUZZY", {"5"}),
        ("zeto~1", "WHITESPACE", set()),
        ("((((a))))", "PRECEDENCE", {"0", "2"}),
        ("", "ALL", set()),
    ],
)
def test_flags_say_which_signs_count(texts: Corpus, text: str, flags: str, found: set[str]) -> None:
    assert _found(texts, text, flags=flags) == found


def test_an_unknown_flag_is_refused(texts: Corpus) -> None:
    with pytest.raises(SearchError, match="Unknown simple_query_string flag"):
        _found(texts, "a", flags="AND|MAYBE")


@pytest.mark.parametrize("text", ["(" * 20_000, "a|" * 20_000, '"' * 20_001, "~" * 20_000, "(a" * 20_000])
def test_long_texts_of_signs_end_soon(texts: Corpus, text: str) -> None:
    """They are read once, and too many words are refused."""
    try:
        _found(texts, text)
    except SearchError as error:
        assert error.kind == "too_many_nested_clauses"  # noqa: PT017 - most are no error
