"""The quads of a predicate as arrays of the numbers of their ends, and weights of terms.

The terms of a variable are either a range of the dictionary, by their payloads, which no two of them share,
or some terms by their whole numbers, in order. So a weight of each term is an array with a place for each.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from duckdb import DuckDBPyConnection

from graphdb.columns.pieces import is_one_piece, overlapping, picked, pieces
from graphdb.columns.term_ids import INLINE_TAGS, PAYLOAD_BITS, PAYLOAD_MASK, Tag

__all__ = [
    "Ends",
    "Floats",
    "Ids",
    "NotCounted",
    "Numbers",
    "PastArrays",
    "QuadArrays",
    "QuadEnds",
    "Terms",
    "Weights",
    "add_at",
    "distinct_tags",
    "is_dense",
    "kind_of",
    "ranked",
    "read_ends",
]

Floats: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = npt.NDArray[Any]
Ids: TypeAlias = npt.NDArray[np.int64]
_KINDS: Final[tuple[tuple[int, type[Any]], ...]] = (
    ((1 << 8) - 1, np.uint8),
    ((1 << 16) - 1, np.uint16),
    ((1 << 32) - 1, np.uint32),
)
_KEPT_BYTES: Final = 96 << 20  # where nobody says how many
_FEW: Final = 4  # are a fourth, at most: these are looked up one by one
_SIDES: Final[tuple[Literal["left", "right"], ...]] = ("left", "right")
_SPAN_MAX: Final = 1 << 20
_SPAN_A_NUMBER: Final = 8
# of each tag, and the end of the last
_FIRST_IDS: Final = np.array([*Tag, max(Tag) + 1], np.int64) << PAYLOAD_BITS
_INLINE: Final = min(INLINE_TAGS) << PAYLOAD_BITS, (max(INLINE_TAGS) + 1) << PAYLOAD_BITS


class NotCounted(Exception):
    """What SQL has to answer."""


class _Sized(Protocol):
    @property
    def nbytes(self) -> int:
        """What its arrays take."""


T = TypeVar("T", bound=_Sized)
_Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The terms that an array has a place for: those of the dictionary with payloads from low on, span of
    them; or ids, (span,) int64, the numbers of terms in ascending order.
    """

    low: int
    span: int
    ids: Ids | None = None
    whole: "Terms | None" = None  # of which these are a part, from place `start` on
    start: int = 0

    @classmethod
    def of(cls, ids: Ids) -> "Terms":
        return cls(0, len(ids), ids)

    @property
    def high(self) -> int:
        """One more than the last payload of a range."""
        return self.low + self.span

    def part(self, piece: slice) -> "Terms":
        """Those at some places."""
        ids = None if self.ids is None else self.ids[piece]
        return Terms(self.low + piece.start, piece.stop - piece.start, ids, self, piece.start)

    @property
    def nbytes(self) -> int:
        return 0 if self.ids is None else self.ids.nbytes


def distinct_tags(ids: Ids) -> frozenset[Tag]:
    """The tags of terms that are in ascending order."""
    if not len(ids):
        return frozenset()
    if ids[0] >> PAYLOAD_BITS == ids[-1] >> PAYLOAD_BITS:
        return frozenset((Tag(int(ids[0]) >> PAYLOAD_BITS),))
    firsts = np.searchsorted(ids, _FIRST_IDS)
    return frozenset(tag for tag, first, end in zip(Tag, firsts, firsts[1:], strict=False) if first < end)


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each term counts: values[i] is the weight of term i, (n,); of any other it is 0.

    Weights are whole numbers. As doubles they are exact where they are less than 2^53; where they are kept,
    they have no more bytes than the largest needs. None is more than most, where that is known.
    """

    terms: Terms
    values: Numbers
    most: int | None = None

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.terms.nbytes

    def spread(self, terms: Terms) -> "Weights":
        """The same on a range, where they are by ids: these would be looked for in each part of it."""
        if self.terms.ids is None or terms.ids is not None:
            return self
        return Weights(terms, self.on(terms)[1], self.most)

    def small(self) -> "Weights":
        """The same, to be kept."""
        most = self.values.max(initial=0.0)
        if (kind := kind_of(most)) is None:
            return Weights(self.terms, self.values.astype(np.float64))
        return Weights(self.terms, self.values.astype(kind), int(most))

    def on(self, terms: Terms) -> tuple[slice, Numbers]:
        """Where among other terms weights may be that are not 0, and the weights there, to be read."""
        own, values = self.terms, self.values
        if own is terms or own is terms.whole:
            return slice(0, terms.span), values[terms.start : terms.start + terms.span]
        if own.ids is None and terms.ids is None:
            first = max(own.low, terms.low)
            last = max(min(own.high, terms.high), first)
            return slice(first - terms.low, last - terms.low), values[first - own.low : last - own.low]
        found = np.zeros(terms.span, values.dtype)
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


def kind_of(most: float) -> type[Any] | None:
    """The smallest whole numbers that hold weights up to this one; None where only doubles do."""
    return next((kind for largest, kind in _KINDS if most <= largest), None)


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
    is_ascending: bool = False  # the codes, for certain

    @classmethod
    def of(cls, terms: Terms, codes: npt.NDArray[np.uint32]) -> "Ends":
        """With a look at whether the codes are in order, as those of subjects mostly are."""
        return cls(terms, codes, all((codes[p][1:] >= codes[p][:-1]).all() for p in overlapping(len(codes))))

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.terms.nbytes

    def quads_of_few(self, weights: Numbers) -> Ids | None:
        """The places of all quads whose weight, by their terms, is not 0, if that can be found without a look
        at each quad, and they are few; None otherwise.
        """
        some = np.flatnonzero(weights)
        if not len(some):
            return some
        if not self.is_ascending or _FEW * len(some) > len(self.codes):
            return None
        firsts, ends = (np.searchsorted(self.codes, some, side) for side in _SIDES)
        counts = ends - firsts
        total = int(counts.sum())
        if _FEW * total > len(self.codes):
            return None
        places: Ids = np.arange(total) + np.repeat(firsts - (np.cumsum(counts) - counts), counts)
        return places

    def gathered(self, weights: Callable[[slice], Numbers] | None) -> Weights:
        """The sum of the weights of the quads of each end; weights gives those of some quads, None: each
        weighs 1.
        """
        if is_one_piece(len(self.codes)) and is_one_piece(self.terms.span):
            own = None if weights is None else weights(slice(0, len(self.codes)))
            counted = np.bincount(self.codes, own, self.terms.span)
            return Weights(self.terms, counted.astype(np.float64, copy=False))
        sums = np.zeros(self.terms.span)
        for piece in pieces(len(self.codes)):
            add_at(sums, self.codes[piece], None if weights is None else weights(piece))
        return Weights(self.terms, sums)

    def gathered_of(self, quads: Ids, weights: Numbers) -> Weights:
        """The same where all others weigh nothing: the sum of the weights of the quads at some places."""
        sums = np.zeros(self.terms.span)
        add_at(sums, self.codes[quads], weights)
        return Weights(self.terms, sums)

    def picked(self, which: npt.NDArray[np.bool_]) -> "Ends":
        """Of some of the quads."""
        return Ends(self.terms, picked(self.codes, which), self.is_ascending)


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

    def picked(self, which: npt.NDArray[np.bool_]) -> "QuadEnds":
        """Of some of the quads."""
        return QuadEnds(self.subjects.picked(which), self.objects.picked(which))


@dataclass(frozen=True, slots=True)
class _Refused:
    """In place of what cannot be made."""

    nbytes: int = 0


class _Memory:
    """What was made of several states, up to a bound; what was not asked for longest goes first. For any
    thread.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._kept: OrderedDict[tuple[QuadArrays, _Key], _Sized] = OrderedDict()
        self._bytes = 0
        self._changing = Lock()

    def get(self, arrays: "QuadArrays", key: _Key) -> _Sized | None:
        place = arrays, key
        found = self._kept.get(place)
        if found is not None:
            with self._changing, suppress(KeyError):  # it may be gone
                self._kept.move_to_end(place)
        return found

    def keep(self, arrays: "QuadArrays", key: _Key, found: _Sized) -> None:
        place = arrays, key
        if found.nbytes > self.bytes_max:
            return
        with self._changing:
            if place in self._kept or arrays.memory is not self:
                return
            self._kept[place] = found
            self._bytes += found.nbytes
            while self._bytes > self.bytes_max:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes

    def hand_on(self, arrays: "QuadArrays", other: "QuadArrays | None", changed: Collection[int]) -> None:
        """What some arrays have is that of others from now on, as far as it is not of changed predicates. The
        first ones, which a query may still read, keep all of it as long as they are there.
        """
        alone = _Memory(self.bytes_max)
        with self._changing:
            for place, found in [each for each in self._kept.items() if each[0][0] is arrays]:
                key = place[1]
                del self._kept[place]
                alone._kept[place] = found
                if other is not None and not any(predicate in changed for predicate in key[0]):
                    self._kept[other, key] = found
                else:
                    self._bytes -= found.nbytes
                alone._bytes += found.nbytes
            arrays.memory = alone


class QuadArrays:
    """What was made of one state of the view, up to a bound. For any thread. A key begins with the predicates
    whose quads it is made of.
    """

    def __init__(self, bytes_max: int = _KEPT_BYTES, memory: _Memory | None = None) -> None:
        """memory: that of other states, whose bound holds for all of them together."""
        self.memory = memory or _Memory(bytes_max)

    @property
    def bytes_max(self) -> int:
        return self.memory.bytes_max

    def get(self, key: _Key, make: Callable[[], T]) -> T:
        """What make has made of this key, now or before. Raises NotCounted, now or before, as make does."""
        found: Any = self.memory.get(self, key)
        if found is None:
            try:
                found = make()
            except NotCounted:
                self.memory.keep(self, key, _Refused())
                raise
            self.memory.keep(self, key, found)
        if isinstance(found, _Refused):
            raise NotCounted
        return found  # type: ignore[no-any-return]

    def beside(self) -> "QuadArrays":
        """Those of another state, within the same bound."""
        return QuadArrays(memory=self.memory)

    def without(self, predicates: Collection[int]) -> "QuadArrays":
        """What is right too where the quads of these predicates are others; it takes the place of this."""
        other = self.beside()
        self.memory.hand_on(self, other, predicates)
        return other

    def renewed(self) -> "QuadArrays":
        """What is right whatever has changed: nothing yet; it takes the place of this."""
        other = self.beside()
        self.let_go()
        return other

    def let_go(self) -> None:
        """Nobody else will ask for this state."""
        self.memory.hand_on(self, None, ())


class PastArrays(QuadArrays):
    """Those of a state of the past, for one query: what has not changed since is read of the present, as it
    is in the version of the view that the query reads.
    """

    def __init__(self, own: QuadArrays, present: QuadArrays, is_own: Callable[[int], bool]) -> None:
        """is_own: whether the state has quads of a predicate that are not those of the view."""
        super().__init__(memory=own.memory)
        self._own, self._present, self._is_own = own, present, is_own

    def get(self, key: _Key, make: Callable[[], T]) -> T:
        """As of `QuadArrays`."""
        arrays = self._own if any(map(self._is_own, key[0])) else self._present
        return arrays.get(key, make)


def read_ends(connection: DuckDBPyConnection, source: str, quads: int, dictionary: str) -> QuadEnds:
    """The ends of a source of so many quads, FROM and WHERE, of one table. dictionary are the columns, of s
    and o, that hold terms of the dictionary alone. Raises duckdb.ConversionException of one of them of more
    than 32 bits.
    """
    read: dict[str, npt.NDArray[Any]] = {
        column: np.empty(quads, np.uint32 if column in dictionary else np.int64) for column in "so"
    }
    cells = ", ".join(
        f"({column} & {PAYLOAD_MASK})::UINTEGER AS {column}" if column in dictionary else column
        for column in "so"
    )
    end = 0
    for rows in _rows_of(connection, source, quads):
        found = connection.execute(f"SELECT {cells} {source}{rows}").fetchnumpy()
        begin, end = end, end + len(found["s"])
        for column, numbers in read.items():
            numbers[begin:end] = found[column]
    assert end == quads
    return QuadEnds(*(_range(read[c]) if c in dictionary else _ranked(read[c]) for c in "so"))


def _rows_of(connection: DuckDBPyConnection, source: str, quads: int) -> Iterator[str]:
    """What is added to a source for some of its rows at a time."""
    if is_one_piece(quads):
        yield ""
        return
    ((rows,),) = connection.execute(f"SELECT max(rowid) + 1 {source}").fetchall()
    word = "AND" if "WHERE" in source else "WHERE"
    for piece in pieces(rows):
        yield f" {word} rowid BETWEEN {piece.start} AND {piece.stop - 1}"


def _range(numbers: npt.NDArray[np.uint32]) -> Ends:
    if not len(numbers):
        return Ends(Terms(0, 0), numbers)
    low, high = int(numbers.min()), int(numbers.max())
    numbers -= np.uint32(low)
    return Ends.of(Terms(low, high + 1 - low), numbers)


def _ranked(numbers: Ids) -> Ends:
    ids, codes = ranked(numbers)
    return Ends.of(Terms.of(ids), codes)


def add_at(sums: Floats, places: npt.NDArray[Any], weights: Numbers | None) -> None:
    """Add weights, or 1, at places, of which some are the same."""
    # quads stand mostly in the order of their subjects, so that those of a piece are neighbours
    low = 0 if is_one_piece(len(sums)) or not len(places) else int(places.min())
    found = np.bincount(places - low if low else places, weights)
    sums[low : low + len(found)] += found


def is_dense(span: int, count: int) -> bool:
    """Whether a range of numbers is to have a place for each of them, where so many occur."""
    return span <= max(_SPAN_MAX, _SPAN_A_NUMBER * count)


def ranked(numbers: npt.NDArray[Any]) -> tuple[Ids, npt.NDArray[np.uint32]]:
    """The numbers that occur, in ascending order, and the place of each among them."""
    codes = np.empty(len(numbers), np.uint32)
    if not len(numbers):
        return np.empty(0, np.int64), codes
    low, high = int(numbers.min()), int(numbers.max())
    if not is_dense(high + 1 - low, len(numbers)):
        ids = _distinct(np.concatenate([_distinct(numbers[piece]) for piece in pieces(len(numbers))]))
        for piece in pieces(len(numbers)):
            codes[piece] = np.searchsorted(ids, numbers[piece])
        return ids.astype(np.int64, copy=False), codes
    occurs = np.zeros(high + 1 - low, np.bool_)
    for piece in pieces(len(numbers)):
        occurs[numbers[piece] - low] = True
    places = np.cumsum(occurs, dtype=np.uint32)
    places -= 1
    for piece in pieces(len(numbers)):
        codes[piece] = places[numbers[piece] - low]
    return np.flatnonzero(occurs) + low, codes


def _distinct(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """In ascending order. np.unique takes four times as long: it puts each into a hash table."""
    found = np.sort(numbers)
    return found[np.concatenate(([True], found[1:] != found[:-1]))]
