"""The distance on the ellipsoid between the nearest points of two shapes in longitudes and latitudes.

Edges are straight in the plane of longitude and latitude, as they are for the relations. So the distance is 0
exactly if the two intersect there, or would intersect after a shift by whole rounds of the globe.

The nearest points are found by their distance through the earth, by branch and bound. Runs of edges are
enclosed in spheres, and many pairs of spheres are compared at once. A pair is discarded if nothing in it can
be nearer than what has been found. This works over the poles and the antimeridian as anywhere else.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import Geod
from shapely import affinity
from shapely.geometry.base import BaseGeometry

from graphdb.geometry.shapes import Edges, check_on_globe, edges_of

__all__ = ["geodesic_distance"]

_FEW: Final = 4096  # pairs of edges: so few are compared without spheres
_BATCH: Final = 100_000  # pairs that are compared at once
_PRECISION: Final = 2e-5  # of the distance
_PRECISION_M: Final = 1e-4
_NEARLY: Final = (
    1.004  # two distances through the earth within this ratio may have the other order over its surface
)
_CANDIDATES_MAX: Final = 4096
_WORK_MAX: Final = 50_000_000  # pairs; after these the nearest found so far is the result

_Floats: TypeAlias = NDArray[np.float64]
_Indexes: TypeAlias = NDArray[np.int64]

_FAN_OUT: Final = 8
"""How many edges, or smaller spheres, a sphere encloses."""


@dataclass(frozen=True, slots=True)
class _Spheres:
    """(n, 3) centres and (n,) radii in metres."""

    centres: _Floats
    radii: _Floats

    def __len__(self) -> int:
        return len(self.radii)


def _places(positions: _Floats, geod: Geod) -> _Floats:
    """(n, 3) metres from the centre of the earth, from (n, 2) longitude and latitude in radians."""
    longitude, latitude = positions[:, 0], positions[:, 1]
    sine, cosine = np.sin(latitude), np.cos(latitude)
    radius = geod.a / np.sqrt(1 - geod.es * sine * sine)
    around = np.empty((len(positions), 3))
    around[:, 0] = radius * cosine * np.cos(longitude)
    around[:, 1] = radius * cosine * np.sin(longitude)
    around[:, 2] = radius * (1 - geod.es) * sine
    return around


class _SpaceCurves:
    """Edges as curves in space. They are straight in the plane of longitude and latitude."""

    def __init__(self, edges: Edges, geod: Geod) -> None:
        """edges is in degrees."""
        self._geod = geod
        self._begin = np.radians(edges[:, :2])
        self._step = np.radians(edges[:, 2:]) - self._begin

    def __len__(self) -> int:
        return len(self._begin)

    def positions(self, edges: _Indexes, at: _Floats) -> _Floats:
        """(n, 2) longitude and latitude in radians, at a share of each edge from 0 to 1."""
        return self._begin[edges] + self._step[edges] * at[:, None]

    @cached_property
    def bends(self) -> _Floats:
        """The largest distance of each edge from its chord in space, in metres: an eighth of its bending."""
        across, along = np.abs(self._step[:, 0]), np.abs(self._step[:, 1])
        begin, end = self._begin[:, 1], self._begin[:, 1] + self._step[:, 1]
        nearest_equator = np.where(begin * end < 0, 0, np.minimum(np.abs(begin), np.abs(end)))
        bending = across * across * np.cos(nearest_equator) + 2 * across * along + along * along
        bends: _Floats = 1.02 * self._geod.a * bending / 8  # more, because the ellipsoid is not a sphere
        return bends

    @cached_property
    def levels(self) -> list[_Spheres]:
        """Spheres around each edge, then around _FAN_OUT of these, and so on, up to one sphere around all."""
        levels = [self._around_edges()]
        while len(levels[-1]) > 1:
            levels.append(_around(levels[-1]))
        return levels

    def _around_edges(self) -> _Spheres:
        begin = _places(self._begin, self._geod)
        end = _places(self._begin + self._step, self._geod)
        return _Spheres((begin + end) / 2, np.linalg.norm(end - begin, axis=1) / 2 + self.bends)


def _around(spheres: _Spheres) -> _Spheres:
    begins = np.arange(0, len(spheres), _FAN_OUT)
    sizes = np.diff(np.append(begins, len(spheres)))
    centres = np.add.reduceat(spheres.centres, begins) / sizes[:, None]
    reach = np.linalg.norm(spheres.centres - np.repeat(centres, sizes, axis=0), axis=1) + spheres.radii
    return _Spheres(centres, np.maximum.reduceat(reach, begins))


def _between_chords(
    one_begin: _Floats, one_end: _Floats, other_begin: _Floats, other_end: _Floats
) -> tuple[_Floats, _Floats, _Floats]:
    """Distances of pairs of straight segments in space, and the shares (0 to 1) at which they are nearest.

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


def _dot(one: _Floats, other: _Floats) -> _Floats:
    product: _Floats = np.einsum("ij,ij->i", one, other)
    return product


def _share(part: _Floats, whole: _Floats) -> _Floats:
    """part / whole, or 0 if whole is 0: for a segment that is a point, or two parallel segments."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def geodesic_distance(one: BaseGeometry, other: BaseGeometry, geod: Geod) -> float:
    """In metres, accurate to 0.01 %, and to 0.1 % beyond 8,000 km. Neither may be empty.

    Raises BadGeometry.
    """
    check_on_globe(one)
    check_on_globe(other)
    if isinstance(one, shapely.Point) and isinstance(other, shapely.Point):
        return float(geod.inv(one.x, one.y, other.x, other.y)[2])
    if _intersect_somewhere(one, other):
        return 0.0
    search = _Search(_SpaceCurves(edges_of(one), geod), _SpaceCurves(edges_of(other), geod), geod)
    return search.distance()


def _intersect_somewhere(one: BaseGeometry, other: BaseGeometry) -> bool:
    """Whether they intersect in the plane, or would after a shift by whole rounds."""
    west, _, east, _ = shapely.bounds(one)
    other_west, _, other_east, _ = shapely.bounds(other)
    first = int(np.ceil((west - other_east) / 360))
    last = int(np.floor((east - other_west) / 360))
    return any(
        shapely.intersects(one, affinity.translate(other, 360 * rounds) if rounds else other)
        for rounds in range(first, last + 1)
    )


@dataclass(frozen=True, slots=True)
class _SpherePairs:
    """Pairs of spheres: number one[i] of a level of one shape, and other[i] of a level of the other."""

    one_level: int
    other_level: int
    one: _Indexes
    other: _Indexes


@dataclass(frozen=True, slots=True)
class _PiecePairs:
    """Pairs of pieces of edges. A piece is given by the shares of its edge at which it begins and ends."""

    one: _Indexes
    one_begin: _Floats
    one_end: _Floats
    other: _Indexes
    other_begin: _Floats
    other_end: _Floats

    def __getitem__(self, chosen: NDArray[np.bool_] | slice) -> "_PiecePairs":
        return _PiecePairs(*(getattr(self, name)[chosen] for name in self.__slots__))


class _Search:
    """The nearest points of two curves, by branch and bound."""

    def __init__(self, one: _SpaceCurves, other: _SpaceCurves, geod: Geod) -> None:
        self._one, self._other, self._geod = one, other, geod
        self._nearest = np.inf  # through the earth, in metres: the nearest points are at most this far apart
        self._work = 0
        self._found: list[tuple[_Floats, _Floats, _Floats]] = []  # distances, positions, positions
        self._waiting: list[_SpherePairs | _PiecePairs] = []
        if len(one) * len(other) <= _FEW:
            pairs = np.indices((len(one), len(other))).reshape(2, -1)
            self._wait_for_edges(pairs[0], pairs[1])
        else:
            root = np.zeros(1, np.int64)
            self._waiting.append(_SpherePairs(len(one.levels) - 1, len(other.levels) - 1, root, root))

    def distance(self) -> float:
        """In metres over the earth."""
        while self._waiting and self._work < _WORK_MAX:
            pairs = self._waiting.pop()
            self._work += len(pairs.one)
            if isinstance(pairs, _SpherePairs):
                self._look_at_spheres(pairs)
            else:
                self._look_at_pieces(pairs)
        return self._over_the_earth()

    def _over_the_earth(self) -> float:
        distances, one, other = (np.concatenate(arrays) for arrays in zip(*self._found, strict=True))
        near = np.flatnonzero(distances <= distances.min() * _NEARLY)
        near = near[np.argsort(distances[near])[:_CANDIDATES_MAX]]
        begin, end = np.degrees(one[near]), np.degrees(other[near])
        return float(np.min(self._geod.inv(*begin.T, *end.T)[2]))

    def _look_at_spheres(self, pairs: _SpherePairs) -> None:
        one, other = self._one.levels[pairs.one_level], self._other.levels[pairs.other_level]
        apart = np.linalg.norm(one.centres[pairs.one] - other.centres[pairs.other], axis=1)
        reach = one.radii[pairs.one] + other.radii[pairs.other]
        self._nearest = min(self._nearest, float(np.min(apart + reach)))
        kept = np.flatnonzero(apart - reach <= self._nearest)
        kept = kept[np.argsort(reach[kept] - apart[kept])]  # the most promising are taken first
        first, second = pairs.one[kept], pairs.other[kept]
        if pairs.one_level or pairs.other_level:
            self._wait_for_children(pairs.one_level, pairs.other_level, first, second)
        else:
            self._wait_for_edges(first, second)

    def _wait_for_children(self, one_level: int, other_level: int, one: _Indexes, other: _Indexes) -> None:
        """Open the spheres of the higher level; both, if their levels are the same."""
        one_fan = np.arange(_FAN_OUT if one_level >= other_level else 1)
        other_fan = np.arange(_FAN_OUT if other_level >= one_level else 1)
        one_level, other_level = one_level - (len(one_fan) > 1), other_level - (len(other_fan) > 1)
        step = _BATCH // _FAN_OUT**2
        for begin in range(0, len(one), step):
            chosen = slice(begin, begin + step)
            first = np.repeat(one[chosen, None] * len(one_fan) + one_fan, len(other_fan), axis=1).ravel()
            second = np.tile(other[chosen, None] * len(other_fan) + other_fan, (1, len(one_fan))).ravel()
            there = first < len(self._one.levels[one_level])
            there &= second < len(self._other.levels[other_level])
            self._waiting.append(_SpherePairs(one_level, other_level, first[there], second[there]))

    def _wait_for_edges(self, one: _Indexes, other: _Indexes) -> None:
        zeros, ones = np.zeros(len(one)), np.ones(len(one))
        self._wait(_PiecePairs(one, zeros, ones, other, zeros, ones))

    def _look_at_pieces(self, pairs: _PiecePairs) -> None:
        ends = [
            self._one.positions(pairs.one, pairs.one_begin),
            self._one.positions(pairs.one, pairs.one_end),
            self._other.positions(pairs.other, pairs.other_begin),
            self._other.positions(pairs.other, pairs.other_end),
        ]
        chords, one_at, other_at = _between_chords(*self._places(ends))
        one = self._one.positions(pairs.one, _mix(pairs.one_begin, pairs.one_end, one_at))
        other = self._other.positions(pairs.other, _mix(pairs.other_begin, pairs.other_end, other_at))
        self._note(one, other)
        one_bend = self._one.bends[pairs.one] * (pairs.one_end - pairs.one_begin) ** 2
        other_bend = self._other.bends[pairs.other] * (pairs.other_end - pairs.other_begin) ** 2
        at_least = chords - one_bend - other_bend
        kept = at_least < self._nearest * (1 - _PRECISION) - _PRECISION_M
        if kept.any():
            self._wait(_halves(pairs[kept], (one_bend >= other_bend)[kept]))

    def _note(self, one: _Floats, other: _Floats) -> None:
        """Note pairs of points on the shapes, by their positions."""
        begin, end = self._places([one, other])
        distances = np.linalg.norm(begin - end, axis=1)
        self._nearest = min(self._nearest, float(np.min(distances)))
        near = distances <= self._nearest * _NEARLY + _PRECISION_M
        self._found.append((distances[near], one[near], other[near]))

    def _places(self, runs: list[_Floats]) -> _Floats:
        """(runs, n, 3): positions in space. All runs have the same length n."""
        return _places(np.concatenate(runs), self._geod).reshape(len(runs), -1, 3)

    def _wait(self, pairs: _PiecePairs) -> None:
        for begin in range(0, len(pairs.one), _BATCH):
            self._waiting.append(pairs[slice(begin, begin + _BATCH)])


def _halves(pairs: _PiecePairs, splits_one: NDArray[np.bool_]) -> _PiecePairs:
    """Each pair as two: one of its pieces is cut in the middle."""
    one_middle = _mix(pairs.one_begin, pairs.one_end, 0.5)
    other_middle = _mix(pairs.other_begin, pairs.other_end, 0.5)
    return _PiecePairs(
        np.tile(pairs.one, 2),
        np.append(pairs.one_begin, np.where(splits_one, one_middle, pairs.one_begin)),
        np.append(np.where(splits_one, one_middle, pairs.one_end), pairs.one_end),
        np.tile(pairs.other, 2),
        np.append(pairs.other_begin, np.where(splits_one, pairs.other_begin, other_middle)),
        np.append(np.where(splits_one, pairs.other_end, other_middle), pairs.other_end),
    )


def _mix(begin: _Floats, end: _Floats, at: _Floats | float) -> _Floats:
    mixed: _Floats = begin + (end - begin) * at
    return mixed
