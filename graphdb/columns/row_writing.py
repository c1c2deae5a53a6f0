"""Rows from DuckDB as the bytes of an answer, in the formats that put cells side by side: TSV, CSV, JSON.

A cell is made once for each term, as `graphdb.sparql.text_tables` does. What is left for each row is to join
its cells.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, cast

from graphdb.columns.compiler import CompiledQuery
from graphdb.columns.results import (
    CONSTRUCTED_TEXT_MAX,
    Fetch,
    Row,
    TermTexts,
    lines_of_triples,
    unmarked,
)
from graphdb.rdf.pieces import PieceWriter, Sink
from graphdb.sparql.results import ResultFormat, csv_cells
from graphdb.sparql.text_tables import CellFormat, cells_of, frame_of, joined_rows, table_of

__all__ = ["few_rows", "may_write_rows", "write_rows", "write_triples"]

_BATCH_ROWS: Final = 20_480  # ten of DuckDB's vectors
_PIECE_BYTES: Final = 262_144  # of a long answer; each takes a turn of two event loops
_JSON: Final = (ResultFormat.JSON, ResultFormat.PLAIN_JSON)


def may_write_rows(query: CompiledQuery, fmt: ResultFormat) -> bool:
    """Whether the answer is rows that are written here."""
    names = query.variables
    if query.form in ("ASK", "CONSTRUCT") or not names or len(set(names)) < len(names):
        return False
    # A line of CSV with a single cell, an empty one, is written otherwise.
    return fmt in (*_JSON, ResultFormat.TSV) or (fmt is ResultFormat.CSV and len(names) > 1)


def write_rows(query: CompiledQuery, fetch: Fetch, texts: TermTexts, fmt: ResultFormat, sink: Sink) -> None:
    """Hand the answer on, piece by piece, a short one in one. Raises what fetch, texts and sink raise."""
    pieces = PieceWriter(sink, _PIECE_BYTES)
    for text in _texts(query, fetch, texts, fmt):
        data = text.encode()
        for start in range(0, len(data), _PIECE_BYTES):
            pieces.write(data[start : start + _PIECE_BYTES])
    pieces.close()


def few_rows(query: CompiledQuery, rows: Sequence[Row], texts: TermTexts, fmt: ResultFormat) -> bytes:
    """The whole answer that `write_rows` writes, of rows that are few and short."""
    begin, _, end = _frame(query.variables, fmt)
    lines = _lines(query.variables, fmt)(_Cells(query, texts, fmt).of(rows)) if rows else ""
    return f"{begin}{lines}{end}".encode()


def write_triples(query: CompiledQuery, fetch: Fetch, texts: TermTexts, sink: Sink) -> None:
    """Hand the triples of a CONSTRUCT on, as lines of N-Triples, batch by batch. Each is written once, but in
    an answer of more than 16 MB, where one that came late may come again. Raises as `write_rows`.
    """
    pieces = PieceWriter(sink, _PIECE_BYTES)
    written: dict[str, None] = {}
    room = CONSTRUCTED_TEXT_MAX
    may_repeat = len(query.template) > 1 or not query.is_set
    for lines in lines_of_triples(query, fetch, texts):
        if may_repeat:
            lines = [line for line in lines if line not in written]
            if room > 0:
                written.update(dict.fromkeys(lines))
                room -= sum(map(len, lines))
        data = "".join(lines).encode()
        for start in range(0, len(data), _PIECE_BYTES):
            pieces.write(data[start : start + _PIECE_BYTES])
    pieces.close()


def _texts(query: CompiledQuery, fetch: Fetch, texts: TermTexts, fmt: ResultFormat) -> Iterator[str]:
    cells = _Cells(query, texts, fmt)
    begin, between, end = _frame(query.variables, fmt)
    write = _lines(query.variables, fmt)
    yield begin
    is_first = True
    while rows := fetch(_BATCH_ROWS):
        lines = write(cells.of(rows))
        yield lines if is_first else between + lines
        is_first = False
        if len(rows) < _BATCH_ROWS:
            break
    yield end


def _tsv_or_json(fmt: ResultFormat) -> CellFormat:
    return CellFormat.JSON if fmt in _JSON else CellFormat.TSV


def _frame(names: Sequence[str], fmt: ResultFormat) -> tuple[str, str, str]:
    """What is written before the rows, between two of them, and after all."""
    if fmt is ResultFormat.CSV:
        return ",".join(names) + "\r\n", "", ""
    return frame_of(names, _tsv_or_json(fmt))


def _lines(names: Sequence[str], fmt: ResultFormat) -> Callable[[Iterator[tuple[str, ...]]], str]:
    if fmt is ResultFormat.CSV:
        return lambda rows: "".join([line + "\r\n" for line in map(",".join, rows)])
    return joined_rows(names, _tsv_or_json(fmt))


class _Cells:
    """The cells of one answer's rows; that of an unbound variable is empty."""

    def __init__(self, query: CompiledQuery, texts: TermTexts, fmt: ResultFormat) -> None:
        self._absent, self._texts, self._fmt = query.absent, texts, fmt
        self._places = [itemgetter(place) for place in range(len(query.variables))]
        self._kept = texts.kept_cells(ResultFormat.JSON if fmt in _JSON else fmt)

    def of(self, rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
        """The rows, as cells."""
        columns = [list(map(place, rows)) for place in self._places]  # five times as fast as zip
        return zip(*map(self._column, columns), strict=True)

    def _column(self, column: Sequence[Any]) -> list[str]:
        if isinstance(next(filter(None, column), None), str):
            computed = {cell: unmarked(cell) for cell in set(column) if cell is not None}
            made = self._made(computed)
            made[None] = ""
            return [made[cell] for cell in column]
        cells = list(map(self._kept.get, column))
        if None not in cells:
            return cast(list[str], cells)
        missing = {number for number, cell in zip(column, cells, strict=True) if cell is None}
        missing.discard(None)
        made = self._made(self._texts.of(missing, self._absent))
        self._texts.keep_cells(self._kept, made, self._absent)
        made[None] = ""
        return [made[number] if cell is None else cell for number, cell in zip(column, cells, strict=True)]

    def _made(self, texts: dict[Any, str]) -> dict[Any, str]:
        """The cells of some texts in N-Triples, by the same keys."""
        if not texts:
            return {}
        if self._fmt is ResultFormat.CSV:
            cells = csv_cells(table_of(["c"], ([text] for text in texts.values())))
        else:
            cells = cells_of(list(texts.values()), _tsv_or_json(self._fmt))
        return dict(zip(texts, cells, strict=True))
