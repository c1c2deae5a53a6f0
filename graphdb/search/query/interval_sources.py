"""The kinds of sources that the rules of `intervals` become, and how any of several is taken outward.

The slack of an interval is its gaps: the positions that none of its parts takes.

Source: Lucene's package `queries.intervals`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from graphdb.search.errors import illegal_argument
from graphdb.search.leaf_reader import Bools, Leaf
from graphdb.search.query.near_terms import TermsNear
from graphdb.search.query.positions import (
    AnyOf,
    OfPart,
    OfParts,
    PositionLists,
    PositionSource,
    Span,
    Spans,
    has_end_after,
    has_inside,
    smallest_windows,
    terms_near,
    without_containing,
)
from graphdb.search.query.searcher import Searcher
from graphdb.search.scripts.faults import class_cast, unsupported
from graphdb.search.scripts.script import Purpose, Script, parse_script
from graphdb.search.scripts.values import Budget

__all__ = [
    "RELATIONS",
    "Extended",
    "Filtered",
    "MaxGaps",
    "Repeated",
    "Scripted",
    "Together",
    "any_of",
    "filtered",
    "scripted",
    "together",
]


@dataclass(frozen=True, slots=True)
class Repeated(OfPart):
    """So many intervals of one part, one after another.

    As in Lucene, it is taken to be no longer than one of them at least, and one of n positions takes 2 - n.
    """

    times: int

    def near(self) -> TermsNear | None:
        return terms_near((self.part,) * self.times, in_order=True, minimal=True)

    def spans(self, lists: PositionLists, row: int) -> Spans:
        spans = self.part.spans(lists, row)
        runs = (spans[place : place + self.times] for place in range(len(spans) - self.times + 1))
        return [
            (run[0][0], run[-1][1], run[-1][1] - run[0][0] - sum(2 - (end - start) for start, end, _ in run))
            for run in runs
        ]

    def text(self) -> str:
        return ",".join([self.part.text()] * self.times)


@dataclass(frozen=True, slots=True)
class Together(OfParts):
    """An interval of each part: one after the other (ordered; adjacent: without gaps), or in any order."""

    ordered: bool
    adjacent: bool = False

    def near(self) -> TermsNear | None:
        if not self.ordered:
            return terms_near(self.parts, in_order=False, minimal=True)
        single = [
            one
            for part in self.parts
            for one in ((part.part,) * part.times if isinstance(part, Repeated) else (part,))
        ]
        return terms_near(single, in_order=True, adjacent=self.adjacent, minimal=True)

    def spans(self, lists: PositionLists, row: int) -> Spans:
        found = [_with_widths(part, part.spans(lists, row)) for part in self.parts]
        if not all(found):
            return []
        every = self._following(found) if self.ordered else smallest_windows(found)
        return without_containing([(start, end, end - start - taken) for start, end, taken in every])

    def _following(self, found: list[Spans]) -> Iterator[Span]:
        """(start, end, positions that are taken): from each interval of the first part the next one of each
        other part. As the starts and ends of intervals ascend, no part ever goes back.
        """
        at = [0] * len(found)
        for start, end, width in found[0]:
            last, taken, met = end, width, True
            for number in range(1, len(found)):
                own = found[number]
                while at[number] < len(own) and own[at[number]][0] < last:
                    at[number] += 1
                if at[number] == len(own):
                    return
                following = own[at[number]]
                met = met and not (self.adjacent and following[0] != last)
                last, taken = following[1], taken + following[2]
            if met:
                yield start, last, taken

    def text(self) -> str:
        name = "BLOCK" if self.adjacent else "ORDERED" if self.ordered else "UNORDERED"
        return f"{name}({','.join(part.text() for part in self.parts)})"


def _with_widths(part: PositionSource, spans: Spans) -> Spans:
    """How many positions each of them takes, in place of its slack."""
    if isinstance(part, Repeated):
        return [(start, end, end - start - gaps) for start, end, gaps in spans]
    return [(start, end, end - start) for start, end, _ in spans]


@dataclass(frozen=True, slots=True)
class MaxGaps(OfPart):
    """The intervals with at most so many gaps."""

    gaps: int

    def near(self) -> TermsNear | None:
        inner = self.part.near()
        return None if inner is None else inner.at_most(min(self.gaps, 2**31 - 1))

    def spans(self, lists: PositionLists, row: int) -> Spans:
        return [span for span in self.part.spans(lists, row) if span[2] <= self.gaps]

    def text(self) -> str:
        return f"MAXGAPS/{self.gaps}({self.part.text()})"


@dataclass(frozen=True, slots=True)
class Extended(OfPart):
    """Intervals that begin so many positions before: where words were left out of a text."""

    before: int

    def spans(self, lists: PositionLists, row: int) -> Spans:
        found = ((max(0, start - self.before), end, gaps) for start, end, gaps in self.part.spans(lists, row))
        return without_containing(list(found))

    @property
    def least(self) -> int:
        return self.part.least + self.before

    def text(self) -> str:
        return f"EXTEND({self.part.text()},{self.before},0)"


_SCRIPTED = Purpose("interval", frozenset({"interval", "params"}))


@dataclass(frozen=True, slots=True)
class _ScriptInterval:
    """What a script sees of an interval. Its end is its last position."""

    start: int
    end: int
    gaps: int

    def script_member(self, name: str) -> Any:
        if name not in ("start", "end", "gaps"):
            raise unsupported(f"dynamic getter [Interval, {name[:100]}] not found")
        return getattr(self, name)


@dataclass(frozen=True, slots=True)
class Scripted(OfPart):
    """The intervals of which a script says so. A run of it is for one document."""

    script: Script

    def spans(self, lists: PositionLists, row: int) -> Spans:
        budget = Budget()
        return [span for span in self.part.spans(lists, row) if self._holds(span, budget)]

    def _holds(self, span: Span, budget: Budget) -> bool:
        start, end, gaps = span
        found = self.script.run({"interval": _ScriptInterval(start, end - 1, gaps)}, budget)
        if not isinstance(found, bool):
            raise self.script.error(class_cast("Cannot cast from [def] to [boolean]."))
        return found

    def text(self) -> str:
        return f"FILTER({self.script})({self.part.text()})"


def scripted(part: PositionSource, body: Any) -> PositionSource:
    """The intervals that a script, given as JSON, chooses. Errors: SearchError."""
    return Scripted(part, parse_script(body, _SCRIPTED))


Test = Callable[[Spans, Spans], Iterable[bool]]
"""Which of the first intervals relate to one of the second."""


def _before(spans: Spans, others: Spans) -> Iterable[bool]:
    # As in Lucene, what is at the first position is before another that is there.
    last = max((max(start, 1) for start, _, _ in others), default=-1)
    return (end <= last for _, end, _ in spans)


def _after(spans: Spans, others: Spans) -> Iterable[bool]:
    first = min((end for _, end, _ in others), default=None)
    return (first is not None and start >= first for start, _, _ in spans)


def _containing(spans: Spans, others: Spans) -> Iterable[bool]:
    return has_inside(others, ((start, end) for start, end, _ in spans))


def _met(spans: Spans, others: Spans) -> Iterable[bool]:
    """As in Lucene, an interval is not without what it lies in, or what it has a part of that ends later."""
    starts, ends = [start for start, _, _ in others], [end for _, end, _ in others]
    for start, end, _ in spans:
        place = min(bisect_left(starts, start), bisect_left(ends, end))
        yield place < len(others) and starts[place] < end


def _contained(spans: Spans, others: Spans) -> Iterable[bool]:
    return has_end_after(others, ((start + 1, end - 1) for start, end, _ in spans))


def _overlapping(spans: Spans, others: Spans) -> Iterable[bool]:
    return has_end_after(others, ((end, start) for start, end, _ in spans))


RELATIONS: dict[str, tuple[Test, bool]] = {  # and whether those that relate are kept
    "after": (_after, True),
    "before": (_before, True),
    "contained_by": (_contained, True),
    "containing": (_containing, True),
    "not_contained_by": (_contained, False),
    "not_containing": (_met, False),
    "not_overlapping": (_overlapping, False),
    "overlapping": (_overlapping, True),
}


@dataclass(frozen=True, slots=True)
class Filtered(OfPart):
    """The intervals of a source that stand to those of another as a filter says."""

    other: PositionSource
    relation: str

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        mask = self.part.mask(leaf, searcher)
        return mask & self.other.mask(leaf, searcher) if RELATIONS[self.relation][1] else mask

    def spans(self, lists: PositionLists, row: int) -> Spans:
        test, kept = RELATIONS[self.relation]
        found = self.part.spans(lists, row)
        related = test(found, self.other.spans(lists, row))
        return [span for span, is_related in zip(found, related, strict=True) if is_related == kept]

    def sources(self) -> tuple[PositionSource, ...]:
        return self.part, self.other

    def sought(self) -> tuple[PositionSource, ...]:
        return (self.part,)

    def text(self) -> str:
        return f"{self.relation.upper()}({self.part.text()},{self.other.text()})"


# Any of several is taken outward, out of most of what it is a part of: "a b" or "a c" rather than "a", then
# "b" or "c". Only so are both found where an interval of the one contains one of the other.

_ALTERNATIVES_MAX = 1_024


def _alternatives(source: PositionSource) -> tuple[PositionSource, ...]:
    """The sources that it stands for: any of them has the same intervals, and others that contain these."""
    if isinstance(source, AnyOf):
        return source.parts
    if isinstance(source, Together) and not source.adjacent:
        return tuple(replace(source, parts=parts) for parts in _choices(source.parts))
    if isinstance(source, Extended):
        return tuple(replace(source, part=part) for part in _alternatives(source.part))
    if isinstance(source, Filtered) and source.relation in ("contained_by", "containing", "overlapping"):
        return _outward(source)
    return (source,)


def _split(source: PositionSource) -> tuple[PositionSource, ...]:
    """The alternatives; of those of a single position none contains another, so they stay together."""
    found = _alternatives(source)
    single = tuple(one for one in found if one.least == 1)
    longer = tuple(one for one in found if one.least != 1)
    return (any_of(single), *longer) if single else longer


def _choices(parts: Sequence[PositionSource]) -> list[tuple[PositionSource, ...]]:
    """One alternative of each part. Errors: illegal_argument_exception where there are too many."""
    chosen: list[tuple[PositionSource, ...]] = [()]
    for part in parts:
        found = _split(part)
        if len(chosen) * len(found) > _ALTERNATIVES_MAX:
            raise illegal_argument("Too many disjunctions to expand")
        chosen = [(*before, one) for one in found for before in chosen]
    return chosen


def _outward(source: "Filtered") -> tuple[PositionSource, ...]:
    part, other = source.part, source.other
    if source.relation in ("contained_by", "not_contained_by"):
        return tuple(replace(source, other=one) for one in _split(other))
    if source.relation in ("containing", "not_containing"):
        return tuple(replace(source, part=one) for one in _split(part))
    return tuple(Filtered(first, second, source.relation) for first, second in _choices((part, other)))


def any_of(parts: Sequence[PositionSource]) -> PositionSource:
    """The intervals of several, without those that contain another; each part counts once."""
    flat: dict[PositionSource, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(part.parts if isinstance(part, AnyOf) and part.parts else (part,)))
    return next(iter(flat)) if len(flat) == 1 else AnyOf(tuple(flat), minimal=True)


def filtered(part: PositionSource, other: PositionSource, relation: str) -> PositionSource:
    """The intervals of a part that stand so to those of another. Errors: illegal_argument_exception."""
    source = Filtered(part, other, relation)
    if relation in ("contained_by", "containing", "not_contained_by", "not_containing"):
        return any_of(_outward(source))
    return source


def together(parts: Sequence[PositionSource], ordered: bool, max_gaps: int) -> PositionSource:
    """One interval of each. max_gaps -1: any number. Errors: illegal_argument_exception."""
    if len(parts) < 2:
        return parts[0] if parts else AnyOf(())
    if ordered and max_gaps == 0:
        return any_of([Together(chosen, ordered=True, adjacent=True) for chosen in _choices(parts)])
    counted = _runs(parts) if ordered else _counts(parts)
    each = tuple(Repeated(part, times) if times > 1 else part for part, times in counted)
    source = each[0] if len(each) == 1 else Together(each, ordered)
    if max_gaps == -1:
        return source
    return any_of([MaxGaps(one, max_gaps) for one in _alternatives(source)])


def _runs(parts: Sequence[PositionSource]) -> list[tuple[PositionSource, int]]:
    return [(part, len(list(run))) for part, run in groupby(parts)]


def _counts(parts: Sequence[PositionSource]) -> list[tuple[PositionSource, int]]:
    counts: dict[PositionSource, int] = {}
    for part in parts:
        counts[part] = counts.get(part, 0) + 1
    return list(counts.items())
