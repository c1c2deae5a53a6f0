"""`Queries` and `Progress`: what a node can be asked of its graph, and how far that has got."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from actors.node.graph_reads import GraphReads
from actors.node.open_store import CurrentStore, OpenStore
from actors.node.query_paths import QueryPaths
from actors.node.unmade_past import UnmadePast
from actors.readers.query_runner import QueryRunner
from actors.readers.running_queries import RunningQueries
from actors.views.views import VisibleStore
from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.errors import IndexNotReached
from graphdb.history.moments import Moment
from graphdb.node import Consistency, FunctionCall, RunningQuery
from graphdb.sparql.parser import Query

__all__ = ["Progress", "Queries"]

_SOON_S = 1.0  # so long a look-up waits for the store of a past state, before the columns are asked


class Queries:
    """See `serve.backend.Queries`, `Functions` and `RunningQueries`. On one event loop; check_query on any
    thread.
    """

    def __init__(
        self, current: CurrentStore, paths: QueryPaths, readers: QueryRunner, running: RunningQueries
    ) -> None:
        self._current, self._paths, self._readers, self._running = current, paths, readers, running
        self.whole = GraphReads(
            lambda: current.readable().whole, paths, self._whole_again, view_key=None, is_whole=True
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

    async def unmade(
        self, visibility: Visibility, as_of: Moment, timeout_s: float, *, is_look_up: bool
    ) -> UnmadePast | None:
        """See `serve.backend.Queries.unmade`."""
        if not (visibility.is_whole and self._paths.has_columns):
            return None
        store = self._current.opened()
        ends = asyncio.get_running_loop().time() + timeout_s
        index = await store.past.index_of(as_of, timeout_s)
        if store.past.is_made(index):
            return None
        if is_look_up:
            left_s = max(0.0, ends - asyncio.get_running_loop().time())
            if await store.past.is_made_within(index, min(_SOON_S, left_s)):
                return None
        return self._unmade(store, index)

    def _unmade(self, store: OpenStore, index: int) -> UnmadePast:
        made = partial(self._past, FULL_VISIBILITY, Moment(str(index), index))
        known_by, unites_graphs = store.past.known_by(index), store.quads.unites_graphs
        return UnmadePast(self._paths, index, known_by, made, unites_graphs=unites_graphs)

    def unmade_at_once(self, as_of: Moment) -> UnmadePast | None:
        """See `serve.backend.Queries.unmade_at_once`."""
        store, index = self._current.opened(), as_of.log_index
        if index is None or not (self._paths.has_columns and store.past.is_known(as_of)):
            return None
        return self._unmade(store, index)

    def made_at_once(self, as_of: Moment) -> GraphReads | None:
        """See `serve.backend.Queries.made_at_once`."""
        past = self._current.opened().past.made(as_of)
        return None if past is None else self._past_reads(FULL_VISIBILITY, as_of, 0.0, past)

    async def _past(self, visibility: Visibility, moment: Moment, timeout_s: float) -> GraphReads:
        past = await self._current.opened().past.visible_store(moment, visibility, timeout_s)
        return self._past_reads(visibility, moment, timeout_s, past)

    def _past_reads(
        self, visibility: Visibility, moment: Moment, timeout_s: float, past: VisibleStore
    ) -> GraphReads:
        again = partial(self._past, visibility, moment, timeout_s)
        is_whole = visibility.is_whole
        return GraphReads(
            lambda: past, self._paths, again, view_key=past.key, is_whole=is_whole, is_past=True
        )

    async def _visible(self, visibility: Visibility) -> GraphReads:
        visible = await self._current.readable().views.visible_store(visibility)
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
