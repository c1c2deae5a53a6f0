"""What a query costs by each way of answering it: estimated from counts, corrected by what answers took.

The estimates begin with rates that were measured. `LearntCosts` keeps by which factor real times differ from
these, of each way and kind of query, and of single queries that were met.
"""

from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log
from typing import Final, TypeAlias

__all__ = ["KINDS", "Factors", "LearntCosts", "Way", "Work", "cheaper", "milliseconds"]


class Way(StrEnum):
    """Who answers."""

    AT_ONCE = "at once"
    COLUMNS = "columns"
    READER = "reader"


KINDS: Final = ("join", "list", "group", "order", "path", "triples")
Factors: TypeAlias = tuple[float, ...]
"""What the estimates of the work are multiplied by: of each of KINDS, by the columns and by a reader."""

_LEARNT: Final = (Way.COLUMNS, Way.READER)
# Milliseconds of a query at all, of a quad that is looked through, of a solution on the way, of a row. A
# reader needs a checkpoint and a place, of which there are few: that takes 13 to 30 ms, and counts as much
# more, so that a busy moment does not send queries there. It looks up what it needs in an index.
_RATES: Final = {Way.COLUMNS: (3.0, 5e-6, 5e-5, 8e-4), Way.READER: (400.0, 0.0, 1.5e-3, 2e-3)}
_LEAST_STEP_MS: Final = (
    1e-5  # of a solution; of products that are only counted the engine takes 5e-5 and more
)
_CERTAIN_STEPS: Final = 100_000  # from which on an answer tells what a solution takes
_BEYOND: Final = 20.0  # times the time limit, from which on a query is refused
_WEIGHT: Final = 0.25  # of what is new, in the averages
_FORGETTING: Final = 0.1  # of what was learnt of one way, with each answer by the other
_FACTOR_MAX: Final = log(10_000.0)
_SURPRISE_MAX: Final = log(8.0)  # what one answer counts as at most for all of its kind
_TEXTS_MAX: Final = 1024
_TEXT_CHARACTERS_MAX: Final = 8_192


@dataclass(frozen=True, slots=True)
class Work:
    """What there is to do for a query, in counts that are estimated from statistics.

    scanned: quads of the tables that patterns are looked for in. steps: solutions of each join on the way,
    as far as a LIMIT lets it come. rows: of the answer. least: solutions that a reader looks at for certain;
    0 where nothing is certain.
    """

    kind: str  # of KINDS
    scanned: int
    steps: float
    rows: float
    least: float = 0.0


def milliseconds(way: Way, work: Work, factor: float = 1.0) -> float:
    """The estimate for the columns or a reader."""
    return _RATES[way][0] + _of_work(way, work) * factor


def _of_work(way: Way, work: Work) -> float:
    """At least a quarter of what a query takes at all, so that a factor can make it any time."""
    query, quad, step, row = _RATES[way]
    return max(query / 4, work.scanned * quad + work.steps * step + work.rows * row)


def _place(way: Way, kind: str) -> int:
    return len(_LEARNT) * KINDS.index(kind) + _LEARNT.index(way)


def cheaper(work: Work, factors: Factors) -> tuple[Way, float, float]:
    """The columns or a reader, and the estimates of both in milliseconds."""
    columns, reader = (milliseconds(way, work, factors[_place(way, work.kind)]) for way in _LEARNT)
    return (Way.COLUMNS if columns <= reader else Way.READER), columns, reader


@dataclass(slots=True)
class _Met:
    """What is known of one query by one way: the logarithm of its factor, and the last answer's time."""

    factor: float
    ms: float


class LearntCosts:
    """Owned by a node, on its event loop. Exponential averages, of which the number is bounded."""

    def __init__(self) -> None:
        self._kinds = [0.0] * (len(_LEARNT) * len(KINDS))  # logarithms, in the order of Factors
        self._factors: Factors = tuple(map(exp, self._kinds))
        self._texts: OrderedDict[str, dict[Way, _Met]] = OrderedDict()
        self._least_step_ms = _LEAST_STEP_MS

    def factors(self, text: str) -> Factors:
        """For a query of any kind. What was learnt of itself comes before what was of all of its kind."""
        met = self._texts.get(text)
        if met is None:
            return self._factors
        found = list(self._factors)
        for place, way in enumerate(_LEARNT):
            if way in met:
                found[place :: len(_LEARNT)] = [exp(met[way].factor)] * len(KINDS)
        return tuple(found)

    def estimated_ms(self, way: Way, text: str, work: Work) -> float:
        """What a query takes by the columns or a reader, as it is estimated now."""
        return milliseconds(way, work, self.factors(text)[_place(way, work.kind)])

    def note(self, way: Way, text: str, work: Work, ms: float, *, is_whole: bool = True) -> None:
        """By this way an answer took so long to make, without waiting for a place; or, unless is_whole, was
        not there after that time.
        """
        at_all, expected = _RATES[way][0], _of_work(way, work)
        if max(ms, expected) < at_all:
            return  # a short one says nothing of what work takes
        factor = log(max(ms - at_all, at_all / 4) / expected)
        factor = min(max(factor, -_FACTOR_MAX), _FACTOR_MAX)
        place = _place(way, work.kind)
        of_kind = self._kinds[place]
        if is_whole or factor > of_kind:
            surprise = min(max(factor - of_kind, -_SURPRISE_MAX), _SURPRISE_MAX)
            self._kinds[place] = of_kind + surprise * _WEIGHT
            self._factors = (*self._factors[:place], exp(self._kinds[place]), *self._factors[place + 1 :])
        if len(text) <= _TEXT_CHARACTERS_MAX:
            self._note_text(way, text, work.kind, _Met(factor, ms), is_whole)
        if is_whole and way is Way.READER and work.least >= _CERTAIN_STEPS:
            self._least_step_ms = min(self._least_step_ms, ms / work.least)

    def _note_text(self, way: Way, text: str, kind: str, new: _Met, is_whole: bool) -> None:
        met = self._texts.setdefault(text, {})
        self._texts.move_to_end(text)
        if len(self._texts) > _TEXTS_MAX:
            self._texts.popitem(last=False)
        before = met.get(way)
        known = self._kinds[_place(way, kind)] if before is None else before.factor
        if is_whole:  # what is new may be chance
            weight = _WEIGHT if before is not None else 0.5
            met[way] = _Met(known + (new.factor - known) * weight, new.ms)
        elif before is None or new.factor > known:
            met[way] = new
        for other in _LEARNT:  # may be tried again
            if other is not way and (left := met.get(other)) is not None:
                left.factor += (self._kinds[_place(other, kind)] - left.factor) * _FORGETTING

    def took_ms(self, way: Way, text: str) -> float | None:
        """How long the last answer to a query took by a way, where that is known."""
        met = self._texts.get(text, {}).get(way)
        return None if met is None else round(met.ms, 1)

    def refusal(self, work: Work, timeout_s: float) -> str | None:
        """Why a query is not begun that a reader cannot answer within its time limit, and what to change;
        None for all others.
        """
        seconds = work.least * self._least_step_ms / 1000
        if seconds <= _BEYOND * timeout_s:
            return None
        return (
            f"the query was not begun: a reader would look at {work.least:.0e} solutions or more, in at "
            f"least {seconds:.0e} s, and the time limit is {timeout_s:g} s; join the patterns that have no "
            "variable in common, name a predicate, a subject or an object in them, or add LIMIT"
        )
