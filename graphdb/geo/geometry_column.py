"""`GeometryColumn`: the values of one property by their position. It only grows.

Values that were removed from the store stay in the column. This does no harm, because a query finds no triple
with such a value. So a lookup is right for every state of the store since the column's first value. When too
many values have been removed, a new column is made.
"""

import os
import re
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.errors import RequestError
from graphdb.geo.function_calls import READING_MAX, characters_to_read
from graphdb.geometry.bounds import Bounds, Extent, extent_of
from graphdb.geometry.functions import Term
from graphdb.geometry.geometry import Geometry, read_geometry
from graphdb.geometry.geosparql_names import CRS84, LITERALS, WKT
from graphdb.geometry.shapes import check_on_globe

__all__ = ["NOTED_MAX", "GeometryColumn", "Place", "Placed"]

NOTED_MAX: Final = 200
"""How many values without a position are kept. If there are more, one more is kept."""

# The form of most geometries. Reading it here gives the same result as `read_geometry`, ten times as fast.
_POINT: Final = re.compile(
    rf"(?:<{re.escape(CRS84)}>)?\s*POINT\s*\(\s*(-?\d+(?:\.\d+)?)\s+(-?\d+(?:\.\d+)?)\s*\)", re.ASCII
)

Place: TypeAlias = tuple[int, int]
"""The offset of a literal in the file, and its number of bytes."""

_DATATYPES: Final = tuple(map(NamedNode, LITERALS))


class _LiteralFile:
    """Geometry literals in an unnamed file, because they may be long and few are ever read.

    Of each literal it has the number of its datatype (one byte) and its value. One thread appends, any may
    read.
    """

    def __init__(self, directory: Path | None = None) -> None:
        """directory is where the file is made; None: where temporary files are."""
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            self._fd = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._fd)  # closed with the last query that reads it
        self._size = 0

    def append(self, literals: Iterable[Literal]) -> list[Place]:
        """Returns their places. Raises OSError if the disk is full."""
        written = [
            bytes((LITERALS.index(literal.datatype.value),)) + literal.value.encode() for literal in literals
        ]
        places, begin = [], self._size
        for each in written:
            places.append((begin, len(each)))
            begin += len(each)
        data = memoryview(b"".join(written))
        while data:
            done = os.pwrite(self._fd, data, self._size)
            self._size, data = self._size + done, data[done:]
        return places

    def read(self, places: Iterable[Place]) -> Iterator[Literal]:
        """The literals at these places."""
        for begin, size in places:
            data = os.pread(self._fd, size, begin)
            yield Literal(data[1:].decode(), datatype=_DATATYPES[data[0]])


_Chosen: TypeAlias = NDArray[np.bool_] | NDArray[np.int64]

_TAIL_MAX: Final = 512  # values that are searched one by one, before they become a tree
_TREE_MAX: Final = 20_000  # values in a tree: making one blocks all other threads
_MERGED: Final = 4  # a tree is merged with the previous one, unless that is so many times larger
_FAR: Final = 1e300  # stands for infinity, which GEOS does not accept


@dataclass(frozen=True, slots=True)
class Placed:
    """Values with bounds.

    bounds is (n, 4): west, south, east and north in degrees. plain is (n,), see `Extent.is_plain`. places is
    (n, 2): a `Place` each.
    """

    bounds: NDArray[np.float64]
    plain: NDArray[np.bool_]
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.plain)

    def __getitem__(self, chosen: _Chosen) -> "Placed":
        return Placed(self.bounds[chosen], self.plain[chosen], self.places[chosen])

    @classmethod
    def together(cls, parts: "Sequence[Placed]") -> "Placed":
        """The values of several, in their order."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


_NOTHING: Final = Placed(np.zeros((0, 4)), np.zeros(0, np.bool_), np.zeros((0, 2), np.int64))


class _Tree:
    """Values in an STRtree, which finds those that meet a box without comparing all."""

    def __init__(self, values: Placed) -> None:
        self.values = values
        diagonals: Any = shapely.linestrings(values.bounds.reshape(-1, 2, 2))  # whose bounds are the boxes
        self._tree = shapely.STRtree(diagonals)
        self._foreign = np.flatnonzero(~values.plain)

    def meeting(self, plain: Sequence[Bounds], foreign: Sequence[Bounds] | None) -> Placed:
        """See `_PlacedValues.meeting`."""
        near = self._in_any(plain)
        chosen = near[self.values.plain[near]]
        if not len(self._foreign):
            return self.values[chosen]
        others = self._foreign
        if foreign is not None:
            near = self._in_any(foreign)
            others = near[~self.values.plain[near]]
        return self.values[np.concatenate((chosen, others))]

    def _in_any(self, boxes: Sequence[Bounds]) -> NDArray[np.int64]:
        found = [self._tree.query(shapely.box(*np.clip(_edges(box), -_FAR, _FAR))) for box in boxes]
        if len(found) == 1:
            return found[0]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))


class _PlacedValues:
    """One thread adds, any may look up."""

    def __init__(self) -> None:
        self._trees: tuple[_Tree, ...] = ()
        self._tail = _NOTHING

    def add(self, values: Placed) -> None:
        """Add values. Sometimes this makes a tree, which takes some tens of milliseconds."""
        tail = Placed.together((self._tail, values))
        if len(tail) >= _TAIL_MAX:
            self._trees = _grown(self._trees, tail)
            tail = _NOTHING
        self._tail = tail  # last: a lookup reads it first, so it misses nothing

    def meeting(self, plain: Sequence[Bounds], foreign: Sequence[Bounds] | None) -> Placed:
        """The values that meet one of the bounds.

        plain are the bounds for plain values, and foreign those for others; None means all others. A value
        that was added twice is returned twice.
        """
        tail = self._tail
        found = tail[_meet(tail, plain) & tail.plain | (_meet(tail, foreign) & ~tail.plain)]
        return Placed.together([found, *(tree.meeting(plain, foreign) for tree in self._trees)])


def _edges(bounds: Bounds) -> tuple[float, float, float, float]:
    """West, south, east and north."""
    return bounds.west, bounds.south, bounds.east, bounds.north


def _meet(values: Placed, boxes: Sequence[Bounds] | None) -> NDArray[np.bool_]:
    """Which values meet one of the boxes; None means everywhere."""
    if boxes is None:
        return np.ones(len(values), np.bool_)
    found = np.zeros(len(values), np.bool_)
    west, south, east, north = values.bounds.T
    for box in boxes:
        found |= (west <= box.east) & (east >= box.west) & (south <= box.north) & (north >= box.south)
    return found


def _grown(trees: tuple[_Tree, ...], values: Placed) -> tuple[_Tree, ...]:
    """The trees with more values, in a new tree or merged with the last ones, so that trees stay few."""
    while trees and len(trees[-1].values) < min(_MERGED * len(values), _TREE_MAX):
        values = Placed.together((trees[-1].values, values))
        trees = trees[:-1]
    return (*trees, _Tree(values))


class GeometryColumn:
    """One thread adds, any may look up."""

    def __init__(self, directory: Path | None = None) -> None:
        """directory is where the file of texts is made; None: where temporary files are."""
        self._literals = _LiteralFile(directory)
        self._values = _PlacedValues()
        self.reach: Bounds | None = None  # the bounds around all values
        self.size_max = 0.0  # the longest side of the bounds of a plain value
        self.foreign_reach: Bounds | None = None  # the bounds around values that are not plain
        self.unlocated: list[Term] = []  # geometries that may be anywhere
        self.odd: list[Term] = []  # terms that no distance can be measured from: empty, malformed, others
        self.nameless = 0  # how many terms no text can name
        self.count = self.placed = 0  # of all values added, and of those with bounds

    def add(self, terms: Sequence[Term]) -> None:
        """Add values. This takes some microseconds for a point, and some tens for another geometry."""
        literals, extents = [], []
        for term in terms:
            extent = _extent_of_point(term) or self._extent(term)
            if extent is not None and isinstance(term, Literal):
                literals.append(term)
                extents.append(extent)
        self.count += len(terms)
        self.placed += len(literals)
        if literals:
            self._values.add(self._placed(literals, extents))

    def meeting(self, plain: Sequence[Bounds], foreign: Sequence[Bounds] | None) -> Placed:
        """See `_PlacedValues.meeting`."""
        return self._values.meeting(plain, foreign)

    def terms(self, places: Iterable[Place]) -> Iterator[Term]:
        """The values at these places."""
        return self._literals.read(places)

    def _placed(self, literals: Sequence[Literal], extents: Sequence[Extent]) -> Placed:
        """Write literals with bounds to the file."""
        boxes = []
        for extent in extents:
            bounds = extent.bounds
            assert bounds is not None
            boxes.append(_edges(bounds))
            self.reach = bounds.with_(self.reach)
            if extent.is_plain:
                self.size_max = max(self.size_max, bounds.size)
            else:
                self.foreign_reach = bounds.with_(self.foreign_reach)
        places = self._literals.append(literals)
        plain = np.array([extent.is_plain for extent in extents])
        return Placed(np.array(boxes), plain, np.array(places, dtype=np.int64))

    def _extent(self, term: Term) -> Extent | None:
        """The extent of a term, if it has bounds. A term without bounds is noted."""
        if isinstance(term, BlankNode | Triple):
            self.nameless += 1
            return None
        if isinstance(term, Literal) and characters_to_read(term.value) > READING_MAX:
            _note(self.unlocated, term)
            return None
        try:
            geometry = read_geometry(term) if isinstance(term, Literal) else None
        except RequestError:
            geometry = None
        if geometry is None or geometry.shape.is_empty:
            _note(self.odd, term)
            return None
        extent = extent_of(geometry)
        if extent.bounds is None:
            _note(self.unlocated, term)
            return None
        if extent.is_plain and not _is_on_globe(geometry):
            _note(self.odd, term)
        return extent


def _extent_of_point(term: Term) -> Extent | None:
    """The extent of a plain point in degrees, in its most common form."""
    if not isinstance(term, Literal) or (match := _POINT.fullmatch(term.value)) is None:
        return None
    longitude, latitude = float(match[1]), float(match[2])
    if abs(longitude) > 180 or abs(latitude) > 90 or term.datatype.value != WKT:
        return None
    return Extent(Bounds(longitude, latitude, longitude, latitude), True)


def _note(kept: list[Term], term: Term) -> None:
    if len(kept) <= NOTED_MAX:
        kept.append(term)


def _is_on_globe(geometry: Geometry) -> bool:
    try:
        check_on_globe(geometry.shape)
    except RequestError:
        return False
    return True
