"""`geohash_grid` and `geotile_grid`: a bucket for each cell of a grid on the earth that has a point."""

import math
from dataclasses import dataclass

import numpy as np

from graphdb.search.aggregations.aggregation import (
    Aggregation,
    Answer,
    Definition,
    Rows,
    Scope,
    bucket_lists,
    cells_of,
)
from graphdb.search.aggregations.options import Options, required
from graphdb.search.aggregations.value_sources import NumberVocabulary, Source
from graphdb.search.errors import illegal_request
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Doubles, Longs
from graphdb.search.mapping.readers import point_of
from graphdb.search.query.geo import meters

__all__ = ["GeoGrid", "parse_geo_grid", "tile_name", "tile_number", "tile_zoom", "tiles_of"]

_DIGITS = "0123456789bcdefghjkmnpqrstuvwxyz"
_SIZE_DEFAULT = 10_000
_ZOOM_MAX = 29
_TILE_LATITUDE_MAX = 85.0511287798066


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Points beyond are left out; where left is greater than right, the box crosses the date line."""

    top: float
    left: float
    bottom: float
    right: float


@dataclass(frozen=True)
class GeoGrid(Aggregation):
    """tiles: of map tiles, by zoom; else of geohashes, by their length."""

    source: Source
    tiles: bool
    precision: int
    size: int
    bounds: _Bounds | None

    @property
    def typed(self) -> str:
        return "geotile_grid" if self.tiles else "geohash_grid"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        if self.source.spec is None:
            return [{"buckets": []} for _ in range(rows.count)]
        points = scope.columns.points(self.source.spec, rows.docs)
        members, latitudes, longitudes = points.rows, points.latitudes, points.longitudes
        if self.bounds is not None:
            kept = _inside(self.bounds, latitudes, longitudes)
            members, latitudes, longitudes = members[kept], latitudes[kept], longitudes[kept]
        cell = tiles_of if self.tiles else _hashes
        codes = cell(latitudes, longitudes, self.precision)
        distinct = NumberVocabulary.of(scope, codes)
        numbers = distinct.find(codes)
        order = np.lexsort((numbers, members))
        cells = cells_of(scope, rows, members[order], numbers[order])
        cells = cells.ordered(-cells.counts, -cells.keys)  # as in Elasticsearch, of equal ones the last first
        chosen = cells.picked(np.flatnonzero(cells.ranks() < self.size))
        scope.count_buckets(len(chosen))

        def head(number: int) -> Answer:
            code = distinct.value(number)
            return {
                "key": tile_name(code, self.precision) if self.tiles else _hash_name(code, self.precision)
            }

        return [{"buckets": page} for page in bucket_lists(scope, self.common, chosen, rows.count, head)]


def _inside(bounds: _Bounds, latitudes: Doubles, longitudes: Doubles) -> "np.typing.NDArray[np.bool_]":
    east, west = longitudes >= bounds.left, longitudes <= bounds.right
    across = east | west if bounds.left > bounds.right else east & west
    return np.asarray((latitudes <= bounds.top) & (latitudes >= bounds.bottom) & across)


def _hashes(latitudes: Doubles, longitudes: Doubles, length: int) -> Longs:
    """The 5 * length bits of each point's geohash, longitude first."""
    bits = 5 * length
    lon_bits, lat_bits = (bits + 1) // 2, bits // 2
    lon = np.clip((longitudes + 180.0) / 360.0 * 2**lon_bits, 0, 2**lon_bits - 1).astype(np.int64)
    lat = np.clip((latitudes + 90.0) / 180.0 * 2**lat_bits, 0, 2**lat_bits - 1).astype(np.int64)
    code = np.zeros(len(lon), np.int64)
    for place in range(bits):
        source, left = (
            (lon, lon_bits - 1 - place // 2) if place % 2 == 0 else (lat, lat_bits - 1 - place // 2)
        )
        code = (code << 1) | ((source >> left) & 1)
    return code


def _hash_name(code: int, length: int) -> str:
    return "".join(_DIGITS[(code >> (5 * (length - 1 - place))) & 31] for place in range(length))


def tiles_of(latitudes: Doubles, longitudes: Doubles, zoom: int) -> Longs:
    """x and y of each point's tile, in one number. Source: the slippy map's formulas."""
    count = 1 << zoom
    x = np.clip(np.floor((longitudes + 180.0) / 360.0 * count), 0, count - 1).astype(np.int64)
    sine = np.sin(np.radians(np.clip(latitudes, -_TILE_LATITUDE_MAX, _TILE_LATITUDE_MAX)))
    down = (0.5 - np.log((1 + sine) / (1 - sine)) / (4 * np.pi)) * count
    y = np.clip(np.floor(down), 0, count - 1).astype(np.int64)
    return np.asarray(x * count + y)


def tile_name(code: int, zoom: int) -> str:
    """`zoom/x/y`."""
    return f"{zoom}/{code >> zoom}/{code & ((1 << zoom) - 1)}"


def tile_number(name: str, zoom: int) -> int:
    """The inverse of tile_name. Errors: ValueError."""
    level, x, y = (int(part) for part in name.split("/"))
    if level != zoom or not (0 <= x < 1 << zoom and 0 <= y < 1 << zoom):
        raise ValueError(f"{name} is no tile of zoom {zoom}")
    return (x << zoom) + y


def tile_zoom(options: Options) -> int:
    """`precision` of map tiles."""
    return _precision(options, True)


def parse_geo_grid(definition: Definition) -> Aggregation:
    """geohash_grid and geotile_grid. Errors: SearchError."""
    options, tiles = definition.options, definition.kind == "geotile_grid"
    precision = _precision(options, tiles)
    size, bounds = options.integer("size", _SIZE_DEFAULT), _parse_bounds(options)
    if size < 1:
        raise illegal_request(f"[size] must be greater than 0. Found [{size}] in [{definition.name}]")
    source = Source.parse(definition, {Storage.POINTS})
    options.ignore("shard_size")
    options.done()
    return GeoGrid(definition.common, source, tiles, precision, size, bounds)


def _precision(options: Options, tiles: bool) -> int:
    given = options.take("precision", 7 if tiles else 5)
    if not tiles and isinstance(given, str) and not given.strip().isdecimal():
        return _length_of(meters(given))
    precision = Options(options.owner, {"precision": given}).integer("precision", 0)
    low, high = (0, _ZOOM_MAX) if tiles else (1, 12)
    if not low <= precision <= high:
        kind = "geotile_grid precision" if tiles else "geohash aggregation precision"
        raise illegal_request(f"Invalid {kind} of {precision}. Must be between {low} and {high}.")
    return precision


_EQUATOR_M, _MERIDIAN_M = 40_075_016.68557849, 19_970_326.371122  # around the earth; from pole to pole


def _length_of(distance_m: float) -> int:
    """The length of geohashes whose cells have about this diagonal. Source: Elasticsearch's GeoUtils."""
    if distance_m == 0:
        return 12
    width = distance_m / (1 + _MERIDIAN_M / _EQUATOR_M)
    bits = max(0, math.ceil(_EQUATOR_M / width).bit_length() - 1)
    full, left = divmod(bits, 5)
    return min(12, max(1, 2 * full + (left > 0) + (left > 3)))


def _parse_bounds(options: Options) -> _Bounds | None:
    body = options.take("bounds")
    if body is None:
        return None
    inner = Options("bounds", body)
    if "top_left" in inner:
        top, left = point_of(inner.take("top_left"))
        bottom, right = point_of(required(inner.take("bottom_right"), "bottom_right"))
    elif "top_right" in inner:
        top, right = point_of(inner.take("top_right"))
        bottom, left = point_of(required(inner.take("bottom_left"), "bottom_left"))
    else:
        top, left, bottom, right = (
            required(inner.number(name), name) for name in ("top", "left", "bottom", "right")
        )
    inner.done()
    return _Bounds(top, left, bottom, right)
