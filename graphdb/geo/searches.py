"""Searches of a column of geometries for the values that can meet a condition.

A condition names a constant geometry, which may be a call. No function is called here: a call may take
minutes and gigabytes, and this is asked where nothing limits either. So bounds are computed for the call,
which enclose what the function would make. Functions whose result may be empty have no bounds, because an
empty geometry is equal to others that are nowhere.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, cast

import numpy as np
import shapely
from pyoxigraph import Literal

from graphdb.errors import RequestError
from graphdb.geo.function_calls import READING_MAX, characters_to_read
from graphdb.geo.geometry_column import NOTED_MAX, GeometryColumn, Place, Placed
from graphdb.geo.lookups import Constant, Meets, Nearest, Within
from graphdb.geometry.bounds import Bounds, Extent, around, extent_of, extent_within
from graphdb.geometry.buffers import RADIUS_MAX_M
from graphdb.geometry.functions import Term
from graphdb.geometry.geometry import read_geometry
from graphdb.geometry.geosparql_names import GEOF
from graphdb.geometry.measures import planar_factor
from graphdb.geometry.reference_systems import ReferenceSystem, crs84, reference_system
from graphdb.geometry.units import METRE, Quantity, Unit, unit
from graphdb.sparql.patterns import FunctionCall
from graphdb.sparql.printing import literal_of
from graphdb.sparql.terms import Iri, RdfLiteral

__all__ = ["NoSearch", "Ring", "constant_extent", "places_for", "places_meeting", "ring_around"]

_SIZE_MAX: Final = 10.0  # degrees; see `graphdb.geometry.bounds`
_BEND: Final = 0.15
_LATITUDE_MAX: Final = 80.0
_NEARBY: Final = 20.0
_FIRST_RING_M: Final = 1_000.0
_FIRST_RING_DEGREES: Final = 0.01
_DOUBLINGS: Final = 20  # beyond the whole earth
_ROUNDING: Final = 1 + 1e-12


@dataclass(frozen=True, slots=True)
class Ring:
    """The places of all values nearer than the limit, in the unit of the query, and perhaps of others.

    If limit is None, there are no others, and all other values are at least as far as these.
    """

    limit: float | None
    places: frozenset[Place]


def places_for(condition: Meets | Within, column: GeometryColumn) -> frozenset[Place]:
    """The places of all values that can meet the condition, and perhaps of others. Raises NoSearch."""
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
            continue  # it has no relation to any value
        if geometry is None:
            continue
        if geometry.shape.is_empty:
            raise NoSearch("the resource has an empty geometry")
        found |= _places(column.meeting(*_boxes_meeting(extent_of(geometry), column)))
    return frozenset(found)


def ring_around(place: Nearest, column: GeometryColumn, least: int, most: int) -> Ring:
    """At least so many values around a place. Raises NoSearch, also if there are too few.

    The caller adds the values whose distance cannot be measured.
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
    """So many of the nearest values, and all that are as near as the last of these.

    None if the distances are not between points on the ellipsoid.
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
    """The bounds for plain and for other values that may meet a geometry.

    An edge that is straight in one system is bent in another. So bounds are widened where the systems differ.
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
    found = _constant_unit(place.unit)
    if found.quantity is Quantity.AREA:
        raise NoSearch("the unit is none of length or angle")
    return found


def _limit(literal: RdfLiteral) -> float:
    number = _constant_number(literal)
    if not (math.isfinite(number) and number >= 0):
        raise NoSearch("the limit is no distance")
    return number


_DEPTH_MAX: Final = 32  # of calls in calls
_KEPT_MAX: Final = 64
_WITHIN_ITS_BOUNDS: Final = frozenset(("asGML", "asWKT", "centroid", "convexHull", "envelope"))
_SMALLEST: Final = 1e-9  # radius in the plane, relative to the coordinates: a smaller one may give nothing
_ROUNDED: Final = 1e-9  # relative error of computed coordinates
_GLOBE: Final = Bounds(-180.0, -90.0, 180.0, 90.0)


class NoSearch(Exception):
    """The index cannot be used; the reason is for people."""


@lru_cache(_KEPT_MAX)
def constant_extent(constant: Constant) -> Extent:
    """Raises NoSearch if the position of the constant is unknown, or it has none."""
    bounds, system = _bounds(constant, _DEPTH_MAX)
    return extent_within(bounds, system)


def _constant_unit(constant: Constant | None) -> Unit:
    """A unit of length, angle or area; None is the metre. Raises NoSearch."""
    match constant:
        case None:
            return METRE
        case Iri(value=value) | RdfLiteral(value=value):
            try:
                return unit(value)
            except RequestError as error:
                raise NoSearch(str(error)) from None
    raise NoSearch("the unit is none of length or angle")


def _constant_number(constant: Constant) -> float:
    """A number, perhaps infinite or NaN. Raises NoSearch."""
    try:
        return float(constant.value) if isinstance(constant, RdfLiteral) else float("nan")
    except ValueError:
        raise NoSearch("the number is none") from None


def _bounds(constant: Constant, depth: int) -> tuple[Bounds, ReferenceSystem]:
    """Bounds in the units of a system, east first."""
    match constant:
        case RdfLiteral():
            return _bounds_of_literal(constant)
        case FunctionCall(function=Iri(value=name), arguments=arguments) if depth:
            geometry, *rest = cast(tuple[Constant, ...], arguments)
            bounds, system = _bounds(geometry, depth - 1)
            return _made(name.removeprefix(GEOF), bounds, system, rest, depth)
    raise NoSearch("the constant geometry is none, or computed in too many steps")


def _bounds_of_literal(literal: RdfLiteral) -> tuple[Bounds, ReferenceSystem]:
    try:
        geometry = read_geometry(literal_of(literal))
    except (RequestError, ValueError):
        geometry = None
    if geometry is None or geometry.shape.is_empty:
        raise NoSearch("the constant geometry is empty, or none")
    return Bounds(*map(float, shapely.bounds(geometry.shape))), geometry.system


def _made(
    name: str, bounds: Bounds, system: ReferenceSystem, rest: Sequence[Constant], depth: int
) -> tuple[Bounds, ReferenceSystem]:
    """Bounds around the result of a function of a geometry and other arguments."""
    match name:
        case "buffer" | "metricBuffer":
            of = _constant_unit(rest[1] if len(rest) > 1 else None)
            return _buffered(bounds, system, _constant_number(rest[0]), of), system
        case "boundingCircle":
            return bounds.widened(bounds.size), system
        case "transform" if isinstance(rest[0], Iri) and _is_system(rest[0].value, system):
            return bounds, system
        case "union":
            others, system_of_others = _bounds(rest[0], depth - 1)
            if system.is_like(system_of_others):
                return bounds.with_(others), system
        case _ if name in _WITHIN_ITS_BOUNDS:
            return bounds.widened(_ROUNDED * (1 + bounds.furthest)) if bounds.size else bounds, system
    raise NoSearch(f"where geof:{name} leaves a geometry is not known before it is called")


def _buffered(bounds: Bounds, system: ReferenceSystem, radius: float, of: Unit) -> Bounds:
    try:
        factor = planar_factor(system, of)
    except RequestError as error:
        raise NoSearch(str(error)) from None
    if factor is not None:
        reach = radius / factor
        if not _SMALLEST * (1 + bounds.furthest) < reach < float("inf"):
            raise NoSearch("the radius is none, or too small")
        return bounds.widened(reach * (1 + _ROUNDED))
    metres = radius * of.factor
    if not 0 < metres <= RADIUS_MAX_M or system.degrees != 1:
        raise NoSearch("the radius is none, or too small or large")
    reached = around(bounds, metres)
    if reached.west < _GLOBE.west or reached.east > _GLOBE.east:  # the buffer is cut at the antimeridian
        reached = replace(reached, west=_GLOBE.west, east=_GLOBE.east)
    return replace(reached, south=max(reached.south, _GLOBE.south), north=min(reached.north, _GLOBE.north))


def _is_system(iri: str, system: ReferenceSystem) -> bool:
    try:
        return reference_system(iri).is_like(system)
    except RequestError:
        return False
