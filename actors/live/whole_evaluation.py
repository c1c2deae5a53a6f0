"""Evaluating whole queries on states that stand still: by a reader, which can be killed at any moment."""

import asyncio
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from actors.readers.client import Lease, ReaderClient
from actors.readers.query_runner import query_task
from actors.readers.running_queries import QueryRun, RunningQueries
from graphdb.errors import (
    EvaluationFailed,
    LimitExceeded,
    Overloaded,
    QueryCancelled,
    QueryMemoryExceeded,
    QueryTimeout,
    UnavailableError,
)
from graphdb.live.sparql_queries import WholeQuery
from graphdb.sparql.results import ResultFormat
from graphdb.store.quad_store import QuadStore

__all__ = ["FrozenState", "ReaderEvaluation", "WholeEvaluation"]

_ANSWER_BYTES_MAX = 8 << 20  # in TSV; the last answer of each query is kept
_QUEUE_S = 60.0  # for a reader: what else they have to do does not count against a query
_ATTEMPTS = 3  # of an evaluation whose reader goes away
_AGAIN_S = 0.5


class WholeEvaluation(Protocol):
    """Where whole queries are evaluated."""

    def freeze(self, quads: QuadStore) -> Any:
        """The present state, to be evaluated on whatever happens to the quads; on the thread of these."""

    async def answer(self, query: WholeQuery, frozen: Any) -> bytes:
        """The whole answer in TSV. Raises LimitExceeded, EvaluationFailed, UnavailableError."""

    async def release(self, frozen: Any) -> None:
        """Nobody needs a state any more."""


class FrozenState:
    """A state that several queries are evaluated on; it goes with the last of them."""

    def __init__(self, frozen: Any, release: Callable[[Any], None], holders: int) -> None:
        self.frozen, self._release, self._holders = frozen, release, holders

    def let_go(self) -> None:
        """By each holder, once."""
        self._holders -= 1
        if not self._holders:
            self._release(self.frozen)


class ReaderEvaluation:
    """On hard-linked copies below a directory, by the readers of a node, some of them at a time."""

    def __init__(
        self,
        readers: ReaderClient,
        running: RunningQueries,
        directory: Path,
        *,
        at_once: int,
        timeout_s: float,
        union_default_graph: bool,
    ) -> None:
        """timeout_s is for one evaluation. directory is on the store's file system."""
        self._readers, self._running, self._directory = readers, running, directory
        self._timeout_s, self._union_default_graph = timeout_s, union_default_graph
        self._slots = asyncio.Semaphore(at_once)
        self._names = (f"state-{number}" for number in itertools.count())

    def freeze(self, quads: QuadStore) -> Path:
        """See `WholeEvaluation.freeze`. Raises StorageFull, CorruptionError."""
        path = self._directory / next(self._names)
        quads.checkpoint(path)
        return path

    async def answer(self, query: WholeQuery, frozen: Path) -> bytes:
        """See `WholeEvaluation.answer`."""
        async with self._slots:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    with self._running.listed(query.text, "LIVE") as run:
                        return await self._ask(run, query, frozen)
                except QueryTimeout:
                    allowed_ms = int(self._timeout_s * 1000)
                    name = (
                        "milliseconds for one evaluation of a live query (live.reevaluation_timeout_seconds)"
                    )
                    raise LimitExceeded(name, allowed_ms + 1, allowed_ms) from None
                except QueryMemoryExceeded:
                    raise EvaluationFailed("a live query takes too much memory") from None
                except QueryCancelled:
                    raise
                except UnavailableError as error:
                    failure = error
                await asyncio.sleep(_AGAIN_S * attempt)
            raise failure

    async def _ask(self, run: QueryRun, query: WholeQuery, frozen: Path) -> bytes:
        task = query_task(
            query.engine_text,
            None,
            query.dataset,
            str(frozen),
            format=ResultFormat.TSV,
            services={},
            union_default_graph=self._union_default_graph,
            calls_geometry=query.calls_geometry,
        )
        timeout_s = _QUEUE_S + self._timeout_s
        try:
            lease = await run.unless_cancelled(self._readers.lease(run.id, timeout_s), Lease.close)
        except QueryTimeout:
            raise Overloaded("no reader was free for a live query") from None
        run.where, run.on_cancel = lease.where, lease.close
        answer = bytearray()
        try:
            async with asyncio.timeout(self._timeout_s):
                lease.evaluate(task)
                while (piece := await run.unless_cancelled(lease.read())) is not None:
                    answer += piece
                    if len(answer) > _ANSWER_BYTES_MAX:
                        raise LimitExceeded("bytes of a live query's answer", len(answer), _ANSWER_BYTES_MAX)
        except TimeoutError:
            raise QueryTimeout("the evaluation of a live query took too long") from None
        finally:
            lease.close()
        return bytes(answer)

    async def release(self, frozen: Path) -> None:
        """See `WholeEvaluation.release`."""
        await self._readers.release_checkpoint(str(frozen))
        await asyncio.to_thread(shutil.rmtree, frozen, ignore_errors=True)
