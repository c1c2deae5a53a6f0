"""`ColumnQuery`: one query on a column view, from its text to the bytes of its answer, on a thread."""

import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import duckdb
from duckdb import DuckDBPyConnection
from pyoxigraph import NamedNode

from actors.columns.database import OpenView
from actors.columns.protocol import ColumnTask
from graphdb.columns.catalog import NotKnown
from graphdb.columns.compiler import CompiledQuery, NotCompiled, compile_query
from graphdb.columns.counting import Counted, counted
from graphdb.columns.estimate import Estimate, estimate
from graphdb.columns.results import ManyTriples, answer_of
from graphdb.columns.row_writing import may_write_rows, write_rows
from graphdb.errors import GraphDBError, QueryMemoryExceeded, QueryTimeout, UnavailableError
from graphdb.planning.gate import read_query
from graphdb.public_text import without_paths
from graphdb.sparql.algebra import AbstractQuery
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat, write_answer
from graphdb.sparql.translation import abstract_query

if TYPE_CHECKING:  # see ViewSettings
    from graphdb.config.limits import GateLimits

__all__ = ["WHERE", "ColumnQuery", "NotTaken", "Unsuited"]

WHERE = f"columns (process {os.getpid()})"
# what may end a query at any row: what the compiler could not know beforehand, a cast of what is no constant
# number, but for one to text
_MAY_FAIL = re.compile(r"\berror\(|(?:\)|[^0-9]')::(?!VARCHAR)")
_FORMATS = {fmt.value: fmt for fmt in ResultFormat}


class NotTaken(Exception):
    """A reader has to answer; the text says why. Nothing of the answer was handed on."""


class Unsuited(NotTaken):
    """And has to as long as the view is as it is."""


class ColumnQuery:
    """Run it on any thread; interrupt it from any other. It sees one state of the view."""

    def __init__(self, view: OpenView, task: ColumnTask, limits: "GateLimits", *, counts: bool) -> None:
        """counts: whether counts are found without rows where they can be (`columns.counts_without_rows`)."""
        self._view = view
        self._task, self._limits, self._counts = task, limits, counts
        self._is_interrupted = self._is_over = False
        self._has_table = False
        self._ending = Lock()
        self._cursors: list[DuckDBPyConnection] = []  # while it runs
        self.log_index = 0

    def interrupt(self) -> None:
        """End it: run() raises QueryTimeout."""
        with self._ending:  # afterwards the cursors are another query's
            if self._is_over:
                return
            self._is_interrupted = True
            for cursor in self._cursors:
                cursor.interrupt()

    def run(self, begun: Callable[[int], None], sink: Callable[[bytes], None]) -> None:
        """Hand the answer on, piece by piece; begun is told the log index before the first.

        Raises NotTaken, QueryTimeout, QueryMemoryExceeded, UnavailableError, and duckdb.Error where the
        database is damaged or refuses to work.
        """
        has_begun = False

        def begin() -> None:
            nonlocal has_begun
            if not has_begun:
                begun(self.log_index)
            has_begun = True

        def hand_on(piece: bytes) -> None:
            begin()
            sink(piece)

        try:
            compiled, fmt = self._counted() or self._compiled(), _FORMATS[self._task.format]
            if isinstance(compiled, Counted):
                texts = self._view.texts
                compiled, fetch = compiled.answer()
            else:
                # a cursor has one result at a time, and terms are looked up while rows are fetched
                texts = self._view.texts.within(self._cursors[1])
                fetch = self._executed(compiled.sql)
            if may_write_rows(compiled, fmt):
                write_rows(compiled, fetch, texts, fmt, hand_on)
            else:
                write_answer(answer_of(compiled, fetch, texts), fmt, hand_on)
            begin()
        except NotTaken:
            self._give_back()
            raise
        except ManyTriples:
            self._give_back()
            raise Unsuited("it makes more triples than the column view collects") from None
        except Exception as error:
            self._close()
            raise self._failure(error, has_begun) from error
        self._give_back()

    def explained(self) -> dict[str, Any]:
        """How the query would be answered: path, construct, estimate, plan."""
        try:
            compiled = self._compiled()
            if isinstance(compiled, Counted):
                plan = "computed from arrays of the quads of each predicate, without rows"
            else:
                self._execute(f"EXPLAIN {compiled.sql}")
                plan = "\n".join(str(row[-1]) for row in self._cursor.fetchall())
            return {"path": "columns", "reason": None, **self._found.shown(), "plan": plan}
        except NotTaken as reason:
            return {"path": "reader", "reason": str(reason), "plan": None}
        except Exception as error:
            raise self._failure(error, has_begun=False) from error
        finally:
            self._close()

    def _counted(self) -> Counted | None:
        """The counts that the query asks for, without a transaction, which takes longer than to count: where
        others have read all that it needs of this state.
        """
        known = self._view.known()
        if known is None or not self._counts or self._has_dataset:
            return None
        self.log_index, catalog = known
        try:
            return counted(self._query(), catalog)
        except NotKnown:
            return None

    def _query(self) -> AbstractQuery:
        return _read(self._task.text, self._task.base_iri, self._limits)

    @property
    def _has_dataset(self) -> bool:
        return bool(self._task.default_graphs or self._task.named_graphs)

    def _compiled(self) -> CompiledQuery | Counted:
        self._check()
        self._cursors += (self._view.take_cursor(), self._view.take_cursor())
        self.log_index, catalog = self._view.begin(self._cursor)
        query = self._query()
        dataset = Dataset(_nodes(self._task.default_graphs), _nodes(self._task.named_graphs))
        self._found: Estimate = estimate(query, catalog)
        if self._counts and not self._has_dataset and (found := counted(query, catalog)) is not None:
            return found
        if self._found.reader_because is not None:
            raise Unsuited(self._found.reader_because)
        compiled = compile_query(query, dataset, catalog)
        if isinstance(compiled, NotCompiled):
            raise Unsuited(compiled.construct)
        return compiled

    @property
    def _cursor(self) -> DuckDBPyConnection:
        return self._cursors[0]

    def _executed(self, sql: str) -> Callable[[int], Sequence[Sequence[str | int | None]]]:
        """What fetches the rows, as they are found; where one may fail, all of them are found before the
        first is handed on, so that a reader can still answer.
        """
        if _MAY_FAIL.search(sql):
            self._execute(f"CREATE TEMP TABLE found AS {sql}")
            sql = "FROM found"
            self._has_table = True
        self._execute(sql)
        return self._fetched

    def _execute(self, sql: str) -> None:
        self._check()
        self._cursor.execute(sql)

    def _fetched(self, rows: int) -> Sequence[Sequence[str | int | None]]:
        self._check()
        return self._cursor.fetchmany(rows)

    def _check(self) -> None:
        if self._is_interrupted:
            raise QueryTimeout("the query was interrupted")

    def _failure(self, error: Exception, has_begun: bool) -> Exception:
        if self._is_interrupted:
            return QueryTimeout("the query was interrupted")
        if isinstance(error, NotTaken | GraphDBError) or _is_damage(error):
            return error
        if not has_begun:
            return NotTaken(f"the column view failed: {_first_line(error)}")
        if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
            return QueryMemoryExceeded("the query took more memory than columns.memory_limit_mb allows")
        return UnavailableError(f"the column view failed in the midst of the answer: {_first_line(error)}")

    def _give_back(self) -> None:
        """Leave the cursors to other queries, as they were."""
        with self._ending:
            self._is_over = True
        if self._has_table or self._is_interrupted:
            self._close()
            return
        if self._cursors:
            self._cursor.execute("ROLLBACK")
        for cursor in self._cursors:
            self._view.give_back(cursor)

    def _close(self) -> None:
        with self._ending:
            self._is_over = True
        for cursor in self._cursors:
            cursor.close()


def _first_line(error: Exception) -> str:
    return without_paths((str(error).splitlines() or [type(error).__name__])[0])[:200]


def _is_damage(error: Exception) -> bool:
    return isinstance(error, duckdb.FatalException | duckdb.InternalException | duckdb.IOException)


@lru_cache(maxsize=256)
def _read(text: str, base_iri: str | None, limits: "GateLimits") -> AbstractQuery:
    return abstract_query(read_query(text, base_iri, limits))


def _nodes(iris: Sequence[str]) -> tuple[NamedNode, ...]:
    return tuple(map(NamedNode, iris))
