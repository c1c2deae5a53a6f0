"""Edges of longitude and latitude as curves in space: spheres around them, distances of their pieces."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyproj import Geod

from graphdb.geo.edges import Edges

__all__ = ["FAN_OUT", "Floats", "Indexes", "SpaceCurves", "Spheres", "between_chords", "places"]

Floats: TypeAlias = NDArray[np.float64]
Indexes: TypeAlias = NDArray[np.int64]

FAN_OUT: Final = 8
"""How many edges, or spheres, a sphere is around."""


@dataclass(frozen=True, slots=True)
class Spheres:
    """(n, 3) centres and (n,) radii in metres."""

    centres: Floats
    radii: Floats

    def __len__(self) -> int:
        return len(self.radii)


def places(positions: Floats, geod: Geod) -> Floats:
    """(n, 3) metres from the centre of the earth, of (n, 2) longitude and latitude in radians."""
    longitude, latitude = positions[:, 0], positions[:, 1]
    sine, cosine = np.sin(latitude), np.cos(latitude)
    radius = geod.a / np.sqrt(1 - geod.es * sine * sine)
    around = np.empty((len(positions), 3))
    around[:, 0] = radius * cosine * np.cos(longitude)
    around[:, 1] = radius * cosine * np.sin(longitude)
    around[:, 2] = radius * (1 - geod.es) * sine
    return around


class SpaceCurves:
    """Edges that are straight in the plane of longitude and latitude, and so bent in space."""

    def __init__(self, edges: Edges, geod: Geod) -> None:
        """edges is in degrees."""
        self._geod = geod
        self._begin = np.radians(edges[:, :2])
        self._step = np.radians(edges[:, 2:]) - self._begin

    def __len__(self) -> int:
        return len(self._begin)

    def positions(self, edges: Indexes, at: Floats) -> Floats:
        """(n, 2) longitude and latitude in radians, at 0 to 1 of the edges."""
        return self._begin[edges] + self._step[edges] * at[:, None]

    @cached_property
    def bends(self) -> Floats:
        """How far each edge may be from its chord in space, in metres: an eighth of its bending at most."""
        across, along = np.abs(self._step[:, 0]), np.abs(self._step[:, 1])
        begin, end = self._begin[:, 1], self._begin[:, 1] + self._step[:, 1]
        nearest_equator = np.where(begin * end < 0, 0, np.minimum(np.abs(begin), np.abs(end)))
        bending = across * across * np.cos(nearest_equator) + 2 * across * along + along * along
        bends: Floats = 1.02 * self._geod.a * bending / 8  # the ellipsoid is no sphere
        return bends

    @cached_property
    def levels(self) -> list[Spheres]:
        """Around each edge, around FAN_OUT of these each, and so on until one sphere is around all."""
        levels = [self._around_edges()]
        while len(levels[-1]) > 1:
            levels.append(_around(levels[-1]))
        return levels

    def _around_edges(self) -> Spheres:
        begin = places(self._begin, self._geod)
        end = places(self._begin + self._step, self._geod)
        return Spheres((begin + end) / 2, np.linalg.norm(end - begin, axis=1) / 2 + self.bends)


def _around(spheres: Spheres) -> Spheres:
    begins = np.arange(0, len(spheres), FAN_OUT)
    sizes = np.diff(np.append(begins, len(spheres)))
    centres = np.add.reduceat(spheres.centres, begins) / sizes[:, None]
    reach = np.linalg.norm(spheres.centres - np.repeat(centres, sizes, axis=0), axis=1) + spheres.radii
    return Spheres(centres, np.maximum.reduceat(reach, begins))


def between_chords(
    one_begin: Floats, one_end: Floats, other_begin: Floats, other_end: Floats
) -> tuple[Floats, Floats, Floats]:
    """Of pairs of straight segments in space: distances, and where on each the nearest points are, 0 to 1.

    Source: C. Ericson, Real-Time Collision Detection (2005), section 5.1.9.
    """
    one, other, offset = one_end - one_begin, other_end - other_begin, one_begin - other_begin
    a, b, e = _dot(one, one), _dot(one, other), _dot(other, other)
    c, f = _dot(one, offset), _dot(other, offset)
    one_at = np.clip(_share(b * f - c * e, a * e - b * b), 0, 1)
    free = _share(b * one_at + f, e)
    other_at = np.clip(free, 0, 1)
    one_at = np.where((other_at == free) & (e > 0), one_at, np.clip(_share(b * other_at - c, a), 0, 1))
    apart = offset + one * one_at[:, None] - other * other_at[:, None]
    return np.sqrt(_dot(apart, apart)), one_at, other_at


def _dot(one: Floats, other: Floats) -> Floats:
    product: Floats = np.einsum("ij,ij->i", one, other)
    return product


def _share(part: Floats, whole: Floats) -> Floats:
    """part / whole; 0 where that is no length, of a segment that is a point or of two in one direction."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
