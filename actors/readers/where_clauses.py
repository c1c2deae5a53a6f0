"""`WhereClauses`: the WHERE clauses of updates that might take long, evaluated by readers.

An update is planned in the writer's turn, on its thread, where nothing could stop the engine. So what is not
known to be short is evaluated by a reader, on a checkpoint of the state that the operation starts from,
within the time limit of a query; the solutions come back as a document.
"""

import asyncio
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pyoxigraph import QueryResultsFormat, QuerySolution, QuerySolutions, parse_query_results

from actors.readers.client import ReaderClient
from actors.readers.fetching import fetch
from actors.readers.protocol import ReaderTask
from actors.readers.query_runner import query_task
from actors.readers.running_queries import QueryRun
from graphdb.errors import EvaluationFailed, QueryTimeout
from graphdb.sparql.results import ResultFormat
from graphdb.store.quad_store import QuadStore
from graphdb.updates.planner import WhereClause

__all__ = ["UpdateTurn", "WhereClauses"]

_IN_MEMORY_BYTES = 8 << 20  # of solutions; more wait in a file


class UpdateTurn:
    """How long the planning of one update may keep the writer, and with it all other updates.

    Made when planning begins, on the writer's thread: what waited before that does not count.
    """

    def __init__(self, run: QueryRun, timeout_s: float) -> None:
        self.run = run
        self._timeout_s = timeout_s
        self._ends = time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        """How much of the time limit is left."""
        return max(0.0, self._ends - time.monotonic())

    def check(self) -> None:
        """Raises QueryCancelled, QueryTimeout."""
        self.run.check()
        if time.monotonic() >= self._ends:
            raise self.past_limit()

    def past_limit(self) -> QueryTimeout:
        """What to tell whoever sent the update."""
        return QueryTimeout(f"the update took longer than {self._timeout_s:g} s and was ended")


class WhereClauses:
    """Owned by an `UpdateRunner`; used on the writer's thread."""

    def __init__(self, readers: ReaderClient, *, union_default_graph: bool) -> None:
        self._readers = readers
        self._union_default_graph = union_default_graph

    def solutions(
        self, turn: UpdateTurn, directory: Path, store: QuadStore, where: WhereClause
    ) -> Iterator[QuerySolution]:
        """Evaluate a clause, whole, on the store as it is, in this turn. Blocks.

        directory is on the store's file system. Raises what `AnswerStream.read` raises, Overloaded,
        StorageFull.
        """
        path = directory / f"where-{secrets.token_hex(8)}"
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, dir=str(directory)) as document:
            try:
                store.checkpoint(path)
                task = self._task(where, path)
                fetching = fetch(self._readers, turn.run, task, turn.left_s, document.write)
                asyncio.run_coroutine_threadsafe(fetching, turn.run.loop).result()
            except QueryTimeout:
                raise turn.past_limit() from None  # the reader only knows how much was left to it
            finally:
                shutil.rmtree(path, ignore_errors=True)
            document.seek(0)
            answer = parse_query_results(document, format=QueryResultsFormat.JSON)
            assert isinstance(answer, QuerySolutions)
            try:
                for solution in answer:
                    turn.check()
                    yield solution
            except MemoryError:  # the parser's own limit, of 16 MB a token
                raise EvaluationFailed("a solution of WHERE has a term of many megabytes") from None
            finally:
                del answer  # on this thread, as the engine wants it: an error's traceback would keep it

    def _task(self, where: WhereClause, path: Path) -> ReaderTask:
        return query_task(
            where.text,
            None,
            where.dataset,
            str(path),
            format=ResultFormat.JSON,
            services=where.services,
            default_graph=where.graph,
            union_default_graph=self._union_default_graph,
            calls_geometry=where.calls_geometry,
        )
