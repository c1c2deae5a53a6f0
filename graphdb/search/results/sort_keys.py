"""Sort keys of hits, and the modes that choose among several values."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from graphdb.search.abstract import Abstract
from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.aggregations.columns import Columns, GlobalTerms, Numbers, Values
from graphdb.search.aggregations.value_sources import json_number
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Floats, Longs
from graphdb.search.mapping.dates import DateFormat, date_format
from graphdb.search.mapping.value_formats import shown, term_of
from graphdb.search.query import Query

__all__ = [
    "MODES",
    "ByDoc",
    "ByField",
    "ByScore",
    "Nesting",
    "SortColumn",
    "SortKey",
    "TermColumn",
    "combined",
    "short_float",
    "short_floats",
]

# One value for a document that has several: min, max, sum, avg, median.

MODES = ("min", "max", "sum", "avg", "median")


def combined(values: Values, mode: str, *, is_unsigned: bool = False) -> tuple[Longs, Numbers]:
    """(rows, values): each row once. Means of whole numbers are rounded, and their sums are of 64 bits, as
    Elasticsearch's are. is_unsigned: the values are 2**63 less than what they stand for, those that come back
    too; their means are exact.
    """
    if bool((values.rows[1:] > values.rows[:-1]).all()):  # each has one at most
        return values.rows, values.data
    starts = np.flatnonzero(np.diff(values.rows, prepend=-1))
    counts = np.diff(np.append(starts, len(values.rows)))
    rows, data = values.rows[starts], values.data
    if mode == "min":
        return rows, data[starts]
    if mode == "max":
        return rows, data[starts + counts - 1]
    if mode == "sum":
        sums = np.add.reduceat(data, starts)
        # an even number of values lacks 2**63 an odd number of times more than one value does
        return rows, np.where(counts % 2 == 0, sums ^ _LEAST, sums) if is_unsigned else sums
    if mode == "avg" and is_unsigned:
        return rows, _unsigned_means(data, starts, counts)
    if mode == "avg":
        means = _like(np.add.reduceat(data, starts) / counts, data)
        return rows, np.where(counts == 1, data[starts], means)
    low, high = data[starts + (counts - 1) // 2], data[starts + counts // 2]
    if is_unsigned:
        return rows, _unsigned_middle(low, high)
    return rows, np.where(low == high, low, _like((low.astype(np.float64) + high) / 2, data))


def _like(means: Numbers, data: Numbers) -> Numbers:
    return np.floor(means + 0.5).astype(np.int64) if data.dtype == np.int64 else means


def _unsigned_means(data: Longs, starts: Longs, counts: Longs) -> Longs:
    """Halves are rounded up. The halves of the 64 bits are added apart: no double is as fine around 2**63."""
    upper, left = np.divmod(np.add.reduceat(data >> 32, starts), counts)
    lower = (left << 32) + np.add.reduceat(data & 0xFFFFFFFF, starts)
    means: Longs = (upper << 32) + (2 * lower + counts) // (2 * counts)
    return means


def _unsigned_middle(low: Longs, high: Longs) -> Longs:
    """Halves are rounded up. The distance of two numbers of 64 bits is one without a sign."""
    apart = high.view(np.uint64) - low.view(np.uint64)
    middle: Longs = low + ((apart >> np.uint64(1)) + (apart & np.uint64(1))).view(np.int64)
    return middle


# What hits are sorted by. Every key becomes an array that ascends where hits come first.

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class SortColumn:
    """order[i] is the place of document i; the least come first.

    shown gives what the answer says of document i, and place the place that such a value has.
    """

    order: Numbers
    shown: Callable[[int], Any]
    place: Callable[[Any], float]

    def all_shown(self, rows: Longs) -> list[Any]:
        """`shown` of several documents."""
        return [self.shown(row) for row in rows.tolist()]

    def piece(self, rows: Longs) -> Any:
        """What other shards need to know of some documents, to sort theirs among them."""
        return self.order[rows]

    def joined(self, pieces: Sequence[Any]) -> Numbers:
        """The order of documents of several shards, of their pieces."""
        return np.concatenate(pieces)


@dataclass(frozen=True, slots=True)
class WholeColumn(SortColumn):
    """A column of whole numbers that are shown as they are."""

    values: Numbers

    def all_shown(self, rows: Longs) -> list[Any]:
        return list(self.values[rows].tolist())


@dataclass(frozen=True, slots=True)
class TermColumn(SortColumn):
    """A column of terms, whose numbers other shards do not know.

    term gives the term of document i, None where it has none; absent is the place of those.
    """

    term: Callable[[int], str | None]
    descending: bool
    absent: int

    def piece(self, rows: Longs) -> list[str | None]:
        return [self.term(row) for row in rows.tolist()]

    def joined(self, pieces: Sequence[Any]) -> Numbers:
        terms = [term for piece in pieces for term in piece]
        listed = sorted({term for term in terms if term is not None})
        places = {term: -place if self.descending else place for place, term in enumerate(listed)}
        return np.array([self.absent if term is None else places[term] for term in terms], np.int64)


class SortKey(Abstract):
    """One entry of `sort`."""

    path: str

    @abstractmethod
    def column(self, scope: Scope, docs: Longs, scores: Floats | None) -> SortColumn:
        """For these documents, which ascend; scores are theirs."""


def short_float(value: Any) -> float:
    """A number of 32 bits as the shortest decimal that means it, as Elasticsearch writes scores."""
    return float(str(np.float32(value)))


def short_floats(values: Floats) -> list[float]:
    """`short_float` of each, in a tenth of the time: orjson writes the same shortest decimals."""
    found: list[float] = orjson.loads(orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY))
    return found if None not in found else list(map(short_float, values.tolist()))


def _number(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _unreadable(value, path)
    try:
        return int(value) if isinstance(value, int) or str(value).lstrip("-").isdigit() else float(value)
    except ValueError as error:
        raise _unreadable(value, path) from error


def _unreadable(value: Any, path: str) -> SearchError:
    return illegal_argument(f"Failed to parse search_after value for field [{path}].")


@dataclass(frozen=True, slots=True)
class ByScore(SortKey):
    """Descending unless asked otherwise."""

    descending: bool = True
    path: str = "_score"

    def column(self, scope: Scope, docs: Longs, scores: Floats | None) -> SortColumn:
        values = np.zeros(len(docs), np.float32) if scores is None else scores
        sign = -1.0 if self.descending else 1.0
        return SortColumn(
            values * np.float32(sign),
            lambda row: short_float(values[row]),
            lambda value: float(np.float32(_number(value, self.path))) * sign,
        )


@dataclass(frozen=True, slots=True)
class ByDoc(SortKey):
    """By document number: `_doc` and `_shard_doc`."""

    descending: bool = False
    path: str = "_doc"

    def column(self, scope: Scope, docs: Longs, scores: Floats | None) -> SortColumn:
        sign = -1 if self.descending else 1
        searcher = scope.searcher
        numbers = searcher.shown_numbers(docs) + searcher.first.shown
        return SortColumn(
            numbers * sign, lambda row: int(numbers[row]), lambda value: _number(value, self.path) * sign
        )


@dataclass(frozen=True, slots=True)
class Nesting:
    """Values of the nested objects at a path, those that match a filter."""

    path: str
    filter: Query | None = None

    def gather(self, scope: Scope, docs: Longs, read: Callable[[Longs], Values]) -> Values:
        """What read gives for the objects, by the document of the top level that they are in."""
        mask = scope.columns.at_path(self.path) & scope.live()
        if self.filter is not None:
            mask = mask & scope.matching(self.filter)
        objects = np.flatnonzero(mask)
        tops = scope.columns.roots[objects]
        places = np.searchsorted(docs, tops)
        known = places < len(docs)
        known[known] = docs[places[known]] == tops[known]
        values = read(objects[known])
        rows = places[known][values.rows]
        order = np.lexsort((values.data, rows))
        return Values(rows[order], values.data[order])


@dataclass(frozen=True, slots=True)
class ByField(SortKey):
    """By the values of a field. missing is `_first`, `_last`, or a value in its stored form."""

    path: str
    spec: FieldSpec
    descending: bool = False
    mode: str = "min"
    missing: Any = "_last"
    nesting: Nesting | None = None
    pattern: DateFormat | None = None

    def column(self, scope: Scope, docs: Longs, scores: Floats | None) -> SortColumn:
        read = scope.columns.ordinals if self.spec.storage is Storage.TERMS else scope.columns.exact
        values = self._values(scope, docs, lambda these: read(self.spec, these))
        rows, data = combined(values, self.mode, is_unsigned=self.spec.type == "unsigned_long")
        if self.spec.storage is Storage.TERMS:
            return self._terms(scope.columns, rows, data, len(docs))
        return self._numbers(rows, data, len(docs))

    def _values(self, scope: Scope, docs: Longs, read: Callable[[Longs], Values]) -> Values:
        return read(docs) if self.nesting is None else self.nesting.gather(scope, docs, read)

    @property
    def _last(self) -> bool:
        """Whether what is missing gets the greatest number (which comes last only if ascending)."""
        return bool((self.missing == "_last") != self.descending)

    def _numbers(self, rows: Longs, data: Numbers, size: int) -> SortColumn:
        whole = self.spec.storage is Storage.INTS
        ends = (_LEAST, _GREATEST) if whole else (-np.inf, np.inf)
        given = self.missing not in ("_first", "_last")
        absent = self.missing - self._shift if given else ends[self._last]
        kind = np.int64 if whole else np.float64
        if len(rows) == size:
            values = data.astype(kind, copy=False)
        else:
            values = np.full(size, absent, kind)
            values[rows] = data
        order = values if not self.descending else (-1 - values if whole else -values)
        if whole and self.pattern is None and not self._shift:
            return WholeColumn(order, lambda row: values[row].item(), self._place, values)
        return SortColumn(order, lambda row: self._shown(values[row].item()), self._place)

    def _shown(self, value: float) -> Any:
        if self.pattern is not None:
            if value in (_LEAST, _GREATEST):
                return None
            write = self.pattern.write_nanos if self.spec.type == "date_nanos" else self.pattern.write
            return write(int(value))
        if self.spec.type in ("float", "half_float") and abs(value) != np.inf:
            return short_float(value)
        return value + self._shift if isinstance(value, int) else json_number(value)

    @property
    def _shift(self) -> int:
        """How much less a column of signed 64 bits has than the field."""
        return 2**63 if self.spec.type == "unsigned_long" else 0

    def _place(self, value: Any) -> float:
        whole = self.spec.storage is Storage.INTS
        if value is None:
            number: float = (
                (_GREATEST if self._last else _LEAST) if whole else (np.inf if self._last else -np.inf)
            )
        elif isinstance(value, bool):
            number = int(value)
        elif (
            self.spec.type in ("date", "date_nanos")
            and isinstance(value, str)
            and (self.pattern is not None or not value.lstrip("-").isdigit())
        ):
            number = self._date(value)
        else:
            number = _number(value, self.path) - self._shift
        if self.spec.type == "float":
            number = float(np.float32(number))
        if self.descending:
            return -number - 1 if whole else -number
        return number

    def _date(self, value: str) -> int:
        """In the format of the key, else in the field's own."""
        pattern = self.pattern or date_format(self.spec.options["format"])
        return pattern.parse_nanos(value) if self.spec.type == "date_nanos" else pattern.parse(value)

    def _terms(self, columns: Columns, rows: Longs, data: Numbers, size: int) -> SortColumn:
        """Places are twice the numbers of terms, so that others have room between them."""
        dictionary = columns.dictionary(self.spec)
        sign = -1 if self.descending else 1
        end = 2 * len(dictionary) + 1
        given = self.missing if self.missing not in ("_first", "_last") else None
        absent = (
            _between(dictionary, given) * sign
            if given is not None
            else (end if self.missing == "_last" else -end)
        )
        order, numbers = np.full(size, absent, np.int64), np.full(size, -1, np.int64)
        order[rows], numbers[rows] = data * 2 * sign, data

        is_coded = self.spec.type in ("ip", "version")

        def term(row: int) -> str | None:
            return dictionary.term(int(numbers[row])) if numbers[row] >= 0 else given

        def shown_term(row: int) -> str | None:
            found = term(row)
            return found if found is None or not is_coded else shown(self.spec, found)

        def place(value: Any) -> float:
            if value is None:
                return absent
            if not isinstance(value, (str, int, float)):
                raise _unreadable(value, self.path)
            return _between(dictionary, str(term_of(self.spec, value)) if is_coded else str(value)) * sign

        last = _GREATEST if self.missing == "_last" else _LEAST
        return TermColumn(order, shown_term, place, term, self.descending, last)


def _between(dictionary: GlobalTerms, term: str) -> int:
    """The place of a term, odd where it is none of the dictionary."""
    number = dictionary.lower_bound(term)
    there = number < len(dictionary) and dictionary.term(number) == term
    return 2 * number if there else 2 * number - 1
