"""`QueryRunner`: what readers do for a node, queries and validations: a reader, a checkpoint, an answer."""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from typing import Any, cast

from pyoxigraph import NamedNode, QueryResultsFormat, QuerySolutions, parse_query_results

from actors.readers.checkpoints import Checkpoint, CheckpointSource
from actors.readers.client import Lease, ReaderClient
from actors.readers.protocol import FunctionTask, ReaderTask, Task, ValidationTask
from actors.readers.running_queries import QueryRun, RunAnswer, RunningQueries
from actors.worker_thread import on_thread
from graphdb.config.limits import GateLimits
from graphdb.errors import EvaluationFailed, QueryTimeout
from graphdb.geo.function_calls import calls_functions
from graphdb.geo.lookups import EngineText
from graphdb.geo.narrowing import Narrowed
from graphdb.node import (
    FunctionCall,
    MergedGraphs,
    QueryRequest,
    Searching,
    ShapesDocument,
    ValidationRequest,
)
from graphdb.planning.engine_text import engine_text_and_services, entities_text
from graphdb.planning.graph_variables import may_list_graphs
from graphdb.planning.sources import scans_of
from graphdb.sparql.algebra import TextSearch
from graphdb.sparql.dataset import Dataset, own_dataset
from graphdb.sparql.results import ResultFormat
from graphdb.sparql.translation import abstract_query
from graphdb.sparql.tree_walk import nodes_of
from graphdb.store.quad_store import QuadStore
from graphdb.store.search_tables import Stale, Table, patterns_of

__all__ = ["QueryRunner", "ReaderAnswer", "query_task"]

_REMOVAL = "the removal of a large graph, which the query has to wait for,"


class QueryRunner:
    """Owned by a node's `Queries`, on its event loop."""

    def __init__(
        self,
        readers: ReaderClient,
        limits: GateLimits,
        running: RunningQueries,
    ) -> None:
        """limits are for SPARQL in SHACL shapes; queries have been through the gate."""
        self._running = running
        self._readers, self._limits = readers, limits

    async def start(
        self, run: QueryRun, request: QueryRequest, checkpoints: CheckpointSource, quads: QuadStore
    ) -> "ReaderAnswer":
        """See `GraphReads.start_query`. run ends with the answer; quads is what the checkpoints are of."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.timeout_s
        if request.searching is not None:
            find = partial(self._entities, run, request, deadline, quads)
            before = _searched(run, request.searching, checkpoints, find)
            return await self._start_after(before, "searching", deadline, run, request, checkpoints, quads)
        take = checkpoints.take_hiding
        if may_list_graphs(nodes_of(abstract_query(request.query))):
            if quads.is_removing:
                taken = _taken(run, checkpoints)
                return await self._start_after(taken, _REMOVAL, deadline, run, request, checkpoints, quads)
            take = partial(_seeing_all, checkpoints)
        make_task = partial(self._query_task, request, checkpoints, quads, {})
        return await self._start(run, request.timeout_s, checkpoints, make_task, take)

    async def _start_after(
        self,
        before: Awaitable[tuple[Checkpoint, Mapping[str, Table]]],
        what: str,
        deadline: float,
        run: QueryRun,
        request: QueryRequest,
        checkpoints: CheckpointSource,
        quads: QuadStore,
    ) -> "ReaderAnswer":
        """What comes before the reader: for a search, writes wait for an exact checkpoint, and may need one;
        a removal takes long. what: it is, for who waits too long.
        """
        loop = asyncio.get_running_loop()
        with ExitStack() as held:
            ended = held.enter_context(ExitStack())
            ended.callback(run.end)
            try:
                async with asyncio.timeout_at(deadline):
                    checkpoint, tables = await before
                held.callback(checkpoints.give_back, checkpoint)
            except TimeoutError:
                raise QueryTimeout(f"{what} took longer than {round(request.timeout_s, 2):g} s") from None
            ended.pop_all()  # from here on the answer ends it

            async def take() -> Checkpoint:
                checkpoint.holders += 1
                return checkpoint

            make_task = partial(self._query_task, request, checkpoints, quads, tables)
            return await self._start(run, deadline - loop.time(), checkpoints, make_task, take)

    async def _entities(
        self,
        run: QueryRun,
        request: QueryRequest,
        deadline: float,
        quads: QuadStore,
        checkpoint: Checkpoint,
        search: TextSearch,
        candidates: Table | None,
        count: int,
    ) -> list[Any]:
        """See `Entities`."""
        query, table = request.query, None if candidates is None else candidates.pattern
        text = entities_text(abstract_query(query), search, table, count)
        task = query_task(
            text,
            query.base_iri,
            request.dataset or own_dataset(query),
            str(checkpoint.path),
            format=ResultFormat.TSV,
            services={},
            union_default_graph=quads.unites_graphs,
            calls_geometry=calls_functions(query),
        )
        with ExitStack() as held:
            left_s = deadline - asyncio.get_running_loop().time()
            lease = await self._readers.lease(run.id, left_s)
            held.callback(lease.close)
            lease.evaluate(task)
            body = await _all_of(lease)
        return await on_thread(partial(_column, body))

    async def validate(self, request: ValidationRequest, checkpoints: CheckpointSource) -> "ReaderAnswer":
        """See `GraphReads.start_validation`."""
        run = self._running.begin(request.text, "VALIDATE", request.principal)
        return await self._start(run, request.timeout_s, checkpoints, partial(self._validation_task, request))

    async def call(self, call: FunctionCall) -> bytes:
        """See `Functions.call_function`. It takes no checkpoint: a function knows only its arguments."""
        with ExitStack() as held:
            run = self._running.begin(call.text, "CALL", call.principal)
            held.callback(run.end)
            lease = await run.unless_cancelled(self._readers.lease(run.id, call.timeout_s), Lease.close)
            held.callback(lease.close)
            run.where = lease.where
            lease.evaluate(FunctionTask(call.function, call.args))
            return await run.unless_cancelled(_all_of(lease))

    async def _start(
        self,
        run: QueryRun,
        timeout_s: float,
        checkpoints: CheckpointSource,
        make_task: Callable[[Checkpoint], Awaitable[Task]],
        take: Callable[[], Awaitable[Checkpoint]] | None = None,
    ) -> "ReaderAnswer":
        """The checkpoint comes after the reader, so that however many wait, no more than there are readers
        are kept on disk.
        """
        with ExitStack() as held:
            held.callback(run.end)
            lease = await run.unless_cancelled(self._readers.lease(run.id, timeout_s), Lease.close)
            held.callback(lease.close)
            run.where = lease.where
            checkpoint = await run.unless_cancelled((take or checkpoints.take)(), checkpoints.give_back)
            held.callback(checkpoints.give_back, checkpoint)
            run.on_cancel = lease.close  # also while nobody reads
            lease.evaluate(await run.unless_cancelled(make_task(checkpoint)))
            return ReaderAnswer(run, lease, checkpoint, held.pop_all())

    async def _query_task(
        self,
        request: QueryRequest,
        checkpoints: CheckpointSource,
        quads: QuadStore,
        tables: Mapping[str, Table],
        checkpoint: Checkpoint,
    ) -> ReaderTask:
        query = request.query
        made, services = engine_text_and_services(query, secrets.token_hex(16))
        if made.searches:
            if not tables:
                raise EvaluationFailed("searches are not evaluated here")
            made = made.with_tables(patterns_of(tables))
        asked = await _narrowed(made, checkpoints, quads, checkpoint)
        task = query_task(
            asked.text,
            query.base_iri,
            request.dataset or own_dataset(query),
            str(checkpoint.path),
            format=request.format,
            services=services,
            union_default_graph=quads.unites_graphs,
            calls_geometry=made.calls_geometry,
        )
        if checkpoint.hidden_graphs:
            task = replace(task, hidden_graphs=[graph.value for graph in checkpoint.hidden_graphs])
        if not services:  # else an attempt would call them once more
            task = replace(task, attempts=asked.attempts, attempt_rows=asked.rows)
        if not request.explain:
            return task
        return replace(
            task,
            operation="explain",
            count_queries=[scan.count_query for scan in scans_of(query)],
            lookups=[asdict(report) for report in asked.reports]
            + [asdict(table.report) for table in tables.values()],
        )

    async def _validation_task(self, request: ValidationRequest, checkpoint: Checkpoint) -> ValidationTask:
        task = ValidationTask(
            str(checkpoint.path),
            _graph_names(request.data_graph),
            report_type=request.report_syntax.value if request.report_syntax is not None else None,
            limits=self._limits.figures(),
        )
        if not isinstance(request.shapes, ShapesDocument):
            return replace(task, shapes_graph=_graph_names(request.shapes))
        return replace(task, shapes=request.shapes.content, shapes_type=request.shapes.syntax.value)


def query_task(
    text: str,
    base_iri: str | None,
    dataset: Dataset,
    checkpoint: str,
    *,
    format: ResultFormat,
    services: Mapping[str, str],
    union_default_graph: bool,
    default_graph: NamedNode | None = None,
    calls_geometry: bool = False,
) -> ReaderTask:
    """What to send a reader. default_graph stands in for the store's where the dataset names no graph."""
    default_graphs = dataset.default_graphs if dataset else (default_graph,) if default_graph else None
    return ReaderTask(
        operation="query",
        text=text,
        base_iri=base_iri,
        default_graphs=_iris(default_graphs),
        named_graphs=_iris(dataset.named_graphs if dataset else None),
        union_default_graph=union_default_graph,
        format=format.value,
        checkpoint=checkpoint,
        services=services,
        calls_geometry=calls_geometry,
    )


async def _taken(run: QueryRun, checkpoints: CheckpointSource) -> tuple[Checkpoint, Mapping[str, Table]]:
    """A whole copy, without searches."""
    return await run.unless_cancelled(checkpoints.take(), checkpoints.give_back), {}


async def _seeing_all(checkpoints: CheckpointSource) -> Checkpoint:
    """For a query that may list graphs: it waits where some have come to be hidden since it was asked."""
    checkpoint = await checkpoints.take_hiding()
    if not checkpoint.hidden_graphs:
        return checkpoint
    checkpoints.give_back(checkpoint)
    return await checkpoints.take()


async def _searched(
    run: QueryRun,
    searching: Searching,
    checkpoints: CheckpointSource,
    find: Callable[[Checkpoint, TextSearch, Table | None, int], Awaitable[list[Any]]],
) -> tuple[Checkpoint, Mapping[str, Table]]:
    """An exact checkpoint, and what the searches find in its state; whoever gets it gives it back. find is
    `Entities` in the state of a checkpoint.

    The graph may change so much meanwhile that the state is not known any more: then a later one is searched.
    """
    while True:
        checkpoint = await run.unless_cancelled(checkpoints.take_exact(), checkpoints.give_back)
        with ExitStack() as held:
            held.callback(checkpoints.give_back, checkpoint)
            with contextlib.suppress(Stale):
                tables = await run.unless_cancelled(searching(checkpoint.index, partial(find, checkpoint)))
                held.pop_all()
                return checkpoint, tables


async def _narrowed(
    made: EngineText, checkpoints: CheckpointSource, quads: QuadStore, checkpoint: Checkpoint
) -> Narrowed:
    """The text with what the spatial index finds for it; on a thread, for constants may be large."""
    if not (made.lookups or made.nearest):
        return Narrowed(made.text)
    for is_present in (checkpoints.is_present(checkpoint), False):
        asked = await on_thread(partial(quads.narrowed, made, checkpoint.index, is_present=is_present))
        if not is_present or checkpoints.is_present(checkpoint):
            break
    return asked


async def _all_of(lease: Lease) -> bytes:
    pieces = []
    while (piece := await lease.read()) is not None:
        pieces.append(piece)
    return b"".join(pieces)


def _column(table: bytes) -> list[Any]:
    """The terms of a table of one column in TSV."""
    found = cast(QuerySolutions, parse_query_results(table, format=QueryResultsFormat.TSV))
    return [row[0] for row in found]


def _graph_names(graph: str | NamedNode | MergedGraphs) -> str | list[str]:
    if isinstance(graph, MergedGraphs):
        return [of.value for of in graph.graphs]
    return graph.value if isinstance(graph, NamedNode) else graph


class ReaderAnswer(RunAnswer):
    """See `serve.backend.AnswerStream`."""

    def __init__(self, run: QueryRun, lease: Lease, checkpoint: Checkpoint, held: ExitStack) -> None:
        """held gives back what the answer is made of."""
        super().__init__(run, lease.read, held)
        self.snapshot_index, self.is_exact = checkpoint.index, checkpoint.is_exact
        self.where = lease.where


def _iris(graphs: Iterable[NamedNode] | None) -> list[str] | None:
    return None if graphs is None else [graph.value for graph in graphs]
