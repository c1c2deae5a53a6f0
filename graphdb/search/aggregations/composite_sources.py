"""One source of a `composite`: for each document its keys by number, and what the numbers mean."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.aggregations.definition import Definition
from graphdb.search.aggregations.geo_grids import tile_name, tile_number, tile_zoom, tiles_of
from graphdb.search.aggregations.histogram import Steps, interval_rounding
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.rounding import Rounding
from graphdb.search.aggregations.scope import Scope
from graphdb.search.aggregations.sources import COMPARABLE, NUMERIC, Source
from graphdb.search.aggregations.vocabulary import NumberVocabulary, TermVocabulary, Vocabulary
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import Storage
from graphdb.search.mapping.date_formats import DateFormat
from graphdb.search.mapping.values import term_of
from graphdb.search.segment import Longs

__all__ = ["CompositeSource", "Keys", "parse_source"]


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
        whole = self.source.spec is None or not isinstance(self.steps, Steps)
        intervals = self.steps.number(values.astype(np.int64) if whole else values)
        vocabulary = NumberVocabulary.of(intervals)
        return rows, vocabulary.find(intervals), vocabulary

    def _tiles(self, scope: Scope, docs: Longs, zoom: int) -> tuple[Longs, Longs, Vocabulary]:
        none = np.empty(0, np.int64)
        if self.source.spec is None:
            return none, none, NumberVocabulary.of(none)
        points = scope.columns.points(self.source.spec, docs)
        tiles = tiles_of(points.latitudes, points.longitudes, zoom)
        vocabulary = NumberVocabulary.of(tiles)
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
        stored = self._stored(value)
        if self.steps is not None:
            stored = int(self.steps.number(np.array([stored]))[0])
        number = _lower_bound(vocabulary, stored)
        there = number < len(vocabulary) and vocabulary.value(number) == stored
        return (2 * number if there else 2 * number - 1) * (-1 if self.descending else 1)

    def _stored(self, value: Any) -> Any:
        if isinstance(value, dict | list):
            raise illegal_argument(f"[after.{self.name}] must be a value")
        pattern, zone, spec = self.source.display.pattern, self.source.display.zone, self.source.spec
        try:
            if self.zoom is not None:
                return tile_number(str(value), self.zoom)
            if isinstance(pattern, DateFormat):
                by_text = isinstance(value, str) and self.formatted
                return pattern.parse(value, zone=zone) if by_text else int(value)
            if spec is None or self.source.textual:
                return str(value) if spec is None else term_of(spec, value)
            if isinstance(value, bool) or spec.type == "boolean":
                return int(value in (True, "true"))
            return value if isinstance(value, int) else float(value)
        except (ValueError, TypeError) as error:
            raise illegal_argument(f"[after.{self.name}] [{value}] is no key of the source") from error


def _lower_bound(vocabulary: Vocabulary, stored: Any) -> int:
    if isinstance(vocabulary, TermVocabulary):
        return 0 if vocabulary.terms is None else vocabulary.terms.lower_bound(str(stored))
    assert isinstance(vocabulary, NumberVocabulary)
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
