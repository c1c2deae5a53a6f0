"""Bounds of geometries in degrees, west to east and south to north, and bounds around what may be near one.

All that is found here encloses what it stands for: an index that looks for what meets it misses nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import shapely
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from graphdb.errors import BadGeometry
from graphdb.geometry.geometry import Geometry
from graphdb.geometry.reference_systems import ReferenceSystem, crs84

__all__ = ["EVERYWHERE", "Bounds", "Extent", "around", "extent_of", "extent_within"]

_SHORTEST_DEGREE_M: Final = 110_500.0  # of latitude, at the equator
_POLAR: Final = 85.0  # beyond, a circle may reach all longitudes
_MARGIN: Final = 1.01  # of distances, which are right within 0.1 %
# Edges are straight in one system, and bent in another: up to this size by less than this share of it, but
# near the poles, or far from where the system is meant for.
_SIZE_MAX: Final = 10.0
_BEND: Final = 0.15
_LATITUDE_MAX: Final = 80.0
_BEYOND_AREA: Final = 20.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Degrees, all inclusive; infinite where there is no bound. Longitudes may be beyond 180."""

    west: float
    south: float
    east: float
    north: float

    def meets(self, other: "Bounds") -> bool:
        return (
            self.west <= other.east
            and other.west <= self.east
            and self.south <= other.north
            and other.south <= self.north
        )

    def with_(self, other: "Bounds | None") -> "Bounds":
        """What is around both, if there is another."""
        if other is None:
            return self
        return Bounds(
            min(self.west, other.west),
            min(self.south, other.south),
            max(self.east, other.east),
            max(self.north, other.north),
        )

    def widened(self, by: float) -> "Bounds":
        """By so many degrees on each side."""
        return Bounds(self.west - by, self.south - by, self.east + by, self.north + by)

    @property
    def size(self) -> float:
        """The longer side."""
        return max(self.east - self.west, self.north - self.south)

    @property
    def furthest(self) -> float:
        """The largest coordinate, whatever its sign."""
        return max(map(abs, (self.west, self.south, self.east, self.north)))

    def turned(self, within: "Bounds") -> Iterator["Bounds"]:
        """These bounds moved around the globe by whole rounds, wherever they meet others so."""
        if math.isinf(self.west):
            yield self
            return
        first = math.ceil((within.west - self.east) / 360)
        for rounds in range(first, math.floor((within.east - self.west) / 360) + 1):
            yield Bounds(self.west + 360 * rounds, self.south, self.east + 360 * rounds, self.north)


EVERYWHERE: Final = Bounds(-math.inf, -math.inf, math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a geometry is: bounds None where that cannot be told. is_plain: its coordinates are the degrees
    themselves.
    """

    bounds: Bounds | None
    is_plain: bool


def extent_of(geometry: Geometry) -> Extent:
    """The extent of a geometry that is not empty."""
    return extent_within(Bounds(*map(float, shapely.bounds(geometry.shape))), geometry.system)


def extent_within(bounds: Bounds, system: ReferenceSystem) -> Extent:
    """That of a geometry within bounds in the units of a system, east first."""
    if system.is_like(crs84()):
        return Extent(bounds, True)
    return Extent(_in_degrees(bounds, system), False)


def around(bounds: Bounds, metres: float) -> Bounds:
    """What encloses all places at most so far from some place within the bounds, over the earth."""
    angle = metres * _MARGIN / _SHORTEST_DEGREE_M + 1e-9
    south, north = bounds.south - angle, bounds.north + angle
    furthest = max(-south, north)
    if furthest >= _POLAR:
        return Bounds(-math.inf, south, math.inf, north)
    # the tangent to a circle around a pole; a little nearer to it, for the earth is no sphere
    latitude = math.radians(max(-bounds.south, bounds.north, 0.0) + 0.3)
    share = math.sin(math.radians(angle)) / math.cos(latitude)
    if share >= 1:
        return Bounds(-math.inf, south, math.inf, north)
    turn = math.degrees(math.asin(share)) * _MARGIN + 1e-9
    return Bounds(bounds.west - turn, south, bounds.east + turn, north)


def _in_degrees(bounds: Bounds, system: ReferenceSystem) -> Bounds | None:
    """What encloses a box of another system, with all that edges in it are bent by in between."""
    area = system.crs.area_of_use
    if area is None:
        return None
    try:
        transformer = _to_degrees(system.crs)
        west, south, east, north = transformer.transform_bounds(
            bounds.west, bounds.south, bounds.east, bounds.north, densify_pts=21
        )
    except (ProjError, BadGeometry):
        return None
    found = Bounds(west, south, east, north)
    if not all(map(math.isfinite, (west, south, east, north))) or west > east:
        return None
    limits = Bounds(area.west, area.south, area.east, area.north)
    if area.west > area.east or not limits.widened(_BEYOND_AREA).meets(found):
        return None
    if found.size > _SIZE_MAX or max(-south, north) > _LATITUDE_MAX:
        return None
    return found.widened(_BEND * found.size + 1e-6)


@lru_cache(64)
def _to_degrees(crs: CRS) -> Transformer:
    return Transformer.from_crs(crs, crs84().crs, always_xy=True)
