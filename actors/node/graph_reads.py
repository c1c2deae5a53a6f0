"""`GraphReads`: the graph as one visibility shows it, or a state of the past."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

from pyoxigraph import NamedNode, Quad

from actors.columns.client import ColumnStream
from actors.node.query_paths import BegunQuery, QueryPaths
from actors.node.searching import JoinedAnswer, QuerySearches
from actors.readers.query_runner import ReaderAnswer
from actors.views.views import VisibleStore
from graphdb.errors import LogUnavailable, Overloaded, QueryTimeout
from graphdb.model import GraphName, NamedGraph
from graphdb.node import Evaluated, QueryRequest, ValidationRequest
from graphdb.planning import gate
from graphdb.sparql.dataset import Dataset, own_dataset
from graphdb.sparql.parser import Query
from graphdb.sparql.translation import searches_of
from graphdb.store.join_walk import OverBudget
from graphdb.store.quad_store import Answer
from graphdb.store.small_joins import ENTRIES_AT_ONCE, SmallJoin, small_join
from graphdb.store.view import Subject, Term
from graphdb.store.word_searches import WordSearch

__all__ = ["GraphReads", "QueryOutcome", "united_key"]


class QueryOutcome(Protocol):
    """See `serve.backend.QueryOutcome`."""

    def answered(self, origin: "BegunQuery", body: bytes) -> None: ...

    def goes_on(
        self, start: "Callable[[], Awaitable[ReaderAnswer | ColumnStream | JoinedAnswer]]"
    ) -> None: ...


_WHOLE = Dataset()
_UNITED = "united "  # before the key of a view: answers differ

T = TypeVar("T")
A = TypeVar("A", ReaderAnswer, ReaderAnswer | ColumnStream | JoinedAnswer)


def united_key(view_key: str | None) -> str:
    """Of a view whose default graph is the union of all graphs."""
    return f"{_UNITED}{view_key or ''}"


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

        return GraphReads(
            store,
            self._paths,
            again,
            view_key=united_key(self.view_key),
            is_whole=self._is_whole,
            is_past=self._is_past,
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
        as_of = store.past_index
        index = store.applied.current if store.is_in_columns else store.past_known_from
        if index is None or not self._is_whole:
            return None

        async def go_on(begun: BegunQuery) -> ReaderAnswer | ColumnStream | JoinedAnswer:
            starting = self._paths.start(request, store.checkpoints, store.quads, index, begun, as_of=as_of)
            answer = await _held_answer(store, starting)
            return answer or _of_another(await (await self._again()).start_query(request))

        def heard(begun: BegunQuery) -> None:
            body = self._paths.whole(request, begun) if store.holds() else None
            if body is None:
                outcome.goes_on(partial(go_on, begun))
            else:
                outcome.answered(begun, body)

        unites_graphs = store.quads.unites_graphs
        begun = self._paths.begin(request, index, heard, unites_graphs=unites_graphs, as_of=as_of)
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
        known_from, past_index = store.past_known_from, store.past_index
        return await start(request, store.checkpoints, store.quads, known_from, as_of=past_index)

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
        index = store.applied.current if store.is_in_columns else store.past_known_from
        explain = self._paths.explain_columns
        return await explain(request, store.quads, index, as_of=store.past_index, is_past=self._is_past)

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
