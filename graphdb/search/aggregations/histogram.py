"""`histogram` and `date_histogram`: a bucket for each interval between the least and the greatest value."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.aggregations.aggregation import (
    BUCKET_STEPS,
    Aggregation,
    Answer,
    Cells,
    Definition,
    Rows,
    Scope,
    bucket_lists,
    cells_of,
)
from graphdb.search.aggregations.columns import Numbers
from graphdb.search.aggregations.intervals import Steps, interval_rounding, numbers_or_ranges
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.rounding import (
    CalendarRounding,
    FixedRounding,
    Rounding,
    Spans,
    time_slots,
)
from graphdb.search.aggregations.tallies import StepTally, Tally, held_span
from graphdb.search.aggregations.terms_aggregation import ByKey, Order, parse_order, sorted_cells
from graphdb.search.aggregations.value_sources import Source
from graphdb.search.compiled import compiled
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Ints, Longs
from graphdb.search.mapping.dates import DateFormat, date_math
from graphdb.search.mapping.range_fields import RANGE_TYPES, RangeType
from graphdb.search.number_text import number_text
from graphdb.search.query.forms import Form, NoForm, Values

__all__ = ["Histogram", "histogram_form", "parse_date_histogram", "parse_histogram"]

_BY_KEY, _NO_BOUNDS = (ByKey(False),), (None, None)
_QUICK_MAX = 1_000  # intervals that are shown where others wait


# Keeps the interpreter's lock: it would wait for it again longer than it runs.
@compiled()
def _count_times(
    values: Longs, docs: Longs, base: int, begin: int, length: float, intervals: Ints, counts: Longs
) -> None:
    """Add up how many documents are in each interval of time: see `TimeSlots`. values: of the documents from
    base on, one of each. No interval is so long that a double is too coarse.
    """
    for doc in docs:
        counts[intervals[int((values[doc - base] - begin) / length)]] += 1


@dataclass(frozen=True)
class Histogram(Aggregation):
    """extended: intervals that have a bucket even if empty; hard: those beyond which there is none. is_span:
    whether a `rate` in a bucket is one of its intervals.
    """

    source: Source
    dates: bool
    intervals: Steps | Rounding
    min_doc_count: int
    order: Order
    keyed: bool
    extended: tuple[int | None, int | None] = (None, None)
    hard: tuple[int | None, int | None] = (None, None)
    is_span: bool = True

    def with_steps(self, steps: Steps) -> "Histogram":
        """The same of other intervals; sooner than `replace`."""
        made = object.__new__(type(self))
        vars(made).update(vars(self), intervals=steps)
        return made

    @property
    def typed(self) -> str:
        return "date_histogram" if self.dates else "histogram"

    @property
    def profiled(self) -> str:
        return "DateHistogramAggregator" if self.dates else "NumericHistogramAggregator"

    def steps(self, scope: Scope, documents: int) -> float | None:
        spec, common = self.source.spec, self.common
        if spec is None or common.pipelines:
            return None
        if self.source.missing is not None or self.extended != (None, None):
            return None
        least, greatest = scope.columns.bounds(spec)
        width = greatest - least
        if isinstance(self.intervals, Steps) and width > _QUICK_MAX * self.intervals.interval:
            return None
        if isinstance(self.intervals, Steps):
            ends = self.intervals.ends(least, greatest)
            if ends is None:  # a search that meets such values says so itself
                return None
            first, last = ends
        else:
            first, last = self.intervals.number(np.array([least, greatest]).astype(np.int64)).tolist()
        buckets = last - first + 1
        below = self.steps_below(scope, documents, buckets)
        if self._may_be_counted(spec) and scope.columns.single_values(spec) is not None:
            documents //= 4
        return None if below is None else documents + BUCKET_STEPS * buckets + below

    def _may_be_counted(self, spec: FieldSpec) -> bool:
        """Whether documents alone are counted, and those with one value each without a copy of these."""
        is_plain = spec.storage is Storage.INTS if self.dates else spec.type != "unsigned_long"
        return is_plain and not self.common.children and not self.common.pipelines

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        cells, base = self._cells(scope, rows)
        scope.note_buckets(self, cells)
        if self.min_doc_count == 0:
            cells = self._filled(scope, cells, rows.count, base)
        else:
            cells = cells.picked(np.flatnonzero(cells.counts >= self.min_doc_count))
            scope.count_buckets(len(cells))
        if self.order != _BY_KEY:
            spans = self._spans(cells, base)
            in_order = sorted_cells(scope, self.common, cells, self.order, lambda keys: keys * 1.0, spans)
            cells = cells.picked(in_order)
        if rows.count == 1 and not self.common.children and not self.common.pipelines and not self.keyed:
            return [{"buckets": self._plain_buckets(cells, base)}]
        heads = self._heads(cells.keys, base)
        spans = self._spans(cells, base)
        lists = bucket_lists(scope, self.common, cells, rows.count, heads.__getitem__, spans)
        return [{"buckets": self._named(buckets) if self.keyed else buckets} for buckets in lists]

    def _spans(self, cells: Cells, base: int) -> Spans | None:
        intervals = self.intervals
        if not self.is_span or not isinstance(intervals, FixedRounding | CalendarRounding):
            return None
        return Spans(intervals, cells.keys + base)

    def _cells(self, scope: Scope, rows: Rows) -> tuple[Cells, int]:
        """(cells, base): intervals that have documents; a cell's key is an interval's number less base.

        Where documents alone are counted, intervals between them that have none may be among the cells.
        """
        simple = rows.count == 1 and scope.searcher.peers is None and scope.columns.doc_counts is None
        if simple and (found := self._timed(scope, rows.docs)) is not None:
            return found
        members, numbers = self._numbered(scope, rows)
        low, high = self.hard
        if low is not None or high is not None:
            kept = np.ones(len(numbers), np.bool_)
            kept &= (numbers >= low) if low is not None else True
            kept &= (numbers <= high) if high is not None else True
            members, numbers = members[kept], numbers[kept]
        least = scope.gathered("least", int(numbers.min()) if len(numbers) else None)
        base = min((number for number in least if number is not None), default=0)
        if simple and self._is_counted_alone(members):
            width = int(numbers.max(initial=base)) - base
            if width <= 4 * len(numbers) + _QUICK_MAX:
                return _counted(np.bincount(numbers - base)), base
        return cells_of(scope, rows, members, numbers - base), base

    def _timed(self, scope: Scope, docs: Longs) -> tuple[Cells, int] | None:
        """The same in one pass, where documents with one time each are counted alone, in few intervals; else
        None.
        """
        spec = self.source.spec
        if type(self) is not Histogram or not self.dates or spec is None or self.source.missing is not None:
            return None
        bounds = scope.columns.known_bounds(spec)
        if bounds is None or self.hard != _NO_BOUNDS or isinstance(self.intervals, Steps):
            return None
        single = scope.columns.single_values(spec) if self._may_be_counted(spec) else None
        slots = None if single is None else time_slots(self.intervals, *map(int, bounds))
        if single is None or slots is None:
            return None
        counts = np.zeros(slots.count, np.int64)
        for _, number, part in scope.columns.parts(docs):
            base = scope.columns.leaves[number].base
            _count_times(single[number], docs[part], base, slots.begin, slots.length, slots.intervals, counts)
        return _held(counts, slots.first)

    def tally(self, scope: Scope) -> Tally | None:
        if self.keyed or self.order != _BY_KEY or self.extended != _NO_BOUNDS:
            return None
        return self._step_tally(scope) if self.source.display.shows_no_text else None

    def _step_tally(self, scope: Scope) -> StepTally | None:
        """Where documents alone are counted, in few intervals of equal length that are known beforehand."""
        spec, steps, columns = self.source.spec, self.intervals, scope.columns
        if type(self) is not Histogram or not isinstance(steps, Steps) or spec is None:
            return None
        if self.source.missing is not None or self.hard != _NO_BOUNDS or spec.type == "unsigned_long":
            return None
        if self.common.children or self.common.pipelines:
            return None
        if scope.searcher.peers is not None or columns.doc_counts is not None:
            return None
        bounds = columns.known_bounds(spec)
        ends = None if bounds is None else steps.ends(*bounds)
        if ends is None or ends[1] - ends[0] > _QUICK_MAX:
            return None
        held = columns.keep(
            ("columns of numbers", spec.path, spec.storage),
            lambda: [columns.column_in(spec, number) for number in range(len(columns.leaves))],
        )
        return StepTally(held, steps.interval, steps.offset, ends, self.min_doc_count)

    def _numbered(self, scope: Scope, rows: Rows) -> tuple[Longs, Longs]:
        """(rows, numbers): the intervals that the documents are in."""
        members, values = self.source.numbers(scope, rows.docs)
        return members, self.intervals.number(values.astype(np.int64, copy=False) if self.dates else values)

    def _is_counted_alone(self, members: Longs) -> bool:
        """Whether no one asks which documents are in a bucket, and each has one value at most."""
        alone = not self.common.children and not self.common.pipelines
        return alone and bool((members[1:] > members[:-1]).all())

    def _filled(self, scope: Scope, cells: Cells, count: int, base: int) -> Cells:
        """With the empty intervals in between, and those up to the extended bounds."""
        if count == 1 and self.extended == (None, None) and len(cells) == cells.keys.max(initial=-1) + 1:
            scope.count_buckets(len(cells))  # all from the first on are there
            return cells
        least, greatest = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
        np.minimum.at(least, cells.owners, cells.keys)
        np.maximum.at(greatest, cells.owners, cells.keys)
        low, high = self.extended
        if low is not None and (high is None or low <= high):
            least = np.minimum(least, _clipped(low - base))
            greatest = np.maximum(greatest, _clipped(low - base))
        if high is not None and (low is None or low <= high):
            greatest = np.maximum(greatest, _clipped(high - base))
            least = np.minimum(least, _clipped(high - base))
        sizes = np.where(greatest >= least, greatest.astype(float) - least + 1, 0)
        scope.count_buckets(int(min(sizes.sum(), 2.0**53)))
        numbers = sizes.astype(np.int64)
        owners = np.repeat(np.arange(count), numbers)
        before = np.cumsum(numbers) - numbers
        return cells.filled(owners, np.arange(len(owners)) + np.repeat(least - before, numbers))

    def _heads(self, numbers: Longs, base: int) -> dict[int, Answer]:
        """What the buckets of intervals show as their keys, by number; the intervals are at number + base."""
        distinct = np.unique(numbers)
        keys = self.intervals.start(distinct + base).tolist()
        texts = self.source.display.key_texts(keys)
        shown = (
            {"key": key} if text is None else {"key_as_string": text, "key": key}
            for key, text in zip(keys, texts, strict=True)
        )
        return dict(zip(distinct.tolist(), shown, strict=True))

    def _plain_buckets(self, cells: Cells, base: int) -> list[Answer]:
        """Of one owner, without anything below them."""
        keys = self.intervals.start(cells.keys + base).tolist()
        counts, texts = cells.counts.tolist(), self.source.display.key_texts(keys)
        return [
            {"key": key, "doc_count": count}
            if text is None
            else {"key_as_string": text, "key": key, "doc_count": count}
            for key, text, count in zip(keys, texts, counts, strict=True)
        ]

    def _named(self, buckets: list[Answer]) -> dict[str, Answer]:
        return {bucket.get("key_as_string", number_text(bucket["key"])): bucket for bucket in buckets}


_PAIRS_MAX = 10_000_000


@dataclass(frozen=True)
class RangeHistogram(Histogram):
    """Of ranges: a document is in each interval that one of its ranges has a part of, once."""

    def steps(self, scope: Scope, documents: int) -> float | None:
        return None  # who knows how many intervals a range is in

    def _numbered(self, scope: Scope, rows: Rows) -> tuple[Longs, Longs]:
        spec = self.source.spec
        assert spec is not None
        members, codes, terms = self.source.own_terms(scope, rows.docs)
        used, places = np.unique(codes, return_inverse=True)
        kind = RANGE_TYPES[spec.type]
        bounds = [kind.bounds(terms.value(number)) for number in used.tolist()]
        ends = np.array(bounds, np.int64 if self.dates else np.float64).reshape(-1, 2)
        first, last = (self.intervals.number(column) for column in self._inside(ends, kind).T)
        counts = np.maximum(last - first + 1, 0)[places]
        if counts.sum(dtype=np.float64) > _PAIRS_MAX:
            raise illegal_argument(
                f"the ranges of [{spec.path}] are in more than {_PAIRS_MAX} intervals together: choose a "
                "longer interval, or [hard_bounds]"
            )
        owners = np.repeat(members, counts)
        before = np.cumsum(counts) - counts
        numbers = np.arange(len(owners)) + np.repeat(first[places] - before, counts)
        order = np.lexsort((numbers, owners))
        owners, numbers = owners[order], numbers[order]
        is_new = np.ones(len(owners), np.bool_)
        is_new[1:] = (np.diff(owners) != 0) | (np.diff(numbers) != 0)
        return owners[is_new], numbers[is_new]

    def _inside(self, ends: Numbers, kind: RangeType) -> Numbers:
        """The ranges between the hard bounds; without those none may be open."""
        low, high = self.hard
        if low is not None:
            ends = np.maximum(ends, self.intervals.start(np.array([low]))[0])
        if high is not None:
            ends = np.minimum(ends, self.intervals.start(np.array([high + 1]))[0])
        if ((ends == kind.least) | (ends == kind.most)).any():
            assert self.source.spec is not None
            raise illegal_argument(f"[{self.source.spec.path}] has ranges without an end: give [hard_bounds]")
        return ends


def _held(counts: Longs, first: int) -> tuple[Cells, int]:
    """Without the empty intervals before and behind all others; first: the number of the first of counts."""
    low, high = held_span(counts)
    return _counted(counts[low:high]), first + low if low < high else 0


def _counted(counts: Longs) -> Cells:
    """Of one owner: all intervals from 0 on, without the documents in them."""
    none = np.empty(0, np.int64)
    return Cells(np.zeros(len(counts), np.int64), np.arange(len(counts)), counts, none, none)


def parse_histogram(definition: Definition) -> Aggregation:
    """histogram: `interval` and the rest."""
    options = definition.options
    steps = Steps(_interval(options, definition.name), options.number("offset", 0.0) or 0.0)
    source = numbers_or_ranges(definition, ("integer_range", "long_range", "float_range", "double_range"))
    return _finished(definition, source, False, steps, lambda bound: float(bound))


def _interval(options: Options, name: str) -> float:
    interval = options.number("interval")
    if interval is None or not 0 < interval < np.inf:
        raise illegal_request(f"[interval] must be >0 for histogram aggregation [{name}]")
    return interval


# With bounds, or a value for documents without one, more depends on the interval, or on texts.
_INTERVAL_MAX = 1e300  # of those that are read here
_FORM_OPTIONS = frozenset({"field", "interval", "offset", "min_doc_count", "keyed"})


def histogram_form(definition: Definition, form: Form) -> Callable[[Values], Aggregation]:
    """The interval is left open, see `forms`. Raises NoForm, SearchError."""
    if not _FORM_OPTIONS.issuperset(definition.options.names()):
        raise NoForm
    place = form.open(definition.options.slot("interval"))
    made = parse_histogram(definition)
    assert isinstance(made, Histogram)
    assert isinstance(made.intervals, Steps)
    offset = made.intervals.offset

    def make(values: Values) -> Aggregation:
        interval = values[place]
        if type(interval) not in (int, float) or not 0 < interval < _INTERVAL_MAX:
            interval = _interval(Options("histogram", {"interval": interval}), definition.name)
        return made.with_steps(Steps(float(interval), offset))

    return make


def parse_date_histogram(definition: Definition) -> Aggregation:
    """date_histogram: `calendar_interval` or `fixed_interval`, in `time_zone`."""
    source, rounding = interval_rounding(definition, ("date_range",))
    pattern = source.display.pattern
    assert isinstance(pattern, DateFormat)

    def bound(value: Any) -> int:
        if isinstance(value, str):
            return date_math(value, pattern, definition.context.now_ms, zone=source.display.zone)
        return int(value)

    return _finished(definition, source, True, rounding, bound)


def _finished(
    definition: Definition,
    source: Source,
    dates: bool,
    steps: Steps | Rounding,
    read: Callable[[Any], float],
) -> Aggregation:
    options = definition.options
    extended = _bounds(options, "extended_bounds", steps, read)
    hard = _bounds(options, "hard_bounds", steps, read)
    order = parse_order(options.take("order"), _BY_KEY)
    keyed, least = options.flag("keyed"), options.integer("min_doc_count", 0, 0)
    options.done()
    is_of_ranges = source.spec is not None and source.spec.storage is Storage.CODES
    if dates and not is_of_ranges and hard[1] is not None:
        hard = hard[0], hard[1] - 1  # the last interval is left out, as in Elasticsearch
    kind = RangeHistogram if is_of_ranges else Histogram
    return kind(definition.common, source, dates, steps, least, order, keyed, extended, hard)


def _clipped(number: int) -> int:
    return max(min(number, np.iinfo(np.int64).max), np.iinfo(np.int64).min)


def _bounds(
    options: Options, key: str, steps: Steps | Rounding, read: Callable[[Any], float]
) -> tuple[int | None, int | None]:
    """Bounds as the numbers of the intervals that they are in."""
    body = options.take(key)
    if body is None:
        return None, None
    inner = Options(key, body)
    values = [inner.take("min"), inner.take("max")]
    inner.done()
    try:
        ends = [None if value is None else read(value) for value in values]
    except (TypeError, ValueError, OverflowError) as error:
        raise options.unreadable(key) from error
    if any(end is not None and not math.isfinite(end) for end in ends):
        raise options.unreadable(key)
    low, high = ends
    if low is not None and high is not None and low > high:
        raise illegal_request(f"[{key}.min][{values[0]}] cannot be greater than [{key}.max][{values[1]}]")
    numbers = [None if end is None else int(steps.number(np.array([end]))[0]) for end in ends]
    return numbers[0], numbers[1]
