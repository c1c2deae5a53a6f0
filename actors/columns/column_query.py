"""`ColumnQuery`: one query on a column view, from its text to the bytes of its answer, on a thread."""

import os
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from threading import Lock
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection
from pyoxigraph import NamedNode

from actors.columns.cursors import Cursors
from actors.columns.database import OpenView
from actors.columns.protocol import ColumnTask, ViewSettings
from graphdb.columns.catalog import Catalog, NotKnown
from graphdb.columns.certain_steps import certain_steps
from graphdb.columns.compiler import CompiledQuery, compile_query
from graphdb.columns.counting import Counted, CountPlan, count_plan, counted, is_of_all_quads
from graphdb.columns.estimate import LISTING_ROWS_MAX, Estimate, estimate, scanned_quads, work_of
from graphdb.columns.pieces import ending_by
from graphdb.columns.results import Fetch, ManyTriples, Row, TermTexts, answer_of
from graphdb.columns.row_writing import few_rows, may_write_rows, write_rows, write_triples
from graphdb.errors import GraphDBError, QueryMemoryExceeded, QueryTimeout, UnavailableError
from graphdb.planning.costs import Way, Work, cheaper
from graphdb.public_text import without_paths
from graphdb.rdf.pieces import Sink
from graphdb.sparql.algebra import AbstractQuery
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.packing import unpacked, with_literals
from graphdb.sparql.results import ResultFormat, is_of_lines, write_answer
from graphdb.sparql.terms import Span

__all__ = ["WHERE", "ColumnQuery", "NotTaken", "Unsuited", "first_line"]

WHERE = f"columns (process {os.getpid()})"
# what may end a query at any row: what the compiler could not know beforehand, a cast of what is no constant
# number, but for one to text
_MAY_FAIL = re.compile(r"\berror\(|(?:\)|[^0-9]')::(?!VARCHAR)")
_ROWS_AT_ONCE = 10_000  # fewer than what readers of an answer ask for at a time
# to write these takes as long as to hand them over to a thread
_COUNTED_ROWS_AT_ONCE = 100
_COUNTED_CHARACTERS_AT_ONCE = 65_536
_QUADS_AT_ONCE = 500_000  # of the patterns that are counted in: a microsecond has some 500
_PLANS_MAX = 256
_unpacked = lru_cache(maxsize=256)(unpacked)
_FORMATS = {fmt.value: fmt for fmt in ResultFormat}


class NotTaken(Exception):
    """A reader has to answer; the text says why. Nothing of the answer was handed on. work is what there is
    to do, where that was estimated.
    """

    work: Work | None = None


class Unsuited(NotTaken):
    """And has to as long as the view is as it is."""


class ColumnQuery:
    """Run it on any thread; interrupt it from any other. It sees one state of the view."""

    def __init__(self, view: OpenView, task: ColumnTask, settings: ViewSettings) -> None:
        self._view = view
        self._task, self._counts, self._keeps = task, settings.counts_without_rows, settings.plans_kept
        self._is_interrupted = self._is_over = False
        self._has_table = self._lists = False
        self._may_list = settings.queries_max > 1
        self._ending = Lock()
        self._cursors: Cursors | None = None  # while it runs
        self._work: Work | None = None  # once it is estimated
        self._counted: tuple[int, Counted] | None = None  # by at_once(), and of which log index
        self.where = WHERE
        self.log_index = 0

    def interrupt(self) -> None:
        """End it: run() raises QueryTimeout."""
        with self._ending:  # afterwards the cursors are another query's
            if self._is_over:
                return
            self._is_interrupted = True
            self._interrupt_work()

    def _interrupt_work(self) -> None:
        """Holding the lock."""
        if self._cursors is not None:
            self._cursors.interrupt()

    def at_once(self) -> tuple[int, list[bytes]] | None:
        """The log index and the answer, of a query that is counted in a millisecond or two from what others
        have read of the state that it asks for; None of any other query, which run() answers on a thread.
        What was counted for a longer answer, run() need not count again.
        """
        known = self._known()
        if known is None or not self._counts or self._has_dataset:
            return None
        index, catalog = known
        try:
            plan = catalog.plans.get(self._key) or self._count_plan(catalog)
            found = plan.counted() if isinstance(plan, CountPlan) else None
        except NotKnown:
            return None
        if found is None:
            return None
        self._counted = index, found
        numbers = found.numbers(_COUNTED_ROWS_AT_ONCE)
        texts = None if numbers is None else self._view.texts.at_hand(numbers, _COUNTED_CHARACTERS_AT_ONCE)
        if texts is None:
            return None
        fmt, columns = _FORMATS[self._task.format], self._task.columns
        shown = CompiledQuery("SELECT", found.variables if columns is None else tuple(columns), "")
        if may_write_rows(shown, fmt):
            return index, [few_rows(shown, found.rows, texts, fmt)]
        pieces: list[bytes] = []
        self._write(*found.answer(), texts, pieces.append)
        return index, pieces

    def _count_plan(self, catalog: Catalog) -> CountPlan | None:
        """How the query is counted at once, if it is; it is kept for the next ones. Raises NotKnown."""
        if self._is_united(catalog):
            return None
        query = self._query()
        if scanned_quads(query.pattern, catalog) > _QUADS_AT_ONCE and not is_of_all_quads(query):
            return None
        plan = count_plan(query, catalog)
        if self._keeps and plan is not None:
            self._keep(catalog, plan)
        return plan

    def _keep(self, catalog: Catalog, plan: object) -> None:
        if len(catalog.plans) >= _PLANS_MAX:
            catalog.plans.clear()
        catalog.plans[self._key] = plan

    def is_of(self, view: OpenView) -> bool:
        """Whether it reads this view, which may have been replaced since."""
        return self._view is view

    def run(self, begun: Callable[[int, Work | None], None], sink: Callable[[bytes], None]) -> None:
        """Hand the answer on, piece by piece; begun is told the log index, and what there is to do as it was
        estimated, before the first.

        Raises NotTaken, QueryTimeout, QueryMemoryExceeded, UnavailableError, and duckdb.Error where the
        database is damaged or refuses to work.
        """
        has_begun = False

        def begin() -> None:
            nonlocal has_begun
            if not has_begun:
                begun(self.log_index, self._work)
            has_begun = True

        def hand_on(piece: bytes) -> None:
            begin()
            sink(piece)

        try:
            compiled = self._settled()
            if isinstance(compiled, Counted):
                self._write(*compiled.answer(), self._view.texts, hand_on)
            else:
                assert self._cursors is not None
                texts = self._view.texts.within(self._cursors.terms)
                self._write(compiled, self._executed(compiled), texts, hand_on)
            begin()
        except NotTaken:
            self._give_back()
            raise
        except ManyTriples:
            self._close()
            raise Unsuited("it makes more triples than the column view collects") from None
        except Exception as error:
            self._close()
            raise self._failure(error, has_begun) from error
        self._give_back()

    def explained(self) -> dict[str, Any]:
        """How the query would be answered: path, reason, estimate, plan; is_possible, whether the columns
        could answer, and work, what there is to do.
        """
        is_possible = False
        try:
            compiled = self._planned(self._begun())
            is_possible = True
            if isinstance(compiled, Counted):
                plan = "computed from arrays of the quads of each predicate, without rows"
            else:
                self._check_cost()
                self._execute(f"EXPLAIN {compiled.sql}")
                plan = "\n".join(str(row[-1]) for row in self._cursor.fetchall())
            more = self._shown_more(isinstance(compiled, Counted))
            document = {"path": "columns", "reason": None, **self._found.shown(), **more, "plan": plan}
        except NotTaken as reason:
            document = {"path": "reader", "reason": str(reason), "plan": None}
        except Exception as error:
            raise self._failure(error, has_begun=False) from error
        finally:
            self._close()
        work = None if self._work is None else asdict(self._work)
        return document | {"is_possible": is_possible, "work": work}

    def _known(self) -> tuple[int, Catalog] | None:
        """The log index of the state that it asks for, and what others have looked up there."""
        return self._view.known()

    def _write(self, compiled: CompiledQuery, fetch: Fetch, texts: TermTexts, sink: Sink) -> None:
        fmt, columns = _FORMATS[self._task.format], self._task.columns
        if columns is not None:
            compiled = replace(compiled, variables=tuple(columns))
        if compiled.form == "CONSTRUCT" and is_of_lines(fmt):
            write_triples(compiled, fetch, texts, sink)
        elif may_write_rows(compiled, fmt):
            write_rows(compiled, fetch, texts, fmt, sink)
        else:
            write_answer(answer_of(compiled, fetch, texts), fmt, sink)

    @property
    def _key(self) -> Hashable:
        return self._asked_key, is_of_lines(_FORMATS[self._task.format])

    @property
    def _asked_key(self) -> Hashable:
        task = self._task
        return task.query, tuple(task.literals), tuple(task.default_graphs), tuple(task.named_graphs)

    def _query(self) -> AbstractQuery:
        query, literals = _unpacked(self._task.query), self._task.literals
        if not literals:
            return query
        return with_literals(query, {Span(start, end): value for start, end, value in literals})

    def _is_united(self, catalog: Catalog) -> bool:
        """Whether the default graph holds quads of several graphs."""
        return self._task.unites_graphs and catalog.named_graphs > 0

    @property
    def _dataset(self) -> Dataset:
        return Dataset(_nodes(self._task.default_graphs), _nodes(self._task.named_graphs))

    @property
    def _has_dataset(self) -> bool:
        return bool(self._task.default_graphs or self._task.named_graphs)

    def _settled(self) -> CompiledQuery | Counted:
        """What is to be executed in the state that the query sees from now on."""
        return self._compiled()

    def _shown_more(self, is_counted: bool) -> dict[str, Any]:
        """For `explained`."""
        return {}

    def _compiled(self) -> CompiledQuery | Counted:
        self._check()
        catalog = self._begun()
        known = catalog.plans.get(self._key)
        if isinstance(known, tuple):  # else it is counted
            compiled: CompiledQuery = known[0]
            self._work, lists_many = known[1:]
            self._check_cost()
            self._check_listing(lists_many)
            return compiled
        found = self._planned(catalog)
        if self._keeps and isinstance(found, CompiledQuery):
            self._keep(catalog, (found, self._work, self._found.lists_many))
        self._check_cost()
        self._check_listing(self._found.lists_many)
        return found

    def _check_listing(self, lists_many: bool) -> None:
        """Raises NotTaken of a query that lists many rows while another one does, or has the only place."""
        if not lists_many or self._lists:
            return
        if not (self._may_list and self._view.may_list()):
            raise NotTaken(f"it lists more than {LISTING_ROWS_MAX:,} matches, for which no place is free")
        self._lists = True

    def _end_listing(self) -> None:
        if self._lists:
            self._lists = False
            self._view.has_listed()

    def _check_cost(self) -> None:
        """Raises Unsuited where a reader is estimated to be faster."""
        if self._task.factors is None or self._work is None:
            return
        way, columns_ms, reader_ms = cheaper(self._work, self._task.factors)
        if way is Way.READER:
            raise self._unsuited(
                f"a reader takes {reader_ms:.0f} ms, as estimated, and this {columns_ms:.0f}"
            )

    def _unsuited(self, reason: str) -> Unsuited:
        """What to raise, with what is certain of the work."""
        error = Unsuited(reason)
        error.work = self._work
        return error

    def _begun(self) -> Catalog:
        """What there is in the state that the query reads. Raises Unsuited."""
        self._cursors = self._view.take()
        self.log_index, catalog = self._view.begin(self._cursors)
        if self._is_united(catalog):
            raise Unsuited("the default graph is the union of all graphs, and there are named graphs")
        return catalog

    def _planned(self, catalog: Catalog) -> CompiledQuery | Counted:
        """Raises Unsuited."""
        query = self._query()
        by_lines = is_of_lines(_FORMATS[self._task.format])
        self._found: Estimate = estimate(query, catalog, by_lines=by_lines)
        because = self._found.reader_because
        if because is None:
            if self._counted is not None and self._counted[0] == self.log_index:
                return self._counted[1]
            if self._counts and not self._has_dataset:
                with ending_by(self._check):
                    found = counted(query, catalog)
                if found is not None:
                    return found
            compiled = compile_query(query, self._dataset, catalog)
            if isinstance(compiled, CompiledQuery):
                self._work = work_of(query, self._found, catalog)
                return compiled
            because = compiled.construct
        self._work = work_of(query, self._found, catalog)
        if not self._has_dataset:
            self._work = replace(self._work, least=certain_steps(query, catalog))
        raise self._unsuited(because)

    @property
    def _cursor(self) -> DuckDBPyConnection:
        assert self._cursors is not None
        return self._cursors.rows

    def _executed(self, compiled: CompiledQuery) -> Fetch:
        """What fetches the rows, as they are found; where one may fail, all of them are found before the
        first is handed on, so that a reader can still answer.
        """
        sql, rows_max = compiled.sql, compiled.rows_max
        may_fail = _MAY_FAIL.search(sql) is not None
        if may_fail and (rows_max is None or rows_max >= _ROWS_AT_ONCE):
            self._execute(f"CREATE TEMP TABLE found AS {sql}")
            sql, may_fail = "FROM found", False
            self._has_table = True
        self._execute(sql)
        if not may_fail:
            return self._fetched
        rows = self._fetched(_ROWS_AT_ONCE)
        return lambda _count: rows

    def _execute(self, sql: str) -> None:
        self._check()
        self._cursor.execute(sql)

    def _fetched(self, rows: int) -> Sequence[Row]:
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
            return NotTaken(f"the column view failed: {first_line(error)}")
        if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
            return QueryMemoryExceeded("the query took more memory than columns.memory_limit_mb allows")
        return UnavailableError(f"the column view failed in the midst of the answer: {first_line(error)}")

    def _give_back(self) -> None:
        """Leave the cursors to other queries, as they were."""
        with self._ending:
            self._is_over = True
        self._end_listing()
        if self._has_table or self._is_interrupted:
            self._close()
            return
        if self._cursors is not None:
            self._leave(self._cursors)

    def _leave(self, cursors: Cursors) -> None:
        self._view.give_back(cursors)

    def _close(self) -> None:
        with self._ending:
            self._is_over = True
        self._end_listing()
        if self._cursors is not None:
            self._cursors.close()


def first_line(error: Exception) -> str:
    """What an error says, in short and without paths."""
    return without_paths((str(error).splitlines() or [type(error).__name__])[0])[:200]


def _is_damage(error: Exception) -> bool:
    return isinstance(error, duckdb.FatalException | duckdb.InternalException | duckdb.IOException)


def _nodes(iris: Sequence[str]) -> tuple[NamedNode, ...]:
    return tuple(map(NamedNode, iris))
