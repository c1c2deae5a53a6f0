"""The quads of a predicate as arrays of the numbers of their ends, and weights of terms.

Only terms of the dictionary are here, by their payloads, which no two of them share: a number between 0 and
that of the next term. So a weight of each term is an array with a place for each number of a range.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from duckdb import DuckDBPyConnection

from graphdb.columns.term_ids import PAYLOAD_MASK

__all__ = ["KEPT_BYTES", "Ends", "QuadArrays", "QuadEnds", "Weights", "read_ends"]

Floats: TypeAlias = npt.NDArray[np.float64]
KEPT_BYTES: Final = 96 << 20  # of one state of the view


class _Sized(Protocol):
    @property
    def nbytes(self) -> int:
        """What its arrays take."""


T = TypeVar("T", bound=_Sized)


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each term counts: values[i] is the weight of term low + i, (n,) float64; of any other it is 0.

    Weights are whole numbers. They are exact where they are less than 2^53.
    """

    low: int
    values: Floats

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    @property
    def high(self) -> int:
        """One more than the last term that may have a weight."""
        return self.low + len(self.values)

    def within(self, low: int, high: int) -> Floats:
        """The weights of the terms from low to high, high not included; (high - low,) float64, to be read."""
        if low >= self.low and high <= self.high:
            return self.values[low - self.low : high - self.low]
        found = np.zeros(high - low)
        first, last = max(low, self.low), min(high, self.high)
        if first < last:
            found[first - low : last - low] = self.values[first - self.low : last - self.low]
        return found


@dataclass(frozen=True, slots=True)
class Ends:
    """One end of each quad of a predicate: codes[i] + low is the number of that of quad i, (n,) int32.

    The quads stand in the same order at both ends. span is one more than the largest code.
    """

    low: int
    span: int
    codes: npt.NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes

    @property
    def high(self) -> int:
        return self.low + self.span

    def gathered(self, weights: Floats | None) -> Weights:
        """The sum of the weights of the quads of each end, (n,) float64; None: each weighs 1."""
        sums = np.bincount(self.codes, weights, self.span)
        return Weights(self.low, sums.astype(np.float64, copy=False))


@dataclass(frozen=True, slots=True)
class QuadEnds:
    """Both ends of the quads of a predicate, in one order, or one of them."""

    ends: tuple[Ends, ...]

    @property
    def nbytes(self) -> int:
        return sum(end.nbytes for end in self.ends)


class QuadArrays:
    """What was made of one state of the view, up to `KEPT_BYTES`. For any thread."""

    def __init__(self) -> None:
        self._kept: dict[object, _Sized] = {}
        self._bytes = 0

    def get(self, key: object, make: Callable[[], T]) -> T:
        """What make has made of this key, now or before."""
        found: Any = self._kept.get(key)
        if found is None:
            found = make()
            if self._bytes + found.nbytes > KEPT_BYTES:
                self._kept, self._bytes = {}, 0
            if found.nbytes <= KEPT_BYTES:
                self._kept[key] = found
                self._bytes += found.nbytes
        return found  # type: ignore[no-any-return]


def read_ends(connection: DuckDBPyConnection, source: str, columns: str) -> QuadEnds:
    """The ends of a source of quads, FROM and WHERE: of each of columns, "s" or "so" or "o", which hold terms
    of the dictionary alone. Raises duckdb.ConversionException of a number of more than 32 bits.
    """
    cells = ", ".join(f"({column} & {PAYLOAD_MASK})::UINTEGER AS {column}" for column in columns)
    found = connection.execute(f"SELECT {cells} {source}").fetchnumpy()
    return QuadEnds(tuple(_ends(found[column]) for column in columns))


def _ends(numbers: npt.NDArray[np.uint32]) -> Ends:
    if not len(numbers):
        return Ends(0, 0, numbers)
    low, high = int(numbers.min()), int(numbers.max())
    numbers -= np.uint32(low)
    return Ends(low, high + 1 - low, numbers)
