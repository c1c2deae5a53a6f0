"""`Queries` and `Progress`: what a node can be asked of its graph, and how far that has got."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from actors.node.graph_reads import GraphReads
from actors.node.open_store import CurrentStore
from actors.node.query_paths import QueryPaths
from actors.readers.query_runner import QueryRunner
from actors.readers.running_queries import RunningQueries
from graphdb.access.visibility import Visibility
from graphdb.errors import IndexNotReached
from graphdb.node import Consistency, FunctionCall, RunningQuery
from graphdb.sparql.parser import Query

__all__ = ["Progress", "Queries"]


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

    async def reads(self, visibility: Visibility) -> GraphReads:
        """See `serve.backend.Queries.reads`."""
        return self.whole if visibility.is_whole else await self._seen(visibility)

    async def _seen(self, visibility: Visibility) -> GraphReads:
        seen = await self._current.opened().views.seen(visibility)
        again = partial(self._seen, visibility)
        return GraphReads(lambda: seen, self._paths, again, view_key=seen.key, is_whole=False)

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
        applied = self._current.opened().writer.applied
        try:
            async with asyncio.timeout(timeout_s):
                await applied.wait_for(index)
        except TimeoutError:
            raise IndexNotReached(
                f"the node is at index {applied.current}, not yet at {index}, after {round(timeout_s, 2):g} s"
            ) from None

    async def reach(self, consistency: Consistency, timeout_s: float) -> None:
        """See `serve.backend.Progress.reach`."""
        if self._reach is not None:
            await self._reach(consistency, timeout_s)
