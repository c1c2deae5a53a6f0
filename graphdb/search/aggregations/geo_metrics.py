"""`geo_bounds` and `geo_centroid`: the box around points, and their middle."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphdb.search.aggregations.base import Aggregation, Answer
from graphdb.search.aggregations.definition import Definition
from graphdb.search.aggregations.kernels import grouped_sums
from graphdb.search.aggregations.rows import Rows
from graphdb.search.aggregations.scope import Scope
from graphdb.search.aggregations.sources import Source
from graphdb.search.fields import Storage
from graphdb.search.segment import Doubles, Longs

__all__ = ["GeoBounds", "GeoCentroid", "parse_geo_bounds", "parse_geo_centroid"]


@dataclass(frozen=True)
class _GeoMetric(Aggregation):
    source: Source
    leaf_only: ClassVar[bool] = True

    def points(self, scope: Scope, rows: Rows) -> tuple[Longs, Doubles, Doubles]:
        """(bucket, latitude, longitude) of each point."""
        if self.source.spec is None:
            return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
        found = scope.columns.points(self.source.spec, rows.docs)
        return rows.owners[found.rows], found.latitudes, found.longitudes


@dataclass(frozen=True)
class GeoBounds(_GeoMetric):
    """wraps: the box may cross the date line, where that makes it narrower."""

    wraps: bool = True

    @property
    def typed(self) -> str:
        return "geo_bounds"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        owners, latitudes, longitudes = self.points(scope, rows)
        return [
            self._bounds(latitudes[owners == owner], longitudes[owners == owner])
            for owner in range(rows.count)
        ]

    def _bounds(self, latitudes: Doubles, longitudes: Doubles) -> Answer:
        if not len(latitudes):
            return {}
        left, right = float(longitudes.min()), float(longitudes.max())
        east, west = longitudes[longitudes >= 0], longitudes[longitudes < 0]
        if self.wraps and len(east) and len(west):
            across = (180 - float(east.min())) + (180 + float(west.max()))
            if across < right - left:
                left, right = float(east.min()), float(west.max())
        return {
            "bounds": {
                "top_left": {"lat": float(latitudes.max()), "lon": left},
                "bottom_right": {"lat": float(latitudes.min()), "lon": right},
            }
        }


@dataclass(frozen=True)
class GeoCentroid(_GeoMetric):
    """The mean of the degrees."""

    @property
    def typed(self) -> str:
        return "geo_centroid"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        owners, latitudes, longitudes = self.points(scope, rows)
        counts = np.bincount(owners, minlength=rows.count)
        sums = grouped_sums(latitudes, owners, rows.count), grouped_sums(longitudes, owners, rows.count)
        return [
            {"location": {"lat": lat / count, "lon": lon / count}, "count": count} if count else {"count": 0}
            for count, lat, lon in zip(counts.tolist(), sums[0].tolist(), sums[1].tolist(), strict=True)
        ]


def parse_geo_bounds(definition: Definition) -> Aggregation:
    wraps = definition.options.flag("wrap_longitude", True)
    source = Source.parse(definition, {Storage.POINTS})
    definition.options.done()
    return GeoBounds(definition.common, source, wraps)


def parse_geo_centroid(definition: Definition) -> Aggregation:
    source = Source.parse(definition, {Storage.POINTS})
    definition.options.done()
    return GeoCentroid(definition.common, source)
