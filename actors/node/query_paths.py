"""`QueryPaths`: whether the column view or a reader answers a query; `BegunQuery`."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from actors.columns.client import (
    ColumnAnswer,
    ColumnRunner,
    ColumnStream,
    LeftToReader,
    may_use_columns,
    readers_alone,
)
from actors.egress.rules import HostRules
from actors.node.searching import Indexes
from actors.readers.checkpoints import CheckpointSource
from actors.readers.query_runner import QueryRunner, ReaderAnswer
from actors.readers.running_queries import QueryRun, RunningQueries
from graphdb.config import Settings
from graphdb.errors import QueryTooLong
from graphdb.node import QueryRequest, ValidationRequest
from graphdb.planning import gate
from graphdb.planning.costs import LearntCosts, Way, Work
from graphdb.sparql.parser import Query
from graphdb.store.quad_store import QuadStore

__all__ = ["BegunQuery", "QueryPaths"]


class QueryPaths:
    """Owned by a node's `Queries`, on its event loop, but for check(), which any thread may call."""

    def __init__(
        self,
        settings: Settings,
        readers: QueryRunner,
        running: RunningQueries,
        columns: ColumnRunner | None,
        indexes: Indexes | None = None,
        costs: LearntCosts | None = None,
    ) -> None:
        """running is the list of the readers' queries too. columns: None where there is no column view;
        indexes: None where there is no search port. costs learn from what answers take.
        """
        self.indexes = indexes
        self._costs = costs or LearntCosts()
        self._refuses_early = settings.readers.refuses_early
        self._begins_at_once = settings.columns.begun_at_once
        self._readers, self._running, self._columns = readers, running, columns
        self._limits = settings.security
        self._service_allowed: Callable[..., bool] = HostRules(
            "SERVICE", settings.security.service_allow
        ).allows

    def check(self, query: Query) -> None:
        """See `serve.backend.Queries.check_query`."""
        gate.check(query, self._limits)
        gate.check_services(query, self._service_allowed)

    def listed(self, request: QueryRequest) -> AbstractContextManager[QueryRun]:
        """On the list of running queries for the time of a block."""
        query = request.query
        return self._running.listed(query.text, query.form, request.principal, request.query_id)

    def begin(
        self,
        request: QueryRequest,
        applied_index: int,
        heard: "Callable[[BegunQuery], None]",
        *,
        unites_graphs: bool,
        as_of: int | None = None,
        is_choice: bool = True,
    ) -> "BegunQuery | None":
        """Ask the columns within this call, if that is possible; see start() for applied_index and as_of.
        heard is called once the first of the answer has come. is_choice: see `ColumnRunner.start`.
        """
        if self._columns is None or not self._begins_at_once or not may_use_columns(request):
            return None
        answer = self._columns.begin(
            request, applied_index, unites_graphs=unites_graphs, as_of=as_of, is_choice=is_choice
        )
        if answer is None:
            return None
        run = self._listed(request)
        run.on_cancel = answer.close
        begun = BegunQuery(run, answer, run.loop.time())
        answer.once_heard(partial(heard, begun))
        return begun

    def whole(self, request: QueryRequest, begun: "BegunQuery") -> bytes | None:
        """The answer, if all of it has come at once, and the query is over then; None of any other."""
        body = begun.answer.whole()
        if body is not None:
            begun.run.end()
            taken = begun.answer.taken
            if taken.work is not None:
                self._learning(Way.COLUMNS, request.query.text, taken.work, taken.seconds)(0.0, True)
        return body

    async def start(
        self,
        request: QueryRequest,
        checkpoints: CheckpointSource,
        quads: QuadStore,
        applied_index: int | None,
        begun: "BegunQuery | None" = None,
        *,
        as_of: int | None = None,
    ) -> ReaderAnswer | ColumnStream:
        """See `serve.backend.GraphReads.start_query`. quads is what the checkpoints are of; the answer is of
        applied_index or later. None: of what the columns hold, something is not to be seen. begun: what
        begin() has begun of it. as_of: the log index of the past state that the checkpoints are of, where all
        of it is to be seen; applied_index is where the columns know it then.
        """
        query = request.query
        run = begun.run if begun is not None else self._listed(request)
        work: Work | None = None
        if self._columns is not None and applied_index is not None and may_use_columns(request):
            began = run.loop.time() if begun is None else begun.began
            asked = None if begun is None else begun.answer
            unites = quads.unites_graphs
            try:
                answer = await self._columns.start(
                    run, request, applied_index, unites_graphs=unites, begun=asked, as_of=as_of
                )
                waited_s = run.loop.time() - began
                if isinstance(answer, ColumnStream):
                    if answer.work is not None:
                        answer.on_over = self._learning(Way.COLUMNS, query.text, answer.work, answer.seconds)
                    return answer
                work = answer.work
                self._check_work(work, request.timeout_s)
            except BaseException:
                run.end()
                raise
            request = replace(request, timeout_s=max(0.0, request.timeout_s - waited_s))
        from_reader = await self._readers.start(run, request.with_own_names(), checkpoints, quads)
        if work is not None:
            from_reader.on_over = self._learning(Way.READER, query.text, work, 0.0)
        return from_reader

    def _listed(self, request: QueryRequest) -> QueryRun:
        form = request.query.form
        return self._running.begin(request.text, form, request.principal, request.query_id)

    def _check_work(self, work: Work | None, timeout_s: float) -> None:
        """Raises QueryTooLong."""
        if work is None or not self._refuses_early:
            return
        because = self._costs.refusal(work, timeout_s)
        if because is not None:
            raise QueryTooLong(because)

    def _learning(self, way: Way, text: str, work: Work, before_s: float) -> Callable[[float, bool], None]:
        """For `RunAnswer.on_over`. before_s: what it has taken before its first piece was waited for."""

        def note(waited_s: float, is_whole: bool) -> None:
            self._costs.note(way, text, work, (before_s + waited_s) * 1000, is_whole=is_whole)

        return note

    @property
    def has_columns(self) -> bool:
        """Whether there is a column view."""
        return self._columns is not None

    async def start_in_columns(
        self,
        request: QueryRequest,
        as_of: int,
        known_from: int,
        begun: "BegunQuery | None" = None,
        *,
        unites_graphs: bool,
    ) -> ColumnStream | LeftToReader:
        """The columns' answer of a past state whose store is not made, so that what a reader takes does not
        count, unless a reader has to answer. known_from: see `VisibleStore`. begun: see start().
        """
        if self._columns is None or not may_use_columns(request):
            return LeftToReader(None)
        run = self._listed(request) if begun is None else begun.run
        asked = None if begun is None else begun.answer
        try:
            answer = await self._columns.start(
                run,
                request,
                known_from,
                unites_graphs=unites_graphs,
                begun=asked,
                as_of=as_of,
                is_choice=False,
            )
        except BaseException:
            run.end()
            raise
        if not isinstance(answer, ColumnStream):
            run.end()
        return answer

    async def explain_columns(
        self,
        request: QueryRequest,
        quads: QuadStore,
        applied_index: int | None,
        *,
        as_of: int | None = None,
        is_past: bool = False,
    ) -> dict[str, Any]:
        """See `serve.backend.GraphReads.explain_columns`, and start() for quads, applied_index and as_of."""
        whole = replace(request, explain=False)
        if self._columns is None:
            document = readers_alone("there is no column view (columns.enabled)")
        elif applied_index is None:
            rights = "only a part of the past is to be seen"
            document = readers_alone(rights if is_past else "the columns hold something else")
        elif not may_use_columns(whole):
            document = readers_alone("such queries do not use the columns")
        else:
            unites = quads.unites_graphs
            document = await self._columns.explain(whole, applied_index, unites_graphs=unites, as_of=as_of)
        text = None if applied_index is None else request.query.text
        return self._with_ways(document, text, request.timeout_s)

    def _with_ways(self, document: dict[str, Any], text: str | None, timeout_s: float) -> dict[str, Any]:
        """What the view says of a query, and what the columns and a reader would take. text is None where not
        all is to be seen: what answers took then tells of what is hidden.
        """
        is_possible, found = document.pop("is_possible", False), document.pop("work", None)
        work = None if found is None else Work(**found)
        refusal = None if work is None or not self._refuses_early else self._costs.refusal(work, timeout_s)
        reasons = {Way.COLUMNS: None if is_possible else document["reason"], Way.READER: refusal}
        ways = []
        for way, reason in reasons.items():
            ms = None if work is None or text is None else self._costs.estimated_ms(way, text, work)
            ways.append(
                {
                    "way": way.value,
                    "possible": reason is None,
                    "reason": reason,
                    "estimated_rows": None if work is None else round(work.rows),
                    "estimated_ms": None if ms is None else round(ms, 1),
                    "took_ms": None if text is None else self._costs.took_ms(way, text),
                    "chosen": document["path"] == way.value and reason is None,
                }
            )
        return document | {"ways": ways}

    async def validate(self, request: ValidationRequest, checkpoints: CheckpointSource) -> ReaderAnswer:
        """See `serve.backend.GraphReads.start_validation`."""
        return await self._readers.validate(request, checkpoints)


@dataclass(frozen=True, slots=True)
class BegunQuery:
    """A query that the columns have been asked, before anybody waits for the answer."""

    run: QueryRun
    answer: ColumnAnswer
    began: float  # of the loop's time
    is_exact: bool = True

    @property
    def query_id(self) -> str:
        """See `serve.backend.AnswerOrigin`; so are the next two, once the answer has come."""
        return self.run.id

    @property
    def snapshot_index(self) -> int:
        return self.answer.taken.log_index

    @property
    def where(self) -> str:
        return self.answer.taken.where

    def end(self) -> None:
        """Nobody will wait for it."""
        self.answer.close()
        self.run.end()
