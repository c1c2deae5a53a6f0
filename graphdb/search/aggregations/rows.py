"""Documents in buckets: what every aggregation collects, and how one makes buckets of buckets.

Buckets are numbered through all their owners, so that a tree of any depth costs one pass of arrays a level
and no loop over buckets.
"""

from dataclasses import dataclass

import numpy as np

from graphdb.search.segment import Doubles, Longs

__all__ = ["Cells", "Rows", "cells_of"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Document docs[i] is in bucket owners[i], of count buckets. docs keep the order of their leaves."""

    docs: Longs
    owners: Longs
    count: int

    def kept(self, which: "np.typing.NDArray[np.bool_]") -> "Rows":
        """The same buckets with fewer documents."""
        return Rows(self.docs[which], self.owners[which], self.count)

    def sizes(self) -> Longs:
        """How many documents each bucket has."""
        return np.bincount(self.owners, minlength=self.count)


@dataclass(frozen=True, slots=True)
class Cells:
    """The buckets that one aggregation makes below each of its owners.

    Cell c is the bucket with key keys[c] of owner owners[c]; document docs[i] is in cell members[i].
    """

    owners: Longs
    keys: Longs
    counts: Longs
    docs: Longs
    members: Longs

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self) -> Rows:
        """The documents of each cell, for the aggregations below."""
        return Rows(self.docs, self.members, len(self.keys))

    def picked(self, chosen: Longs) -> "Cells":
        """Only these cells, in this order."""
        number = np.full(len(self.keys), -1, np.int64)
        number[chosen] = np.arange(len(chosen))
        members = number[self.members]
        kept = members >= 0
        return Cells(
            self.owners[chosen], self.keys[chosen], self.counts[chosen], self.docs[kept], members[kept]
        )

    def filled(self, owners: Longs, keys: Longs) -> "Cells":
        """As many cells as there are (owner, key), with no documents where there was none.

        Both this and the new ones ascend by (owner, key); the new ones hold all of this.
        """
        low = int(keys.min(initial=0))
        width = int(keys.max(initial=0)) - low + 1
        position = np.searchsorted(owners * width + (keys - low), self.owners * width + (self.keys - low))
        counts = np.zeros(len(keys), np.int64)
        counts[position] = self.counts
        return Cells(owners, keys, counts, self.docs, position[self.members])

    def ranks(self) -> Longs:
        """The place of each cell among those of its owner; owners must ascend."""
        return np.arange(len(self.owners)) - np.searchsorted(self.owners, self.owners)

    def ordered(self, *keys: Longs | Doubles) -> "Cells":
        """Sorted by owner, then by these, the most important first."""
        return self.picked(np.lexsort((*reversed(keys), self.owners)))


def cells_of(rows: Rows, members: Longs, keys: Longs) -> Cells:
    """Group: the document at place members[i] of the rows has key keys[i], not negative.

    A document counts once for a key, given that equal keys of one document stand together.
    The cells ascend by (owner, key).
    """
    if len(keys):
        new = np.ones(len(keys), np.bool_)
        new[1:] = (members[1:] != members[:-1]) | (keys[1:] != keys[:-1])
        if not new.all():
            members, keys = members[new], keys[new]
    width = int(keys.max(initial=0)) + 1
    combined = rows.owners[members] * width + keys
    docs = rows.docs[members]
    if rows.count * width <= 4 * len(combined) + 1024:
        counts = np.bincount(combined, minlength=1)
        present = np.flatnonzero(counts)
        number = np.cumsum(counts > 0) - 1
        return Cells(present // width, present % width, counts[present], docs, number[combined])
    present, inverse, counts = np.unique(combined, return_inverse=True, return_counts=True)
    return Cells(present // width, present % width, counts, docs, inverse)
