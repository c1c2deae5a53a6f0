"""`PlacedValues`: values by their bounds, in STRtrees; and how more of them come in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

from graphdb.geo.bounds import Bounds

__all__ = ["Placed", "PlacedValues", "edges"]

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
        """See `PlacedValues.meeting`."""
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
        found = [self._tree.query(shapely.box(*np.clip(edges(box), -_FAR, _FAR))) for box in boxes]
        if len(found) == 1:
            return found[0]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))


class PlacedValues:
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


def edges(bounds: Bounds) -> tuple[float, float, float, float]:
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
