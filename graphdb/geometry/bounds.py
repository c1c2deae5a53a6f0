"""Bounds of geometries in degrees, and bounds around all places within a distance.

Bounds are never too small: they enclose what they stand for. So an index that searches by them misses
nothing.
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
# An edge that is straight in one system is bent in another. Up to this size it is bent by less than this
# share of its length, except near the poles and far outside the system's area of use.
_SIZE_MAX: Final = 10.0
_BEND: Final = 0.15
_LATITUDE_MAX: Final = 80.0
_BEYOND_AREA: Final = 20.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Degrees, inclusive on all sides; infinite if unbounded. Longitudes may be beyond 180."""

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
        """The bounds around both; these bounds if other is None."""
        if other is None:
            return self
        return Bounds(
            min(self.west, other.west),
            min(self.south, other.south),
            max(self.east, other.east),
            max(self.north, other.north),
        )

    def widened(self, by: float) -> "Bounds":
        """Larger by so many degrees on each side."""
        return Bounds(self.west - by, self.south - by, self.east + by, self.north + by)

    @property
    def size(self) -> float:
        """The length of the longer side."""
        return max(self.east - self.west, self.north - self.south)

    @property
    def furthest(self) -> float:
        """The largest absolute value of a coordinate."""
        return max(map(abs, (self.west, self.south, self.east, self.north)))

    def turned(self, within: "Bounds") -> Iterator["Bounds"]:
        """These bounds shifted by multiples of 360 degrees, as often as they then meet `within`."""
        if math.isinf(self.west):
            yield self
            return
        first = math.ceil((within.west - self.east) / 360)
        for rounds in range(first, math.floor((within.east - self.west) / 360) + 1):
            yield Bounds(self.west + 360 * rounds, self.south, self.east + 360 * rounds, self.north)


EVERYWHERE: Final = Bounds(-math.inf, -math.inf, math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a geometry is.

    bounds is None if it cannot be determined. is_plain: the coordinates themselves are degrees in CRS84.
    """

    bounds: Bounds | None
    is_plain: bool


def extent_of(geometry: Geometry) -> Extent:
    """The extent of a geometry that is not empty."""
    return extent_within(Bounds(*map(float, shapely.bounds(geometry.shape))), geometry.system)


def extent_within(bounds: Bounds, system: ReferenceSystem) -> Extent:
    """The extent of a geometry whose bounds are in the units of a system, east first."""
    if system.is_like(crs84()):
        return Extent(bounds, True)
    return Extent(_in_degrees(bounds, system), False)


def around(bounds: Bounds, metres: float) -> Bounds:
    """Bounds around all places within a distance of the bounds, measured over the earth."""
    angle = metres * _MARGIN / _SHORTEST_DEGREE_M + 1e-9
    south, north = bounds.south - angle, bounds.north + angle
    furthest = max(-south, north)
    if furthest >= _POLAR:
        return Bounds(-math.inf, south, math.inf, north)
    # the tangent to a circle around a pole; a little nearer to the pole, because the earth is not a sphere
    latitude = math.radians(max(-bounds.south, bounds.north, 0.0) + 0.3)
    share = math.sin(math.radians(angle)) / math.cos(latitude)
    if share >= 1:
        return Bounds(-math.inf, south, math.inf, north)
    turn = math.degrees(math.asin(share)) * _MARGIN + 1e-9
    return Bounds(bounds.west - turn, south, bounds.east + turn, north)


def _in_degrees(bounds: Bounds, system: ReferenceSystem) -> Bounds | None:
    """Bounds around a box of another system, widened by how much edges in it are bent."""
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
