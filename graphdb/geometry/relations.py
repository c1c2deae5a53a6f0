"""Whether two geometries are related: Simple Features, Egenhofer, RCC8, and any pattern of the DE-9IM.

Source: GeoSPARQL 1.1, section 9, whose tables give the patterns. Relations are those in the plane of the
coordinates. The second geometry is converted to the system of the first.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import shapely

from graphdb.errors import InvalidParameter
from graphdb.geometry.geometry import Geometry, in_system

__all__ = ["RELATIONS", "relate"]

_Predicate: TypeAlias = Callable[..., Any]  # of shapely: two shapes
_MEET = ("FT*******", "F**T*****", "F***T****")
_PATTERNS = {
    "ehMeet": _MEET,
    "ehOverlap": ("T*T***T**",),
    "ehCovers": ("T*TFT*FF*",),
    "ehCoveredBy": ("TFF*TFT**",),
    "ehInside": ("TFF*FFT**",),
    "ehContains": ("T*TFF*FF*",),
    "rcc8eq": ("TFFFTFFFT",),
    "rcc8dc": ("FFTFFTTTT",),
    "rcc8ec": ("FFTFTTTTT",),
    "rcc8po": ("TTTTTTTTT",),
    "rcc8tppi": ("TTTFTTFFT",),
    "rcc8tpp": ("TFFTTFTTT",),
    "rcc8ntpp": ("TFFTFFTTT",),
    "rcc8ntppi": ("TTTFFTFFT",),
}
# The standard's pattern for equality, TFFFTFFFT, requires boundaries, which points and rings do not have.
_PREDICATES: dict[str, _Predicate] = {
    "sfEquals": shapely.equals,
    "sfDisjoint": shapely.disjoint,
    "sfIntersects": shapely.intersects,
    "sfTouches": shapely.touches,
    "sfCrosses": shapely.crosses,
    "sfWithin": shapely.within,
    "sfContains": shapely.contains,
    "sfOverlaps": shapely.overlaps,
    "ehEquals": shapely.equals,
    "ehDisjoint": shapely.disjoint,
}
_PATTERN = re.compile("[TF*012]{9}", re.IGNORECASE)


def relate(one: Geometry, other: Geometry, pattern: str) -> bool:
    """Whether the intersections of the two match a pattern of the DE-9IM, such as T*F**F***.

    Raises InvalidParameter, and BadGeometry if the second cannot be converted to the system of the first.
    """
    if not _PATTERN.fullmatch(pattern):
        raise InvalidParameter(
            "pattern", f"{pattern[:50]!r} is not nine of T, F, *, 0, 1 and 2, as in T*F**F***"
        )
    other = in_system(other, one.system)
    return bool(shapely.relate_pattern(one.shape, other.shape, pattern.upper()))


def _by_predicate(holds: _Predicate) -> Callable[[Geometry, Geometry], bool]:
    def relation(one: Geometry, other: Geometry) -> bool:
        return bool(holds(one.shape, in_system(other, one.system).shape))

    return relation


def _by_pattern(patterns: tuple[str, ...]) -> Callable[[Geometry, Geometry], bool]:
    def relation(one: Geometry, other: Geometry) -> bool:
        return any(relate(one, other, pattern) for pattern in patterns)

    return relation


def _between_regions(
    holds: Callable[[Geometry, Geometry], bool],
) -> Callable[[Geometry, Geometry], bool]:
    """RCC8 is defined for regions only, but its patterns can also fit a curve and a surface."""

    def relation(one: Geometry, other: Geometry) -> bool:
        is_region = shapely.get_dimensions([one.shape, other.shape]) == 2
        return bool(is_region.all()) and holds(one, other)

    return relation


RELATIONS: Mapping[str, Callable[[Geometry, Geometry], bool]] = MappingProxyType(
    {name: _by_predicate(predicate) for name, predicate in _PREDICATES.items()}
    | {
        name: _between_regions(_by_pattern(patterns)) if name.startswith("rcc8") else _by_pattern(patterns)
        for name, patterns in _PATTERNS.items()
    }
)
"""By the names of the functions. They raise BadGeometry if the second cannot be converted."""
