"""Queries by exact values: terms in postings (one, several, synonyms that count as one, booleans), numbers in
columns, `_id`s, and fields that exist.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from graphdb.search.leaf_reader import Bools, Doubles, Floats, Ints, Leaf, NumberColumn, exact_numbers
from graphdb.search.query import kernels
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.other_scores import (
    Norms,
    Scorer,
    otherwise_explained,
    scored_as_one,
    scored_otherwise,
)
from graphdb.search.query.searcher import (
    FieldStatistics,
    Searcher,
    idf,
    idf_explained,
    score,
    score_explained,
)
from graphdb.search.query.tree import Matches, Query

__all__ = [
    "BooleanQuery",
    "ExistsQuery",
    "IdsQuery",
    "KeywordQuery",
    "NumberRangeQuery",
    "NumbersQuery",
    "SynonymQuery",
    "TermQuery",
    "TermsQuery",
    "bm25",
    "column_of",
    "field_scores",
    "of_terms",
    "values_between",
]

NO_NORMS = 1  # the norm byte that Lucene takes where a field has none
FREQUENCY = "freq, occurrences of term within document"
_NO_DOCS = np.zeros(0, np.int32)
_NO_DOCS.setflags(write=False)  # as the postings: loops are compiled for one kind


@dataclass(frozen=True, kw_only=True)
class TermQuery(Query):
    """One term of a text field, scored by BM25.

    doc_freq, where not None, stands for the number of documents that hold it: several terms share one where
    Lucene blends them.
    """

    path: str
    term: str
    doc_freq: int | None = None

    def scored_by(self) -> Iterable[tuple[str, str]]:
        return [(self.path, self.term)]

    def weight(self, searcher: Searcher, boost: float) -> np.float32:
        """The score that it tends to as the term gets more frequent."""
        if boost * self.boost == 1.0 and self.doc_freq is None:  # as mostly
            return searcher.weight(self.path, self.term)
        n = searcher.doc_freq(self.path, self.term) if self.doc_freq is None else self.doc_freq
        statistics = searcher.statistics(self.path)
        return statistics.weight(boost * self.boost, idf(n, statistics.doc_count))

    def postings(self, leaf: Leaf) -> tuple[Ints, Ints] | None:
        """Documents and frequencies in a leaf; None where it lacks the term."""
        index = leaf.segment.text(self.path)
        number = -1 if index is None else index.dictionary.find(self.term)
        return None if index is None or number < 0 else index.postings(number)

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        scores = np.zeros(leaf.segment.size, dtype=np.float64)
        counts = np.zeros(leaf.segment.size, dtype=np.int32)
        self.accumulate(leaf, searcher, boost, scores, counts)
        return Matches(counts > 0, scores.astype(np.float32))

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        mask = np.zeros(leaf.segment.size, dtype=np.bool_)
        kernels.mark(mask, self.docs_in(leaf, searcher))
        return mask

    def _otherwise(self, leaf: Leaf, searcher: Searcher, boost: float) -> tuple[Ints, Floats] | None:
        """`listed_in` where the field does not score by BM25."""
        if searcher.other_similarity(self.path) is None:
            return None
        postings, index = self.postings(leaf), leaf.segment.text(self.path)
        if postings is None or index is None:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        (docs, freqs), terms = postings, (self.term,)
        boost, norms = boost * self.boost, index.norms[docs]
        scores = scored_as_one(searcher, self.path, terms, freqs, norms, boost, self.doc_freq)
        return None if scores is None else (docs, scores)

    def listed_in(self, leaf: Leaf, searcher: Searcher, boost: float) -> tuple[Ints, Floats]:
        if (other := self._otherwise(leaf, searcher, boost)) is not None:
            return other
        postings, index = self.postings(leaf), leaf.segment.text(self.path)
        if postings is None or index is None:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        inverse, weight = searcher.inverse_norms(self.path), self.weight(searcher, boost)
        return postings[0], kernels.term_scores(*postings, index.norms, inverse, weight)

    def docs_in(self, leaf: Leaf, searcher: Searcher) -> Ints:
        index = leaf.segment.text(self.path)
        number = -1 if index is None else index.dictionary.find(self.term)
        return _NO_DOCS if index is None or number < 0 else index.docs_of(number)

    def accumulate(self, leaf: Leaf, searcher: Searcher, boost: float, scores: Doubles, counts: Ints) -> None:
        if (other := self._otherwise(leaf, searcher, boost)) is not None:
            scores[other[0]] += other[1]
            counts[other[0]] += 1
            return
        postings, index = self.postings(leaf), leaf.segment.text(self.path)
        if postings is None or index is None:
            return
        inverse, weight = searcher.inverse_norms(self.path), self.weight(searcher, boost)
        kernels.accumulate(scores, counts, *postings, index.norms, inverse, weight)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        postings, index = self.postings(leaf), leaf.segment.text(self.path)
        place = (
            -1 if postings is None else int(kernels.find_sorted(np.array([doc], np.int32), postings[0])[0])
        )
        if place < 0 or postings is None or index is None:
            return no_match()
        statistics, freq, norm = (
            searcher.statistics(self.path),
            float(postings[1][place]),
            int(index.norms[doc]),
        )
        if (other := self._otherwise(leaf, searcher, boost)) is not None:
            value = float(other[1][place])
            return otherwise_explained(searcher, self.path, value, freq, norm, boost * self.boost)
        n = searcher.doc_freq(self.path, self.term) if self.doc_freq is None else self.doc_freq
        inner = score_explained(
            boost * self.boost,
            idf_explained(n, statistics.doc_count),
            explained(freq, FREQUENCY),
            norm,
            statistics,
        )
        return explained(inner["value"], _weight_of(self.text(), leaf.shown_number(doc)), [inner])

    def text(self) -> str:
        return f"{self.path}:{self.term}"


def _weight_of(text: str, doc: int) -> str:
    return f"weight({text} in {doc}) [PerFieldSimilarity], result of:"


@dataclass(frozen=True, kw_only=True)
class KeywordQuery(Query):
    """One term of a field that has neither frequencies nor norms: all matches score the same."""

    path: str
    term: str
    doc_freq: int | None = None

    def scored_by(self) -> Iterable[tuple[str, str]]:
        return [(self.path, self.term)]

    def _doc_freq(self, searcher: Searcher) -> int:
        return searcher.doc_freq(self.path, self.term) if self.doc_freq is None else self.doc_freq

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        return Matches(self.mask(leaf, searcher), None, self._score(searcher, boost * self.boost))

    def _score(self, searcher: Searcher, boost: float) -> float:
        once, norms = np.ones(1, np.float32), np.full(1, NO_NORMS, np.uint8)
        other = scored_as_one(searcher, self.path, (self.term,), once, norms, boost, self.doc_freq)
        if other is not None:
            return float(other[0])
        statistics = searcher.statistics(self.path)
        weight = statistics.weight(boost, idf(self._doc_freq(searcher), statistics.doc_count))
        return float(score(weight, 1.0, searcher.inverse_norms(self.path)[NO_NORMS]))

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        mask = np.zeros(leaf.segment.size, dtype=np.bool_)
        index = leaf.segment.terms(self.path)
        number = -1 if index is None else index.dictionary.find(self.term)
        if index is not None and number >= 0:
            kernels.mark(mask, index.postings(number))
        return mask

    def docs_in(self, leaf: Leaf, searcher: Searcher) -> Ints:
        index = leaf.segment.terms(self.path)
        number = -1 if index is None else index.dictionary.find(self.term)
        return _NO_DOCS if index is None or number < 0 else index.postings(number)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        if not self.mask(leaf, searcher)[doc]:
            return no_match()
        statistics, boost = searcher.statistics(self.path), boost * self.boost
        if searcher.other_similarity(self.path) is not None:
            value = self._score(searcher, boost)
            return otherwise_explained(searcher, self.path, value, 1.0, NO_NORMS, boost)
        idf_part = idf_explained(self._doc_freq(searcher), statistics.doc_count)
        freq = explained(1.0, FREQUENCY)
        inner = score_explained(boost, idf_part, freq, NO_NORMS, statistics)
        return explained(inner["value"], _weight_of(self.text(), leaf.shown_number(doc)), [inner])

    def text(self) -> str:
        return f"{self.path}:{self.term}"


@dataclass(frozen=True, kw_only=True)
class BooleanQuery(Query):
    """A value of a boolean field, which Lucene indexes as the terms F and T and scores as such."""

    path: str
    value: bool

    def _statistics(self, searcher: Searcher) -> tuple[int, FieldStatistics]:
        """(n, statistics) over all leaves."""
        return searcher.keep(("boolean", self.path, self.value), lambda: self._count(searcher))

    def _count(self, searcher: Searcher) -> tuple[int, FieldStatistics]:
        n, other, either = map(sum, zip(*searcher.ask(_Booleans(self)), strict=True))
        return n, FieldStatistics(either, n + other)

    def counts(self, searcher: Searcher) -> tuple[int, int, int]:
        """How many documents of these leaves have the value, the other one, and any."""
        n = other = either = 0
        for leaf in searcher.leaves:
            having = [self._having(leaf, value) for value in (self.value, not self.value)]
            if leaf.counted is not None:
                having = [mask & leaf.counted for mask in having]
            n, other = n + int(having[0].sum()), other + int(having[1].sum())
            either += int((having[0] | having[1]).sum())
        return n, other, either

    def _having(self, leaf: Leaf, value: bool) -> Bools:
        column = leaf.segment.ints(self.path)
        if column is None:
            return np.zeros(leaf.segment.size, dtype=np.bool_)
        return values_between(column, value, value)

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        n, statistics = self._statistics(searcher)
        weight = statistics.weight(boost * self.boost, idf(n, statistics.doc_count))
        constant = score(weight, 1.0, statistics.inverse_norms()[NO_NORMS])
        return Matches(self._having(leaf, self.value), None, float(constant))

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        return self._having(leaf, self.value)

    def text(self) -> str:
        return f"{self.path}:{'T' if self.value else 'F'}"


@dataclass(frozen=True, slots=True)
class _Booleans:
    """How often the values of a boolean field are in a shard."""

    query: BooleanQuery

    def answered(self, searcher: Searcher) -> tuple[int, int, int]:
        return self.query.counts(searcher)


@dataclass(frozen=True, kw_only=True)
class TermsQuery(Query):
    """Any of several terms of a text or keyword field; every match scores the boost."""

    path: str
    terms: tuple[str, ...]

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        mask = np.zeros(leaf.segment.size, dtype=np.bool_)
        text, keyword = leaf.segment.text(self.path), leaf.segment.terms(self.path)
        index = text or keyword
        numbers = [] if index is None else [index.dictionary.find(term) for term in self.terms]
        for number in numbers:
            if number >= 0 and text is not None:
                kernels.mark(mask, text.postings(number)[0])
            elif number >= 0 and keyword is not None:
                kernels.mark(mask, keyword.postings(number))
        return Matches(mask, None, boost * self.boost)

    def text(self) -> str:
        return f"{self.path}:({' '.join(self.terms)})"


@dataclass(frozen=True, kw_only=True)
class SynonymQuery(Query):
    """Terms of a text field that stand for one another: their frequencies add up, the rarest counts for none.

    Source: Lucene's SynonymQuery: n is the largest of theirs.
    """

    path: str
    terms: tuple[str, ...]

    def scored_by(self) -> Iterable[tuple[str, str]]:
        return [(self.path, term) for term in self.terms]

    def _doc_freq(self, searcher: Searcher) -> int:
        return max(searcher.doc_freq(self.path, term) for term in self.terms)

    def frequencies(self, leaf: Leaf) -> Floats:
        """By document how often any of the terms is in it."""
        freqs = np.zeros(leaf.segment.size, dtype=np.float32)
        for term in self.terms:
            postings = TermQuery(path=self.path, term=term).postings(leaf)
            if postings is not None:
                freqs[postings[0]] += postings[1]
        return freqs

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        return field_scores(
            leaf, self.path, self.frequencies(leaf), self._scorer(searcher, boost * self.boost)
        )

    def _scorer(self, searcher: Searcher, boost: float) -> Scorer:
        def score_them(freqs: Floats, norms: Norms) -> Floats:
            other = scored_as_one(searcher, self.path, self.terms, freqs, norms, boost)
            if other is not None:
                return other
            statistics = searcher.statistics(self.path)
            weight = statistics.weight(boost, idf(self._doc_freq(searcher), statistics.doc_count))
            return bm25(weight, freqs, searcher.inverse_norms(self.path)[norms])

        return score_them

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        freq, index = float(self.frequencies(leaf)[doc]), leaf.segment.text(self.path)
        if not freq or index is None:
            return no_match()
        statistics = searcher.statistics(self.path)
        if searcher.other_similarity(self.path) is not None:
            value, norm = float(self.matches(leaf, searcher, boost).dense()[doc]), int(index.norms[doc])
            return otherwise_explained(searcher, self.path, value, freq, norm, boost * self.boost)
        inner = score_explained(
            boost * self.boost,
            idf_explained(self._doc_freq(searcher), statistics.doc_count),
            explained(freq, "termFreq=" + str(freq)),
            int(index.norms[doc]),
            statistics,
        )
        return explained(inner["value"], _weight_of(self.text(), leaf.shown_number(doc)), [inner])

    def text(self) -> str:
        return f"Synonym({' '.join(f'{self.path}:{term}' for term in self.terms)})"


def field_scores(leaf: Leaf, path: str, freqs: Floats, scorer: Scorer) -> Matches:
    """Matches where freqs, one for each document, is not 0, scored by it and by the norms of a text field."""
    index, mask = leaf.segment.text(path), freqs > 0
    if index is None:
        return Matches(mask)
    docs = np.flatnonzero(mask)
    scores = np.zeros(leaf.segment.size, dtype=np.float32)
    scores[docs] = scorer(freqs[docs], index.norms[docs])
    return Matches(mask, scores)


def of_terms(
    searcher: Searcher,
    path: str,
    terms: Iterable[tuple[str, str]],
    boost: float,
    idf_sum: Callable[[], np.float32],
) -> Scorer:
    """What scores several terms, (path, term), that are found together as one: a phrase, a span."""

    def score_them(freqs: Floats, norms: Norms) -> Floats:
        other = scored_otherwise(searcher, path, [term for _, term in terms], freqs, norms, boost)
        if other is not None:
            return other
        weight = searcher.statistics(path).weight(boost, idf_sum())
        return bm25(weight, freqs, searcher.inverse_norms(path)[norms])

    return score_them


def bm25(weight: np.float32, freqs: Floats, inverse: Floats) -> Floats:
    """The scores of documents, each with its frequency and the inverse of its norm."""
    saturation = np.float32(1) + freqs * inverse
    scores: Floats = weight - weight / saturation
    return scores


# Numbers, `_id`s and existing fields.


def column_of(leaf: Leaf, path: str, exact: str = "") -> NumberColumn | None:
    """The numbers of a field, whole or not. exact: the type of a field whose `exact_numbers` are meant."""
    if exact:
        return exact_numbers(leaf.segment, path, exact)
    return leaf.segment.ints(path) or leaf.segment.floats(path)


def values_between(column: NumberColumn, low: float, high: float) -> Bools:
    """Which documents have a value in [low, high], both included."""
    kind = column.values.dtype.type
    least, most = kind(low), kind(high)
    if column.starts is None:
        return kernels.between(column.values, least, most)
    return kernels.any_between(column.values, column.starts, least, most)


@dataclass(frozen=True, kw_only=True)
class NumberRangeQuery(Query):
    """A number in [low, high], both included; every match scores the boost."""

    path: str
    low: float  # int where the field has whole numbers
    high: float
    exact: str = ""  # see column_of

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        return Matches(self.mask(leaf, searcher), None, boost * self.boost)

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        column = column_of(leaf, self.path, self.exact)
        if column is None or self.low > self.high:
            return np.zeros(leaf.segment.size, dtype=np.bool_)
        return values_between(column, self.low, self.high)

    def text(self) -> str:
        return f"{self.path}:[{self.low} TO {self.high}]"


@dataclass(frozen=True, kw_only=True)
class NumbersQuery(Query):
    """Any of several numbers; every match scores the boost."""

    path: str
    values: tuple[float, ...]
    exact: str = ""  # see column_of

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        mask, column = np.zeros(leaf.segment.size, dtype=np.bool_), column_of(leaf, self.path, self.exact)
        if column is not None and len(column.values):
            wanted = np.array(sorted(set(self.values)), dtype=column.values.dtype)
            found = np.isin(column.values, wanted)
            starts = column.starts
            if starts is None:
                mask = found
            else:
                before = np.concatenate(([0], np.cumsum(found)))
                mask = before[starts[1:]] > before[starts[:-1]]
        return Matches(mask, None, boost * self.boost)

    def text(self) -> str:
        return f"{self.path}:{{{' '.join(str(value) for value in self.values)}}}"


@dataclass(frozen=True, kw_only=True)
class IdsQuery(Query):
    """Documents by `_id`; every match scores the boost."""

    ids: tuple[str, ...]

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        mask = np.zeros(leaf.segment.size, dtype=np.bool_)
        docs = [leaf.segment.find(doc_id) for doc_id in self.ids]
        mask[[doc for doc in docs if doc >= 0]] = True
        return Matches(mask, None, boost * self.boost)

    def text(self) -> str:
        return f"_id:({' '.join(self.ids)})"


@dataclass(frozen=True, kw_only=True)
class ExistsQuery(Query):
    """Documents with a value for any of the paths; every match scores the boost. A path stands for those
    below it too, unless it is one of `alone`.
    """

    paths: tuple[str, ...]
    alone: frozenset[str] = frozenset()

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        mask = np.zeros(leaf.segment.size, dtype=np.bool_)
        for path in self.paths:
            segment = leaf.segment
            mask |= segment.having_itself(path) if path in self.alone else segment.having(path)
        return Matches(mask, None, boost * self.boost)

    def text(self) -> str:
        return " ".join(f"FieldExistsQuery [field={path}]" for path in self.paths)
