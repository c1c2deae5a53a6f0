"""`geo_distance`, `geo_bounding_box` and `geo_polygon`: documents by a point in them."""

import math
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.errors import SearchError, illegal_request
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Bools, Doubles, Leaf, PointColumn
from graphdb.search.mapping.readers import geohash_cell, point_of
from graphdb.search.mapping.shapes import box_of
from graphdb.search.mapping.units import METERS
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, malformed
from graphdb.search.query.kernels import any_within
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.shapes import on_shapes
from graphdb.search.query.tree import Matches, MatchNoneQuery, Query, boosted

__all__ = [
    "EARTH_RADIUS_M",
    "PARSERS",
    "BoundingBoxQuery",
    "DistanceQuery",
    "PolygonQuery",
    "distances_m",
    "meters",
]

EARTH_RADIUS_M = 6_371_008.7714  # the mean radius


def meters(distance: Any, unit: str = "m") -> float:
    """A distance such as 12, "12" or "12km" in metres; unit is that of one without its own."""
    found = re.fullmatch(r"\s*([0-9.eE+-]*[0-9.])\s*([A-Za-z]*)\s*", str(distance))
    try:
        if found is None:
            raise ValueError
        value = float(found[1]) * METERS.get(found[2] or unit, math.nan)
    except ValueError:
        raise malformed(f"failed to parse distance [{distance}]") from None
    if not value >= 0:
        raise illegal_request(f"distance must be greater than zero, and of a known unit, got [{distance}]")
    return value


def distances_m(latitudes: Doubles, longitudes: Doubles, latitude: float, longitude: float) -> Doubles:
    """Along the great circle, by the haversine formula; degrees in, metres out."""
    from_lat, to_lat = np.radians(latitude), np.radians(latitudes)
    half_lat, half_lon = (to_lat - from_lat) / 2, np.radians(longitudes - longitude) / 2
    h = np.sin(half_lat) ** 2 + np.cos(from_lat) * np.cos(to_lat) * np.sin(half_lon) ** 2
    result: Doubles = 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.minimum(h, 1)))
    return result


@dataclass(frozen=True, kw_only=True)
class _PointQuery(Query):
    """A point somewhere; every match scores the boost."""

    path: str

    @abstractmethod
    def _holding(self, column: PointColumn) -> Bools:
        """Which documents have such a point."""

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        column = leaf.segment.points(self.path)
        if column is None:
            return Matches(np.zeros(leaf.segment.size, dtype=np.bool_))
        return Matches(self._holding(column), None, boost * self.boost)


@dataclass(frozen=True, kw_only=True)
class DistanceQuery(_PointQuery):
    """A point at most so far away."""

    latitude: float
    longitude: float
    distance_m: float

    def _holding(self, column: PointColumn) -> Bools:
        away = distances_m(column.latitudes, column.longitudes, self.latitude, self.longitude)
        return np.asarray(any_within(away, column.starts) <= self.distance_m)

    def text(self) -> str:
        return f"{self.path}:{self.latitude},{self.longitude} +/- {self.distance_m} meters"


@dataclass(frozen=True, kw_only=True)
class BoundingBoxQuery(_PointQuery):
    """A point in a box. With left > right it crosses the date line."""

    top: float
    left: float
    bottom: float
    right: float

    def _holding(self, column: PointColumn) -> Bools:
        east, west = column.longitudes >= self.left, column.longitudes <= self.right
        inside = (east & west) if self.left <= self.right else (east | west)
        inside &= (column.latitudes >= self.bottom) & (column.latitudes <= self.top)
        outside = np.where(inside, 0.0, np.inf)
        return np.asarray(any_within(outside, column.starts) == 0)

    def text(self) -> str:
        return f"{self.path}:[{self.bottom},{self.left} TO {self.top},{self.right}]"


@dataclass(frozen=True, kw_only=True)
class PolygonQuery(_PointQuery):
    """A point in a polygon, whose edges are straight in degrees. corners: (latitude, longitude)."""

    corners: tuple[tuple[float, float], ...]

    def _holding(self, column: PointColumn) -> Bools:
        """A ray to the east crosses the border an odd number of times."""
        inside = np.zeros(len(column.latitudes), np.bool_)
        following = (*self.corners[1:], self.corners[0])
        for (lat, lon), (to_lat, to_lon) in zip(self.corners, following, strict=True):
            if lat != to_lat:
                across = (lat > column.latitudes) != (to_lat > column.latitudes)
                at = lon + (column.latitudes - lat) / (to_lat - lat) * (to_lon - lon)
                inside ^= across & (column.longitudes < at)
        return np.asarray(any_within(np.where(inside, 0.0, np.inf), column.starts) == 0)

    def text(self) -> str:
        return f"{self.path}:Polygon{list(self.corners)}"


def _read(
    kind: str, body: Mapping[str, Any], others: tuple[str, ...], context: QueryContext
) -> tuple[str, Any, Clause, bool]:
    """(field, what is said of it, the other members, whether the field is a point's)."""
    fields = [key for key in body if key not in (*others, "boost", "_name")]
    if not fields:
        raise malformed(f"[{kind}] failed to parse: no field name")
    if len(fields) > 1:
        raise malformed(
            f"[{kind}] query doesn't support multiple fields, found [{fields[0]}] and [{fields[1]}]"
        )
    clause = Clause(kind, {key: value for key, value in body.items() if key != fields[0]})
    ignore = clause.flag("ignore_unmapped", False)
    spec = context.mapping.field(fields[0])
    if spec is None and not ignore:
        raise context.failed(f"failed to find geo field [{fields[0]}]")
    is_box_of_shapes = spec is not None and spec.type == "geo_shape" and kind == "geo_bounding_box"
    if spec is not None and spec.storage is not Storage.POINTS and not is_box_of_shapes:
        raise context.failed(f"Field [{fields[0]}] is of unsupported type [{spec.type}] for [{kind}] query")
    return fields[0], body[fields[0]], clause, spec is not None


def _distance(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    others = ("distance", "unit", "distance_type", "validation_method", "ignore_unmapped")
    path, given, clause, known = _read("geo_distance", body, others, context)
    distance = clause.take("distance")
    unit = clause.word("unit", "m")
    clause.choice("distance_type", "arc", ("arc", "plane"))
    clause.ignore("validation_method")
    clause.done()
    if distance is None:
        raise malformed("geo_distance requires 'distance' to be specified")
    if not known:
        return MatchNoneQuery(boost=clause.boost, name=clause.name)
    latitude, longitude = _point(given, path)
    return DistanceQuery(
        path=path,
        latitude=latitude,
        longitude=longitude,
        distance_m=meters(distance, unit),
        boost=clause.boost,
        name=clause.name,
    )


def _point(given: Any, path: str) -> tuple[float, float]:
    try:
        return point_of(given, path)
    except SearchError as error:
        raise malformed(f"failed to parse geo_point for [{path}]: {error.reason}") from None


def _bounding_box(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    path, given, clause, known = _read(
        "geo_bounding_box", body, ("type", "validation_method", "ignore_unmapped"), context
    )
    clause.ignore("type", "validation_method")
    clause.done()
    top, left, bottom, right = _box(given, path)
    if top < bottom:
        raise illegal_request(f"top is below bottom corner: {top} vs. {bottom}")
    if not known:
        return MatchNoneQuery(boost=clause.boost, name=clause.name)
    if (spec := context.mapping.field(path)) is not None and spec.type == "geo_shape":
        query = on_shapes(spec.path, box_of(left, top, right, bottom), "intersects", is_shape=True)
        return boosted(query, clause.boost, clause.name)
    return BoundingBoxQuery(
        path=path, top=top, left=left, bottom=bottom, right=right, boost=clause.boost, name=clause.name
    )


_CORNERS_MAX = 10_000


def _polygon(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    path, given, clause, known = _read("geo_polygon", body, ("validation_method", "ignore_unmapped"), context)
    clause.ignore("validation_method")
    clause.done()
    if not isinstance(given, Mapping) or set(given) != {"points"} or not isinstance(given["points"], list):
        raise malformed("[geo_polygon] requires an array of [points]")
    corners = [_point(point, path) for point in given["points"][: _CORNERS_MAX + 1]]
    if len(corners) > _CORNERS_MAX:
        raise illegal_request(f"[geo_polygon] takes at most {_CORNERS_MAX} points")
    if len(set(corners)) < 3:
        raise illegal_request("too few points defined for geo_polygon query")
    if not known:
        return MatchNoneQuery(boost=clause.boost, name=clause.name)
    return PolygonQuery(path=path, corners=tuple(corners), boost=clause.boost, name=clause.name)


def _box(given: Any, path: str) -> tuple[float, float, float, float]:
    """(top, left, bottom, right) from corners, sides, or `BBOX (left, right, top, bottom)`."""
    if not isinstance(given, Mapping):
        raise malformed(f"failed to parse bounding box for [{path}]")
    if "wkt" in given:
        numbers = re.findall(r"[-+0-9.eE]+", str(given["wkt"]).upper().removeprefix("BBOX"))
        if len(numbers) != 4:
            raise malformed(f"failed to parse WKT bounding box for [{path}]")
        left, right, top, bottom = (_degrees(number) for number in numbers)
    elif {"top_left", "bottom_right"} <= set(given):
        top, left = _corner(given["top_left"], path, (True, False))
        bottom, right = _corner(given["bottom_right"], path, (False, True))
    elif {"top_right", "bottom_left"} <= set(given):
        top, right = _corner(given["top_right"], path, (True, True))
        bottom, left = _corner(given["bottom_left"], path, (False, False))
    elif {"top", "left", "bottom", "right"} <= set(given):
        top, left, bottom, right = (_degrees(given[side]) for side in ("top", "left", "bottom", "right"))
    else:
        raise malformed(f"failed to parse bounding box for [{path}]: top, left, bottom and right are needed")
    return top, left, bottom, right


def _corner(given: Any, path: str, at: tuple[bool, bool]) -> tuple[float, float]:
    """A point; of a geohash that corner of its cell which is in the north, in the east (at)."""
    if not isinstance(given, str) or "," in given or "(" in given:
        return _point(given, path)
    try:
        low, high = geohash_cell(given)
    except SearchError as error:
        raise malformed(f"failed to parse geo_point for [{path}]: {error.reason}") from None
    return (high if at[0] else low)[0], (high if at[1] else low)[1]


def _degrees(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise malformed(f"[geo_bounding_box] not a number of degrees: [{value}]") from None
    if not math.isfinite(number):
        raise malformed(f"[geo_bounding_box] not a number of degrees: [{value}]")
    return number


PARSERS: dict[str, ClauseParser] = {
    "geo_bounding_box": _bounding_box,
    "geo_distance": _distance,
    "geo_polygon": _polygon,
}
