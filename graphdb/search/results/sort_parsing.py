"""The `sort` of a request, also by distance."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.aggregations.columns import Values
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.value_sources import aggregatable, json_number
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Doubles, Floats, Longs
from graphdb.search.mapping.dates import DEFAULT_FORMAT, date_format
from graphdb.search.mapping.readers import point_of
from graphdb.search.mapping.value_formats import term_of, whole_range
from graphdb.search.query import QueryContext, parse_query
from graphdb.search.results.script_sorting import parse_script_sort
from graphdb.search.results.sort_keys import (
    MODES,
    ByDoc,
    ByField,
    ByScore,
    Nesting,
    SortColumn,
    SortKey,
    combined,
)

__all__ = ["METRES", "ByDistance", "distances", "parse_geo_distance", "parse_sort"]

# `_geo_distance`: by how far points are from others.

_DISTANCES_AT_ONCE = 250_000  # 2 MB of them
EARTH_RADIUS_M = 6_371_008.7714
METRES = {
    "m": 1.0, "meters": 1.0, "km": 1000.0, "kilometers": 1000.0, "cm": 0.01, "centimeters": 0.01, "mm": 0.001,
    "millimeters": 0.001, "mi": 1609.344, "miles": 1609.344, "yd": 0.9144, "yards": 0.9144, "ft": 0.3048,
    "feet": 0.3048, "in": 0.0254, "inch": 0.0254, "nmi": 1852.0, "NM": 1852.0, "nauticalmiles": 1852.0,
}  # fmt: skip


def distances(latitudes: Doubles, longitudes: Doubles, latitude: float, longitude: float) -> Doubles:
    """Metres along the surface of a sphere (haversine), as Lucene's SloppyMath computes them."""
    there, here = np.radians(latitudes), np.radians(latitude)
    half = np.sin((there - here) / 2) ** 2
    half += np.cos(there) * np.cos(here) * np.sin(np.radians(longitudes - longitude) / 2) ** 2
    return np.asarray(2 * EARTH_RADIUS_M * np.arcsin(np.minimum(1.0, np.sqrt(half))))


@dataclass(frozen=True, slots=True)
class ByDistance(SortKey):
    """The distance to the nearest (or as mode says) of several points. spec None: no such field."""

    path: str
    spec: FieldSpec | None
    points: tuple[tuple[float, float], ...]
    unit: float
    descending: bool
    mode: str

    def column(self, scope: Scope, docs: Longs, scores: Floats | None) -> SortColumn:
        values = np.full(len(docs), np.inf)
        spec, at_once = self.spec, max(1, _DISTANCES_AT_ONCE // len(self.points))
        for start in range(0, len(docs), at_once):
            if spec is None:
                break
            checkpoint()
            found = scope.columns.points(spec, docs[start : start + at_once])
            all_rows = np.tile(found.rows, len(self.points))
            data = np.concatenate(
                [distances(found.latitudes, found.longitudes, *point) for point in self.points]
            )
            order = np.lexsort((data, all_rows))
            rows, metres = combined(Values(all_rows[order], data[order]), self.mode)
            values[start + rows] = metres / self.unit
        sign = -1.0 if self.descending else 1.0
        # Documents without a point come last either way.
        place = np.where(np.isinf(values), np.inf, values * sign)
        return SortColumn(
            place, lambda row: json_number(float(values[row])), lambda value: _place(value, sign)
        )


def _place(value: Any, sign: float) -> float:
    number = float(value)
    return np.inf if np.isinf(number) else number * sign


def parse_geo_distance(body: Any, context: QueryContext) -> SortKey:
    """The field is the one key that is no parameter; its value one point or several."""
    options = Options("_geo_distance", body)
    order, unit = options.text("order", "asc"), options.text("unit", "m") or "m"
    mode = options.text("mode") or ("max" if order == "desc" else "min")
    ignore_unmapped = options.flag("ignore_unmapped")
    options.ignore("distance_type", "validation_method", "nested")
    rest = options.rest()
    if len(rest) != 1 or unit not in METRES or mode not in MODES:
        raise illegal_request("[_geo_distance] takes one field, a known [unit] and a known [mode]")
    ((path, given),) = rest.items()
    spec = aggregatable(context, path)
    if spec is None and not ignore_unmapped:
        raise illegal_argument(f"failed to find mapper for [{path}] for geo distance based sort")
    if spec is not None and spec.storage is not Storage.POINTS:
        raise SearchError("illegal_argument_exception", f"field [{path}] isn't a geo_point field")
    several = isinstance(given, list) and given and not isinstance(given[0], (int, float))
    points = tuple(point_of(one) for one in (given if several else [given]))
    return ByDistance(path, spec, points, METRES[unit], order == "desc", mode)


# From the JSON under `sort` to sort keys.

KEYS_MAX = 100
_STORAGES = {
    "keyword": Storage.TERMS, "ip": Storage.TERMS, "text": Storage.TERMS,
    "double": Storage.FLOATS, "float": Storage.FLOATS, "half_float": Storage.FLOATS,
    "scaled_float": Storage.FLOATS,
}  # fmt: skip


def parse_sort(body: Any, context: QueryContext) -> tuple[SortKey, ...]:
    """Nothing, and by score alone, give no keys."""
    entries = [] if body is None else body if isinstance(body, list) else [body]
    if len(entries) > KEYS_MAX:
        raise illegal_request(f"[sort] takes at most [{KEYS_MAX}] keys")
    keys = tuple(key for entry in entries for key in _entry(entry, context))
    return () if keys == (ByScore(),) else keys


def _entry(entry: Any, context: QueryContext) -> list[SortKey]:
    if isinstance(entry, str):
        name, _, order = entry.partition(":")
        return [_key(name, {"order": order} if order else {}, context)]
    if not isinstance(entry, Mapping):
        raise illegal_request(
            "malformed sort format, within the sort array, an object, or an actual string are allowed"
        )
    return [_key(name, how, context) for name, how in entry.items()]


def _key(name: str, how: Any, context: QueryContext) -> SortKey:
    if name == "_geo_distance":
        return parse_geo_distance(how, context)
    if name == "_script":
        return parse_script_sort(how, context)
    options = Options("field_sort", {"order": how} if isinstance(how, str) else how)
    descending = _descending(options, name == "_score")
    if name in ("_score", "_doc", "_shard_doc"):
        options.ignore("unmapped_type", "missing", "mode", "numeric_type", "format")
        options.done()
        return ByScore(descending) if name == "_score" else ByDoc(descending, name)
    return _field(name, options, descending, context)


def _descending(options: Options, default: bool) -> bool:
    order = options.text("order")
    if order is None:
        return default
    if order.lower() not in ("asc", "desc"):
        raise illegal_request(
            f"No enum constant org.elasticsearch.search.sort.SortOrder.{order.upper()[:100]}"
        )
    return order.lower() == "desc"


def _field(path: str, options: Options, descending: bool, context: QueryContext) -> SortKey:
    mode = (options.text("mode") or ("max" if descending else "min")).lower()
    if mode not in MODES:
        raise illegal_request(f"Unknown SortMode [{mode}]")
    unmapped, shape = options.text("unmapped_type"), options.text("format")
    missing, nesting = options.take("missing", "_last"), _nesting(options.take("nested"), context)
    numeric = options.text("numeric_type")
    options.done()
    spec = _as_type(numeric, aggregatable(context, path) or _unmapped(path, unmapped, context))
    if spec.storage not in (Storage.TERMS, Storage.INTS, Storage.FLOATS):
        raise illegal_argument(
            f"can't sort on [{spec.type}] field [{path}] without using specific sorting feature"
        )
    if spec.storage is Storage.TERMS and mode not in ("min", "max"):
        raise illegal_argument("we only support min and max sort modes on string fields")
    if missing not in ("_first", "_last"):
        missing = term_of(spec, missing, context.now_ms)
    if spec.storage is Storage.INTS and isinstance(missing, int | float):
        least, most = whole_range(spec)
        missing = int(min(max(missing, least), most))
    dates = spec.type in ("date", "date_nanos") and shape is not None
    return ByField(path, spec, descending, mode, missing, nesting, date_format(str(shape)) if dates else None)


def _as_type(numeric: str | None, spec: FieldSpec) -> FieldSpec:
    """`numeric_type`: which of its types a date counts as; other numbers are what they are."""
    if numeric is not None and numeric not in ("long", "double", "date", "date_nanos"):
        raise illegal_request(
            f"invalid value for [numeric_type], must be [long, double, date, date_nanos], got {numeric[:100]}"
        )
    dates = ("date", "date_nanos")
    return replace(spec, type=numeric) if numeric in dates and spec.type in dates else spec


def _unmapped(path: str, kind: str | None, context: QueryContext) -> FieldSpec:
    """A field that no document has."""
    if kind is None:
        raise SearchError(
            "query_shard_exception",
            f"No mapping found for [{path}] in order to sort on",
            400,
            {"index": context.index_name},
        )
    options = {"format": DEFAULT_FORMAT} if kind in ("date", "date_nanos") else {}
    return FieldSpec(path, kind, _STORAGES.get(kind, Storage.INTS), options=options)


def _nesting(body: Any, context: QueryContext) -> Nesting | None:
    if body is None:
        return None
    options = Options("nested", body)
    path, query, inner = options.text("path"), options.take("filter"), options.take("nested")
    options.ignore("max_children")
    options.done()
    if path is None:
        raise illegal_request("[nested] requires [path]")
    if inner is not None:
        # The innermost path holds the values; filters on the way there are not combined.
        return _nesting(inner, context)
    return Nesting(path, None if query is None else parse_query(query, context.within(path)))
