"""Span queries and `intervals` against plain Python, which tries every place."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.query.interval_sources import together
from graphdb.search.query.intervals import _Lengths
from graphdb.search.query.positions import PositionLists, Term
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


RELATIONS: dict[str, Callable[[tuple[int, int], tuple[int, int]], bool]] = {
    "after": lambda a, b: b[1] <= a[0],
    "before": lambda a, b: a[1] <= b[0],
    "contained_by": lambda a, b: b[0] <= a[0] and a[1] <= b[1],
    "containing": lambda a, b: a[0] <= b[0] and b[1] <= a[1],
    "overlapping": lambda a, b: a[0] < b[1] and b[0] < a[1],
    # Lucene's: also in b, or with a part of a b that ends later
    "not_containing": lambda a, b: b[0] < a[1] and (b[0] >= a[0] or b[1] >= a[1]),
}


@settings(max_examples=60, deadline=None)
@given(
    texts,
    some,
    st.one_of(WORDS, some),
    st.sampled_from(sorted(RELATIONS.keys() - {"not_containing"})),
    st.booleans(),
)
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
        relates = RELATIONS["not_containing" if negated and relation == "containing" else relation]
        if any(any(relates(a, b) for b in second) != negated for a in first):
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
        ({"intervals": {"t": {"match": {"query": "a", "filter": {"script": "x"}}}}}, "expects an object"),
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
    rule = together(terms, ordered, limit)
    is_slow = not ordered and 1 < len(set(words)) < len(words)
    for source in (_Lengths(rule), rule, Near(terms, max(limit, 0), ordered)):
        assert (source.near() is None) == (is_slow and not isinstance(source, Near))
        for leaf in index.searcher.leaves:
            counted = frequencies(source, leaf, index.searcher, 2)
            lists = PositionLists(leaf, index.searcher, np.arange(leaf.segment.size, dtype=np.int32))
            for doc in range(leaf.segment.size):
                spans = source.spans(lists, doc)
                assert counted[doc] == np.float32(sum(1.0 / (1 + max(slack - 2, 0)) for *_, slack in spans))


def runs(text: str, word: str, times: int) -> list[tuple[int, int]]:
    """From each place of a word to the place of the last of so many."""
    own = sorted(places(text, word))
    return [(own[at][0], own[at + times - 1][1]) for at in range(len(own) - times + 1)]


@settings(max_examples=60, deadline=None)
@given(texts, WORDS, WORDS, st.integers(2, 3), st.integers(0, 3))
def test_words_that_repeat(docs: list[str], word: str, other: str, times: int, gaps: int) -> None:
    """They stand at different places; the gaps between them count."""
    rule = {"match": {"query": " ".join([word] * times), "max_gaps": gaps}}
    expected = [
        number
        for number, text in enumerate(docs)
        if any(end - start - times <= gaps for start, end in runs(text, word, times))
    ]
    assert found(docs, {"intervals": {"t": rule}}) == expected
    if other == word:
        return
    rule = {"match": {"query": " ".join([word, other] + [word] * (times - 1)), "max_gaps": gaps}}
    expected = []
    for number, text in enumerate(docs):
        pairs = product(runs(text, word, times), places(text, other))
        near = minimal({(min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs})
        if any(end - start - times - 1 <= gaps for start, end in near):
            expected.append(number)
    assert found(docs, {"intervals": {"t": rule}}) == expected


@settings(max_examples=60, deadline=None)
@given(texts, some, st.integers(0, 5), st.integers(0, 3))
def test_scripts_choose_intervals(docs: list[str], words: list[str], first: int, gaps: int) -> None:
    source = (
        "interval.start >= params.first && interval.end - interval.start > 0 && interval.gaps <= params.gaps"
    )
    script = {"source": source, "params": {"first": first, "gaps": gaps}}
    rule = {"match": {"query": " ".join(words), "filter": {"script": script}}}
    expected = [
        number
        for number, text in enumerate(docs)
        if any(
            start >= first and end - start - len(words) <= gaps
            for start, end in minimal({(s, e) for s, e, _ in all_near(text, words, False)})
        )
    ]
    assert found(docs, {"intervals": {"t": rule}}) == expected


def scores_of(docs: list[str], rule: dict[str, Any]) -> list[tuple[str, float]]:
    hits = Index(FIELDS, [{"t": text} for text in docs]).hits(query={"intervals": {"t": rule}})
    return [(hit["_id"], round(hit["_score"], 4)) for hit in hits]


def test_what_elasticsearch_scores_is_scored() -> None:
    """Answers of Elasticsearch 8.19."""
    docs = ["a a", "a x a b", "b a a", "a b c"]
    assert scores_of(docs, {"match": {"query": "a a"}}) == [("0", 0.3333), ("2", 0.3333), ("1", 0.25)]
    whole = {"match": {"query": "a b"}}
    any_of = {"any_of": {"intervals": [whole, {"match": {"query": "a"}}]}}
    taken_out = {"all_of": {"intervals": [any_of, {"match": {"query": "c"}}], "max_gaps": 0}}
    assert scores_of(docs, taken_out) == [("3", 0.3333)]


@pytest.mark.parametrize("member", ["foo", "start"])
def test_scripts_that_say_no_boolean_are_refused(member: str) -> None:
    rule = {"match": {"query": "a", "filter": {"script": {"source": f"interval.{member}"}}}}
    with pytest.raises(SearchError, match="runtime error"):
        found(["a"], {"intervals": {"t": rule}})
