"""Range aggregations: of numbers, dates and IP addresses."""

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any

import numpy as np

from graphdb.search.aggregations.aggregation import (
    Aggregation,
    Answer,
    Definition,
    Rows,
    Scope,
    all_cells,
    bucket_lists,
    keyed_buckets,
)
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.value_sources import NUMERIC, Display, Source, number_text
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Bools
from graphdb.search.mapping.dates import DateFormat, date_math
from graphdb.search.mapping.readers import address_of, address_term, network_terms, rounder

__all__ = ["IpRanges", "Range", "Ranges", "parse_date_range", "parse_ip_range", "parse_range", "parse_ranges"]

# `range`, `date_range` and `ip_range`: a bucket for each range; from is inside, to is not.

RANGES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Range:
    """[low, high), either end None where it is open, in the precision of the field.

    head is what its bucket shows beside the count.
    """

    low: float | None
    high: float | None
    key: str
    head: Answer

    @property
    def place(self) -> tuple[float, float]:
        """Ranges are answered in this order."""
        return -np.inf if self.low is None else self.low, np.inf if self.high is None else self.high


@dataclass(frozen=True)
class Ranges(Aggregation):
    """Every range has a bucket, empty or not."""

    source: Source
    ranges: tuple[Range, ...]
    keyed: bool
    kind: str

    @property
    def typed(self) -> str:
        return self.kind

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        members, values = self.source.numbers(scope, rows.docs)
        masks = []
        for one in self.ranges:
            inside = np.ones(len(values), np.bool_)
            inside &= values >= one.low if one.low is not None else True
            inside &= values < one.high if one.high is not None else True
            masks.append(_any(members[inside], len(rows.docs)))
        cells = all_cells(scope, rows, masks)
        lists = bucket_lists(
            scope,
            self.common,
            cells,
            rows.count,
            lambda number: {"key": self.ranges[number].key, **self.ranges[number].head},
        )
        return [{"buckets": keyed_buckets(buckets) if self.keyed else buckets} for buckets in lists]


def _any(rows: "np.typing.NDArray[np.int64]", size: int) -> Bools:
    mask = np.zeros(size, np.bool_)
    mask[rows] = True
    return mask


def parse_range(definition: Definition) -> Aggregation:
    """range, over numbers, dates among them: a text is in the format of the request or the field."""
    source = Source.parse(definition, NUMERIC)
    pattern = source.display.pattern

    def read(end: Any) -> float:
        if isinstance(end, (bool, list, dict)):
            raise definition.options.unreadable("ranges")
        if isinstance(end, str) and isinstance(pattern, DateFormat):
            return _instant(end, source, pattern, definition)
        try:
            return float(end)
        except (TypeError, ValueError) as error:
            raise illegal_argument(f"Failed to parse value [{end}] as a number") from error

    return _parsed(definition, source, read, None)


def parse_date_range(definition: Definition) -> Aggregation:
    """date_range: ends are dates, date math among them, in the format of the request or the field. A number
    is read as the text that it is written as.
    """
    source = Source.parse(definition, NUMERIC)
    pattern = source.display.pattern
    if not isinstance(pattern, DateFormat):
        source = Source(source.spec, Display.of(None, None, None, dates=True), source.missing)
        pattern = source.display.pattern
    assert isinstance(pattern, DateFormat)

    def read(end: Any) -> float:
        text = str(int(end)) if isinstance(end, float) and np.isfinite(end) else str(end)
        return _instant(text, source, pattern, definition)

    return _parsed(definition, source, read, source.text)


def _instant(text: str, source: Source, pattern: DateFormat, definition: Definition) -> float:
    return float(date_math(text, pattern, definition.context.now_ms, zone=source.display.zone))


def _parsed(
    definition: Definition,
    source: Source,
    read: Callable[[Any], float],
    text: Callable[[float], str | None] | None,
) -> Aggregation:
    options = definition.options
    bodies = parse_ranges(definition)
    keyed = options.flag("keyed")
    options.done()
    found = []
    for body in bodies:
        key = body.text("key")
        ends = [body.take(side) for side in ("from", "to")]
        body.done()
        low, high = (None if end is None else read(end) for end in ends)
        found.append(_range(low, high, key, text or source.text, source.spec))
    return Ranges(
        definition.common, source, tuple(sorted(found, key=lambda one: one.place)), keyed, definition.kind
    )


def parse_ranges(definition: Definition) -> list[Options]:
    """The parameters of each of `ranges`."""
    bodies = definition.options.items("ranges")
    if not bodies:
        raise illegal_request(f"No [ranges] specified for the [{definition.name}] aggregation")
    if len(bodies) > RANGES_MAX:
        raise illegal_request(f"[ranges] takes at most [{RANGES_MAX}] ranges")
    return [Options("range", body) for body in bodies]


def _range(
    low: float | None,
    high: float | None,
    key: str | None,
    text: Callable[[float], str | None],
    spec: FieldSpec | None,
) -> Range:
    head: Answer = {}
    names = []
    for side, end in (("from", low), ("to", high)):
        shown = None if end is None else text(end)
        if end is not None:
            head[side] = end
        if shown is not None:
            head[f"{side}_as_string"] = shown
        names.append("*" if end is None else shown or number_text(end))
    low, high = (None if end is None else _rounded(end, spec) for end in (low, high))
    return Range(low, high, "-".join(names) if key is None else key, head)


def _rounded(end: float, spec: FieldSpec | None) -> float:
    """An end as the field would keep it: 0.04 is not greater than the float 0.04."""
    if spec is None or spec.storage is not Storage.FLOATS:
        return end
    return rounder(spec.type, spec.options.get("scaling_factor") or 1.0)(end)


# `ip_range`: ranges of addresses, by their ends or by a mask in CIDR notation.

_END = 1 << 128


@dataclass(frozen=True, slots=True)
class IpRange:
    """[low, high) as numbers of 128 bits."""

    low: int
    high: int
    head: Answer


@dataclass(frozen=True)
class IpRanges(Aggregation):
    """Every range has a bucket, empty or not."""

    source: Source
    ranges: tuple[IpRange, ...]
    keyed: bool

    @property
    def typed(self) -> str:
        return "ip_range"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        members, numbers, ordinals = self.source.own_terms(scope, rows.docs)
        used, inverse = np.unique(numbers, return_inverse=True)
        addresses = [_number(ordinals.value(number)) for number in used.tolist()]
        masks = []
        for one in self.ranges:
            fits = np.array([one.low <= address < one.high for address in addresses], np.bool_)
            mask = np.zeros(len(rows.docs), np.bool_)
            mask[members[fits[inverse]]] = True
            masks.append(mask)
        cells = all_cells(scope, rows, masks)
        lists = bucket_lists(
            scope, self.common, cells, rows.count, lambda number: dict(self.ranges[number].head)
        )
        return [{"buckets": keyed_buckets(buckets) if self.keyed else buckets} for buckets in lists]


def parse_ip_range(definition: Definition) -> Aggregation:
    options = definition.options
    source = Source.parse(definition, (Storage.TERMS,))
    ranges = [_ip_range(body) for body in parse_ranges(definition)]
    keyed = options.flag("keyed")
    options.done()
    return IpRanges(
        definition.common, source, tuple(sorted(ranges, key=lambda one: (one.low, one.high))), keyed
    )


def _ip_range(body: Options) -> IpRange:
    key, mask = body.text("key"), body.text("mask")
    start, end = body.text("from"), body.text("to")
    body.done()
    if mask is not None:
        first, last = (_number(term) for term in network_terms(mask))
        sides = {"from": _shown(first), **({"to": _shown(last + 1)} if last + 1 < _END else {})}
        return IpRange(first, last + 1, {"key": key or mask, **sides})
    low = 0 if start is None else _number(address_term(start))
    high = _END if end is None else _number(address_term(end))
    sides = {side: text for side, text in (("from", start), ("to", end)) if text is not None}
    return IpRange(low, high, {"key": key or f"{start or '*'}-{end or '*'}", **sides})


def _number(term: str) -> int:
    return int(IPv6Address(term))


def _shown(address: int) -> str:
    return address_of(IPv6Address(address).exploded)
