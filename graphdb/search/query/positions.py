"""Where things stand in a text: what span queries and `intervals` are made of.

A source gives the spans of a document: (start, end, slack), by start and then by end; end is exclusive. slack
is how loose a span is: of a term 0, else what the kind of source says. What a document costs grows with the
number of its positions times its logarithm, however sources are nested.
"""

import itertools
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.leaf_reader import Bools, Ints, Leaf, Longs
from graphdb.search.query.dictionary_queries import DictionaryQuery, FuzzyQuery
from graphdb.search.query.kernels import find_sorted
from graphdb.search.query.near_terms import TermsNear
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import TermQuery
from graphdb.search.query.tree import Query

__all__ = [
    "AnyOf",
    "ManyTerms",
    "OfPart",
    "OfParts",
    "PositionLists",
    "PositionSource",
    "Span",
    "Spans",
    "Term",
    "check_size",
    "has_end_after",
    "has_inside",
    "queries_of",
    "smallest_windows",
    "terms_near",
    "terms_of",
    "without_containing",
]

Span = tuple[int, int, int]
Spans = list[Span]

SOURCES_MAX = 1_024  # of one query
EXPANSIONS_MAX = 1_024  # terms that one pattern may stand for


class PositionLists:
    """The positions of terms in some documents of a leaf, read once for each term."""

    def __init__(self, leaf: Leaf, searcher: Searcher, docs: Ints) -> None:
        self.leaf, self.searcher, self.docs = leaf, searcher, docs
        self._lists: dict[tuple[str, str], tuple[Longs, Longs, Ints] | None] = {}

    def of(self, path: str, term: str, row: int) -> list[int]:
        """In the document docs[row], ascending."""
        found = self.ranges(path, term)
        if found is None:
            return []
        starts, stops, positions = found
        listed: list[int] = positions[starts[row] : stops[row]].tolist()
        return listed

    def ranges(self, path: str, term: str) -> tuple[Longs, Longs, Ints] | None:
        """(starts, stops, positions): docs[row] has positions[starts[row]:stops[row]]; None: none has any."""
        key = path, term
        if key not in self._lists:
            self._lists[key] = self._read(path, term)
        return self._lists[key]

    def _read(self, path: str, term: str) -> tuple[Longs, Longs, Ints] | None:
        index = self.leaf.segment.text(path)
        number = -1 if index is None else index.dictionary.find(term)
        if index is None or number < 0:
            return None
        its_docs = index.postings(number)[0]
        starts, positions = index.positions(number)
        rows = find_sorted(self.docs, its_docs)
        known = np.maximum(rows, 0)
        begins = np.where(rows >= 0, starts[known], 0)
        return begins, np.where(rows >= 0, starts[known + 1], 0), positions


@dataclass(frozen=True, slots=True)
class PositionSource(ABC):
    """A node of an immutable tree."""

    @abstractmethod
    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        """Documents that may have spans: all that have some are among them."""

    @abstractmethod
    def spans(self, lists: PositionLists, row: int) -> Spans:
        """In the document lists.docs[row]."""

    def near(self) -> TermsNear | None:
        """The same, where it is no more than terms near to each other."""
        return None

    @property
    @abstractmethod
    def least(self) -> int:
        """How many positions a span has at least."""

    def sources(self) -> "tuple[PositionSource, ...]":
        """Those right below."""
        return ()

    def sought(self) -> "tuple[PositionSource, ...]":
        """Those right below whose places are part of what is found, for highlighting."""
        return self.sources()

    @abstractmethod
    def text(self) -> str:
        """As Lucene prints it."""


@dataclass(frozen=True, slots=True)
class OfPart(PositionSource):
    """One whose spans are some of those of a part, or are made of them."""

    part: PositionSource

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        return self.part.mask(leaf, searcher)

    @property
    def least(self) -> int:
        return self.part.least

    def sources(self) -> tuple[PositionSource, ...]:
        return (self.part,)


@dataclass(frozen=True, slots=True)
class OfParts(PositionSource):
    """One whose spans are made of one span of each part."""

    parts: tuple[PositionSource, ...]

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        mask = np.ones(leaf.segment.size, np.bool_)
        for part in self.parts:
            mask &= part.mask(leaf, searcher)
        return mask

    @property
    def least(self) -> int:
        return sum(part.least for part in self.parts)

    def sources(self) -> tuple[PositionSource, ...]:
        return self.parts


@dataclass(frozen=True, slots=True)
class Term(PositionSource):
    """One term of a text field."""

    path: str
    term: str

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        return TermQuery(path=self.path, term=self.term).mask(leaf, searcher)

    def spans(self, lists: PositionLists, row: int) -> Spans:
        return [(place, place + 1, 0) for place in lists.of(self.path, self.term, row)]

    @property
    def least(self) -> int:
        return 1

    def text(self) -> str:
        return f"{self.path}:{self.term}"


@dataclass(frozen=True, slots=True)
class ManyTerms(PositionSource):
    """The terms of a text field that a pattern, a prefix, a range or a likeness stands for."""

    query: DictionaryQuery | FuzzyQuery
    expansions_max: int = EXPANSIONS_MAX

    def terms(self, leaf: Leaf, searcher: Searcher) -> list[str]:
        """Those of one leaf. Errors: illegal_argument_exception where there are too many."""
        index = leaf.segment.text(self.query.path)
        if index is None:
            return []
        if isinstance(self.query, FuzzyQuery):
            return [
                term for term in _terms_of(self.query.rewritten(searcher)) if index.dictionary.find(term) >= 0
            ]
        numbers = self.query.chosen(leaf, index.dictionary, searcher)
        if len(numbers) > self.expansions_max:
            raise illegal_argument(
                f"Automaton [{self.query.text()}] expanded to too many terms (limit {self.expansions_max})"
            )
        return [index.dictionary.term(number) for number in numbers.tolist()]

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        self.terms(leaf, searcher)
        return self.query.mask(leaf, searcher)

    def spans(self, lists: PositionLists, row: int) -> Spans:
        leaf, searcher = lists.leaf, lists.searcher
        key = "terms of", self, leaf.segment.name, leaf.base
        terms = searcher.keep(key, lambda: self.terms(leaf, searcher))
        places = sorted({place for term in terms for place in lists.of(self.query.path, term, row)})
        return [(place, place + 1, 0) for place in places]

    @property
    def least(self) -> int:
        return 1

    def text(self) -> str:
        return self.query.text()


def terms_of(source: PositionSource) -> Iterator[Term | ManyTerms]:
    """The terms and patterns whose places are part of what is found."""
    if isinstance(source, Term | ManyTerms):
        yield source
    for part in source.sought():
        yield from terms_of(part)


def terms_near(parts: Sequence[PositionSource], **rules: bool | int) -> TermsNear | None:
    """Of parts that are terms, by the rules of `TermsNear`; None where a part is something else."""
    terms = tuple((part.path, part.term) for part in parts if isinstance(part, Term))
    return TermsNear(terms, **rules) if len(terms) == len(parts) else None  # type: ignore[arg-type]


def check_size(*sources: PositionSource) -> None:
    """Errors: too_many_nested_clauses for trees that would together take long for a single document."""
    waiting, count = [*sources], 0
    while waiting:
        count += 1
        waiting += waiting.pop().sources()
    if count > SOURCES_MAX:
        raise SearchError(
            "too_many_nested_clauses",
            f"Query contains too many nested clauses; a query of spans or intervals may have {SOURCES_MAX}",
        )


def smallest_windows(found: list[Spans]) -> Iterator[tuple[int, int, int]]:
    """(start, end, sum of the third members) of one span of each list: the one that starts first goes on."""
    at = [0] * len(found)
    for step in itertools.count():
        if step % 256 == 0:
            checkpoint()
        current = [own[place] for own, place in zip(found, at, strict=True)]
        first = min(range(len(current)), key=lambda number: current[number][:2])
        end = max(span[1] for span in current)
        yield current[first][0], end, sum(span[2] for span in current)
        at[first] += 1
        if at[first] == len(found[first]):
            return


def queries_of(source: PositionSource) -> list[Query]:
    """The same as queries."""
    found = terms_of(source)
    return [TermQuery(path=one.path, term=one.term) if isinstance(one, Term) else one.query for one in found]


def _terms_of(query: Query) -> Iterator[str]:
    """Of the terms, one or several, that a fuzzy query has been rewritten to."""
    if isinstance(query, TermQuery):
        yield query.term
    for child in query.children():
        yield from _terms_of(child)


@dataclass(frozen=True, slots=True)
class AnyOf(PositionSource):
    """The spans of several sources, each once. minimal: without those that contain another."""

    parts: tuple[PositionSource, ...]
    minimal: bool = False

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        mask = np.zeros(leaf.segment.size, np.bool_)
        for part in self.parts:
            mask |= part.mask(leaf, searcher)
        return mask

    def spans(self, lists: PositionLists, row: int) -> Spans:
        best: dict[tuple[int, int], int] = {}
        for part in self.parts:
            for start, end, slack in part.spans(lists, row):
                known = best.get((start, end))
                best[start, end] = slack if known is None else min(known, slack)
        spans = [(start, end, slack) for (start, end), slack in sorted(best.items())]
        return without_containing(spans) if self.minimal else spans

    @property
    def least(self) -> int:
        return min((part.least for part in self.parts), default=0)

    def sources(self) -> tuple[PositionSource, ...]:
        return self.parts

    def text(self) -> str:
        return f"or({','.join(part.text() for part in self.parts)})"


def without_containing(spans: Spans) -> Spans:
    """Those that contain no other. Afterwards both starts and ends ascend."""
    kept: Spans = []
    least = None
    for span in sorted(spans, key=lambda span: (-span[0], span[1])):
        if least is None or span[1] < least:
            kept.append(span)
            least = span[1]
    return kept[::-1]


# Whether spans have a neighbour among others that are sorted by start.


def has_end_after(others: Spans, befores: Iterable[tuple[int, int]]) -> list[bool]:
    """For each (before, after): whether one that starts before `before` ends after `after`."""
    starts = [start for start, _, _ in others]
    farthest = list(accumulate((end for _, end, _ in others), max))
    found = []
    for before, after in befores:
        count = bisect_left(starts, before)
        found.append(bool(count) and farthest[count - 1] > after)
    return found


def has_inside(others: Spans, bounds: Iterable[tuple[int, int]]) -> list[bool]:
    """For each (start, end): whether one that starts at `start` or later ends at `end` or before."""
    starts = [start for start, _, _ in others]
    nearest = list(accumulate((end for _, end, _ in reversed(others)), min))[::-1]
    found = []
    for start, end in bounds:
        place = bisect_right(starts, start - 1)
        found.append(place < len(others) and nearest[place] <= end)
    return found
