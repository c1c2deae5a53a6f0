"""Range aggregations: of numbers, dates, distances and IP addresses; addresses by their networks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import numpy as np

from graphdb.search.aggregations.aggregation import (
    BUCKET_STEPS,
    Aggregation,
    Answer,
    Definition,
    Rows,
    Scope,
    all_cells,
    bucket_lists,
    cells_of,
    keyed_buckets,
)
from graphdb.search.aggregations.columns import Numbers
from graphdb.search.aggregations.options import Options, required
from graphdb.search.aggregations.value_sources import NUMERIC, Display, Source
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Bools, Longs
from graphdb.search.mapping.dates import DateFormat, date_math
from graphdb.search.mapping.readers import address_of, address_term, network_terms, point_of, rounder
from graphdb.search.mapping.units import METERS
from graphdb.search.number_text import number_text
from graphdb.search.query.geo import distances_m

__all__ = [
    "GeoDistance",
    "IpPrefix",
    "IpRanges",
    "Range",
    "Ranges",
    "parse_date_range",
    "parse_geo_distance",
    "parse_ip_prefix",
    "parse_ip_range",
    "parse_range",
    "parse_ranges",
]

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

    def steps(self, scope: Scope, documents: int) -> float | None:
        spec, below = self.source.spec, self.steps_below(scope, documents, len(self.ranges))
        if type(self) is not Ranges or spec is None or spec.storage not in NUMERIC or below is None:
            return None
        return (1 + len(self.ranges)) * documents + BUCKET_STEPS * len(self.ranges) + below

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        members, values = self.values(scope, rows.docs)
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

    def values(self, scope: Scope, docs: Longs) -> tuple[Longs, Numbers]:
        """(rows, values): what of these documents lies in the ranges."""
        return self.source.numbers(scope, docs)


@dataclass(frozen=True)
class GeoDistance(Ranges):
    """Ranges of the distances of points from an origin, in a unit of so many metres."""

    origin: tuple[float, float]  # latitude and longitude, degrees
    unit_m: float

    def values(self, scope: Scope, docs: Longs) -> tuple[Longs, Numbers]:
        """See `Ranges.values`."""
        if self.source.spec is None:
            return np.empty(0, np.int64), np.empty(0)
        points = scope.columns.points(self.source.spec, docs)
        return points.rows, distances_m(points.latitudes, points.longitudes, *self.origin) / self.unit_m


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
        source = replace(source, display=Display.of(None, None, None, dates=True))
        pattern = source.display.pattern
    assert isinstance(pattern, DateFormat)

    def read(end: Any) -> float:
        text = str(int(end)) if isinstance(end, float) and np.isfinite(end) else str(end)
        return _instant(text, source, pattern, definition)

    return _parsed(definition, source, read, source.text)


def parse_geo_distance(definition: Definition) -> Aggregation:
    """geo_distance; the distance types differ by less than a thousandth, and all are along great circles."""
    options = definition.options
    origin = point_of(required(options.take("origin"), "origin"))
    unit, kind = options.text("unit", "m") or "m", options.text("distance_type", "arc") or "arc"
    if unit not in METERS:
        raise illegal_request(f"No enum constant of a distance unit [{unit[:100]}]")
    if kind not in ("arc", "plane"):
        raise illegal_request(f"No geo distance for [{kind[:100]}]")
    source = Source.parse(definition, {Storage.POINTS})

    def read(end: Any) -> float:
        try:
            return float(end)
        except (TypeError, ValueError) as error:
            raise illegal_argument(f"Failed to parse value [{str(end)[:100]}] as a number") from error

    made = _parsed(definition, source, read, None)
    # a distance that is not bounded below begins at 0
    ranges = tuple(
        one if one.low is not None else replace(one, head={"from": 0.0, **one.head}) for one in made.ranges
    )
    return GeoDistance(definition.common, source, ranges, made.keyed, "geo_distance", origin, METERS[unit])


def _instant(text: str, source: Source, pattern: DateFormat, definition: Definition) -> float:
    return float(date_math(text, pattern, definition.context.now_ms, zone=source.display.zone))


def _parsed(
    definition: Definition,
    source: Source,
    read: Callable[[Any], float],
    text: Callable[[float], str | None] | None,
) -> Ranges:
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
    source = Source.parse(definition, (Storage.TERMS,), takes_script=False)
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


# `ip_prefix`: a bucket for each network of a given size that has an address.


@dataclass(frozen=True)
class IpPrefix(Aggregation):
    """length: bits of the network's part of an address of 32 bits, or of 128 if wide."""

    source: Source
    length: int
    wide: bool
    appends: bool
    min_doc_count: int
    keyed: bool

    @property
    def typed(self) -> str:
        return "ip_prefix"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        members, numbers, terms = self.source.own_terms(scope, rows.docs)
        used, inverse = np.unique(numbers, return_inverse=True)
        own = [self._network(_number(terms.value(number))) for number in used.tolist()]
        networks = sorted(
            {each for part in scope.gathered("networks", own) for each in part if each is not None}
        )
        number_of = {network: number for number, network in enumerate(networks)}
        found = np.array([-1 if each is None else number_of[each] for each in own], np.int64)[inverse]
        members, found = members[found >= 0], found[found >= 0]
        order = np.lexsort((found, members))
        cells = cells_of(scope, rows, members[order], found[order])
        cells = cells.picked(np.flatnonzero(cells.counts >= self.min_doc_count))
        scope.count_buckets(len(cells))
        lists = bucket_lists(
            scope, self.common, cells, rows.count, lambda number: self._head(networks[number])
        )
        return [{"buckets": keyed_buckets(buckets) if self.keyed else buckets} for buckets in lists]

    def _network(self, address: int) -> int | None:
        """The first address of its network; None for an address of the other kind."""
        if (address >> 32 == _MAPPED) == self.wide:
            return None
        host = (128 if self.wide else 32) - self.length
        return address >> host << host

    def _head(self, network: int) -> Answer:
        text = _shown(network)
        head: Answer = {
            "key": f"{text}/{self.length}" if self.appends else text,
            "is_ipv6": self.wide,
            "prefix_length": self.length,
        }
        if not self.wide:
            head["netmask"] = str(IPv4Address((1 << 32) - (1 << (32 - self.length))))
        return head


_MAPPED = 0xFFFF  # what stands before an address of 32 bits as one of 128 (RFC 4291, 2.5.5.2)


def parse_ip_prefix(definition: Definition) -> Aggregation:
    options = definition.options
    source = Source.parse(definition, (Storage.TERMS,), takes_script=False)
    length, wide = options.integer("prefix_length", -1), options.flag("is_ipv6")
    appends, keyed = options.flag("append_prefix_length"), options.flag("keyed")
    least = options.integer("min_doc_count", 1)
    options.done()
    most = 128 if wide else 32
    if not 0 <= length <= most:
        raise illegal_request(
            f"[prefix_length] must be in range [0, {most}] while value is [{length}] in [{definition.name}]"
        )
    if least < 1:
        raise illegal_request(
            f"[min_doc_count] must be greater than 0. Found [{least}] in [{definition.name}]"
        )
    if source.spec is not None and source.spec.type != "ip":
        raise illegal_argument(
            f"Field [{source.spec.path}] of type [{source.spec.type}] is not supported for aggregation "
            "[ip_prefix]"
        )
    return IpPrefix(definition.common, source, length, wide, appends, least, keyed)
