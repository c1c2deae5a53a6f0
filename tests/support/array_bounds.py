"""Bounds of arrays that are so small that a test meets them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import strategies as st

from graphdb.columns import pieces, quad_arrays, relations

__all__ = ["BOUNDS", "array_bounds"]

# for random tests: those of the product, and little ones of each kind
BOUNDS = st.sampled_from([(1 << 20, 1 << 20), (3, 1 << 20), (1 << 20, 1), (2, 1)])


@contextmanager
def array_bounds(piece: int, span: int) -> Iterator[None]:
    """Meanwhile a piece has so many elements. A range is dense if it has at most span numbers, or as many as
    occur. With small pieces few terms are as many as there are quads, and objects are few in any range that
    has more numbers.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_PIECE", piece)
        patch.setattr(quad_arrays, "_SPAN_MAX", span)
        patch.setattr(quad_arrays, "_SPAN_A_NUMBER", 1)
        if piece < 1 << 20:
            patch.setattr(quad_arrays, "_FEW", 1)
            patch.setattr(relations, "_SPAN_A_TERM", 1)
        yield
