"""Work on long arrays in pieces, between which a query that is interrupted ends.

NumPy and Python do not look for an interrupt within one call. So what may be long is done a piece at a time,
and whoever has a query to interrupt says how that is looked for: `ending_by`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "check",
    "ending_by",
    "is_one_piece",
    "overlapping",
    "picked",
    "pieces",
    "small_pieces",
    "taken",
]

_PIECE: Final = 1 << 20  # elements: a few milliseconds of work, and a few times 8 MB


def _never() -> None:
    """Nothing interrupts."""


_check: ContextVar[Callable[[], None]] = ContextVar("check", default=_never)


@contextmanager
def ending_by(interrupted: Callable[[], None]) -> Iterator[None]:
    """Meanwhile, in this thread, interrupted is called between pieces, and may raise."""
    token = _check.set(interrupted)
    try:
        yield
    finally:
        _check.reset(token)


def check() -> None:
    """Raises what the function of `ending_by` raises."""
    _check.get()()


def pieces(length: int) -> Iterator[slice]:
    """The places of so many elements, in order. Raises as `check` does."""
    return _pieces(length, _PIECE)


def small_pieces(length: int) -> Iterator[slice]:
    """As `pieces`, of an eighth: for elements that are read in order, which then stay in the processor's
    cache from one step to the next.
    """
    return _pieces(length, -(-_PIECE // 8))


def _pieces(length: int, size: int) -> Iterator[slice]:
    for first in range(0, length, size):
        check()
        yield slice(first, min(first + size, length))


def overlapping(length: int) -> Iterator[slice]:
    """As `pieces`, each with the first element of the next one: for what compares neighbours."""
    for piece in pieces(length):
        yield slice(piece.start, piece.stop + 1)


def is_one_piece(length: int) -> bool:
    """Whether so many elements are no more than one piece has."""
    return length <= _PIECE


def taken(values: npt.NDArray[Any], places: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """values[places], of places that are all there."""
    found = np.empty(len(places), values.dtype)
    for piece in pieces(len(places)):
        found[piece] = values[places[piece]]
    return found


def picked(values: npt.NDArray[Any], which: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """values[which]."""
    found = np.empty(np.count_nonzero(which), values.dtype)
    end = 0
    for piece in pieces(len(values)):
        some = values[piece][which[piece]]
        found[end : end + len(some)] = some
        end += len(some)
    return found
