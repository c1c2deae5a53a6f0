"""The quads of a predicate as arrays of the numbers of their ends, and weights of terms.

The terms of a variable are either a range of the dictionary, by their payloads, which no two of them share,
or some terms by their whole numbers, in order. So a weight of each term is an array with a place for each.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from duckdb import DuckDBPyConnection

from graphdb.columns.term_ids import INLINE_TAGS, PAYLOAD_BITS, PAYLOAD_MASK, Tag

__all__ = [
    "KEPT_BYTES",
    "Ends",
    "Floats",
    "Ids",
    "NotCounted",
    "QuadArrays",
    "QuadEnds",
    "Terms",
    "Weights",
    "distinct_tags",
    "read_ends",
]

Floats: TypeAlias = npt.NDArray[np.float64]
Ids: TypeAlias = npt.NDArray[np.int64]
KEPT_BYTES: Final = 96 << 20  # of one state of the view
_INLINE: Final = min(INLINE_TAGS) << PAYLOAD_BITS, (max(INLINE_TAGS) + 1) << PAYLOAD_BITS


class NotCounted(Exception):
    """What SQL has to answer."""


class _Sized(Protocol):
    @property
    def nbytes(self) -> int:
        """What its arrays take."""


T = TypeVar("T", bound=_Sized)


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The terms that an array has a place for: those of the dictionary with payloads from low on, span of
    them; or ids, (span,) int64, the numbers of terms in ascending order.
    """

    low: int
    span: int
    ids: Ids | None = None

    @classmethod
    def of(cls, ids: Ids) -> "Terms":
        return cls(0, len(ids), ids)

    @property
    def high(self) -> int:
        """One more than the last payload of a range."""
        return self.low + self.span

    @property
    def nbytes(self) -> int:
        return 0 if self.ids is None else self.ids.nbytes


def distinct_tags(ids: Ids) -> frozenset[Tag]:
    """The tags of terms that are in ascending order."""
    if not len(ids):
        return frozenset()
    if ids[0] >> PAYLOAD_BITS == ids[-1] >> PAYLOAD_BITS:
        return frozenset((Tag(int(ids[0]) >> PAYLOAD_BITS),))
    return frozenset(Tag(int(tag)) for tag in np.unique(ids >> PAYLOAD_BITS))


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each term counts: values[i] is the weight of term i, (n,) float64; of any other it is 0.

    Weights are whole numbers. They are exact where they are less than 2^53.
    """

    terms: Terms
    values: Floats

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.terms.nbytes

    def on(self, terms: Terms) -> tuple[slice, Floats]:
        """Where among other terms weights may be that are not 0, and the weights there, to be read."""
        own, values = self.terms, self.values
        if own is terms:
            return slice(0, terms.span), values
        if own.ids is None and terms.ids is None:
            first = max(own.low, terms.low)
            last = max(min(own.high, terms.high), first)
            return slice(first - terms.low, last - terms.low), values[first - own.low : last - own.low]
        found = np.zeros(terms.span)
        if own.ids is None:
            assert terms.ids is not None
            here, places = _within(terms.ids, own)
            found[here] = values[places]
        elif terms.ids is None:
            here, places = _within(own.ids, terms)
            found[places] = values[here]
        elif own.span:
            places = np.minimum(np.searchsorted(own.ids, terms.ids), own.span - 1)
            np.multiply(values[places], own.ids[places] == terms.ids, out=found)
        return slice(0, terms.span), found


def _within(ids: Ids, terms: Terms) -> tuple[npt.NDArray[np.bool_], Ids]:
    """Which terms are of a range of the dictionary, and their places in it."""
    places = (ids & PAYLOAD_MASK) - terms.low
    here = (places >= 0) & (places < terms.span) & ((ids < _INLINE[0]) | (ids >= _INLINE[1]))
    return here, places[here]


@dataclass(frozen=True, slots=True)
class Ends:
    """One end of each quad: codes[i] is the place of that of quad i in terms, (n,) uint32.

    The quads stand in the same order at both ends.
    """

    terms: Terms
    codes: npt.NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.terms.nbytes

    def gathered(self, weights: Floats | None) -> Weights:
        """The sum of the weights of the quads of each end; None: each weighs 1."""
        sums = np.bincount(self.codes, weights, self.terms.span)
        return Weights(self.terms, sums.astype(np.float64, copy=False))

    def taken(self, which: npt.NDArray[Any]) -> "Ends":
        """Of some of the quads."""
        return Ends(self.terms, self.codes[which])


@dataclass(frozen=True, slots=True)
class QuadEnds:
    """The subjects and the objects of quads, in one order."""

    subjects: Ends
    objects: Ends

    @property
    def nbytes(self) -> int:
        return self.subjects.nbytes + self.objects.nbytes

    def at(self, column: str) -> Ends:
        """Those of column s or o."""
        return self.subjects if column == "s" else self.objects

    def taken(self, which: npt.NDArray[Any]) -> "QuadEnds":
        """Of some of the quads."""
        return QuadEnds(self.subjects.taken(which), self.objects.taken(which))


@dataclass(frozen=True, slots=True)
class _Refused:
    """In place of what cannot be made."""

    nbytes: int = 0


class QuadArrays:
    """What was made of one state of the view, up to `KEPT_BYTES`; what was made first goes first. For any
    thread. A key begins with the predicates whose quads it is made of.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Any, ...], _Sized] = OrderedDict()
        self._bytes = 0
        self._changing = Lock()

    def get(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """What make has made of this key, now or before. Raises NotCounted, now or before, as make does."""
        found: Any = self._kept.get(key)
        if found is None:
            try:
                found = make()
            except NotCounted:
                self._keep(key, _Refused())
                raise
            self._keep(key, found)
        if isinstance(found, _Refused):
            raise NotCounted
        return found  # type: ignore[no-any-return]

    def without(self, predicates: Iterable[int]) -> "QuadArrays":
        """What is right too where the quads of these predicates are others."""
        changed = frozenset(predicates)
        other = QuadArrays()
        with self._changing:
            kept = list(self._kept.items())
        for key, found in kept:
            if changed.isdisjoint(key[0]):
                other._keep(key, found)
        return other

    def _keep(self, key: tuple[Any, ...], found: _Sized) -> None:
        if found.nbytes > KEPT_BYTES:
            return
        with self._changing:
            if key in self._kept:
                return
            self._kept[key] = found
            self._bytes += found.nbytes
            while self._bytes > KEPT_BYTES:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes


def read_ends(connection: DuckDBPyConnection, source: str, dictionary: str) -> QuadEnds:
    """The ends of a source of quads, FROM and WHERE. dictionary are the columns, of s and o, that hold terms
    of the dictionary alone. Raises duckdb.ConversionException of one of them of more than 32 bits.
    """
    cells = ", ".join(
        f"({column} & {PAYLOAD_MASK})::UINTEGER AS {column}" if column in dictionary else column
        for column in "so"
    )
    found = connection.execute(f"SELECT {cells} {source}").fetchnumpy()
    return QuadEnds(*(_range(found[c]) if c in dictionary else _ranked(found[c]) for c in "so"))


def _range(numbers: npt.NDArray[np.uint32]) -> Ends:
    if not len(numbers):
        return Ends(Terms(0, 0), numbers)
    low, high = int(numbers.min()), int(numbers.max())
    numbers -= np.uint32(low)
    return Ends(Terms(low, high + 1 - low), numbers)


def _ranked(numbers: Ids) -> Ends:
    ids, codes = np.unique(numbers, return_inverse=True)
    return Ends(Terms.of(ids), codes.astype(np.uint32))
