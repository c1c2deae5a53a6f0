"""Rows from DuckDB as answers of the engine's own classes, which the writers of results take.

A table becomes tab-separated values, which the engine reads as a stream: rows are fetched, and the texts of
their terms looked up, as they are written.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from io import BytesIO
from typing import IO, Any, Final, TypeAlias, cast

import numpy as np
from duckdb import DuckDBPyConnection
from pyoxigraph import (
    Literal,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    QueryTriples,
    RdfFormat,
    Store,
    parse,
    parse_query_results,
)

from graphdb.columns.compiler import MARK, CompiledQuery
from graphdb.columns.expressions import literal_of
from graphdb.columns.term_ids import INLINE_TAGS, PAYLOAD_BITS, PAYLOAD_MASK, inline_literal
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, Variable

__all__ = [
    "CONSTRUCTED_TEXT_MAX",
    "Fetch",
    "ManyTriples",
    "Row",
    "TermTexts",
    "answer_of",
    "lines_of_triples",
    "unmarked",
]

Row: TypeAlias = Sequence[str | int | None]
Fetch: TypeAlias = Callable[[int], Sequence[Row]]
"""The next rows, at most so many, fewer only at the end, as `DuckDBPyConnection.fetchmany`."""
CONSTRUCTED_TEXT_MAX: Final = 16 << 20
"""Characters in N-Triples that CONSTRUCT collects: some 200,000 triples, a second and 150 MB."""
_BATCH_ROWS: Final = 20_480  # ten of DuckDB's vectors
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_KEPT: Final = 131_072  # texts
_INLINE = range(min(INLINE_TAGS) << PAYLOAD_BITS, (max(INLINE_TAGS) << PAYLOAD_BITS | PAYLOAD_MASK) + 1)


class ManyTriples(Exception):
    """CONSTRUCT makes more than are collected here. Nothing of the answer was handed on."""


class TermTexts:
    """The texts of the terms of one database, in N-Triples. Those that were asked for last are kept: a number
    never gets another term, so they stay right while the view changes. For any thread.
    """

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection
        self._kept: dict[int, str] = {}
        self._cells: tuple[object, dict[Any, str]] = None, {}  # of which format, and by number
        self._fetch_on: DuckDBPyConnection | None = None
        self._shared: TermTexts | None = None  # of which this one is within

    def within(self, cursor: DuckDBPyConnection) -> "TermTexts":
        """The same, with look-ups on this cursor, which is for this alone: interrupting it ends them. In a
        transaction that it has open, terms are found that are collected after its beginning.
        """
        texts = TermTexts(cursor)
        texts._kept = self._kept
        texts._shared = self
        texts._fetch_on = cursor
        return texts

    def at_hand(self, numbers: AbstractSet[int], characters_max: int) -> "TermTexts | None":
        """Those of these numbers, if none of them has to be looked up, and they are no longer together."""
        kept = self._kept
        found = {number: text for number in numbers if (text := kept.get(number)) is not None}
        if sum(map(len, found.values())) > characters_max:
            return None
        if not all(number in _INLINE for number in numbers - found.keys()):
            return None
        texts = TermTexts(self._connection)
        texts._kept, texts._shared = found, self
        return texts

    def of(self, numbers: AbstractSet[int], absent: Mapping[int, str]) -> dict[int, str]:
        """The text of each number. absent are the terms of a query that the view does not hold."""
        kept = self._kept
        found = {number: text for number in numbers if (text := kept.get(number)) is not None}
        missing: list[int] = []
        for number in numbers - found.keys():
            if number in _INLINE:
                found[number] = _inline_text(number)
            elif number in absent:
                found[number] = absent[number]
            else:
                missing.append(number)
        if missing:
            fetched = self._fetched(missing)
            found.update(fetched)
            if len(kept) + len(fetched) > _KEPT:
                kept.clear()
            if len(fetched) <= _KEPT:
                kept.update(fetched)
        return found

    def kept_cells(self, form: object) -> dict[Any, str]:
        """The cells of terms in answers of a form, by their numbers, as far as they were kept: those of the
        form that was asked for last.
        """
        shared = self._shared or self
        if shared._cells[0] != form:
            shared._cells = form, {}
        return shared._cells[1]

    @staticmethod
    def keep_cells(kept: dict[Any, str], made: Mapping[Any, str], absent: Mapping[int, str]) -> None:
        """Keep these too, but for the terms that are of one query only."""
        if len(kept) + len(made) > _KEPT:
            kept.clear()
        if len(made) <= _KEPT:
            kept.update((number, cell) for number, cell in made.items() if number not in absent)

    def _fetched(self, numbers: list[int]) -> dict[int, str]:
        sql = "SELECT id, text FROM terms WHERE id IN (SELECT unnest(?::BIGINT[]))"
        if self._fetch_on is not None:
            return dict(self._fetch_on.execute(sql, [numbers]).fetchall())
        with self._connection.cursor() as cursor:
            return dict(cursor.execute(sql, [numbers]).fetchall())


def answer_of(
    query: CompiledQuery, fetch: Fetch, texts: TermTexts
) -> QuerySolutions | QueryBoolean | QueryTriples:
    """The answer whose rows fetch gives. Reading it raises what fetch and looking up in texts raise.

    Raises ManyTriples.
    """
    if query.form == "ASK":
        word = "true" if fetch(1) else "false"
        boolean = parse_query_results(f'{{"head":{{}},"boolean":{word}}}', format=QueryResultsFormat.JSON)
        return cast(QueryBoolean, boolean)
    if query.form == "CONSTRUCT":
        store, collected = Store(), 0
        for lines in lines_of_triples(query, fetch, texts):
            text = "".join(lines)
            collected += len(text)
            if collected > CONSTRUCTED_TEXT_MAX:
                raise ManyTriples
            store.extend(parse(text, format=RdfFormat.N_TRIPLES))
        return cast(QueryTriples, store.query("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"))
    source = cast(IO[bytes], _Table(query, fetch, texts))
    return cast(QuerySolutions, parse_query_results(source, format=QueryResultsFormat.TSV))


class _Table:
    """A file of tab-separated values, read from its beginning to its end."""

    def __init__(self, query: CompiledQuery, fetch: Fetch, texts: TermTexts) -> None:
        self._query, self._fetch, self._texts = query, fetch, texts
        self._is_done = False
        self._batch = BytesIO(("\t".join("?" + name for name in query.variables) + "\n").encode())

    def read(self, size: int = -1) -> bytes:
        """As of a file: less than size where a batch ends, nothing at the end."""
        piece = self._batch.read(size)
        while not piece and not self._is_done:
            rows = self._fetch(_BATCH_ROWS)
            self._is_done = len(rows) < _BATCH_ROWS
            lines = map("\t".join, _written(rows, self._query, self._texts))
            self._batch = BytesIO("".join(f"{line}\n" for line in lines).encode())
            piece = self._batch.read(size)
        return piece


def _written(rows: Sequence[Row], query: CompiledQuery, texts: TermTexts) -> Iterator[tuple[str, ...]]:
    """The cells of rows in N-Triples, that of an unbound variable empty."""
    columns = list(zip(*rows, strict=True))
    numbers: set[Any] = set()
    computed: set[Any] = set()
    for column in columns:
        is_computed = isinstance(next(filter(None, column), None), str)
        (computed if is_computed else numbers).update(column)
    numbers.discard(None)
    computed.discard(None)
    found: dict[Any, str] = texts.of(numbers, query.absent)
    found.update((cell, unmarked(cell)) for cell in computed)
    found[None] = ""
    return zip(*(map(found.__getitem__, column) for column in columns), strict=True)


@lru_cache(maxsize=65_536)
def unmarked(cell: str) -> str:
    """A computed cell in N-Triples."""
    if cell[0] != MARK:
        return cell
    kind, text = cell[1], cell[2:]
    if kind == "E":
        return str(Literal(float(text)))
    if kind == "F":
        number = np.float32(text)
        is_finite = np.isfinite(number)
        digits = np.format_float_positional(number, trim="-") if is_finite else Literal(float(number)).value
        return f'"{digits}"^^<{_XSD}float>'
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text)
    digits = digits.rjust(19, "0")
    fraction = digits[-18:].rstrip("0")
    return f'"{sign}{digits[:-18]}{"." if fraction else ""}{fraction}"^^<{_XSD}decimal>'


def lines_of_triples(query: CompiledQuery, fetch: Fetch, texts: TermTexts) -> Iterator[list[str]]:
    """The triples of each batch of rows, in N-Triples, each once in its batch; one that would have an unbound
    part or a literal where none may stand is left out.
    """
    places = {name: place for place, name in enumerate(query.variables)}
    done = 0
    while rows := fetch(_BATCH_ROWS):
        cells = list(zip(*_written(rows, query, texts), strict=True))
        lines: dict[str, None] = {}
        for triple in query.template:
            parts = [_parts(term, cells, places, range(done, done + len(rows))) for term in triple]
            lines.update(
                (f"{subject} {predicate} {object_} .\n", None)
                for subject, predicate, object_ in zip(*parts, strict=True)
                if subject and predicate and object_ and subject[0] != '"' and predicate[0] == "<"
            )
        done += len(rows)
        yield list(lines)
        if len(rows) < _BATCH_ROWS:
            return


def _parts(term: Any, cells: Sequence[Sequence[str]], places: dict[str, int], rows: range) -> Sequence[str]:
    """What stands for a term of the template in the triples of some rows, by their numbers."""
    match term:
        case Variable(name=name) if name in places:
            return cells[places[name]]
        case Variable():
            return [""] * len(rows)
        case Iri(value=iri):
            return [f"<{iri}>"] * len(rows)
        case BlankNodeLabel(label=label):
            return [f"_:c{number}-{label}" for number in rows]
        case RdfLiteral():
            return [str(literal_of(term))] * len(rows)
    raise AssertionError(term)


@lru_cache(maxsize=65_536)
def _inline_text(number: int) -> str:
    return str(inline_literal(number))
