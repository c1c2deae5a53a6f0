"""Where to look in a column of geometries for the values that a condition can hold for."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from pyoxigraph import Literal

from graphdb.errors import RequestError
from graphdb.geo.bounds import Bounds, Extent, around, extent_of
from graphdb.geo.call_costs import READING_MAX, characters_to_read
from graphdb.geo.constant_extents import NoSearch, constant_extent, constant_number, constant_unit
from graphdb.geo.functions import Term
from graphdb.geo.geometry import read_geometry
from graphdb.geo.geometry_column import NOTED_MAX, GeometryColumn
from graphdb.geo.literal_file import Place
from graphdb.geo.lookups import Meets, Nearest, Within
from graphdb.geo.placed_values import Placed
from graphdb.geo.reference_systems import crs84
from graphdb.geo.units import Quantity, Unit
from graphdb.sparql.terms import RdfLiteral

__all__ = ["NoSearch", "Ring", "places_for", "places_meeting", "ring_around"]

_SIZE_MAX: Final = 10.0  # degrees; see `graphdb.geo.bounds`
_BEND: Final = 0.15
_LATITUDE_MAX: Final = 80.0
_NEARBY: Final = 20.0
_FIRST_RING_M: Final = 1_000.0
_FIRST_RING_DEGREES: Final = 0.01
_DOUBLINGS: Final = 20  # beyond the whole earth
_ROUNDING: Final = 1 + 1e-12


@dataclass(frozen=True, slots=True)
class Ring:
    """All values that are nearer to a place than the limit, in the unit of the query, and perhaps others.

    limit None: no others, and all that are elsewhere are at least as far as any of these.
    """

    limit: float | None
    places: frozenset[Place]


def places_for(condition: Meets | Within, column: GeometryColumn) -> frozenset[Place]:
    """The places of all values that the condition can hold for, and perhaps others. Raises NoSearch."""
    match condition:
        case Meets(geometry=geometry):
            return _places(column.meeting(*_boxes_meeting(constant_extent(geometry), column)))
        case Within(place=place, limit=limit):
            return _places(_within(place, _limit(limit), column))


def places_meeting(geometries: Iterable[Term], column: GeometryColumn) -> frozenset[Place]:
    """The places of all values that may meet one of the geometries. Raises NoSearch."""
    found: set[Place] = set()
    read = 0
    for number, term in enumerate(geometries):
        read += characters_to_read(term.value) if isinstance(term, Literal) else 0
        if number == NOTED_MAX or read > READING_MAX:
            raise NoSearch("the resource has too many geometries, or too large ones")
        try:
            geometry = read_geometry(term) if isinstance(term, Literal) else None
        except RequestError:
            continue  # it is related to nothing
        if geometry is None:
            continue
        if geometry.shape.is_empty:
            raise NoSearch("the resource has an empty geometry")
        found |= _places(column.meeting(*_boxes_meeting(extent_of(geometry), column)))
    return frozenset(found)


def ring_around(place: Nearest, column: GeometryColumn, least: int, most: int) -> Ring:
    """The values around a place, at least so many, as long as there are. Raises NoSearch.

    Where a distance cannot be measured from all values of the column, those are for the caller to add.
    """
    limit = _first_limit(place)
    found = _within(place, limit, column)
    for _ in range(_DOUBLINGS):
        if len(found) >= least:
            break
        limit *= 2
        found = _within(place, limit, column)
    if len(found) < least:
        raise NoSearch("there are too few values")
    nearest = _nearest_points(place, found, limit, least)
    if nearest is not None:
        return Ring(None, _places(nearest))
    if len(found) > most:
        raise NoSearch("too many geometries are equally near")
    return Ring(limit, _places(found))


def _nearest_points(place: Nearest, found: Placed, limit: float, least: int) -> Placed | None:
    """The nearest so many, and all that are as near as the last, where the distances are those of points on
    the ellipsoid.
    """
    extent, measure = constant_extent(place.geometry), _unit(place)
    bounds = extent.bounds
    if measure.quantity is not Quantity.LENGTH or bounds is None or bounds.size or not found.plain.all():
        return None
    west, south, east, north = found.bounds.T
    if (west != east).any() or (south != north).any() or (np.abs(south) > 90).any():
        return None
    count = len(found)
    here = np.full(count, bounds.west), np.full(count, bounds.south)
    distances = np.asarray(crs84().geod.inv(west, south, *here)[2])
    furthest = np.partition(distances, least - 1)[least - 1]
    if furthest >= limit * measure.factor:
        return None  # some that were not found may be nearer
    return found[distances <= furthest * _ROUNDING]


def _places(found: Placed) -> frozenset[Place]:
    return frozenset((begin, size) for begin, size in found.places.tolist())


def _within(place: Nearest, limit: float, column: GeometryColumn) -> Placed:
    extent, measure = constant_extent(place.geometry), _unit(place)
    if not extent.is_plain or extent.bounds is None:
        raise NoSearch("distances are looked up from places in degrees only")
    if measure.quantity is Quantity.LENGTH:
        reached = around(extent.bounds, limit * measure.factor)
        boxes = list(reached.turned(column.reach)) if column.reach is not None else []
    else:
        boxes = [extent.bounds.widened(math.degrees(limit * measure.factor) * (1 + 1e-9))]
    return column.meeting(boxes, None)


def _boxes_meeting(extent: Extent, column: GeometryColumn) -> tuple[list[Bounds], list[Bounds] | None]:
    """Where plain and other values may be that meet a geometry in the plane of one of their systems.

    An edge that is straight there is bent in between: that counts wherever the systems differ.
    """
    bounds = extent.bounds
    if bounds is None:
        raise NoSearch("the constant geometry is in a reference system without bounds in degrees")
    bent = bounds.widened(_BEND * bounds.size + 1e-6)
    is_small = bounds.size <= _SIZE_MAX and max(-bounds.south, bounds.north) <= _LATITUDE_MAX
    nearby = column.foreign_reach is not None and bounds.widened(_NEARBY).meets(column.foreign_reach)
    foreign = [bent] if is_small and nearby else None
    if extent.is_plain:
        return [bounds], foreign
    if column.size_max > _SIZE_MAX:
        raise NoSearch("some geometries are large, and in another reference system than the constant one")
    return [bent.widened(_BEND * column.size_max)], foreign


def _first_limit(place: Nearest) -> float:
    measure = _unit(place)
    if measure.quantity is Quantity.LENGTH:
        return _FIRST_RING_M / measure.factor
    return math.radians(_FIRST_RING_DEGREES) / measure.factor


def _unit(place: Nearest) -> Unit:
    found = constant_unit(place.unit)
    if found.quantity is Quantity.AREA:
        raise NoSearch("the unit is none of length or angle")
    return found


def _limit(literal: RdfLiteral) -> float:
    number = constant_number(literal)
    if not (math.isfinite(number) and number >= 0):
        raise NoSearch("the limit is no distance")
    return number
