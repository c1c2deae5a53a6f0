"""What the highlighter shows."""

from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.query import parse_query
from graphdb.search.query.highlight import Highlighter
from tests.unit.search.query.corpus import Corpus

TEXT = "The quick fox runs. A dog sleeps in the sun all day long! The quick cat, quick as ever, eats."
SOURCE: dict[str, Any] = {
    "t": TEXT,
    "list": ["first fox", "no", "second fox & hen"],
    "k": "Fox",
    "o": {"deep": "a fox"},
    "n": 5,
}
MAPPING = {
    "properties": {
        "t": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        "list": {"type": "text"},
        "k": {"type": "keyword"},
        "o": {"properties": {"deep": {"type": "text"}}},
        "n": {"type": "integer"},
    }
}


def _shown(query: Any, **body: Any) -> dict[str, list[str]]:
    corpus = Corpus([SOURCE], MAPPING)
    parsed = parse_query(query, corpus.context)
    return Highlighter.of(body, parsed, corpus.context, corpus.searcher).fragments(SOURCE)


def _of(field: str, query: Any, **options: Any) -> list[str]:
    return _shown(query, fields={field: options}).get(field, [])


def test_sentences_around_the_matches() -> None:
    assert _of("t", {"match": {"t": "quick"}}, fragment_size=40) == [
        "The <em>quick</em> fox runs.",
        "The <em>quick</em> cat, <em>quick</em> as ever, eats.",
    ]


def test_short_sentences_share_a_fragment() -> None:
    assert _of("t", {"match": {"t": "quick"}}) == [
        "The <em>quick</em> fox runs. A dog sleeps in the sun all day long! The <em>quick</em> cat, "
        "<em>quick</em> as ever, eats."
    ]


def test_long_sentences_are_cut_at_words() -> None:
    assert _of("t", {"match": {"t": "sun"}}, fragment_size=12) == ["sleeps in the <em>sun</em>"]


def test_the_best_fragment_first() -> None:
    options = {"fragment_size": 40, "order": "score", "number_of_fragments": 1}
    assert _of("t", {"match": {"t": "quick"}}, **options) == [
        "The <em>quick</em> cat, <em>quick</em> as ever, eats."
    ]


def test_whole_values() -> None:
    assert _of("list", {"match": {"list": "fox"}}, number_of_fragments=0) == [
        "first <em>fox</em>",
        "second <em>fox</em> & hen",
    ]


def test_fragments_end_with_their_value() -> None:
    assert _of("list", {"match": {"list": "fox"}}) == ["first <em>fox</em>", "second <em>fox</em> & hen"]


def test_tags_and_encoder() -> None:
    body = {"pre_tags": ["<b>"], "post_tags": "</b>", "encoder": "html", "fields": {"list": {}}}
    assert _shown({"match": {"list": "hen"}}, **body) == {"list": ["second fox &amp; <b>hen</b>"]}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"match_phrase": {"t": "quick cat"}}, "<em>quick cat</em>, quick as ever, eats."),
        ({"match_phrase_prefix": {"t": "quick ca"}}, "<em>quick cat</em>, quick as ever, eats."),
        (
            {"match_phrase": {"t": {"query": "cat eats", "slop": 3}}},
            "quick <em>cat, quick as ever, eats</em>.",
        ),
        ({"prefix": {"t": "ea"}}, "quick cat, quick as ever, <em>eats</em>."),
        ({"wildcard": {"t": "?at"}}, "quick <em>cat</em>, quick as ever, eats."),
        ({"regexp": {"t": "ev.r"}}, "quick cat, quick as <em>ever</em>, eats."),
        ({"fuzzy": {"t": "evr"}}, "quick cat, quick as <em>ever</em>, eats."),
        (
            {"bool": {"filter": {"term": {"t": "cat"}}, "must_not": {"term": {"t": "ever"}}}},
            "quick <em>cat</em>, quick as ever, eats.",
        ),
    ],
)
def test_every_kind_of_query(query: dict[str, Any], expected: str) -> None:
    assert _of("t", query, fragment_size=40) == ["The " + expected]


def test_fields_by_pattern_and_by_what_they_match() -> None:
    query = {"multi_match": {"query": "fox", "fields": ["t", "o.deep"]}}
    assert set(_shown(query, fields={"*": {}})) == {"t", "o.deep"}
    assert _of("list", query) == []
    assert len(_of("list", query, require_field_match=False)) == 2
    assert _of("k", {"term": {"k": "Fox"}}) == ["<em>Fox</em>"]
    assert _of("t.raw", {"prefix": {"t.raw": "The quick"}}, number_of_fragments=0) == [f"<em>{TEXT}</em>"]


def test_another_query_and_nothing_matched() -> None:
    query: dict[str, Any] = {"match_all": {}}
    assert _of("o.deep", query, highlight_query={"match": {"o.deep": "fox"}}) == ["a <em>fox</em>"]
    assert _of("t", query) == []
    assert _of("t", query, no_match_size=6) == ["The quick"]


@pytest.mark.parametrize(
    "body", [[], {"fields": {"t": 1}}, {"fields": {"t": {"x": 1}}}, {"fields": {"t": {"type": "z"}}}]
)
def test_what_is_refused(body: Any) -> None:
    corpus = Corpus([SOURCE], MAPPING)
    with pytest.raises(SearchError):
        Highlighter.of(body, parse_query({"match_all": {}}, corpus.context), corpus.context, corpus.searcher)
