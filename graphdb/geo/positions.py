"""A shape with other positions: what reference systems and orders of axes come down to."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

__all__ = ["Positions", "with_positions"]

Positions: TypeAlias = NDArray[np.float64]
"""(n, 2): first to the east, then to the north; or longitude and latitude."""


def with_positions(shape: BaseGeometry, change: Callable[[Positions], Positions]) -> BaseGeometry:
    """The shape with each vertex moved; heights and measures stay as they are.

    change gets all positions in the order of the vertices, and answers as many.
    """
    if shape.has_m:
        return _through_wkb(shape, change)
    if shape.has_z:
        return shapely.transform(
            shape,
            lambda vertices: np.column_stack((change(vertices[:, :2]), vertices[:, 2])),
            include_z=True,
        )
    return shapely.transform(shape, change)


def _through_wkb(shape: BaseGeometry, change: Callable[[Positions], Positions]) -> BaseGeometry:
    """The same by way of well-known binary, since shapely's transform loses measures."""
    data = bytearray(shapely.to_wkb(shape, flavor="iso", byte_order=1))
    views: list[NDArray[np.float64]] = []
    _find_vertices(data, 0, views)
    positions = np.concatenate([view[:, :2] for view in views])
    there = ~np.isnan(positions[:, 0])  # an empty point is written so
    positions[there] = change(positions[there])
    begins = np.cumsum([0, *map(len, views)])
    for view, begin in zip(views, begins, strict=False):
        view[:, :2] = positions[begin : begin + len(view)]
    return shapely.from_wkb(bytes(data))


_DIMENSIONS = {0: 2, 1: 3, 2: 3, 3: 4}  # by the thousands of the type: plain, Z, M, ZM
_POINT, _LINE_STRING, _POLYGON = 1, 2, 3


def _find_vertices(data: bytearray, at: int, views: list[NDArray[np.float64]]) -> int:
    """Append a view of each run of vertices in little-endian ISO WKB; answers where the geometry ends."""
    modifier, kind = divmod(_count_at(data, at + 1), 1000)
    dimensions, at = _DIMENSIONS[modifier], at + 5

    def run(count: int, at: int) -> int:
        view = np.frombuffer(data, "<f8", count * dimensions, at).reshape(count, dimensions)
        views.append(view)
        return at + view.nbytes

    if kind == _POINT:
        return run(1, at)
    count, at = _count_at(data, at), at + 4
    if kind == _LINE_STRING:
        return run(count, at)
    for _ in range(count):
        at = run(_count_at(data, at), at + 4) if kind == _POLYGON else _find_vertices(data, at, views)
    return at


def _count_at(data: bytearray, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")
