"""`GraphReads`: the graph as one visibility shows it, read from a store that shows nothing else."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from pyoxigraph import NamedNode, Quad

from actors.columns.column_runner import ColumnStream
from actors.node.query_paths import QueryPaths
from actors.readers.query_runner import ReaderAnswer
from actors.views.views import SeenStore
from graphdb.errors import LogUnavailable, Overloaded
from graphdb.model import GraphName, NamedGraph
from graphdb.node import Evaluated, QueryRequest, ValidationRequest
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import Query
from graphdb.store.small_joins import ENTRIES_AT_ONCE, SmallJoin
from graphdb.store.view import Subject, Term

__all__ = ["GraphReads"]

T = TypeVar("T")
A = TypeVar("A", ReaderAnswer, ReaderAnswer | ColumnStream)


class GraphReads:
    """See `serve.backend.GraphReads`. On the event loop of the node, but for what may come on any thread."""

    def __init__(
        self,
        store: Callable[[], SeenStore],
        paths: QueryPaths,
        again: Callable[[], Awaitable["GraphReads"]],
        *,
        view_key: str | None,
        is_whole: bool,
    ) -> None:
        """store raises LogUnavailable where there is none. again gives what the same visibility shows now; it
        is for a store that no longer holds. is_whole: the visibility shows everything, whatever is annotated.
        """
        self.view_key = view_key
        self._store, self._paths, self._again, self._is_whole = store, paths, again, is_whole

    def query(self, query: Query, dataset: Dataset) -> Evaluated:
        """See `serve.backend.GraphReads.query`."""
        self._paths.check(query)
        store = self._store()
        index = store.applied.current  # before the query begins, so that the answer is at least so new
        return Evaluated(_held(store, store.quads.query(query, dataset)), index)

    def is_small_join(self, join: SmallJoin) -> bool:
        """See `serve.backend.GraphReads.is_small_join`."""
        return join.fits(self._store().quads, ENTRIES_AT_ONCE)

    async def start_query(self, request: QueryRequest) -> ReaderAnswer | ColumnStream:
        """See `serve.backend.GraphReads.start_query`."""
        self._paths.check(request.query)
        store = self._store()
        answer = await _held_answer(store, self._started(request, store))
        return answer or _of_another(await (await self._again()).start_query(request))

    async def _started(self, request: QueryRequest, store: SeenStore) -> ReaderAnswer | ColumnStream:
        """The columns hold everything, and may be ahead of the store: with what has just been annotated."""
        start = self._paths.start
        if store.view is None:
            answer = await start(request, store.checkpoints, store.quads, store.applied.current)
            is_ahead = (
                isinstance(answer, ColumnStream)
                and not self._is_whole
                and answer.snapshot_index > store.applied.current
            )
            if not is_ahead:
                return answer
            answer.close()
        return await start(request, store.checkpoints, store.quads, None)

    async def explain_columns(self, request: QueryRequest) -> dict[str, Any]:
        """See `serve.backend.GraphReads.explain_columns`."""
        store = self._store()
        if store.view is not None:
            return {"path": "reader", "reason": "the columns hold what is hidden here", "plan": None}
        return await self._paths.explain_columns(request, store.applied.current)

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


async def _held_answer(store: SeenStore, starting: Awaitable[A]) -> A | None:
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


def _held(store: SeenStore, found: T) -> T:
    if not store.holds():
        raise Overloaded("what may be seen of the graph has just changed: ask again")
    return found


def _of_another(answer: A) -> A:
    """An answer of another store than the one whose key it would be kept by."""
    answer.is_exact = False
    return answer
