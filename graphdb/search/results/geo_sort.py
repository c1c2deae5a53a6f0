"""`_geo_distance`: by how far points are from others."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.aggregations.columns import Values
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.scope import Scope
from graphdb.search.aggregations.sources import aggregatable, json_number
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.points import point_of
from graphdb.search.query import QueryContext
from graphdb.search.results.modes import MODES, combined
from graphdb.search.results.sort_keys import SortColumn, SortKey
from graphdb.search.segment import Doubles, Floats, Longs

__all__ = ["METRES", "ByDistance", "distances", "parse_geo_distance"]

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
        if self.spec is not None:
            found = scope.columns.points(self.spec, docs)
            all_rows = np.tile(found.rows, len(self.points))
            data = np.concatenate(
                [distances(found.latitudes, found.longitudes, *point) for point in self.points]
            )
            order = np.lexsort((data, all_rows))
            rows, metres = combined(Values(all_rows[order], data[order]), self.mode)
            values[rows] = metres / self.unit
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
