"""Where a constant geometry of a query is. What functions make of constants is told without calling them.

A call may take minutes and gigabytes, and this is asked where nothing limits either. So bounds are computed
for it, which enclose what the function would make; of functions whose answer may be empty there are none, for
an empty geometry is equal to others that are nowhere.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, cast

import shapely

from graphdb.errors import RequestError
from graphdb.geo.bounds import Bounds, Extent, around, extent_within
from graphdb.geo.geodesic_buffer import RADIUS_MAX_M
from graphdb.geo.geometry import read_geometry
from graphdb.geo.lookups import Constant
from graphdb.geo.measures import planar_factor
from graphdb.geo.reference_systems import ReferenceSystem, reference_system
from graphdb.geo.units import METRE, Unit, unit
from graphdb.geo.vocabulary import GEOF
from graphdb.sparql.patterns import FunctionCall
from graphdb.sparql.printing import literal_of
from graphdb.sparql.terms import Iri, RdfLiteral

__all__ = ["NoSearch", "constant_extent", "constant_number", "constant_unit"]

_DEPTH_MAX: Final = 32  # of calls in calls
_KEPT_MAX: Final = 64
_WITHIN_ITS_BOUNDS: Final = frozenset(("asGML", "asWKT", "centroid", "convexHull", "envelope"))
_SMALLEST: Final = 1e-9  # of a radius in the plane, to the coordinates: a smaller one may leave nothing
_ROUNDING: Final = 1e-9  # of coordinates that are computed
_GLOBE: Final = Bounds(-180.0, -90.0, 180.0, 90.0)


class NoSearch(Exception):
    """An index cannot tell; the reason is for a person."""


@lru_cache(_KEPT_MAX)
def constant_extent(constant: Constant) -> Extent:
    """Raises NoSearch for what is at no place, or at one that is not known."""
    bounds, system = _bounds(constant, _DEPTH_MAX)
    return extent_within(bounds, system)


def constant_unit(constant: Constant | None) -> Unit:
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


def constant_number(constant: Constant) -> float:
    """A number that may be infinite or none. Raises NoSearch."""
    try:
        return float(constant.value) if isinstance(constant, RdfLiteral) else float("nan")
    except ValueError:
        raise NoSearch("the number is none") from None


def _bounds(constant: Constant, depth: int) -> tuple[Bounds, ReferenceSystem]:
    """In the units of a system, east first."""
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
    """What encloses what a function makes of a geometry and other arguments."""
    match name:
        case "buffer" | "metricBuffer":
            of = constant_unit(rest[1] if len(rest) > 1 else None)
            return _buffered(bounds, system, constant_number(rest[0]), of), system
        case "boundingCircle":
            return bounds.widened(bounds.size), system
        case "transform" if isinstance(rest[0], Iri) and _is_system(rest[0].value, system):
            return bounds, system
        case "union":
            others, system_of_others = _bounds(rest[0], depth - 1)
            if system.is_like(system_of_others):
                return bounds.with_(others), system
        case _ if name in _WITHIN_ITS_BOUNDS:
            return bounds.widened(_ROUNDING * (1 + bounds.furthest)) if bounds.size else bounds, system
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
        return bounds.widened(reach * (1 + _ROUNDING))
    metres = radius * of.factor
    if not 0 < metres <= RADIUS_MAX_M or system.degrees != 1:
        raise NoSearch("the radius is none, or too small or large")
    reached = around(bounds, metres)
    if reached.west < _GLOBE.west or reached.east > _GLOBE.east:  # it is cut at the antimeridian
        reached = replace(reached, west=_GLOBE.west, east=_GLOBE.east)
    return replace(reached, south=max(reached.south, _GLOBE.south), north=min(reached.north, _GLOBE.north))


def _is_system(iri: str, system: ReferenceSystem) -> bool:
    try:
        return reference_system(iri).is_like(system)
    except RequestError:
        return False
