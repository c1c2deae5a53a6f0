"""`SeenReads`: the graph as a sight sees it, read from a store that shows nothing else."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pyoxigraph import NamedNode, Quad

from actors.columns.column_runner import ColumnStream
from actors.readers.checkpoints import Checkpoints
from actors.readers.query_runner import QueryRunner, ReaderAnswer
from actors.shard.applied_index import AppliedIndex
from actors.views.view import View
from graphdb.errors import LogUnavailable, Overloaded
from graphdb.model import GraphName, NamedGraph
from graphdb.node import Evaluated, QueryRequest, ValidationRequest
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import Query
from graphdb.store.quad_store import QuadStore
from graphdb.store.small_joins import ENTRIES_AT_ONCE, LittleJoin
from graphdb.store.view import Subject, Term

__all__ = ["SeenReads", "SeenStore"]

T = TypeVar("T")
A = TypeVar("A", ReaderAnswer, ReaderAnswer | ColumnStream)


@dataclass(frozen=True, slots=True)
class SeenStore:
    """What is read, and whether it shows still what it showed the sight it was given out for.

    A store is read first and asked then: while it still holds, nothing else was to be seen at the reading.
    """

    key: str | None
    quads: QuadStore
    applied: AppliedIndex
    checkpoints: Checkpoints
    holds: Callable[[], bool]
    view: View | None  # None: it is the whole store

    @property
    def is_gone(self) -> bool:
        """Whether nothing more can be begun on it."""
        return self.view is not None and self.view.is_lost


class SeenReads:
    """See `serve.backend.GraphReads`. On the event loop of the shard, but for what may come on any thread."""

    def __init__(
        self,
        store: SeenStore,
        queries: QueryRunner,
        check_query: Callable[[Query], None],
        again: Callable[[], Awaitable["SeenReads"]],
    ) -> None:
        """again gives what the same sight sees now; it is for a store that no longer holds."""
        self._store, self._queries = store, queries
        self._check_query, self._again = check_query, again

    @property
    def view_key(self) -> str | None:
        """See `GraphReads.view_key`."""
        return self._store.key

    def query(self, query: Query, dataset: Dataset) -> Evaluated:
        """See `GraphReads.query`."""
        self._check_query(query)
        index = self._store.applied.current  # before the query begins, so that the answer is at least so new
        return Evaluated(self._held(self._store.quads.query(query, dataset)), index)

    def joins_little(self, join: LittleJoin) -> bool:
        """See `GraphReads.joins_little`."""
        return join.fits(self._store.quads, ENTRIES_AT_ONCE)

    async def start_query(self, request: QueryRequest) -> ReaderAnswer | ColumnStream:
        """See `GraphReads.start_query`."""
        self._check_query(request.query)
        answer = await self._held_answer(self._started(request))
        return answer or _of_another(await (await self._again()).start_query(request))

    async def _started(self, request: QueryRequest) -> ReaderAnswer | ColumnStream:
        """The columns hold everything, and may be ahead of the store: with what has just been annotated."""
        store, start = self._store, self._queries.start
        if store.view is None:
            answer = await start(request, store.checkpoints, store.quads, store.applied.current)
            if not isinstance(answer, ColumnStream) or answer.snapshot_index <= store.applied.current:
                return answer
            answer.close()
        return await start(request, store.checkpoints, store.quads, None)

    async def explain_columns(self, request: QueryRequest) -> dict[str, Any]:
        """See `GraphReads.explain_columns`."""
        if self._store.view is not None:
            return {"path": "reader", "reason": "the columns hold what is hidden here", "plan": None}
        return await self._queries.explain_columns(request, self._store.applied.current)

    async def start_validation(self, request: ValidationRequest) -> ReaderAnswer:
        """See `GraphReads.start_validation`."""
        answer = await self._held_answer(self._queries.validate(request, self._store.checkpoints))
        return answer or _of_another(await (await self._again()).start_validation(request))

    async def _held_answer(self, starting: Awaitable[A]) -> A | None:
        try:
            answer = await starting
        except LogUnavailable:
            if self._store.is_gone:
                return None
            raise
        if self._store.holds():
            return answer
        answer.close()
        return None

    def exact_index(self) -> int | None:
        """See `GraphReads.exact_index`."""
        index = self._store.applied.exact
        return index if self._store.holds() else None

    def snapshot_index(self) -> int:
        """See `GraphReads.snapshot_index`."""
        return self._store.applied.current

    def schema_state(self) -> object:
        """See `GraphReads.schema_state`."""
        return self._store.quads.schema_watch.state

    def graph_exists(self, graph: NamedGraph) -> bool:
        """See `GraphReads.graph_exists`."""
        return self._held(self._store.quads.graph_exists(graph))

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        """See `GraphReads.graph_quads`."""
        return self._held(self._store.quads.graph_quads(graph))

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """See `GraphReads.quads_matching`."""
        return self._held(self._store.quads.quads_matching(subject, predicate, object_, graph))

    def dataset_quads(self) -> Iterator[Quad]:
        """See `GraphReads.dataset_quads`."""
        return self._held(self._store.quads.dataset_quads())

    def _held(self, found: T) -> T:
        if not self._store.holds():
            raise Overloaded("what may be seen of the graph has just changed: ask again")
        return found


def _of_another(answer: A) -> A:
    """An answer of another store than the one whose key it would be kept by."""
    answer.is_exact = False
    return answer
