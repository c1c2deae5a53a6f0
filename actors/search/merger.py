"""`Merger`: merges segments, and makes graphs of their vectors, while writes and searches go on."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable

import numpy as np

from actors.search.search_thread import SearchThread
from graphdb.errors import LogUnavailable
from graphdb.search.catalog.state import Index
from graphdb.search.leaf_reader import Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.index_shard import MergePlan
from graphdb.search.segments.merging import merge
from graphdb.search.vectors import GraphFiles, keep_graphs, missing_graphs, remove_stale

__all__ = ["Merger"]

logger = logging.getLogger(__name__)


class Merger:
    """For one event loop. A merge is planned and adopted where the catalogue changes, and made beside it.

    A merged segment is adopted with its graphs; those of other segments are made when there is nothing to
    merge, for a merge may end them.
    """

    def __init__(
        self,
        find: Callable[[str], Index | None],
        thread: SearchThread,
        graph_files: Callable[[Index], GraphFiles],
    ) -> None:
        """find tells an index by its name; graph_files are those of its directory."""
        self._find, self._thread, self._graph_files = find, thread, graph_files
        self._closing = threading.Event()
        self._one_at_a_time = asyncio.Lock()
        self._names: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None

    def look_at(self, names: Iterable[str]) -> None:
        """These indexes have new segments."""
        self._names.update(dict.fromkeys(names))
        if self._names and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def merge_down(self, index: Index, segments_max: int) -> None:
        """Merge until the index has not more segments than that."""
        while await self._merge(index, lambda: index.shard.plan_merge(segments_max)):
            pass

    async def close(self) -> None:
        """Leave what is not done; a merge that is being made is made in vain."""
        self._closing.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._names:
            name = next(iter(self._names))
            del self._names[name]
            index = self._find(name)
            try:
                if index is None:
                    continue
                if await self._merge(index, index.shard.plan_merge):
                    self._names[name] = None  # behind the others: there may be more to do
                else:
                    await self._thread.beside(self._keep_graphs, index)
            except Exception:
                logger.exception("merging segments of %s failed", name)

    async def _merge(self, index: Index, plan: Callable[[], MergePlan | None]) -> bool:
        """Do one merge; False where there is none to do."""
        async with self._one_at_a_time:
            if self._closing.is_set():
                raise LogUnavailable("the node is stopping")
            planned = await self._thread.write(plan)
            if planned is None:
                return False
            merged = await self._thread.beside(self._merged, index, planned)
            return await self._thread.write(index.shard.adopt_merge, planned, merged)

    def _merged(self, index: Index, plan: MergePlan) -> ArraySegment:
        merged = merge(plan.leaves, plan.name)
        leaf = Leaf(merged, np.ones(merged.size, np.bool_), 0)
        keep_graphs([leaf], index.mapping, self._graph_files(index), self._closing.is_set)
        return merged

    def _keep_graphs(self, index: Index) -> None:
        leaves = index.shard.leaves()
        if missing_graphs(leaves, index.mapping):
            files = self._graph_files(index)
            keep_graphs(leaves, index.mapping, files, self._closing.is_set)
            remove_stale(leaves, files)
