"""Buckets of combinations of values: `composite` and its sources, `multi_terms`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.search.aggregations.aggregation import (
    Aggregation,
    Answer,
    Cells,
    Definition,
    Rows,
    Scope,
    bucket_lists,
    over_shards,
    own_cells,
)
from graphdb.search.aggregations.columns import spread
from graphdb.search.aggregations.geo_grids import tile_name, tile_number, tile_zoom, tiles_of
from graphdb.search.aggregations.intervals import Steps, interval_rounding
from graphdb.search.aggregations.leading_rows import leading_rows
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.rounding import CalendarRounding, FixedRounding, Rounding, Spans
from graphdb.search.aggregations.terms_aggregation import (
    ByCount,
    ByKey,
    Order,
    first_cells,
    parse_order,
    sorted_cells,
)
from graphdb.search.aggregations.value_sources import (
    COMPARABLE,
    NUMERIC,
    NumberVocabulary,
    Source,
    TermVocabulary,
    Vocabulary,
)
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Bools, Longs
from graphdb.search.mapping.dates import DateFormat
from graphdb.search.mapping.value_formats import term_of
from graphdb.search.number_text import number_text

__all__ = [
    "Composite",
    "CompositeSource",
    "Keys",
    "MultiTerms",
    "parse_composite",
    "parse_multi_terms",
    "parse_source",
]

# One source of a `composite`: for each document its keys by number, and what the numbers mean.


@dataclass(frozen=True, slots=True)
class Keys:
    """places[i] of document rows[i] (rows ascend) ascend as the buckets of the source are to come."""

    rows: Longs
    places: Longs
    vocabulary: Vocabulary


@dataclass(frozen=True, slots=True)
class CompositeSource:
    """steps: intervals of a histogram, None: the values themselves. missing_bucket: a null key for documents
    without a value, which comes first or last. zoom: of the map tiles that points are in.
    """

    name: str
    source: Source
    steps: Steps | Rounding | None
    formatted: bool
    descending: bool
    missing_bucket: bool
    missing_first: bool
    zoom: int | None = None

    def keys(self, scope: Scope, docs: Longs) -> Keys:
        rows, numbers, vocabulary = self._numbered(scope, docs)
        places = self._place(numbers)
        if self.missing_bucket:
            lacking = np.setdiff1d(np.arange(len(docs)), rows)
            rows = np.concatenate([rows, lacking])
            places = np.concatenate([places, np.full(len(lacking), self._missing_place)])
            order = np.argsort(rows, kind="stable")
            rows, places = rows[order], places[order]
        return Keys(rows, places, vocabulary)

    def _numbered(self, scope: Scope, docs: Longs) -> tuple[Longs, Longs, Vocabulary]:
        if self.zoom is not None:
            return self._tiles(scope, docs, self.zoom)
        if self.steps is None:
            return self.source.keyed(scope, docs)
        rows, values = self.source.numbers(scope, docs)
        whole = self.source.storage is None or not isinstance(self.steps, Steps)
        intervals = self.steps.number(values.astype(np.int64) if whole else values)
        vocabulary = NumberVocabulary.of(scope, intervals)
        return rows, vocabulary.find(intervals), vocabulary

    def _tiles(self, scope: Scope, docs: Longs, zoom: int) -> tuple[Longs, Longs, Vocabulary]:
        none = np.empty(0, np.int64)
        if self.source.spec is None:
            return none, none, NumberVocabulary(none)
        points = scope.columns.points(self.source.spec, docs)
        tiles = tiles_of(points.latitudes, points.longitudes, zoom)
        vocabulary = NumberVocabulary.of(scope, tiles)
        return points.rows, vocabulary.find(tiles), vocabulary

    def _place(self, numbers: Longs) -> Longs:
        """Even, so that values which no document has find room in between; null is beyond all of them."""
        return numbers * (-2 if self.descending else 2)

    @property
    def _missing_place(self) -> int:
        return -(2**40) if self.missing_first else 2**40

    def value(self, place: int, vocabulary: Vocabulary) -> Any:
        """The key at a place as the answer shows it."""
        if abs(place) == 2**40:
            return None
        stored = vocabulary.value(abs(place) // 2)
        if self.zoom is not None:
            return tile_name(stored, self.zoom)
        if self.steps is not None:
            stored = self.steps.start(np.array([stored], np.int64))[0].item()
        if self.formatted:
            return self._formatted(stored)
        if self.source.spec is not None and self.source.spec.type == "boolean":
            return bool(stored)
        return self.source.display.key(stored)

    def term(self, place: int, vocabulary: Vocabulary) -> Any:
        """The same in a list of terms: several may be shown as one text."""
        return self.source.shown(vocabulary.value(abs(place) // 2))

    def _formatted(self, stored: Any) -> Any:
        """Errors: illegal_argument_exception where the text means another instant: as `after` it would lead
        to another page.
        """
        text = self.source.display.key_text(stored) or stored
        pattern, zone = self.source.display.pattern, self.source.display.zone
        if isinstance(pattern, DateFormat) and not pattern.means(text, stored, zone):
            raise illegal_argument(
                f"Format [{pattern.source}] created output it couldn't parse for value [{stored}] of type "
                f"[class java.lang.Long]. The input was [{text}]"
            )
        return text

    def place_of(self, value: Any, vocabulary: Vocabulary) -> int:
        """Where a key of `after` stands, though no document may have it. Errors: SearchError."""
        if value is None:
            if not self.missing_bucket:
                raise illegal_argument(f"Missing value for [after.{self.name}]")
            return self._missing_place
        stored = self.stored(value)
        if self.steps is not None:
            stored = int(self.steps.number(np.array([stored]))[0])
        number = _lower_bound(vocabulary, stored)
        there = number < len(vocabulary) and vocabulary.value(number) == stored
        return (2 * number if there else 2 * number - 1) * (-1 if self.descending else 1)

    def stored(self, value: Any) -> Any:
        """A key of `after` as columns have it. Errors: illegal_argument_exception."""
        if isinstance(value, dict | list):
            raise illegal_argument(f"[after.{self.name}] must be a value")
        pattern, zone, spec = self.source.display.pattern, self.source.display.zone, self.source.spec
        try:
            if self.zoom is not None:
                return tile_number(str(value), self.zoom)
            if isinstance(pattern, DateFormat):
                by_text = isinstance(value, str) and self.formatted
                return pattern.parse(value, zone=zone) if by_text else int(value)
            if self.source.storage is None or self.source.textual:
                return str(value) if spec is None else term_of(spec, value)
            if isinstance(value, bool) or (spec is not None and spec.type == "boolean"):
                return int(value in (True, "true"))
            return value if isinstance(value, int) else float(value)
        except (ValueError, TypeError) as error:
            raise illegal_argument(f"[after.{self.name}] [{value}] is no key of the source") from error


def _lower_bound(vocabulary: Vocabulary, stored: Any) -> int:
    if isinstance(vocabulary, TermVocabulary):
        return 0 if vocabulary.terms is None else vocabulary.terms.lower_bound(str(stored))
    assert isinstance(vocabulary, NumberVocabulary)
    if vocabulary.values.dtype == np.uint64 and isinstance(stored, int):
        if not 0 <= stored < 2**64:
            return 0 if stored < 0 else len(vocabulary)
        stored = np.uint64(stored)  # beside an int64 both would be compared as doubles
    return int(np.searchsorted(vocabulary.values, stored))


def parse_source(entry: Any, definition: Definition) -> CompositeSource:
    """`{"name": {"terms": {"field": ...}}}`. Errors: SearchError."""
    name, inner = _only(entry, "sources")
    kind, body = _only(inner, name)
    options = Options(kind, body)
    own = definition.with_options(options)
    order = (options.text("order", "asc") or "asc").lower()
    missing_bucket = options.flag("missing_bucket")
    missing_order = (options.text("missing_order", "default") or "default").lower()
    if order not in ("asc", "desc") or missing_order not in ("first", "last", "default"):
        raise illegal_request(f"Unknown order [{order[:100]}] or missing_order [{missing_order[:100]}]")
    formatted = "format" in options
    steps: Steps | Rounding | None
    zoom = None
    if kind == "terms":
        source, steps = Source.parse(own, COMPARABLE), None
    elif kind == "histogram":
        source, steps = Source.parse(own, NUMERIC), _steps(options, name)
    elif kind == "date_histogram":
        source, steps = interval_rounding(own)
    elif kind == "geotile_grid":
        zoom = tile_zoom(options)
        source, steps = Source.parse(own, {Storage.POINTS}), None
    else:
        raise SearchError("parsing_exception", f"invalid source type: {kind[:100]}")
    options.done()
    first = missing_order == "first" or (missing_order == "default" and order == "asc")
    return CompositeSource(name, source, steps, formatted, order == "desc", missing_bucket, first, zoom)


def _steps(options: Options, name: str) -> Steps:
    interval = options.number("interval")
    if interval is None or not 0 < interval < np.inf:
        raise illegal_request(f"[interval] must be greater than 0 for [histogram] source [{name}]")
    return Steps(interval, 0.0)


def _only(body: Any, owner: str) -> tuple[str, Any]:
    if not isinstance(body, Mapping) or len(body) != 1:
        raise SearchError(
            "parsing_exception", f"[composite] [{owner[:100]}] must be an object with one member"
        )
    ((name, inner),) = body.items()
    return name, inner


# `composite`: a bucket for each combination of keys that documents have, page by page.

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
        for part in self._leading(scope, rows):
            keys, cells, combinations = self._page(scope, part)
            if len(cells) >= self.size:
                break
        scope.count_buckets(len(cells))

        def head(number: int) -> Answer:
            places = zip(self.sources, keys, combinations[number].tolist(), strict=True)
            return {
                "key": {source.name: source.value(place, key.vocabulary) for source, key, place in places}
            }

        spans = self._spans(keys, combinations[cells.keys])
        lists = bucket_lists(scope, self.common, cells, rows.count, head, spans)
        return [{**({"after_key": page[-1]["key"]} if page else {}), "buckets": page} for page in lists]

    def _leading(self, scope: Scope, rows: Rows) -> Iterator[Rows]:
        """Documents that may make a full page; all of them at last."""
        first = self.sources[0]
        is_plain = first.steps is None and first.zoom is None and first.source.missing is None
        spec = first.source.spec if is_plain and not first.missing_bucket else None
        given = None if self.after is None else self.after[first.name]
        if spec is None or (self.after is not None and given is None):
            return iter((rows,))
        after = None if given is None else first.stored(given)
        return leading_rows(scope, rows, spec, first.descending, self.size, after)

    def _page(self, scope: Scope, rows: Rows) -> tuple[list[Keys], Cells, Longs]:
        """(keys, the buckets of the page, the places of the combinations that they are numbered by)."""
        keys = [source.keys(scope, rows.docs) for source in self.sources]
        found = _combined(keys, len(rows.docs))
        members, numbers = found.members, found.numbers
        if self.after is not None and len(found.places):
            kept = self._after(keys, found.places)[numbers]
            members, numbers = members[kept], numbers[kept]
        cells = self._first(own_cells(rows, members, numbers, scope.columns.doc_counts))
        cells, combinations = _over_shards(scope, cells, found.places)
        return keys, self._first(cells), combinations

    def _spans(self, keys: list[Keys], places: Longs) -> Spans | None:
        """The intervals of the one source that has some, which every bucket must be in."""
        dated = [
            (number, source.steps)
            for number, source in enumerate(self.sources)
            if isinstance(source.steps, FixedRounding | CalendarRounding)
        ]
        if len(dated) != 1 or self.sources[dated[0][0]].missing_bucket or not self.common.children:
            return None
        ((number, rounding),) = dated
        value = keys[number].vocabulary.value
        numbers = [value(abs(place) // 2) for place in places[:, number].tolist()]
        return Spans(rounding, np.array(numbers, np.int64))

    def _first(self, cells: Cells) -> Cells:
        """Those of the page. (Those of all shards are among the first of each.)"""
        return cells.picked(np.flatnonzero(cells.ranks() < self.size))

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


def _over_shards(scope: Scope, cells: Cells, places: Longs, whole: bool = False) -> tuple[Cells, Longs]:
    """(cells, places by combination) of all shards: their keys number the combinations of all.

    whole: those that no cell has, too.
    """
    peers = scope.searcher.peers
    if peers is None:
        return cells, places
    used = np.arange(len(places)) if whole else np.unique(cells.keys)
    parts = scope.gathered("combinations", places[used])
    every, numbers = np.unique(np.concatenate(parts), axis=0, return_inverse=True)
    first = sum(map(len, parts[: peers.number]))
    known = numbers.reshape(-1)[first : first + len(used)]
    return over_shards(scope, replace(cells, keys=known[np.searchsorted(used, cells.keys)])), every


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


# `multi_terms`: a bucket for each combination of values of several fields, the most frequent first.


@dataclass(frozen=True)
class MultiTerms(Aggregation):
    """Documents without a value for one of the fields are in no bucket. With a min_doc_count of 0 there are
    buckets for the combinations of all documents, whatever the query.
    """

    sources: tuple[CompositeSource, ...]
    size: int
    min_doc_count: int
    order: Order
    show_error: bool

    @property
    def typed(self) -> str:
        return "multi_terms"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        whole = self.min_doc_count == 0
        docs = np.flatnonzero(scope.live()) if whole else rows.docs
        keys = [source.keys(scope, docs) for source in self.sources]
        found = _combined(keys, len(docs))
        members, numbers = found.members, found.numbers
        if whole:
            starts = np.searchsorted(members, np.arange(len(docs) + 1))
            members, at = spread(starts, np.searchsorted(docs, rows.docs))
            numbers = numbers[at]
        cells, combinations = _over_shards(
            scope, own_cells(rows, members, numbers, scope.columns.doc_counts), found.places, whole
        )
        if whole:
            scope.check_buckets(len(combinations) * rows.count // 16)
            owners = np.repeat(np.arange(rows.count), len(combinations))
            cells = cells.filled(owners, np.tile(np.arange(len(combinations)), rows.count))
        cells = cells.picked(np.flatnonzero(cells.counts >= self.min_doc_count))
        in_order = sorted_cells(scope, self.common, cells, self.order, lambda numbers: numbers.astype(float))
        shown, others = first_cells(scope, cells, in_order, self.size, rows.count)

        def head(number: int) -> Answer:
            places = zip(self.sources, keys, combinations[number].tolist(), strict=True)
            values = [source.term(place, key.vocabulary) for source, key, place in places]
            made = {"key": values, "key_as_string": "|".join(map(_key_text, values))}
            return {**made, "doc_count_error_upper_bound": 0} if self.show_error else made

        lists = bucket_lists(scope, self.common, shown, rows.count, head)
        return [
            {"doc_count_error_upper_bound": 0, "sum_other_doc_count": rest, "buckets": buckets}
            for rest, buckets in zip(others, lists, strict=True)
        ]


def _key_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else number_text(value)


def parse_multi_terms(definition: Definition) -> Aggregation:
    """Errors: SearchError."""
    options = definition.options
    size, least = options.integer("size", 10), options.integer("min_doc_count", 1, 0)
    order = parse_order(options.take("order"), (ByCount(True), ByKey(False)))
    show_error = options.flag("show_term_doc_count_error")
    entries = options.items("terms")
    options.ignore("shard_size", "shard_min_doc_count", "collect_mode")
    options.done()
    if size < 1:
        raise illegal_request(f"[size] must be greater than 0. Found [{size}] in [{definition.name}]")
    if not 2 <= len(entries) <= _SOURCES_MAX:
        raise illegal_request(
            f"The [terms] parameter in the aggregation [{definition.name}] must be present and have at least "
            "2 fields or scripts."
        )
    sources = []
    for number, entry in enumerate(entries):
        inner = Options("multi_terms", entry)
        source = Source.parse(definition.with_options(inner), COMPARABLE)
        inner.done()
        sources.append(CompositeSource(str(number), source, None, False, False, False, True))
    return MultiTerms(definition.common, tuple(sources), size, least, order, show_error)
