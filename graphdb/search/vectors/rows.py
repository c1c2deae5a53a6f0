"""`VectorRows`: the rows of one vector field of a segment, and the documents that they are of."""

from dataclasses import dataclass

import numpy as np

from graphdb.search.segment import Bools, Floats, Ints, Segment
from graphdb.search.vectors.row_set import RowSet

__all__ = ["VectorRows"]

_OWNERS = "vector owners"


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Row i is of document docs[i], which is or is in document owners[i] of the top level; both ascend."""

    rows: Floats
    docs: Ints
    owners: Ints
    is_one_each: bool  # row i is of document i, and there are no other documents

    @classmethod
    def of(cls, segment: Segment, path: str) -> "VectorRows | None":
        """None where no document has a vector there."""
        column = segment.vectors(path)
        if column is None:
            return None
        owners = column.docs if segment.parents is None else _owners(segment, path, column.docs)
        return cls(column.rows, column.docs, owners, len(column.docs) == segment.size)

    def where(self, mask: Bools) -> RowSet:
        """The rows of some documents of the top level; mask is of all documents of the segment."""
        return RowSet.of(mask if self.is_one_each else mask[self.owners])


def _owners(segment: Segment, path: str, docs: Ints) -> Ints:
    """Kept with the segment. (What is kept there must not hold its arrays: others may take their place.)"""
    known: Ints | None = segment.derived.get((_OWNERS, path))
    if known is None:
        assert segment.parents is not None
        roots = np.flatnonzero(segment.parents < 0).astype(np.int32)
        known = segment.derived[_OWNERS, path] = roots[np.searchsorted(roots, docs)]
    return known
