"""`Views`: the views of one store, one for all who see the same; made when asked for, given up unused."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyoxigraph import Literal

from actors.live.change_log import ChangeLog
from actors.readers.checkpoints import Checkpoints
from actors.shard.shard_writer import ShardWriter
from actors.views.building import build_view
from actors.views.entry_feed import EntryFeed
from actors.views.seen_reads import SeenStore
from actors.views.view import Main, View, ViewLost
from actors.views.view_directory import ViewDirectory, delete_after
from graphdb.access.sight import NO_SIGHT, Sight
from graphdb.access.visibility import ALLOWED_SID, has_annotations
from graphdb.errors import LogUnavailable, Overloaded
from graphdb.store.quad_store import QuadStore

__all__ = ["Views"]

_ATTEMPTS = 5


class Views:
    """Owned by an `OpenShard`, on its event loop."""

    def __init__(
        self,
        directory: Path,
        quads: QuadStore,
        writer: ShardWriter,
        checkpoints: Checkpoints,
        changes: ChangeLog,
        release: Callable[[str], Awaitable[None]],
        *,
        views_max: int,
        union_default_graph: bool,
    ) -> None:
        """quads is what the writer writes and the checkpoints are of. The directory, on their file system, is
        emptied: what it holds is of an earlier process.

        release is as for `Checkpoints`. Raises StorageFull.
        """
        self._main = Main(quads, writer, checkpoints, ViewDirectory(directory))
        self._changes, self._release = changes, release
        self._views_max, self._union_default_graph = views_max, union_default_graph
        self._views: dict[str, View] = {}  # the one that was asked for last is the last
        self._making: dict[str, asyncio.Task[View]] = {}
        self._one_made = asyncio.Lock()  # at a time
        self._closing: set[asyncio.Task[None]] = set()
        self._used: dict[frozenset[str], frozenset[str]] = {}  # SIDs, and which of them annotate,
        self._used_index: int | None = None  # in exactly this state
        self._is_closed = False

    def sees_all(self, sight: Sight) -> bool:
        """Whether a sight sees the present state as it is; a look into an index."""
        return sight.is_whole or (sight.has_all_graphs and not has_annotations(self._main.quads))

    async def view(self, sight: Sight) -> View | None:
        """The view of a sight, of what was applied at the call or later; None where it sees all as it is.

        Raises as `seen`.
        """
        return (await self.seen(sight)).view

    async def seen(self, sight: Sight) -> SeenStore:
        """What a sight sees, as of what was applied at the call or later.

        Raises UnavailableError: Overloaded where too many views are followed.
        """
        for _ in range(_ATTEMPTS):
            since, annotated = self._main.writer.applied_index, self._main.quads.annotation_watch.count
            if self.sees_all(sight):
                return self._whole(annotated)
            try:
                view = await self._kept_or_made(self._reduced(sight))
                await view.catch_up()
            except ViewLost:
                continue
            if view.serves(sight, since):
                holds = partial(view.serves, sight, since)
                return SeenStore(view.key, view.quads, view.applied, view.checkpoints, holds, view)
        raise Overloaded("what may be seen of the graph is changing: ask again")

    async def view_of_exactly(self, sight: Sight) -> View:
        """A view for who follows it: of all SIDs of the sight, whichever of them annotate now, so that the
        same is seen of it for as long as it lives. Raises as `seen`.
        """
        if not (sight.default_graph or sight.patterns):
            sight = NO_SIGHT
        for _ in range(_ATTEMPTS):
            with suppress(ViewLost):
                view = await self._kept_or_made(sight)
                await view.catch_up()
                return view
        raise Overloaded("what may be seen of the graph is changing: ask again")

    def _whole(self, annotated: int) -> SeenStore:
        quads = self._main.quads

        def holds() -> bool:
            return quads.annotation_watch.count == annotated

        return SeenStore(None, quads, self._main.writer.applied, self._main.checkpoints, holds, None)

    def _reduced(self, sight: Sight) -> Sight:
        """The same for all who see the same."""
        if not (sight.default_graph or sight.patterns):
            return NO_SIGHT
        index = self._main.writer.applied.exact
        if index is None or index != self._used_index:
            self._used, self._used_index = {}, index
        used = self._used.get(sight.sids)
        if used is None:
            used = self._used[sight.sids] = frozenset(filter(self._annotates, sight.sids))
        return replace(sight, sids=used)

    def _annotates(self, sid: str) -> bool:
        quads = self._main.quads.quads_matching(None, ALLOWED_SID, Literal(sid), None)
        return next(iter(quads), None) is not None

    async def _kept_or_made(self, sight: Sight) -> View:
        key = sight.to_json()
        view = self._views.pop(key, None)
        if view is not None and not view.is_lost:
            self._views[key] = view
            return view
        if view is not None:
            self._let_go(view)
        making = self._making.get(key)
        if making is None:
            if self._is_closed:
                raise LogUnavailable("the node is starting or stopping")
            making = self._making[key] = asyncio.get_running_loop().create_task(self._make(key, sight))
            making.add_done_callback(lambda _: self._making.pop(key, None))
        return await asyncio.shield(making)

    async def _make(self, key: str, sight: Sight) -> View:
        async with self._one_made:
            self._make_room()
            stream = await self._changes.open(None, 0)
            try:
                async with self._main.directory.copied(self._main.quads, self._main.writer) as (state, index):
                    path = self._main.directory.new_path()
                    quads, nested = await asyncio.to_thread(
                        build_view, sight, state, path, union_default_graph=self._union_default_graph
                    )
            except BaseException:
                stream.close()
                raise
            delete_after(quads, path)
            view = View(key, sight, self._main, quads, nested, EntryFeed(stream, index), index, self._release)
            self._views[key] = view
            return view

    def _make_room(self) -> None:
        while len(self._views) >= self._views_max:
            idle = next((key for key, view in self._views.items() if not view.is_listened_to), None)
            if idle is None:
                raise Overloaded(f"{len(self._views)} views of the graph are followed already (server.views)")
            self._let_go(self._views.pop(idle))

    def _let_go(self, view: View) -> None:
        closing = asyncio.get_running_loop().create_task(view.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Let go of all."""
        self._is_closed = True
        await asyncio.gather(*self._making.values(), return_exceptions=True)
        while self._views:
            self._let_go(self._views.popitem()[1])
        await asyncio.gather(*self._closing)
