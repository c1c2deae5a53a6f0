"""What the column view and the engine answer to one query."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import duckdb
from pyoxigraph import QueryBoolean, QuerySolutions, Store

from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import CompiledQuery, compile_query
from graphdb.columns.results import Fetch, Row, TermTexts, answer_of
from graphdb.columns.row_writing import write_rows
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import Answer, ResultFormat, write_answer
from graphdb.sparql.syntax import Query
from graphdb.sparql.translation import abstract_query
from graphdb.store.quad_store import QuadStore

__all__ = [
    "Refused",
    "Rows",
    "as_refused",
    "column_of",
    "engine_answer",
    "engine_rows",
    "rows_of",
    "view_read",
    "view_rows",
    "written_both_ways",
]

T = TypeVar("T")
Term: TypeAlias = Any
Rows: TypeAlias = bool | Counter[tuple[str, ...]]

# What the SQL may end with: the reader answers then.
_TO_A_READER = (duckdb.OutOfRangeException, duckdb.ConversionException)
# DuckDB 2.0 says so of `CASE WHEN x BETWEEN 1 AND 2 THEN '' END <> ''` over a UNION of two tables.
_DUCKDB_FAULT = "BindBuiltinScalarFunction did not return a BoundFunctionExpression"


@dataclass(frozen=True, slots=True)
class Refused:
    """The query is a reader's: why, and whether only its SQL found that out."""

    reason: str
    is_late: bool = False


def rows_of(answer: Answer) -> Rows:
    """An answer as a multiset of rows of N-Triples, those of a graph as its triples."""
    if isinstance(answer, QueryBoolean):
        return bool(answer)
    if isinstance(answer, QuerySolutions):
        return Counter(tuple(str(term) for term in solution) for solution in answer)
    return Counter({(str(triple),) for triple in answer})  # a graph has no triple twice


def column_of(answer: Answer, variable: str) -> list[Term]:
    """The terms of one column, in the order of the rows."""
    assert isinstance(answer, QuerySolutions)
    return [solution[variable] for solution in answer]


def engine_answer(store: Store, query: Query) -> Answer:
    """Raises EvaluationFailed."""
    return QuadStore(store).query(query, Dataset())


def engine_rows(store: Store, query: Query) -> Rows:
    """Raises EvaluationFailed."""
    return rows_of(engine_answer(store, query))


def view_rows(catalog: Catalog, query: Query) -> Rows | Refused:
    """What the view answers, if it does."""
    return view_read(catalog, query, rows_of)


def view_read(catalog: Catalog, query: Query, read: Callable[[Answer], T]) -> T | Refused:
    """What is read of the view's answer, if it has one."""
    compiled = compile_query(abstract_query(query), Dataset(), catalog)
    if not isinstance(compiled, CompiledQuery):
        return Refused(compiled.construct)
    try:
        cursor = catalog.connection.execute(compiled.sql)
        return read(answer_of(compiled, cursor.fetchmany, TermTexts(catalog.connection)))
    except duckdb.Error as error:
        return as_refused(error)


def as_refused(error: duckdb.Error) -> Refused:
    """What the SQL of a query found out. Raises the error where it says anything else."""
    is_inexact = isinstance(error, duckdb.InvalidInputException) and any(
        words in str(error) for words in ("not exact", _DUCKDB_FAULT)
    )
    if not (is_inexact or isinstance(error, _TO_A_READER)):
        raise error
    return Refused(str(error), is_late=True)


def written_both_ways(
    catalog: Catalog, query: CompiledQuery, texts: TermTexts, fmt: ResultFormat
) -> tuple[bytes, bytes]:
    """What is written row by row, and what the engine writes of the same rows."""
    rows = catalog.connection.execute(query.sql).fetchall()

    def fetcher() -> Fetch:
        left = list(rows)

        def fetch(count: int) -> Sequence[Row]:
            taken, left[:] = left[:count], left[count:]
            return taken

        return fetch

    ours, engines = list[bytes](), list[bytes]()
    write_rows(query, fetcher(), texts, fmt, ours.append)
    write_answer(answer_of(query, fetcher(), texts), fmt, engines.append)
    assert ours
    return b"".join(ours), b"".join(engines)
