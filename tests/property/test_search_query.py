"""Queries against naive twins in plain Python: the same documents, the same scores."""

import fnmatch
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.query.parse import PARSERS
from graphdb.search.query.passages import SEPARATOR, Breaks, Match, best_passages, marked
from graphdb.search.query.regexp import Regexp
from graphdb.search.query.searcher import LENGTHS, TermCodes
from tests.unit.search.query.corpus import Corpus

WORDS = ["ant", "bee", "cat", "dog"]
MAPPING = {"properties": {"t": {"type": "text"}, "k": {"type": "keyword"}, "n": {"type": "integer"}}}

documents = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "t": st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join),
            "k": st.lists(st.sampled_from(WORDS), max_size=3),
            "n": st.lists(st.integers(-3, 3), max_size=3),
        },
    ),
    min_size=1,
    max_size=12,
)
leaves = st.one_of(
    st.sampled_from(WORDS).map(lambda w: {"match": {"t": w}}),
    st.lists(st.sampled_from(WORDS), min_size=2, max_size=3).map(lambda w: {"match": {"t": " ".join(w)}}),
    st.lists(st.sampled_from(WORDS), min_size=2, max_size=3).map(
        lambda w: {"match_phrase": {"t": " ".join(w)}}
    ),
    st.sampled_from(WORDS).map(lambda w: {"term": {"k": w}}),
    st.lists(st.sampled_from(WORDS)).map(lambda w: {"terms": {"k": w}}),
    st.tuples(st.integers(-4, 4), st.integers(-4, 4)).map(
        lambda p: {"range": {"n": {"gte": p[0], "lt": p[1]}}}
    ),
    st.sampled_from(["t", "k", "n"]).map(lambda f: {"exists": {"field": f}}),
    st.just({"match_all": {}}),
)


def _bools(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    clauses = st.lists(inner, max_size=2)
    members = {name: clauses for name in ("must", "filter", "should", "must_not")}
    both = {
        "must": st.lists(inner, min_size=1, max_size=2),
        "should": st.lists(inner, min_size=1, max_size=2),
    }
    return st.one_of(
        st.fixed_dictionaries(both, optional={"filter": clauses}).map(lambda body: {"bool": body}),
        st.fixed_dictionaries({}, optional=members).map(lambda body: {"bool": body}),
        st.tuples(inner, st.sampled_from([0.5, 2.0])).map(
            lambda p: {"constant_score": {"filter": p[0], "boost": p[1]}}
        ),
        st.tuples(st.lists(inner, min_size=1, max_size=3), st.sampled_from([0.0, 0.25])).map(
            lambda p: {"dis_max": {"queries": p[0], "tie_breaker": p[1]}}
        ),
    )


queries = st.recursive(leaves, _bools, max_leaves=6)


def _length(length: int) -> float:
    """As far as a norm byte tells lengths apart."""
    return float(max(known for known in LENGTHS if known <= length))


class Twin:
    """Scores one document at a time, from the documents as they are."""

    def __init__(self, docs: list[dict[str, Any]]) -> None:
        self.docs = docs
        self.texts = [doc.get("t", "").split() for doc in docs]

    def _bm25(self, lengths: list[int], freqs: list[float], idf: float) -> list[float | None]:
        having = [length for length in lengths if length]
        average = sum(having) / max(1, len(having))
        return [
            2.2 * idf * freq / (freq + 1.2 * (0.25 + 0.75 * _length(length) / average)) if freq else None
            for freq, length in zip(freqs, lengths, strict=True)
        ]

    def _idf(self, n: int, count: int) -> float:
        return math.log(1 + (count - n + 0.5) / (n + 0.5))

    def _words(self, words: list[str], phrase: bool) -> list[float | None]:
        lengths = [len(text) for text in self.texts]
        count = sum(1 for length in lengths if length)
        n = [sum(1 for text in self.texts if word in text) for word in words]
        idf = [self._idf(own, count) if own else 0.0 for own in n]
        if not phrase:
            each = [
                self._bm25(lengths, [float(text.count(word)) for text in self.texts], own)
                for word, own in zip(words, idf, strict=True)
            ]
            return [_sum(column) for column in zip(*each, strict=True)]
        size = len(words)
        freqs = [
            float(sum(text[i : i + size] == words for i in range(len(text) - size + 1)))
            for text in self.texts
        ]
        return self._bm25(lengths, freqs, sum(idf))

    def _keyword(self, word: str) -> list[float | None]:
        sets = [set(doc.get("k", [])) for doc in self.docs]
        count, total = sum(1 for own in sets if own), sum(len(own) for own in sets)
        n = sum(1 for own in sets if word in own)
        tf = 1 / (1 + 1.2 * (0.25 + 0.75 / (total / max(1, count)))) if total else 0.0
        return [2.2 * self._idf(n, count) * tf if word in own else None for own in sets]

    def scores(self, query: dict[str, Any]) -> list[float | None]:
        ((kind, body),) = query.items()
        return list(getattr(self, "_" + kind)(body))

    def _match(self, body: Any) -> list[float | None]:
        return self._words(body["t"].split(), phrase=False)

    def _match_phrase(self, body: Any) -> list[float | None]:
        return self._words(body["t"].split(), phrase=True)

    def _term(self, body: Any) -> list[float | None]:
        return self._keyword(body["k"])

    def _terms(self, body: Any) -> list[float | None]:
        return [1.0 if set(doc.get("k", [])) & set(body["k"]) else None for doc in self.docs]

    def _range(self, body: Any) -> list[float | None]:
        low, high = body["n"]["gte"], body["n"]["lt"]
        return [1.0 if any(low <= n < high for n in doc.get("n", [])) else None for doc in self.docs]

    def _exists(self, body: Any) -> list[float | None]:
        """A text without words is there all the same."""
        values = [doc.get(body["field"]) for doc in self.docs]
        return [1.0 if value or value == "" else None for value in values]

    def _match_all(self, body: Any) -> list[float | None]:
        return [1.0] * len(self.docs)

    def _constant_score(self, body: Any) -> list[float | None]:
        return [None if score is None else body["boost"] for score in self.scores(body["filter"])]

    def _dis_max(self, body: Any) -> list[float | None]:
        columns = zip(*(self.scores(one) for one in body["queries"]), strict=True)
        met = [[score for score in column if score is not None] for column in columns]
        tie = body["tie_breaker"]
        return [max(own) * (1 - tie) + sum(own) * tie if own else None for own in met]

    def _bool(self, body: Any) -> list[float | None]:
        parts = {name: [self.scores(one) for one in body.get(name, [])] for name in _CLAUSES}
        if not any(parts.values()):
            return [1.0] * len(self.docs)
        result: list[float | None] = []
        for doc in range(len(self.docs)):
            own = {name: [scores[doc] for scores in part] for name, part in parts.items()}
            wrong = None in own["must"] or None in own["filter"]
            wrong |= any(score is not None for score in own["must_not"])
            needed = bool(own["should"]) and not own["must"] and not own["filter"]
            wrong |= needed and _sum(own["should"]) is None
            result.append(None if wrong else _sum([0.0, *own["must"], *own["should"]]))
        return result


_CLAUSES = ("must", "filter", "should", "must_not")


def _sum(scores: Any) -> float | None:
    met = [score for score in scores if score is not None]
    return sum(met) if met else None


@given(documents, queries, st.integers(1, 3))
@settings(max_examples=300, deadline=None)
def test_any_query_scores_as_its_twin(docs: list[dict[str, Any]], query: dict[str, Any], parts: int) -> None:
    corpus = Corpus(docs, MAPPING, min(parts, len(docs)))
    found = dict(corpus.hits(query))
    expected = {str(doc): score for doc, score in enumerate(Twin(docs).scores(query)) if score is not None}
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)


@given(documents, queries)
@settings(max_examples=150, deadline=None)
def test_an_explanation_has_the_score_of_the_hit(docs: list[dict[str, Any]], query: dict[str, Any]) -> None:
    corpus = Corpus(docs, MAPPING, 1)
    for doc, score in corpus.explained(query).items():
        assert dict(corpus.hits(query)).get(doc) == (
            None if score is None else pytest.approx(score, rel=1e-6)
        )


@given(documents, queries, st.integers(0, 4))
@settings(max_examples=100, deadline=None)
def test_the_best_k_are_the_head_of_all(docs: list[dict[str, Any]], query: dict[str, Any], k: int) -> None:
    corpus = Corpus(docs, MAPPING, 1)
    every = corpus.hits(query)
    assert corpus.hits(query, k) == every[:k]
    assert every == sorted(every, key=lambda hit: (-hit[1], int(hit[0])))


class _Listed:
    """A dictionary over a list."""

    def __init__(self, terms: list[str]) -> None:
        self._terms = terms

    def __len__(self) -> int:
        return len(self._terms)

    def find(self, term: str) -> int:
        return self._terms.index(term) if term in self._terms else -1

    def lower_bound(self, term: str) -> int:
        return sum(one < term for one in self._terms)

    def term(self, number: int) -> str:
        return self._terms[number]

    def terms(self, start: int, stop: int) -> Any:
        return iter(self._terms[start:stop])


def _status(ask: Callable[[], object]) -> int:
    """200, or that of the SearchError with which it fails."""
    try:
        ask()
    except SearchError as error:
        return error.status
    return 200


short = st.text("abé", max_size=7)


@given(st.lists(short, min_size=1, max_size=20), st.text("ab*?", max_size=8))
@settings(deadline=None)
def test_wildcards_match_as_globs(terms: list[str], pattern: str) -> None:
    ordered = sorted(set(terms))
    codes = TermCodes.of(_Listed(ordered))
    signs = {"*": 0x110001, "?": 0x110000}
    wanted = np.array([signs.get(sign, ord(sign)) for sign in pattern], dtype=np.uint32)
    expected = [fnmatch.fnmatchcase(term, pattern) for term in ordered]
    assert codes.glob(wanted, 0, len(ordered)).tolist() == expected


def _edits(one: str, other: str, swaps: bool) -> int:
    """The table, in full."""
    table = {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(other) + 1)}
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            same = one[i - 1] == other[j - 1]
            cost = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (not same))
            if swaps and i > 1 and j > 1 and one[i - 2 : i] == other[j - 1] + other[j - 2]:
                cost = min(cost, table[i - 2, j - 2] + 1)
            table[i, j] = cost
    return table[len(one), len(other)]


@given(st.lists(short, min_size=1, max_size=20), short, st.booleans(), st.integers(0, 2))
@settings(deadline=None)
def test_edit_distances_are_those_of_the_whole_table(
    terms: list[str], term: str, swaps: bool, most: int
) -> None:
    ordered = sorted(set(terms))
    found = TermCodes.of(_Listed(ordered)).distances(term, 0, most, swaps, 0, len(ordered))
    assert found.tolist() == [min(most + 1, _edits(one, term, swaps)) for one in ordered]


expressions = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "()"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}|{p[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{1,}"])).map(
            lambda p: f"({p[0]}){p[1]}"
        ),
    ),
    max_leaves=6,
)


@given(expressions, st.lists(st.text("abc", max_size=6), min_size=1, max_size=8))
@settings(max_examples=300, deadline=None)
def test_regular_expressions_match_as_those_of_python(pattern: str, terms: list[str]) -> None:
    regexp, known = Regexp(pattern), re.compile(pattern)
    for term in terms:
        assert regexp.matches(term) == bool(known.fullmatch(term))
        assert not regexp.matches(term) or term.startswith(regexp.prefix)


@given(expressions, expressions, st.text("abc", max_size=6))
@settings(deadline=None)
def test_complements_and_intersections_are_those_of_sets(one: str, other: str, term: str) -> None:
    in_one, in_other = (bool(re.fullmatch(pattern, term)) for pattern in (one, other))
    assert Regexp(f"~({one})").matches(term) != in_one
    assert Regexp(f"({one})&({other})").matches(term) == (in_one and in_other)


@given(st.text('ab*?[]{}()|&~<>@#."\\-1,^', max_size=20), st.text("ab1", max_size=10))
@settings(max_examples=300, deadline=None)
def test_no_expression_does_other_than_match_or_fail_well(pattern: str, term: str) -> None:
    assert _status(lambda: Regexp(pattern).matches(term)) in (200, 400)


@given(st.text('ab :()"+-*?~^/[]{}\\<>=|&!ANDORT', max_size=30))
@settings(max_examples=300, deadline=None)
def test_no_query_string_does_other_than_match_or_fail_well(text: str) -> None:
    corpus = Corpus([{"t": "ant bee"}], MAPPING)
    corpus.hits({"simple_query_string": {"query": text, "fields": ["t"]}})
    assert _status(lambda: corpus.hits({"query_string": {"query": text, "fields": ["t"]}})) in (200, 400)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.sampled_from(["t", "n", "ant", ""]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["t", "n", "query", "value", "gte", "boost", "fields", "path"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
KINDS = sorted(PARSERS)


@given(st.sampled_from(KINDS), json_values)
@settings(max_examples=600, deadline=None)
def test_no_body_does_other_than_match_or_fail_well(kind: str, body: Any) -> None:
    corpus = Corpus([{"t": "ant bee", "n": 1}], MAPPING)
    assert _status(lambda: corpus.hits({kind: body})) in (200, 400)


@given(
    st.text("ab. \n" + SEPARATOR, min_size=1, max_size=120),
    st.lists(st.tuples(st.integers(0, 119), st.integers(1, 5)), min_size=1, max_size=6),
    st.integers(1, 40),
)
@settings(deadline=None)
def test_passages_are_in_order_and_hold_every_match_once(
    text: str, spans: list[tuple[int, int]], size: int
) -> None:
    matches = [Match(start, min(len(text), start + n), "x") for start, n in spans if start < len(text)]
    passages = best_passages(text, matches, Breaks(text, size), len(text), by_score=False)
    ends = [passage.end for passage in passages]
    assert all(before <= passage.start for before, passage in zip(ends, passages[1:], strict=False))
    assert Counter(match for passage in passages for match in passage.matches) == Counter(matches)
    for passage in passages:
        assert all(passage.start <= match.start and match.end <= passage.end for match in passage.matches)
        plain = marked(text, passage, "", "", escape=False)
        assert plain == text[passage.start : passage.end].strip(" \t\n\r" + SEPARATOR)
