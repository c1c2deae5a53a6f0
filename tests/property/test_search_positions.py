"""Span queries and `intervals` against plain Python, which tries every place."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.query.intervals import MaxGaps, Together, _Lengths
from graphdb.search.query.positions import PositionLists, PositionSource, Term
from graphdb.search.query.spans import Near, frequencies
from tests.unit.search.results.index import Index

FIELDS = {"t": {"type": "text"}, "k": {"type": "keyword"}, "u": {"type": "text"}}
WORDS = st.sampled_from("abcd")
texts = st.lists(st.lists(WORDS, max_size=8).map(" ".join), max_size=6)
some = st.lists(WORDS, min_size=2, max_size=3, unique=True)

Places = set[tuple[int, int]]


def places(text: str, word: str) -> Places:
    return {(place, place + 1) for place, own in enumerate(text.split()) if own == word}


def found(docs: list[str], query: dict[str, Any]) -> list[int]:
    hits = Index(FIELDS, [{"t": text} for text in docs]).hits(query=query, size=50, _source=False)
    return sorted(int(hit["_id"]) for hit in hits)


def minimal(every: Places) -> Places:
    return {(s, e) for s, e in every if not any((s, e) != (a, b) and s <= a and b <= e for a, b in every)}


def all_near(text: str, words: list[str], ordered: bool) -> set[tuple[int, int, int]]:
    """(start, end, positions between) of every choice of one place for each word."""
    every = set()
    for chosen in product(*(places(text, word) for word in words)):
        starts = [start for start, _ in chosen]
        if not ordered or starts == sorted(starts):
            low, high = min(starts), max(starts) + 1
            every.add((low, high, high - low - len(words)))
    return every


def windows(text: str, words: list[str]) -> Places:
    """From each place of a word to the last of the next places of all: what Lucene looks at."""
    every = set()
    for begin, _ in set().union(*(places(text, word) for word in words)):
        following = [[place for place in places(text, word) if place[0] >= begin] for word in words]
        if all(following):
            every.add((begin, max(min(own)[1] for own in following)))
    return every


def span(word: str) -> dict[str, Any]:
    return {"span_term": {"t": word}}


@settings(max_examples=60, deadline=None)
@given(texts, some, st.integers(0, 3), st.booleans())
def test_words_near_to_each_other(docs: list[str], words: list[str], slop: int, ordered: bool) -> None:
    near = {"span_near": {"clauses": [span(word) for word in words], "slop": slop, "in_order": ordered}}
    close = [
        number
        for number, text in enumerate(docs)
        if any(between <= slop for _, _, between in all_near(text, words, ordered))
    ]
    assert found(docs, near) == close
    rule = {"match": {"query": " ".join(words), "max_gaps": slop, "ordered": ordered}}
    least = [
        number
        for number, text in enumerate(docs)
        if any(
            end - start - len(words) <= slop
            for start, end in minimal({(s, e) for s, e, _ in all_near(text, words, ordered)})
        )
    ]
    assert found(docs, {"intervals": {"t": rule}}) == least


RELATIONS = {
    "after": lambda a, b: b[1] <= a[0],
    "before": lambda a, b: a[1] <= b[0],
    "contained_by": lambda a, b: b[0] <= a[0] and a[1] <= b[1],
    "containing": lambda a, b: a[0] <= b[0] and b[1] <= a[1],
    "overlapping": lambda a, b: a[0] < b[1] and b[0] < a[1],
}


@settings(max_examples=60, deadline=None)
@given(texts, some, st.one_of(WORDS, some), st.sampled_from(sorted(RELATIONS)), st.booleans())
def test_filters_of_intervals(
    docs: list[str], words: list[str], other: str | list[str], relation: str, negated: bool
) -> None:
    negated = negated and relation not in ("after", "before")
    others = [other] if isinstance(other, str) else other
    body = {"match": {"query": " ".join(others)}}
    rule = {"match": {"query": " ".join(words), "filter": {f"not_{relation}" if negated else relation: body}}}
    expected = []
    for number, text in enumerate(docs):
        first = minimal({(s, e) for s, e, _ in all_near(text, words, False)})
        second = minimal({(s, e) for s, e, _ in all_near(text, others, False)})
        if any(any(RELATIONS[relation](a, b) for b in second) != negated for a in first):
            expected.append(number)
    assert found(docs, {"intervals": {"t": rule}}) == expected


@settings(max_examples=60, deadline=None)
@given(texts, some, WORDS, st.integers(0, 2), st.integers(0, 2))
def test_spans_in_and_out_of_others(
    docs: list[str], words: list[str], other: str, before: int, after: int
) -> None:
    one = words[0]
    near = {"span_near": {"clauses": [span(word) for word in words], "slop": 2, "in_order": False}}
    bodies = {
        "span_not": {"include": span(one), "exclude": span(other), "pre": before, "post": after},
        "span_first": {"match": span(one), "end": before + 1},
        "span_within": {"big": near, "little": span(other)},
        "span_containing": {"big": near, "little": span(other)},
        "span_or": {"clauses": [span(one), span(other)]},
    }
    for kind, body in bodies.items():
        expected = []
        for number, text in enumerate(docs):
            own, others = places(text, one), places(text, other)
            big = {(s, e) for s, e in windows(text, words) if e - s - len(words) <= 2}
            holds = {
                "span_not": any(
                    all(b[1] <= a[0] - before or a[1] + after <= b[0] for b in others) for a in own
                ),
                "span_first": any(end <= before + 1 for _, end in own),
                "span_within": any(RELATIONS["contained_by"](b, a) for a in big for b in others),
                "span_containing": any(RELATIONS["containing"](a, b) for a in big for b in others),
                "span_or": bool(own | others),
            }
            if holds[kind]:
                expected.append(number)
        assert found(docs, {kind: body}) == expected, kind


def test_scores_are_those_of_terms_and_phrases() -> None:
    docs = [{"t": "red fox and red fox"}, {"t": "red hen fox"}, {"t": "blue"}, {"t": "fox red"}]
    index = Index(FIELDS, docs)

    def scores(query: dict[str, Any]) -> list[tuple[str, float]]:
        return [(hit["_id"], hit["_score"]) for hit in index.hits(query=query, explain=True)]

    assert scores(span("red")) == scores({"term": {"t": "red"}})
    near = {"span_near": {"clauses": [span("red"), span("fox")], "slop": 0}}
    assert scores(near) == scores({"match_phrase": {"t": "red fox"}})
    (hit,) = index.hits(query={"span_term": {"t": {"value": "blue", "boost": 2}}}, explain=True)
    assert hit["_explanation"]["value"] == pytest.approx(hit["_score"])
    rule = {"match": {"query": "red fox", "ordered": True}}
    found = dict(scores({"intervals": {"t": {**rule, "boost": 2}}}))
    assert found == {"0": pytest.approx(2 * 2 / 3), "1": pytest.approx(2 * 0.5 / 1.5)}


def test_gaps_patterns_and_other_fields() -> None:
    docs = [{"t": "quick brown fox", "u": "x"}, {"t": "quick fox"}, {"t": "fox quack"}, {"u": "quick fox"}]
    index = Index(FIELDS, docs)
    gap = {"span_near": {"clauses": [span("quick"), {"span_gap": {"t": 1}}, span("fox")], "slop": 0}}
    assert index.ids(query=gap) == ["0"]
    multi = {"span_multi": {"match": {"prefix": {"t": "qua"}}}}
    near = {"span_near": {"clauses": [multi, span("fox")], "in_order": False, "slop": 0}}
    assert index.ids(query=near) == ["2"]
    masked = {"span_field_masking": {"query": {"span_term": {"u": "x"}}, "field": "t"}}
    both = {"span_near": {"clauses": [span("quick"), masked], "in_order": False, "slop": 5}}
    assert index.ids(query=both) == ["0"]
    words: list[dict[str, Any]] = [
        {"prefix": {"prefix": "QUI"}},
        {"wildcard": {"pattern": "qu?ck"}},
        {"fuzzy": {"term": "quikc"}},
        {"regexp": {"pattern": "qu[i]ck"}},
        {"range": {"gte": "qui", "lt": "quil"}},
        {"match": {"query": "quick"}},
    ]
    for word in words:
        rule = {"all_of": {"ordered": True, "max_gaps": 0, "intervals": [word, {"match": {"query": "fox"}}]}}
        assert index.ids(query={"intervals": {"t": rule}}) == ["1"], word
    other = {"match": {"query": "quick fox", "use_field": "u"}}
    assert index.ids(query={"intervals": {"t": other}}) == ["3"]
    either = {"any_of": {"intervals": [{"match": {"query": "brown"}}, {"match": {"query": "quack"}}]}}
    assert sorted(index.ids(query={"intervals": {"t": either}})) == ["0", "2"]
    twice = {"match": {"query": "fox fox"}}
    assert index.ids(query={"intervals": {"t": twice}}) == []
    (hit,) = index.hits(query={"intervals": {"t": either}}, size=1, highlight={"fields": {"t": {}}})
    assert hit["highlight"]["t"] == ["quick <em>brown</em> fox"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"span_near": {"clauses": [{"match": {"t": "a"}}]}}, "must be of type span query"),
        ({"span_near": {"clauses": []}}, "must include \\[clauses\\]"),
        ({"span_near": {"clauses": [span("a"), {"span_term": {"u": "a"}}]}}, "must have same field"),
        ({"span_or": {"clauses": [{"span_term": {"t": {"value": "a", "boost": 2}}}]}}, "non-default boost"),
        ({"span_or": {"clauses": [span("a")] * 1024}}, "too many nested clauses"),
        ({"span_first": {"match": span("a")}}, "must have \\[end\\] set"),
        ({"span_multi": {"match": {"term": {"t": "a"}}}}, "multi term query"),
        (
            {"intervals": {"t": {"match": {"query": "a"}, "prefix": {"prefix": "a"}}}},
            "Only one interval rule",
        ),
        ({"intervals": {"t": {"any_of": {"intervals": [{"x": {}}]}}}}, "Unknown interval type \\[x\\]"),
        ({"intervals": {"k": {"match": {"query": "a"}}}}, "Can only use interval queries on text fields"),
        ({"intervals": {"t": {"match": {"query": "a", "filter": {"script": {}}}}}}, "not supported"),
    ],
)
def test_what_is_refused(query: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        found(["a b"], query)


# The compiled loop against the same sources in Python.

PAIRS = st.lists(st.lists(WORDS, min_size=1, max_size=12).map(" ".join), min_size=1, max_size=6)


@settings(max_examples=100, deadline=None)
@given(
    PAIRS,
    st.lists(WORDS, min_size=2, max_size=4),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2]),
)
def test_terms_near_each_other_are_counted_alike(
    docs: list[str], words: list[str], ordered: bool, limit: int
) -> None:
    index = Index(FIELDS, [{"t": text} for text in docs])
    terms = tuple(Term("t", word) for word in words)
    together: PositionSource = Together(terms, ordered, adjacent=ordered and limit == 0)
    together = together if limit < 0 or (ordered and limit == 0) else MaxGaps(together, limit)
    for source in (_Lengths(together), together, Near(terms, max(limit, 0), ordered)):
        near = source.near()
        assert (near is None) == (
            not ordered and not isinstance(source, Near) and len(set(words)) < len(words)
        )
        for leaf in index.searcher.leaves:
            counted = frequencies(source, leaf, index.searcher, 2)
            lists = PositionLists(leaf, index.searcher, np.arange(leaf.segment.size, dtype=np.int32))
            for doc in range(leaf.segment.size):
                spans = source.spans(lists, doc)
                assert counted[doc] == np.float32(sum(1.0 / (1 + max(slack - 2, 0)) for *_, slack in spans))
