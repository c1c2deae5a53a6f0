"""Rows of terms, each as text in N-Triples, as the bytes of an answer in the formats that put cells side by
side: TSV and JSON.

The engine's own writer makes each cell, once for each term: the texts of many terms are read and written as
a table of one column, which is cut again. What is left for each row is to join its cells. The bytes are those
of `graphdb.sparql.results`, which reads and writes each cell of each row.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Final, cast

from pyoxigraph import QueryResultsFormat, QuerySolutions, parse_query_results

__all__ = ["CellFormat", "KeptCells", "TextTable", "cells_of", "frame_of", "joined_rows", "table_of"]

_NAME: Final = "c"  # of the one column
_JSON_BETWEEN: Final = f'}},{{"{_NAME}":'  # in a string of JSON its quotes would be escaped
_KEPT: Final = 131_072  # cells of a form
_KEPT_CHARS: Final = 16 << 20  # in these, and in those of one answer
_BATCH_ROWS: Final = 1_000  # a millisecond
# An IRI, a string or another literal without a language, whose characters stand for themselves in JSON, too.
_IRI: Final = r"<([!#-;=?-\[\]^_a-z|~]*)>"
_PLAIN = re.compile(rf'{_IRI}|"([ !#-\[\]-~]*)"(?:\^\^{_IRI})?')
_IRIS = re.compile(rf"(?:{_IRI}\n)+")  # a line each
_IRI_CELL: Final = '{"type":"uri","value":"', '"}'


class CellFormat(Enum):
    """How cells are written."""

    TSV = "tsv"
    JSON = "json"


class KeptCells:
    """Cells that were made before, by the texts of their terms. For any thread."""

    def __init__(self) -> None:
        self._kept: dict[CellFormat, dict[str, str]] = {form: {} for form in CellFormat}
        self._room = dict.fromkeys(CellFormat, _KEPT_CHARS)  # threads may miscount it a little

    def of(self, column: Sequence[str], form: CellFormat) -> list[str]:
        """The cells of terms; "" of an unbound variable."""
        kept = self._kept[form]
        cells = list(map(kept.get, column))
        if None not in cells:
            return cast(list[str], cells)
        texts = list({text: None for text, cell in zip(column, cells, strict=True) if cell is None and text})
        made = dict(zip(texts, cells_of(texts, form), strict=True))
        size = sum(map(len, made.values()))
        if len(kept) + len(made) > _KEPT or size > self._room[form]:
            self._kept[form] = kept = {}
            self._room[form] = _KEPT_CHARS
        self._room[form] -= size
        kept.update(made)
        made[""] = ""
        return [made[text] if cell is None else cell for text, cell in zip(column, cells, strict=True)]


@dataclass(frozen=True, slots=True)
class TextTable:
    """The answer to a SELECT: columns[i][n] is what row n binds the variable names[i] to, in N-Triples; ""
    where it is unbound. No name is twice in it, and there is at least one.
    """

    names: Sequence[str]
    columns: Sequence[Sequence[str]]
    kept: KeptCells = field(default_factory=KeptCells)

    def __len__(self) -> int:
        return len(self.columns[0])

    def solutions(self) -> QuerySolutions:
        """The rows as the engine gives them."""
        return table_of(self.names, zip(*self.columns, strict=True))

    def written(self, form: CellFormat) -> Iterator[bytes]:
        """The answer, in pieces that take about a millisecond each."""
        begin, between, end = frame_of(tuple(self.names), form)
        write = joined_rows(self.names, form)
        lead = begin
        for start in range(0, len(self), _BATCH_ROWS):
            some = [self.kept.of(column[start : start + _BATCH_ROWS], form) for column in self.columns]
            if form is CellFormat.JSON and not any("" in column for column in some):
                rows = ",".join(map(_whole_row(self.names).__mod__, zip(*some, strict=True)))
            else:
                rows = write(zip(*some, strict=True))
            yield f"{lead}{rows}".encode()
            lead = between
        yield (end if len(self) else begin + end).encode()


def table_of(names: Sequence[str], rows: Iterable[Sequence[str]]) -> QuerySolutions:
    """Rows of terms in N-Triples, "" for what is unbound, as the engine gives them."""
    lines = ["\t".join([f"?{name}" for name in names]), *map("\t".join, rows), ""]
    return cast(QuerySolutions, parse_query_results("\n".join(lines).encode(), format=QueryResultsFormat.TSV))


def cells_of(texts: Sequence[str], form: CellFormat) -> list[str]:
    """The cells of these terms in N-Triples."""
    if form is CellFormat.JSON:
        lines = "\n".join(texts)
        if _IRIS.fullmatch(lines + "\n"):  # ten times as fast as one by one
            between = "\n".join(reversed(_IRI_CELL))
            return lines[1:-1].replace(">\n<", between).join(_IRI_CELL).split("\n")
        plain = list(map(_PLAIN.fullmatch, texts))
        if None not in plain:
            return [_plain_cell(*found.groups()) for found in plain if found is not None]
    if form is CellFormat.TSV:
        return _written([_NAME], texts, QueryResultsFormat.TSV).split("\n")[1:-1]
    document = _written([_NAME], texts, QueryResultsFormat.JSON)
    first = f'[{{"{_NAME}":'
    begin, end = document.index(first) + len(first), document.rindex("}]")
    return document[begin:end].split(_JSON_BETWEEN)


def _plain_cell(iri: str | None, text: str | None, datatype: str | None) -> str:
    if iri is not None:
        return iri.join(_IRI_CELL)
    if datatype is None:
        return f'{{"type":"literal","value":"{text}"}}'
    return f'{{"type":"literal","value":"{text}","datatype":"{datatype}"}}'


def frame_of(names: Sequence[str], form: CellFormat) -> tuple[str, str, str]:
    """What is written before the rows, between two runs of them, and after all."""
    if form is CellFormat.TSV:
        return "\t".join([f"?{name}" for name in names]) + "\n", "", ""
    before, behind, end = _json_frame()
    # of what SPARQL allows in a name, JSON escapes nothing
    listed = ",".join([f'"{name}"' for name in names])
    return f"{before}{listed}{behind}", ",", end


@cache
def _json_frame() -> tuple[str, str, str]:
    """What the engine writes before the names of the variables, behind them, and after the rows."""
    before, _, rest = _written([_NAME], (), QueryResultsFormat.JSON).partition(f'"{_NAME}"')
    behind, bracket, end = rest.rpartition("[")
    return before, behind + bracket, end


def joined_rows(names: Sequence[str], form: CellFormat) -> Callable[[Iterable[tuple[str, ...]]], str]:
    """What joins cells, of the names in their order, to the text of rows."""
    if form is CellFormat.TSV:
        return lambda rows: "".join([line + "\n" for line in map("\t".join, rows)])
    keys, whole = [f'"{name}":' for name in names], _whole_row(names)

    def written(row: tuple[str, ...]) -> str:
        if all(row):
            return whole % row
        return "{" + ",".join([key + cell for key, cell in zip(keys, row, strict=True) if cell]) + "}"

    return lambda rows: ",".join(map(written, rows))


def _whole_row(names: Sequence[str]) -> str:
    """In JSON, to be filled with the cells of a row without unbound variables."""
    return "{" + ",".join(f'"{name}":%s' for name in names) + "}"


def _written(names: Sequence[str], texts: Iterable[str], form: QueryResultsFormat) -> str:
    document = table_of(names, ([text] for text in texts)).serialize(format=form)
    assert document is not None
    return document.decode()
