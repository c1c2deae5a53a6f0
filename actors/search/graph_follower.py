"""`GraphFollower`: which indexes of this node follow the graph, and who sees to it."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from actors.search.index_follower import FollowerContext, IndexFollower
from graphdb.config.limits import GateLimits
from graphdb.errors import RequestError
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.state import Index
from graphdb.search.following.graph_settings import read_shape
from graphdb.timestamps import until_whole

__all__ = ["GraphFollower", "note_end"]

logger = logging.getLogger(__name__)

_LOOK_S = 0.1  # at least so long between two looks at the indexes
_REST_S = 1.0  # and so long where nothing is logged: this node may have become the one that writes


class GraphFollower:
    """For one event loop: run `run` while the catalogue is open."""

    def __init__(
        self, catalog: Catalog, leads: Callable[[], bool], context: FollowerContext, limits: GateLimits
    ) -> None:
        """leads: whether it is for this node to write; two that believe so do no harm."""
        self._catalog, self._leads, self._context, self._limits = catalog, leads, context, limits
        self._followers: dict[str, IndexFollower] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._refused: dict[str, tuple[object, str]] = {}  # by uuid: the settings, and why they are refused

    async def run(self) -> None:
        """For ever."""
        has_more = False
        try:
            while True:
                seen = self._context.recent.last_index
                wanted = self._wanted() if self._leads() else {}
                for uuid in [uuid for uuid in self._tasks if uuid not in wanted]:
                    await self._end(uuid)
                for uuid, index in wanted.items():
                    if uuid not in self._tasks or self._tasks[uuid].done():
                        self._start(index)
                if has_more:
                    await asyncio.sleep(_LOOK_S)
                has_more = False
                with suppress(TimeoutError):
                    async with asyncio.timeout(until_whole(_REST_S, time.monotonic())):
                        await self._context.recent.beyond(seen)
                        has_more = True
        finally:
            for uuid in list(self._tasks):
                await self._end(uuid)

    def position(self, index: Index) -> int | None:
        """The log index up to which an index has followed the graph, -1 before it begins; None where that is
        not for this node to do.
        """
        follower = self._followers.get(index.uuid)
        if follower is not None:
            return follower.position
        now = self._catalog.state.by_uuid.get(index.uuid)
        is_begun_soon = now is not None and now.follows_graph and self._leads() and not self._refusal_of(now)
        return -1 if is_begun_soon else None

    def status(self, index: Index) -> dict[str, Any] | None:
        """How an index follows the graph, None where it does not; on any node."""
        if "graph" not in index.settings:
            return None
        shown: dict[str, Any] = {"state": "elsewhere", "cursor": max(0, index.cursor)}
        if (reason := self._refusal_of(index)) is not None:
            shown |= {"state": "failing", "error": reason}
        follower = self._followers.get(index.uuid)
        if follower is not None:
            position = max(follower.position, 0)
            shown |= {
                "state": follower.state,
                "position": position,
                "entries_behind": max(0, self._context.recent.last_index - position),
                "failed_documents": follower.failures.count,
            }
            shown |= {"error": follower.error} if follower.error else {}
            shown |= {"last_failed_document": follower.failures.last} if follower.failures.last else {}
        return shown

    def _wanted(self) -> Mapping[str, Index]:
        return {uuid: index for uuid, index in self._catalog.state.by_uuid.items() if index.follows_graph}

    def _refusal_of(self, index: Index) -> str | None:
        settings, reason = self._refused.get(index.uuid, (None, ""))
        return reason if settings == index.settings["graph"] else None

    def _start(self, index: Index) -> None:
        uuid = index.uuid
        if self._refusal_of(index) is not None:
            return
        try:
            shape = read_shape(index.settings["graph"], self._limits)
        except RequestError as error:  # the limits are tighter than when it was made
            logger.warning("the index [%s] cannot follow the graph: %s", index.name, error)
            self._refused[uuid] = (index.settings["graph"], str(error))
            return
        follower = IndexFollower(lambda: self._catalog.state.by_uuid.get(uuid), shape, self._context)
        self._followers[uuid] = follower
        self._tasks[uuid] = asyncio.get_running_loop().create_task(follower.run())
        self._tasks[uuid].add_done_callback(note_end)

    async def _end(self, uuid: str) -> None:
        task = self._tasks.pop(uuid)
        self._followers.pop(uuid, None)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def note_end(task: asyncio.Task[None]) -> None:
    """Log the mistake of ours that has ended what should go on for ever."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("following the graph failed", exc_info=error)
