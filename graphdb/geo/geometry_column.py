"""`GeometryColumn`: the values of one property by where they are. It only grows.

Values that are gone from the store stay: whoever looks one up finds no triple with it. So what is found holds
for every state of the store since the first value came in. When too much of it is gone, a new column is made.
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
"""How many values without a place are kept; there is one more where there are too many."""

# What most geometries are. It is read so as any other is, a tenth as fast.
_POINT: Final = re.compile(
    rf"(?:<{re.escape(CRS84)}>)?\s*POINT\s*\(\s*(-?\d+(?:\.\d+)?)\s+(-?\d+(?:\.\d+)?)\s*\)", re.ASCII
)

Place: TypeAlias = tuple[int, int]
"""Where a literal begins in the file, and how many bytes it has."""

_DATATYPES: Final = tuple(map(NamedNode, LITERALS))


class _LiteralFile:
    """One thread appends, any may read. Of each literal the number of its datatype, a byte, and its value."""

    def __init__(self, directory: Path | None = None) -> None:
        """directory is where the file is made; None: where temporary files are."""
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            self._fd = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._fd)  # with the last query that looks into it
        self._size = 0

    def append(self, literals: Iterable[Literal]) -> list[Place]:
        """Where each is then. Raises OSError where there is no room."""
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
        """The literals that are there."""
        for begin, size in places:
            data = os.pread(self._fd, size, begin)
            yield Literal(data[1:].decode(), datatype=_DATATYPES[data[0]])


_Chosen: TypeAlias = NDArray[np.bool_] | NDArray[np.int64]

_TAIL_MAX: Final = 512  # values that are looked through, before they become a tree
_TREE_MAX: Final = 20_000  # values in a tree: making one holds up everything else in the process
_MERGED: Final = 4  # a tree is merged with the one before, unless that is so many times its size
_FAR: Final = 1e300  # for infinity, which GEOS does not take


@dataclass(frozen=True, slots=True)
class Placed:
    """Values that have bounds, (n, 4): west, south, east and north in degrees; plain (n,), see `Extent`;
    places (n, 2): where each begins in a file, and how many bytes it has.
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
        """All that is in several."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


_NOTHING: Final = Placed(np.zeros((0, 4)), np.zeros(0, np.bool_), np.zeros((0, 2), np.int64))


class _Tree:
    """Values in an STRtree: what meets a box is found without looking at all."""

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
        """Some more; now and then a tree is made, which takes some tens of milliseconds."""
        tail = Placed.together((self._tail, values))
        if len(tail) >= _TAIL_MAX:
            self._trees = _grown(self._trees, tail)
            tail = _NOTHING
        self._tail = tail  # last: who looks up begins with it, and so misses nothing

    def meeting(self, plain: Sequence[Bounds], foreign: Sequence[Bounds] | None) -> Placed:
        """Those that meet one of the bounds: the ones for plain values, and the ones for others, None being
        all of the others. A value that was added twice is there twice.
        """
        tail = self._tail
        found = tail[_meet(tail, plain) & tail.plain | (_meet(tail, foreign) & ~tail.plain)]
        return Placed.together([found, *(tree.meeting(plain, foreign) for tree in self._trees)])


def _edges(bounds: Bounds) -> tuple[float, float, float, float]:
    """West, south, east and north."""
    return bounds.west, bounds.south, bounds.east, bounds.north


def _meet(values: Placed, boxes: Sequence[Bounds] | None) -> NDArray[np.bool_]:
    """Which values meet one of the boxes; None is everywhere."""
    if boxes is None:
        return np.ones(len(values), np.bool_)
    found = np.zeros(len(values), np.bool_)
    west, south, east, north = values.bounds.T
    for box in boxes:
        found |= (west <= box.east) & (east >= box.west) & (south <= box.north) & (north >= box.south)
    return found


def _grown(trees: tuple[_Tree, ...], values: Placed) -> tuple[_Tree, ...]:
    """With more values, in a tree of their own or with those before: few trees, each value seldom moved."""
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
        self.reach: Bounds | None = None  # what is around all bounds
        self.size_max = 0.0  # of the plain ones, the longer side
        self.foreign_reach: Bounds | None = None  # what is around those that are not plain
        self.anywhere: list[Term] = []  # geometries that may be anywhere
        self.odd: list[Term] = []  # terms that no distance can be measured from: empty, malformed, others
        self.nameless = 0  # how many terms no text can name
        self.count = self.placed = 0  # of all that was added, and of those with bounds

    def add(self, terms: Sequence[Term]) -> None:
        """Add values: some microseconds for a point, some tens of them for another geometry."""
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
        """The values that are written there."""
        return self._literals.read(places)

    def _placed(self, literals: Sequence[Literal], extents: Sequence[Extent]) -> Placed:
        """Literals with bounds, written down."""
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
        """Its extent, if it has bounds; a term without is noted as what it is."""
        if isinstance(term, BlankNode | Triple):
            self.nameless += 1
            return None
        if isinstance(term, Literal) and characters_to_read(term.value) > READING_MAX:
            _note(self.anywhere, term)
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
            _note(self.anywhere, term)
            return None
        if extent.is_plain and not _is_on_globe(geometry):
            _note(self.odd, term)
        return extent


def _extent_of_point(term: Term) -> Extent | None:
    """Of a plain point in degrees, as it is mostly written."""
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
