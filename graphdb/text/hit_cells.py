"""Rows of terms that have numbers, as the bytes of an answer, put together in native code.

`NumberedCells` keeps the cell of each term that was in an answer, one after another in an array of bytes.
What is left for each row is to copy its cells. The bytes are those of `graphdb.sparql.text_tables`. Calls of
native code, some microseconds each, would cost more than a few rows themselves: these are joined as texts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Ints, Longs
from graphdb.sparql.text_tables import CellFormat, KeptCells, TextTable, cells_of, frame_of, joined_rows

__all__ = [
    "FloatColumn",
    "NumberedCells",
    "NumberedTable",
    "PackedCells",
    "TermColumn",
    "frame_of_row",
]

Bytes: TypeAlias = NDArray[np.uint8]

_BYTES_MAX: Final = 64 << 20  # of the cells of one form; with more they are made anew
_BATCH_ROWS: Final = 4_000  # well below a millisecond
_FEW_ROWS: Final = 32  # that are joined as texts


@dataclass(frozen=True, slots=True)
class PackedCells:
    """The cell of number n is blob[starts[n]:starts[n] + lengths[n]]; a length of -1: it is not there."""

    blob: Bytes
    starts: Longs
    lengths: Ints


class TermColumn(Sequence[str]):
    """A column of terms by their numbers, and as a sequence the terms themselves."""

    def __init__(self, terms: Sequence[str], numbers: Longs, cells: "NumberedCells | None" = None) -> None:
        """terms are in N-Triples; cells are those of the terms, if they are kept."""
        self.terms, self.numbers, self._cells = terms, numbers, cells

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return TermColumn(self.terms, self.numbers[place], self._cells)
        return self.terms[self.numbers[place]]

    def __iter__(self) -> Iterator[str]:
        return map(self.terms.__getitem__, self.numbers.tolist())

    def cells(self, form: CellFormat, kept: KeptCells) -> list[str]:
        """Those of its rows; kept are those of such terms."""
        return kept.of(list(self), form)

    def packed(self, form: CellFormat) -> PackedCells:
        """The cells of its numbers."""
        if self._cells is None:
            return _joined(cells_of(self.terms, form))
        return self._cells.of(self.numbers, form)


class FloatColumn(TermColumn):
    """A column of numbers as they are computed, whose cells are not looked for what has to be escaped."""

    def cells(self, form: CellFormat, kept: KeptCells) -> list[str]:
        """See `TermColumn.cells`. They are not kept: hardly one is in another answer."""
        return list(map(self._cells_of_terms(form).__getitem__, self.numbers.tolist()))

    def packed(self, form: CellFormat) -> PackedCells:
        """See `TermColumn.packed`."""
        return _joined(self._cells_of_terms(form))

    def _cells_of_terms(self, form: CellFormat) -> list[str]:
        if form is not CellFormat.JSON:
            return cells_of(self.terms, form)
        values = [text[:-1].replace('"^^<', '","datatype":"') for text in self.terms]
        return [f'{{"type":"literal","value":{value}"}}' for value in values]


class NumberedTable(TextTable):
    """One whose columns are all `TermColumn`s, without unbound variables."""

    __slots__ = ()

    def written(self, form: CellFormat) -> Iterator[bytes]:
        """See `TextTable.written`."""
        columns = cast(Sequence[TermColumn], self.columns)
        if len(self) > _FEW_ROWS:
            return _rows_of(self.names, columns, form)
        begin, _, end = frame_of(tuple(self.names), form)
        cells = [column.cells(form, self.kept) for column in columns]
        rows = joined_rows(self.names, form)(zip(*cells, strict=True))
        return iter((f"{begin}{rows}{end}".encode(),))


class NumberedCells:
    """The cells of terms, by their numbers, made when they are first asked for. For any thread."""

    def __init__(self, terms: Sequence[str]) -> None:
        """terms may get more."""
        self._terms = terms
        self._packed: dict[CellFormat, _Growing] = {}
        self._lock = Lock()

    def of(self, numbers: Longs, form: CellFormat) -> PackedCells:
        """Those of these numbers at least."""
        with self._lock:
            growing = self._packed.get(form)
            if growing is None or growing.used > _BYTES_MAX:
                growing = self._packed[form] = _Growing()
        while True:
            with self._lock:
                packed = growing.for_numbers(len(self._terms))
            if _has_all(packed.lengths, numbers):
                return packed
            wanted = list(dict.fromkeys(numbers[packed.lengths[numbers] < 0].tolist()))
            cells = cells_of([self._terms[number] for number in wanted], form)
            with self._lock:
                growing.add(np.array(wanted), _joined(cells))


class _Growing:
    """Packed cells that get more. With the lock of its owner held."""

    def __init__(self) -> None:
        self.used = 0
        self._packed = PackedCells(np.empty(1 << 16, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int32))

    def for_numbers(self, count: int) -> PackedCells:
        """With a place for so many numbers at least."""
        packed = self._packed
        room = len(packed.starts)
        if room < count:
            starts, lengths = (
                np.zeros(count + count // 8, np.int64),
                np.full(count + count // 8, -1, np.int32),
            )
            starts[:room], lengths[:room] = packed.starts, packed.lengths
            self._packed = packed = PackedCells(packed.blob, starts, lengths)
        return packed

    def add(self, numbers: Longs, cells: PackedCells) -> None:
        """Add the cells of these numbers. What was handed out before stays as it is, or gets them too."""
        packed, size = self._packed, len(cells.blob)
        blob = packed.blob
        if self.used + size > len(blob):
            blob = np.empty(2 * (self.used + size), np.uint8)
            blob[: self.used] = packed.blob[: self.used]
        blob[self.used : self.used + size] = cells.blob
        if blob is not packed.blob:  # who has the one before does not see lengths of what is not in it
            packed = PackedCells(blob, packed.starts.copy(), packed.lengths.copy())
            self._packed = packed
        packed.starts[numbers] = self.used + cells.starts
        packed.lengths[numbers] = cells.lengths
        self.used += size


def _joined(cells: Sequence[str]) -> PackedCells:
    """A few cells, one after another."""
    whole = "".join(cells)
    parts: Sequence[str | bytes] = cells if whole.isascii() else [cell.encode() for cell in cells]
    lengths = np.fromiter(map(len, parts), np.int32, len(parts))
    return PackedCells(_bytes(whole.encode()), np.cumsum(lengths, dtype=np.int64) - lengths, lengths)


def _rows_of(names: Sequence[str], columns: Sequence[TermColumn], form: CellFormat) -> Iterator[bytes]:
    """The answer with these columns, in pieces that take well below a millisecond each."""
    begin, between, end = (part.encode() for part in frame_of(tuple(names), form))
    if not len(columns[0]):
        yield begin + end
        return
    leads, tail = frame_of_row(tuple(names), form)
    packed = [column.packed(form) for column in columns]
    count, row_bytes = len(columns[0]), sum(map(len, leads)) + len(tail)
    lead = begin
    for first in range(0, count, _BATCH_ROWS):
        numbers = [column.numbers[first : first + _BATCH_ROWS] for column in columns]
        lengths = np.full(len(numbers[0]), row_bytes, np.int64)
        for cells, own in zip(packed, numbers, strict=True):
            lengths += cells.lengths[own]
        ends = np.cumsum(lengths)
        at, out = ends - lengths, np.empty(int(ends[-1]), np.uint8)
        for before, cells, own in zip(leads, packed, numbers, strict=True):
            _write_cells(out, at, before, cells.blob, cells.starts, cells.lengths, own)
        _write_tails(out, at, tail)
        rows = out.tobytes()
        yield lead + (rows[:-1] if form is CellFormat.JSON else rows)
        lead = between
    yield end


@lru_cache(maxsize=256)
def frame_of_row(names: tuple[str, ...], form: CellFormat) -> tuple[list[Bytes], Bytes]:
    """What is written before each cell, and after the last."""
    if form is CellFormat.TSV:
        leads, tail = [""] + ["\t"] * (len(names) - 1), "\n"
    else:
        leads, tail = [f'{"," if number else "{"}"{name}":' for number, name in enumerate(names)], "},"
    return [_bytes(lead.encode()) for lead in leads], _bytes(tail.encode())


def _bytes(raw: bytes) -> Bytes:
    """As an array that could be written to: for others there would be code of its own."""
    return np.frombuffer(bytearray(raw), np.uint8)


@compiled(nogil=True)
def _has_all(lengths: Ints, numbers: Longs) -> bool:
    """Whether each of the numbers has a length."""
    for number in numbers:  # noqa: SIM110 compiled
        if lengths[number] < 0:
            return False
    return True


@compiled(nogil=True)
def _write_cells(
    out: Bytes, at: Longs, lead: Bytes, blob: Bytes, starts: Longs, lengths: Ints, numbers: Longs
) -> None:
    """Write for row i lead and the cell of numbers[i] to out from at[i] on, and move at[i] behind it."""
    for row in range(len(numbers)):
        place = at[row]
        for i in range(len(lead)):
            out[place + i] = lead[i]
        place += len(lead)
        start, length = starts[numbers[row]], lengths[numbers[row]]
        for i in range(length):
            out[place + i] = blob[start + i]
        at[row] = place + length


@compiled(nogil=True)
def _write_tails(out: Bytes, at: Longs, tail: Bytes) -> None:
    """Write tail to out from each place on."""
    for row in range(len(at)):
        for i in range(len(tail)):
            out[at[row] + i] = tail[i]
