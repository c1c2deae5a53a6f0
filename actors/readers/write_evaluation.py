"""What readers evaluate for a write: its WHERE clauses, and the shapes that it has to satisfy.

An update is planned in the writer's turn, on its thread, where nothing could stop the engine. So what is not
known to be short is evaluated by a reader, on a checkpoint of the state that the operation starts from,
within the time limit of a query; the solutions come back as a document.

Shapes are checked in the writer's turn too: on a checkpoint of the state that the write would leave.
"""

import asyncio
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from pyoxigraph import (
    NamedNode,
    QueryResultsFormat,
    QuerySolution,
    QuerySolutions,
    parse_query_results,
)

from actors.readers.client import ReaderClient
from actors.readers.protocol import ReaderTask, Task, ValidationTask
from actors.readers.query_runner import query_task
from actors.readers.running_queries import QueryRun, RunningQueries
from graphdb.config.limits import GateLimits
from graphdb.errors import EvaluationFailed, QueryTimeout
from graphdb.rdf.formats import RdfSyntax
from graphdb.shacl.change_check import texts_of_terms
from graphdb.shacl.shapes import Shapes
from graphdb.sparql.results import ResultFormat
from graphdb.store.quad_store import QuadStore
from graphdb.store.view import Term
from graphdb.updates.planner import WhereClause

__all__ = [
    "UpdateTurn",
    "WhereClauses",
    "WriteChecks",
    "fetch",
]


async def fetch(
    readers: ReaderClient, run: QueryRun, task: Task, timeout_s: float, sink: Callable[[bytes], object]
) -> None:
    """Have a reader perform a task, and hand on what it answers; nobody has its checkpoint open then.

    Raises what `AnswerStream.read` raises, Overloaded.
    """
    lease = await run.unless_cancelled(readers.lease(run.id, timeout_s))
    before, run.where, run.on_cancel = run.where, lease.where, lease.close
    try:
        lease.evaluate(task)
        while (chunk := await run.unless_cancelled(lease.read())) is not None:
            sink(chunk)
    finally:
        lease.close()
        run.where = before
        await readers.release_checkpoint(task.checkpoint)


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
                hidden = store.checkpoint_hiding(path)
                task = replace(self._task(where, path), hidden_graphs=[graph.value for graph in hidden])
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


class WriteChecks:
    """Owned by a node; used on the writer's thread."""

    def __init__(
        self,
        readers: ReaderClient,
        running: RunningQueries,
        directory: Path,
        timeout_s: float,
        limits: GateLimits,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """directory is on the store's file system; limits are for SPARQL in the shapes; readers and running
        are used on loop.
        """
        self._readers, self._running = readers, running
        self._directory, self._timeout_s, self._loop = directory, timeout_s, loop
        self.limits = limits

    def validate(
        self, shapes: NamedNode | Shapes, data_graph: str, store: QuadStore, focus: Iterable[Term] | None
    ) -> dict[str, Any]:
        """The report (`graphdb.shacl.change_check`) of the store as it is: of these nodes, or for None of all
        targets; by shapes that are given, or those of a named graph. Blocks.

        Raises MalformedShapes, QueryTimeout and what else readers raise, Overloaded, StorageFull.
        """
        path = self._directory / f"check-{secrets.token_hex(8)}"
        named = shapes.value if isinstance(shapes, NamedNode) else None
        whose = f"the shapes of {shapes}" if named is not None else "the shapes of all graphs"
        task = ValidationTask(
            str(path),
            data_graph,
            shapes_graph=named,
            shapes=b"" if isinstance(shapes, NamedNode) else _document(shapes),
            shapes_type=RdfSyntax.N_TRIPLES.value,
            is_write_check=True,
            focus=None if focus is None else texts_of_terms(focus),
            limits=self.limits.figures(),
        )
        pieces: list[bytes] = []
        try:
            store.checkpoint(path)
            fetching = self._fetch(task, f"check a write against {whose}", pieces)
            asyncio.run_coroutine_threadsafe(fetching, self._loop).result()
        except QueryTimeout:
            raise QueryTimeout(
                f"checking the write against {whose} took longer than "
                f"{self._timeout_s:g} s; nothing was stored"
            ) from None
        finally:
            shutil.rmtree(path, ignore_errors=True)
        report: dict[str, Any] = orjson.loads(b"".join(pieces))
        return report

    async def _fetch(self, task: ValidationTask, text: str, pieces: list[bytes]) -> None:
        with self._running.listed(text, "VALIDATE") as run:
            await fetch(self._readers, run, task, self._timeout_s, pieces.append)


def _document(shapes: Shapes) -> bytes:
    return b"".join(f"{triple} .\n".encode() for triple in shapes.triples)
