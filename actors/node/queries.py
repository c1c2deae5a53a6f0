"""`Queries` and `Progress`: what a node can be asked of its graph, and how far that has got. `GraphReads`:
the graph as one visibility shows it. `QueryPaths`: whether the column view or a reader answers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from pyoxigraph import NamedNode, Quad

from actors.columns.client import ColumnAnswer, ColumnRunner, ColumnStream, may_use_columns, readers_alone
from actors.egress.rules import HostRules
from actors.node.open_store import CurrentStore
from actors.node.searching import Indexes, JoinedAnswer, QuerySearches
from actors.readers.checkpoints import CheckpointSource
from actors.readers.query_runner import QueryRunner, ReaderAnswer
from actors.readers.running_queries import QueryRun, RunningQueries
from actors.views.views import VisibleStore
from graphdb.access.visibility import Visibility
from graphdb.config import Settings
from graphdb.errors import IndexNotReached, LogUnavailable, Overloaded, QueryTimeout, QueryTooLong
from graphdb.history.moments import Moment
from graphdb.model import GraphName, NamedGraph
from graphdb.node import Consistency, Evaluated, FunctionCall, QueryRequest, RunningQuery, ValidationRequest
from graphdb.planning import gate
from graphdb.planning.costs import LearntCosts, Way, Work
from graphdb.sparql.dataset import Dataset, own_dataset
from graphdb.sparql.parser import Query
from graphdb.sparql.translation import searches_of
from graphdb.store.join_walk import OverBudget
from graphdb.store.quad_store import Answer, QuadStore
from graphdb.store.small_joins import ENTRIES_AT_ONCE, SmallJoin, small_join
from graphdb.store.view import Subject, Term
from graphdb.store.word_searches import WordSearch

__all__ = ["GraphReads", "Progress", "Queries", "QueryPaths"]


class QueryOutcome(Protocol):
    """See `serve.backend.QueryOutcome`."""

    def answered(self, origin: "BegunQuery", body: bytes) -> None: ...

    def goes_on(
        self, start: "Callable[[], Awaitable[ReaderAnswer | ColumnStream | JoinedAnswer]]"
    ) -> None: ...


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
        quads: QuadStore,
        applied_index: int,
        heard: "Callable[[BegunQuery], None]",
    ) -> "BegunQuery | None":
        """Ask the columns within this call, if that is possible; see start() for quads and applied_index.
        heard is called once the first of the answer has come.
        """
        if self._columns is None or not self._begins_at_once or not may_use_columns(request):
            return None
        answer = self._columns.begin(request, applied_index, unites_graphs=quads.unites_graphs)
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
        of it is to be seen; it is applied_index then.
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


_WHOLE = Dataset()
_UNITED = "united "  # before the key of a view: answers differ

T = TypeVar("T")
A = TypeVar("A", ReaderAnswer, ReaderAnswer | ColumnStream | JoinedAnswer)


class GraphReads:
    """See `serve.backend.GraphReads`. On the event loop of the node, but for what may come on any thread."""

    def __init__(
        self,
        store: Callable[[], VisibleStore],
        paths: QueryPaths,
        again: Callable[[], Awaitable["GraphReads"]],
        *,
        view_key: str | None,
        is_whole: bool,
        is_past: bool = False,
    ) -> None:
        """store raises LogUnavailable where there is none. again gives what the same visibility shows now; it
        is for a store that no longer holds. is_whole: the visibility shows everything, whatever is annotated.
        is_past: of a state that queries may name.
        """
        self.view_key, self._is_past = view_key, is_past
        self._store, self._paths, self._again, self._is_whole = store, paths, again, is_whole

    def uniting_graphs(self) -> "GraphReads":
        """See `serve.backend.GraphReads.uniting_graphs`."""

        def store() -> VisibleStore:
            found = self._store()
            return replace(found, quads=found.quads.uniting_graphs())

        async def again() -> GraphReads:
            return (await self._again()).uniting_graphs()

        key = f"{_UNITED}{self.view_key or ''}"
        return GraphReads(
            store, self._paths, again, view_key=key, is_whole=self._is_whole, is_past=self._is_past
        )

    def _check(self, query: Query) -> None:
        """Raises what `QueryPaths.check` raises; InvalidParameter where the query names another state."""
        if not self._is_past:
            gate.check_present(query)
        self._paths.check(query)

    def query(self, query: Query, dataset: Dataset) -> Evaluated:
        """See `serve.backend.GraphReads.query`."""
        self._check(query)
        store = self._store()
        index = store.applied.current  # before the query begins, so that the answer is at least so new
        return Evaluated(_held(store, store.quads.query(query, dataset)), index)

    def query_text(self, text: str, base_iri: str | None) -> Evaluated:
        """See `serve.backend.GraphReads.query_text`."""
        store = self._store()
        index = store.applied.current
        return Evaluated(_held(store, store.quads.query_text(text, _WHOLE, base_iri=base_iri)), index)

    def look_up(self, join: SmallJoin) -> Evaluated | None:
        """See `serve.backend.GraphReads.look_up`."""
        store = self._store()
        index = store.applied.exact
        if index is None or join.searches:
            return None
        found = join.answer(store.quads, ENTRIES_AT_ONCE)
        if found is None or store.applied.exact != index:  # a change came between two of its look-ups
            return None
        return Evaluated(_held(store, found), index)

    def search(self, join: SmallJoin, query: Callable[[], Query]) -> Evaluated | None:
        """See `serve.backend.GraphReads.search`."""
        store = self._store()
        index = store.applied.exact
        if index is None:
            return None
        star = join.star
        if star is not None and not store.quads.unites_graphs:
            table = store.literals.joined_at_once(star, index)
            if table is not None and store.applied.exact == index:
                return Evaluated(_held(store, table), index)
        tables = store.literals.tables_at_once(join.searches, _WHOLE, index)
        if tables is None:
            return None
        join = join.with_tables(tables)
        found: Answer | None = join.answer(store.quads, ENTRIES_AT_ONCE)
        if found is None:
            if not join.fits(store.quads, ENTRIES_AT_ONCE):
                raise OverBudget
            found = store.quads.query(query(), _WHOLE, tables)
        if store.applied.exact != index:
            return None
        return Evaluated(_held(store, found), index)

    def search_words(self, search: WordSearch, words: str) -> tuple[bytes, int] | None:
        """See `serve.backend.GraphReads.search_words`."""
        store = self._store()
        index = store.applied.exact
        if index is None or store.quads.unites_graphs:
            return None
        found = store.literals.words_at_once(search, words, index)
        if found is None or store.applied.exact != index:
            return None
        return _held(store, found), index

    def is_small_join(self, join: SmallJoin) -> bool:
        """See `serve.backend.GraphReads.is_small_join`."""
        store = self._store()
        return join.fits(store.quads, ENTRIES_AT_ONCE, store.large.at(store.applied.current))

    async def start_query(self, request: QueryRequest) -> ReaderAnswer | ColumnStream | JoinedAnswer:
        """See `serve.backend.GraphReads.start_query`."""
        self._check(request.query)
        store = self._store()
        answer = await _held_answer(store, self._started(request, store))
        return answer or _of_another(await (await self._again()).start_query(request))

    def begin_query(self, request: QueryRequest, outcome: QueryOutcome) -> Callable[[], None] | None:
        """See `serve.backend.GraphReads.begin_query`."""
        self._check(request.query)
        store = self._store()
        if not (self._is_whole and store.is_in_columns):
            return None
        index = store.applied.current

        async def go_on(begun: BegunQuery) -> ReaderAnswer | ColumnStream | JoinedAnswer:
            starting = self._paths.start(request, store.checkpoints, store.quads, index, begun)
            answer = await _held_answer(store, starting)
            return answer or _of_another(await (await self._again()).start_query(request))

        def heard(begun: BegunQuery) -> None:
            body = self._paths.whole(request, begun) if store.holds() else None
            if body is None:
                outcome.goes_on(partial(go_on, begun))
            else:
                outcome.answered(begun, body)

        begun = self._paths.begin(request, store.quads, index, heard)
        return None if begun is None else begun.end

    async def _started(
        self, request: QueryRequest, store: VisibleStore
    ) -> ReaderAnswer | ColumnStream | JoinedAnswer:
        """The columns hold everything, and may be ahead of the store: with what has just been annotated."""
        start = self._paths.start
        searches = searches_of(request.query)
        if searches:
            joined = await self._joined(request, store)
            if joined is not None:
                return joined
            dataset = request.dataset or own_dataset(request.query)
            found = QuerySearches(searches, dataset, store.literals, self._paths.indexes, request.caller)
            await _within(found.prepare(), request.timeout_s)
            request = replace(request, searching=found.tables)
        if store.is_in_columns:
            answer = await start(request, store.checkpoints, store.quads, store.applied.current)
            is_ahead = (
                isinstance(answer, ColumnStream)
                and not self._is_whole
                and answer.snapshot_index > store.applied.current
            )
            if not is_ahead:
                return answer
            answer.close()
        past_index = store.past_index
        return await start(request, store.checkpoints, store.quads, past_index, as_of=past_index)

    async def _joined(self, request: QueryRequest, store: VisibleStore) -> JoinedAnswer | None:
        """The answer to a search with patterns about its hits that is too long for the event loop."""
        join = None if request.explain or request.dataset else small_join(request.query)
        star = None if join is None or store.quads.unites_graphs else join.star
        if star is None:
            return None
        with self._paths.listed(request) as run:
            made = await run.unless_cancelled(store.literals.joined(star, request.format))
        return None if made is None else JoinedAnswer(*made, request.query_id)

    async def explain_columns(self, request: QueryRequest) -> dict[str, Any]:
        """See `serve.backend.GraphReads.explain_columns`."""
        store = self._store()
        past_index = store.past_index
        index = store.applied.current if store.is_in_columns else past_index
        explain = self._paths.explain_columns
        return await explain(request, store.quads, index, as_of=past_index, is_past=self._is_past)

    async def start_validation(self, request: ValidationRequest) -> ReaderAnswer:
        """See `serve.backend.GraphReads.start_validation`."""
        store = self._store()
        answer = await _held_answer(store, self._paths.validate(request, store.checkpoints))
        return answer or _of_another(await (await self._again()).start_validation(request))

    def exact_index(self) -> int | None:
        """See `serve.backend.GraphReads.exact_index`."""
        store = self._store()
        index = store.applied.exact
        return index if store.holds() else None

    def snapshot_index(self) -> int:
        """See `serve.backend.GraphReads.snapshot_index`."""
        return self._store().applied.current

    def schema_state(self) -> object:
        """See `serve.backend.GraphReads.schema_state`."""
        return self._store().schema.state

    def graph_exists(self, graph: NamedGraph) -> bool:
        """See `serve.backend.GraphReads.graph_exists`."""
        store = self._store()
        return _held(store, store.quads.graph_exists(graph))

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        """See `serve.backend.GraphReads.graph_quads`."""
        store = self._store()
        return _held(store, store.quads.graph_quads(graph))

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """See `serve.backend.GraphReads.quads_matching`."""
        store = self._store()
        return _held(store, store.quads.quads_matching(subject, predicate, object_, graph))

    def dataset_quads(self) -> Iterator[Quad]:
        """See `serve.backend.GraphReads.dataset_quads`."""
        store = self._store()
        return _held(store, store.quads.dataset_quads())


async def _held_answer(store: VisibleStore, starting: Awaitable[A]) -> A | None:
    try:
        answer = await starting
    except LogUnavailable:
        if store.is_gone:
            return None
        raise
    if store.holds():
        return answer
    answer.close()
    return None


async def _within(waiting: Awaitable[None], timeout_s: float) -> None:
    """Raises QueryTimeout."""
    try:
        async with asyncio.timeout(timeout_s):
            await waiting
    except TimeoutError:
        raise QueryTimeout(
            f"the index of the graph's literals was not ready within {round(timeout_s, 2):g} s"
        ) from None


def _held(store: VisibleStore, found: T) -> T:
    if not store.holds():
        raise Overloaded("what may be seen of the graph has just changed: ask again")
    return found


def _of_another(answer: A) -> A:
    """An answer of another store than the one whose key it would be kept by."""
    answer.is_exact = False
    return answer


class Queries:
    """See `serve.backend.Queries`, `Functions` and `RunningQueries`. On one event loop; check_query on any
    thread.
    """

    def __init__(
        self, current: CurrentStore, paths: QueryPaths, readers: QueryRunner, running: RunningQueries
    ) -> None:
        self._current, self._paths, self._readers, self._running = current, paths, readers, running
        self.whole = GraphReads(
            lambda: current.opened().whole, paths, self._whole_again, view_key=None, is_whole=True
        )

    async def _whole_again(self) -> GraphReads:
        return self.whole

    async def reads(
        self, visibility: Visibility, as_of: Moment | None = None, timeout_s: float = 0.0
    ) -> GraphReads:
        """See `serve.backend.Queries.reads`."""
        if as_of is not None:
            return await self._past(visibility, as_of, timeout_s)
        return self.whole if visibility.is_whole else await self._visible(visibility)

    async def _past(self, visibility: Visibility, moment: Moment, timeout_s: float) -> GraphReads:
        past = await self._current.opened().past.visible_store(moment, visibility, timeout_s)
        again = partial(self._past, visibility, moment, timeout_s)
        is_whole = visibility.is_whole
        return GraphReads(
            lambda: past, self._paths, again, view_key=past.key, is_whole=is_whole, is_past=True
        )

    async def _visible(self, visibility: Visibility) -> GraphReads:
        visible = await self._current.opened().views.visible_store(visibility)
        again = partial(self._visible, visibility)
        return GraphReads(lambda: visible, self._paths, again, view_key=visible.key, is_whole=False)

    def whole_reads(self) -> GraphReads:
        """See `serve.backend.Queries.whole_reads`."""
        return self.whole

    def check_query(self, query: Query) -> None:
        """See `serve.backend.Queries.check_query`."""
        self._paths.check(query)

    async def call_function(self, call: FunctionCall) -> bytes:
        """See `serve.backend.Functions.call_function`."""
        return await self._readers.call(call)

    def running_queries(self) -> list[RunningQuery]:
        """See `serve.backend.RunningQueries.running_queries`."""
        return self._running.shown()

    def cancel_query(self, query_id: str) -> bool:
        """See `serve.backend.RunningQueries.cancel_query`."""
        return self._running.cancel(query_id)


class Progress:
    """See `serve.backend.Progress`. On one event loop; snapshot_index on any thread."""

    def __init__(
        self,
        current: CurrentStore,
        reach: Callable[[Consistency, float], Awaitable[None]] | None = None,
    ) -> None:
        """reach: see `serve.backend.Progress.reach`. None: the node stands alone, and what it has applied is
        as new as can be.
        """
        self._current, self._reach = current, reach

    def snapshot_index(self) -> int:
        """See `serve.backend.Progress.snapshot_index`."""
        return self._current.opened().writer.applied_index

    async def wait_for_index(self, index: int, timeout_s: float) -> None:
        """See `serve.backend.Progress.wait_for_index`."""
        writer = self._current.opened().writer
        if not await writer.reach(index, timeout_s):
            after_s = f"{round(timeout_s, 2):g}"
            raise IndexNotReached(
                f"the node is at index {writer.applied_index}, not yet at {index}, after {after_s} s"
            )

    async def reach(self, consistency: Consistency, timeout_s: float) -> None:
        """See `serve.backend.Progress.reach`."""
        if self._reach is not None:
            await self._reach(consistency, timeout_s)
