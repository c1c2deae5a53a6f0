"""Vector tiles: shapes in degrees as features of a map tile, in Mapbox's format.

A tile is a square of the web's Mercator projection. Its features have whole coordinates, from 0 at the top
left to `extent`, and a little beyond: what is farther out than `buffer` is cut off.

Source: Mapbox Vector Tile Specification 2.1.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

__all__ = ["MEDIA_TYPE", "Feature", "Layer", "Scalar", "Tile", "tile_bytes"]

MEDIA_TYPE = "application/vnd.mapbox-vector-tile"
LATITUDE_MAX = 85.0511287798066  # where the projection ends
_POINT, _LINE, _POLYGON = 1, 2, 3
_MOVE_TO, _LINE_TO, _CLOSE = 1, 2, 7

Scalar = str | bool | int | float


@dataclass(frozen=True, slots=True)
class Feature:
    """kind: 1 points, 2 lines, 3 polygons. commands: the geometry, as the format encodes it."""

    kind: int
    commands: Sequence[int]
    properties: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layer:
    name: str
    extent: int
    features: Sequence[Feature]


@dataclass(frozen=True, slots=True)
class Tile:
    """x counts from west to east and y from north to south, each in [0, 2^zoom)."""

    zoom: int
    x: int
    y: int
    extent: int
    buffer: int

    @property
    def degrees(self) -> tuple[float, float, float, float]:
        """West, south, east, north."""
        count = 1 << self.zoom
        west, east = (place / count * 360 - 180 for place in (self.x, self.x + 1))
        north, south = (
            math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * place / count))))
            for place in (self.y, self.y + 1)
        )
        return west, south, east, north

    def projected(self, degrees: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, 2) longitudes and latitudes as coordinates of the tile, not rounded."""
        count = 1 << self.zoom
        across = (degrees[:, 0] + 180) / 360 * count - self.x
        sine = np.sin(np.radians(np.clip(degrees[:, 1], -LATITUDE_MAX, LATITUDE_MAX)))
        down = (0.5 - np.log((1 + sine) / (1 - sine)) / (4 * math.pi)) * count - self.y
        return np.column_stack([across, down]) * self.extent

    def features(self, shapes: "Sequence[BaseGeometry]", properties: Mapping[str, Scalar]) -> list[Feature]:
        """Of shapes in degrees: one feature for all points of them, one for all lines, one for all polygons;
        none of what is outside.
        """
        import shapely

        low, high = -self.buffer, self.extent + self.buffer
        parts: dict[int, list[BaseGeometry]] = {_POINT: [], _LINE: [], _POLYGON: []}
        for shape in shapes:
            moved = shapely.transform(shape, self.projected)
            for part in _parts(moved):
                inside = (
                    shapely.clip_by_rect(part, low, low, high, high) if part.geom_type != "Point" else part
                )
                for piece in _parts(inside):
                    parts[_KINDS[piece.geom_type]].append(piece)
        encoders = {_POINT: self._points, _LINE: _lines, _POLYGON: _polygons}
        encoded = {kind: encoders[kind](parts[kind]) for kind in parts}
        return [Feature(kind, commands, properties) for kind, commands in encoded.items() if commands]

    def _points(self, points: "Sequence[BaseGeometry]") -> list[int]:
        low, high = -self.buffer, self.extent + self.buffer
        places = [_rounded(np.array(point.coords))[0] for point in points if not point.is_empty]
        places = [place for place in places if (place >= low).all() and (place <= high).all()]
        if not places:
            return []
        pen = _Pen()
        pen.move(np.array(places))
        return pen.commands

    def cell(self, west: float, north: float, east: float, south: float) -> list[int]:
        """The commands of a box; its sides are fractions of the tile, from the top left."""
        import shapely

        box = shapely.box(west, north, east, south)
        return _polygons([shapely.transform(box, lambda places: places * self.extent)])


_KINDS = {"Point": _POINT, "LineString": _LINE, "LinearRing": _LINE, "Polygon": _POLYGON}


def _parts(shape: "BaseGeometry") -> "Iterator[BaseGeometry]":
    """Points, lines and polygons that are not empty."""
    if shape.is_empty:
        return
    if shape.geom_type in _KINDS:
        yield shape
    else:
        for part in getattr(shape, "geoms", ()):
            yield from _parts(part)


def _rounded(places: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.asarray(np.floor(places[:, :2] + 0.5), np.int64)


class _Pen:
    """Writes commands with places relative to the one before."""

    def __init__(self) -> None:
        self.commands: list[int] = []
        self._x = self._y = 0

    def move(self, places: NDArray[np.int64]) -> None:
        self._write(_MOVE_TO, places)

    def line(self, places: NDArray[np.int64]) -> None:
        self._write(_LINE_TO, places)

    def close(self) -> None:
        self.commands.append(_CLOSE | 1 << 3)

    def _write(self, command: int, places: NDArray[np.int64]) -> None:
        self.commands.append(command | len(places) << 3)
        for x, y in places.tolist():
            self.commands += [_zigzag(x - self._x), _zigzag(y - self._y)]
            self._x, self._y = x, y


def _zigzag(number: int) -> int:
    return 2 * number if number >= 0 else -2 * number - 1


def _without_repeats(places: NDArray[np.int64]) -> NDArray[np.int64]:
    kept = np.append(True, (np.diff(places, axis=0) != 0).any(axis=1))
    return np.asarray(places[kept], np.int64)


def _lines(lines: "Iterable[BaseGeometry]") -> list[int]:
    pen = _Pen()
    for line in lines:
        places = _without_repeats(_rounded(np.array(line.coords)))
        if len(places) > 1:
            pen.move(places[:1])
            pen.line(places[1:])
    return pen.commands


def _polygons(polygons: "Iterable[Any]") -> list[int]:
    """Outer rings turn right on the screen, and inner ones left; what has no area is left out."""
    pen = _Pen()
    for polygon in polygons:
        for number, ring in enumerate([polygon.exterior, *polygon.interiors]):
            places = _without_repeats(_rounded(np.array(ring.coords)))[:-1]
            area = _area(places)
            if len(places) < 3 or area == 0:
                if number == 0:
                    break
                continue
            if (area < 0) == (number == 0):
                places = places[::-1]
            pen.move(places[:1])
            pen.line(places[1:])
            pen.close()
    return pen.commands


def _area(places: NDArray[np.int64]) -> int:
    """Twice the area; positive where the ring turns right, as y points down."""
    x, y = places.T
    return int((x * np.roll(y, -1) - np.roll(x, -1) * y).sum())


# The format itself.


@cache
def _messages() -> Any:
    """The class of the message `Tile`, of the specification's `vector_tile.proto`."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="graphdb/vector_tile.proto", package="graphdb.vector_tile")
    file.syntax = "proto2"
    tile = file.message_type.add(name="Tile")
    value, feature, layer = (tile.nested_type.add(name=name) for name in ("Value", "Feature", "Layer"))
    one, many = kinds.LABEL_OPTIONAL, kinds.LABEL_REPEATED

    def add(message: Any, name: str, number: int, kind: int, label: int = one, inner: str = "") -> Any:
        added = message.field.add(name=name, number=number, type=kind, label=label)
        if inner:
            added.type_name = f".graphdb.vector_tile.Tile.{inner}"
        return added

    add(value, "string_value", 1, kinds.TYPE_STRING)
    add(value, "double_value", 3, kinds.TYPE_DOUBLE)
    add(value, "int_value", 4, kinds.TYPE_INT64)
    add(value, "bool_value", 7, kinds.TYPE_BOOL)
    add(feature, "tags", 2, kinds.TYPE_UINT32, many).options.packed = True
    add(feature, "type", 3, kinds.TYPE_UINT32)  # an enumeration, which is encoded as a number
    add(feature, "geometry", 4, kinds.TYPE_UINT32, many).options.packed = True
    add(layer, "name", 1, kinds.TYPE_STRING)
    add(layer, "features", 2, kinds.TYPE_MESSAGE, many, "Feature")
    add(layer, "keys", 3, kinds.TYPE_STRING, many)
    add(layer, "values", 4, kinds.TYPE_MESSAGE, many, "Value")
    add(layer, "extent", 5, kinds.TYPE_UINT32)
    add(layer, "version", 15, kinds.TYPE_UINT32)
    add(tile, "layers", 3, kinds.TYPE_MESSAGE, many, "Layer")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("graphdb.vector_tile.Tile"))


def tile_bytes(layers: Iterable[Layer]) -> bytes:
    """A tile in version 2 of the format. Layers without features are left out."""
    tile = _messages()()
    for layer in layers:
        if layer.features:
            _write_layer(tile.layers.add(version=2, name=layer.name, extent=layer.extent), layer.features)
    return bytes(tile.SerializeToString(deterministic=True))


def _write_layer(layer: Any, features: Iterable[Feature]) -> None:
    """Each key, and each value of a type, once."""
    keys: dict[str, int] = {}
    values: dict[tuple[str, Scalar], int] = {}
    for feature in features:
        tags: list[int] = []
        for name, value in feature.properties.items():
            kind = _VALUE_KINDS[type(value)]
            tags += [keys.setdefault(name, len(keys)), values.setdefault((kind, value), len(values))]
        layer.features.add(type=feature.kind, geometry=feature.commands, tags=tags)
    layer.keys.extend(keys)
    for kind, value in values:
        setattr(layer.values.add(), kind, value)


_VALUE_KINDS: dict[type, str] = {
    str: "string_value",
    bool: "bool_value",
    int: "int_value",
    float: "double_value",
}
