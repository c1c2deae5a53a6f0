"""`ip_range`: ranges of addresses, by their ends or by a mask in CIDR notation."""

from dataclasses import dataclass
from ipaddress import IPv6Address

import numpy as np

from graphdb.search.aggregations.base import Aggregation, Answer
from graphdb.search.aggregations.buckets import all_cells, bucket_lists, keyed_buckets
from graphdb.search.aggregations.definition import Definition
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.ranges import parse_ranges
from graphdb.search.aggregations.rows import Rows
from graphdb.search.aggregations.scope import Scope
from graphdb.search.aggregations.sources import Source
from graphdb.search.fields import Storage
from graphdb.search.mapping.addresses import address_of, address_term, network_terms

__all__ = ["IpRanges", "parse_ip_range"]

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
        members, numbers, vocabulary = self.source.keyed(scope, rows.docs)
        used, inverse = np.unique(numbers, return_inverse=True)
        addresses = [_number(vocabulary.value(number)) for number in used.tolist()]
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
    ranges = [_range(body) for body in parse_ranges(definition)]
    keyed = options.flag("keyed")
    options.done()
    return IpRanges(
        definition.common, source, tuple(sorted(ranges, key=lambda one: (one.low, one.high))), keyed
    )


def _range(body: Options) -> IpRange:
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
