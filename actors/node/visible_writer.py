"""`VisibleWriter`: a `ShardWriter` as one request uses it, on what its principal may see."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pyoxigraph import BlankNode

from actors.log.view_sources import ViewLost
from actors.shard.shard_writer import ShardWriter
from actors.shard.write_queue import Plan, Seeing
from actors.views.views import Views, VisibleStore
from graphdb.access.visibility import Visibility
from graphdb.access.writer_state import Planned, planned_by
from graphdb.errors import Overloaded
from graphdb.model import UNKNOWN_AUTHOR, Author, Confirmation
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore

__all__ = ["VisibleWriter", "VisibleWrites"]

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class VisibleWriter:
    """Its plans get the state as seeing shows it. For the others see `ShardWriter.write`."""

    writer: ShardWriter
    seeing: Seeing
    request_id: bytes | None
    since: int | None
    author: Author = UNKNOWN_AUTHOR

    @property
    def applied_index(self) -> int:
        """The log index of the last entry that readers see. Any thread."""
        return self.writer.applied_index

    async def write(self, plan: Plan, *, quick: bool = False) -> Confirmation:
        """Have it planned, logged and applied."""
        return await self.writer.write(
            plan,
            quick=quick,
            request_id=self.request_id,
            since=self.since,
            seeing=self.seeing,
            author=self.author,
        )


class _ViewNeeded(Exception):
    """A plan has to query what its writer sees, and no view of that is at hand."""


class VisibleWrites:
    """One request for a write, by somebody with a visibility. On the event loop.

    A view is asked for outside of the writer's turn, for making one waits for a turn, and follows the graph
    exactly to the state that is planned on within it.
    """

    def __init__(
        self,
        writer: ShardWriter,
        views: Views,
        visibility: Visibility,
        request_id: bytes | None,
        since: int | None,
        author: Author = UNKNOWN_AUTHOR,
    ) -> None:
        self._writer, self._views, self._visibility = writer, views, visibility
        self._request_id, self._since, self._author = request_id, since, author
        self._loop = asyncio.get_running_loop()
        self._store: VisibleStore | None = None

    async def plan(self, plan: Plan) -> Confirmation:
        """Have what one plan makes out written."""
        return await self.perform(lambda writer: writer.write(plan))

    async def perform(
        self, write: Callable[[VisibleWriter], Awaitable[Confirmation]], *, needs_view: bool = False
    ) -> Confirmation:
        """Call write, again where it turned out to need a view, or to have lost it: it has stored nothing.

        needs_view: it will surely need one, if its writer does not see everything.
        """
        writer = VisibleWriter(self._writer, self._see, self._request_id, self._since, self._author)
        if self._visibility.is_whole:
            return await write(writer)
        if needs_view:
            self._store = await self._views.visible_store(self._visibility)
        for _ in range(_ATTEMPTS):
            try:
                return await write(writer)
            except (_ViewNeeded, ViewLost):
                self._store = await self._views.visible_store(self._visibility)
        raise Overloaded("what may be seen of the graph is changing: write again")

    def _see(self, state: Overlay) -> Planned:
        return planned_by(self._visibility, state, _fresh_blank_node, self._visible_quads)

    def _visible_quads(self, _store: QuadStore) -> QuadStore:
        """In the writer's turn, on its thread."""
        store = self._store
        if store is None or store.view is None or not store.holds():
            raise _ViewNeeded
        following = store.view.follow(self._writer.applied_index)
        asyncio.run_coroutine_threadsafe(following, self._loop).result()
        if not store.holds():  # what came meanwhile
            raise _ViewNeeded
        return store.quads


def _fresh_blank_node() -> BlankNode:
    return BlankNode(os.urandom(16).hex())
