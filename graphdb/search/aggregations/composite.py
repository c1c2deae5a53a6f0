"""`composite`: a bucket for each combination of keys that documents have, page by page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.aggregations.base import Aggregation, Answer
from graphdb.search.aggregations.buckets import bucket_lists
from graphdb.search.aggregations.columns import spread
from graphdb.search.aggregations.composite_sources import CompositeSource, Keys, parse_source
from graphdb.search.aggregations.definition import Definition
from graphdb.search.aggregations.rows import Rows, cells_of
from graphdb.search.aggregations.scope import Scope
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.segment import Bools, Longs

__all__ = ["Composite", "parse_composite"]

_SOURCES_MAX = 100
_COMBINATIONS_MAX = 20_000_000  # of all documents together


@dataclass(frozen=True, slots=True)
class _Combinations:
    """Document members[i] has the combination numbers[i]; places[n] are the places of combination n's keys.

    Combinations ascend in the order in which their buckets come.
    """

    members: Longs
    numbers: Longs
    places: Longs  # (combinations, sources)


@dataclass(frozen=True)
class Composite(Aggregation):
    """after: the keys of the last bucket of the page before, by source."""

    sources: tuple[CompositeSource, ...]
    size: int
    after: Mapping[str, Any] | None

    @property
    def typed(self) -> str:
        return "composite"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        scope.check_buckets(self.size)
        keys = [source.keys(scope, rows.docs) for source in self.sources]
        found = _combined(keys, len(rows.docs))
        members, numbers = found.members, found.numbers
        if self.after is not None and len(found.places):
            kept = self._after(keys, found.places)[numbers]
            members, numbers = members[kept], numbers[kept]
        cells = cells_of(rows, members, numbers)
        cells = cells.picked(np.flatnonzero(cells.ranks() < self.size))
        scope.count_buckets(len(cells))

        def head(number: int) -> Answer:
            places = zip(self.sources, keys, found.places[number].tolist(), strict=True)
            return {
                "key": {source.name: source.value(place, key.vocabulary) for source, key, place in places}
            }

        lists = bucket_lists(scope, self.common, cells, rows.count, head)
        return [{**({"after_key": page[-1]["key"]} if page else {}), "buckets": page} for page in lists]

    def _after(self, keys: list[Keys], places: Longs) -> Bools:
        """Which combinations come after the keys of `after`."""
        assert self.after is not None
        later = np.zeros(len(places), np.bool_)
        equal = ~later
        for number, (source, key) in enumerate(zip(self.sources, keys, strict=True)):
            place = source.place_of(self.after[source.name], key.vocabulary)
            later |= equal & (places[:, number] > place)
            equal &= places[:, number] == place
        return later


def _combined(keys: list[Keys], count: int) -> _Combinations:
    """Every document with each combination of its keys, each once."""
    members, numbers = np.arange(count), np.zeros(count, np.int64)
    places = np.zeros((1, 0), np.int64)
    for key in keys:
        starts = np.searchsorted(key.rows, np.arange(count + 1))
        if int((starts[members + 1] - starts[members]).sum()) > _COMBINATIONS_MAX:
            raise illegal_argument(f"[composite] would make more than [{_COMBINATIONS_MAX}] combinations")
        expanded, positions = spread(starts, members)
        distinct, ranks = np.unique(key.places[positions], return_inverse=True)
        combined = numbers[expanded] * max(1, len(distinct)) + ranks
        members = members[expanded]
        present, numbers = np.unique(combined, return_inverse=True)
        own = distinct[present % max(1, len(distinct))] if len(present) else np.zeros(0, np.int64)
        places = np.column_stack([places[present // max(1, len(distinct))], own])
    # Equal combinations of a document have to stand together, to count once.
    order = np.lexsort((numbers, members))
    return _Combinations(members[order], numbers[order], places)


def parse_composite(definition: Definition) -> Aggregation:
    """Errors: SearchError."""
    options = definition.options
    size, after = options.integer("size", 10), options.take("after")
    if "sources" not in options:
        raise illegal_request("Required [sources]")
    entries = options.items("sources")
    options.done()
    if size < 1:
        raise illegal_request(f"[size] must be greater than 0. Found [{size}] in [{definition.name}]")
    if not entries or len(entries) > _SOURCES_MAX:
        raise illegal_request("Composite [sources] cannot be null or empty")
    sources = tuple(parse_source(entry, definition) for entry in entries)
    names = [source.name for source in sources]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        listed = ", ".join(twice)
        raise illegal_request(f"Composite source names must be unique, found duplicates: [{listed}]")
    if after is not None and (not isinstance(after, Mapping) or set(after) != set(names)):
        given = len(after) if isinstance(after, Mapping) else 0
        raise illegal_request(f"[after] has {given} value(s) but [sources] has {len(names)}")
    return Composite(definition.common, sources, size, after)
