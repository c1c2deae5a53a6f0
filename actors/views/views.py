"""`Views`: the views of one store, one for all who see the same; made when asked for, given up unused."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyoxigraph import Literal

from actors.log.applied_index import AppliedIndex
from actors.log.view_sources import ViewLost
from actors.readers.checkpoints import Checkpoints, CheckpointSource
from actors.shard.shard_writer import ShardWriter
from actors.shard.text_keeper import TextKeeper
from actors.views.building import build_view
from actors.views.entry_feed import ChangeStream, EntryFeed
from actors.views.view import Main, View
from actors.views.view_directory import ViewDirectory, delete_after
from graphdb.access.annotations import ALLOWED_SID, AnnotationWatch, has_annotations
from graphdb.access.visibility import NO_VISIBILITY, Visibility
from graphdb.config.service import Text
from graphdb.errors import EvaluationFailed, LogUnavailable, Overloaded
from graphdb.graphql.schema_triples import SchemaWatch
from graphdb.log.views import ViewStatus
from graphdb.store.quad_store import QuadStore
from graphdb.store.small_joins import LargePatterns

__all__ = ["Views", "VisibleStore"]

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class VisibleStore:
    """What is read, and whether it shows still what it showed the visibility it was given out for.

    A store is read first and asked then: while it still holds, nothing else was to be seen at the reading.
    """

    key: str | None
    quads: QuadStore
    schema: SchemaWatch  # of the quads
    applied: AppliedIndex
    checkpoints: CheckpointSource
    holds: Callable[[], bool]
    view: View | None  # None: it is the whole store
    text: TextKeeper | None  # None: it is apart
    large: LargePatterns = field(default_factory=LargePatterns)  # kept for as long as the store is open
    is_apart: bool = False  # it is in no index and in no columns
    why_apart: str = ""  # for who searches in it
    past_index: int | None = None  # of the whole state of the past that it is, which the columns may know,
    past_known_from: int | None = None  # once they are at this log index

    @property
    def literals(self) -> TextKeeper:
        """What searches in it ask. Raises EvaluationFailed where there can be none."""
        if self.text is None:
            raise EvaluationFailed(self.why_apart)
        return self.text

    @property
    def is_in_columns(self) -> bool:
        """Whether the columns hold what is in it, and nothing else."""
        return self.view is None and not self.is_apart

    @property
    def is_gone(self) -> bool:
        """Whether nothing more can be begun on it."""
        return self.view is not None and self.view.is_lost


class Views:
    """Owned by an open store, on its event loop."""

    def __init__(
        self,
        directory: Path,
        quads: QuadStore,
        watches: tuple[SchemaWatch, AnnotationWatch],
        writer: ShardWriter,
        checkpoints: Checkpoints,
        follow: Callable[[int | None, float], Awaitable[ChangeStream]],
        release: Callable[[str], Awaitable[None]],
        *,
        views_max: int,
        text: TextKeeper,
        text_settings: Text,
        union_default_graph: bool,
    ) -> None:
        """quads is what the watches listen to, the writer writes, and the checkpoints are of. The directory,
        on their file system, is emptied: what it holds is of an earlier process.

        follow opens the changes of the quads after a log index (None: from now on), within so many seconds;
        release is as for `Checkpoints`. Raises StorageFull.
        """
        self._main = Main(quads, writer, checkpoints, ViewDirectory(directory), text_settings)
        self._text = text
        self._schema, self._annotations = watches
        self._large = LargePatterns()
        self._follow, self._release = follow, release
        self._views_max, self._union_default_graph = views_max, union_default_graph
        self._views: dict[str, View] = {}  # the one that was asked for last is the last
        self._making: dict[str, asyncio.Task[View]] = {}
        self._one_made = asyncio.Lock()  # at a time
        self._closing: set[asyncio.Task[None]] = set()
        self._used: dict[frozenset[str], frozenset[str]] = {}  # SIDs, and which of them annotate,
        self._used_index: int | None = None  # in exactly this state
        self._is_closed = False

    def sees_all(self, visibility: Visibility) -> bool:
        """Whether a visibility shows the present state as it is; a look into an index."""
        return visibility.is_whole or (visibility.has_all_graphs and not has_annotations(self._main.quads))

    def view_statuses(self) -> list[ViewStatus]:
        """How each view follows the store."""
        statuses = (view.view_status() for view in self._views.values())
        return [status for status in statuses if status is not None]

    async def view(self, visibility: Visibility) -> View | None:
        """The view of a visibility, of what was applied at the call or later; None where it sees all as it
        is.

        Raises as `seen`.
        """
        return (await self.visible_store(visibility)).view

    async def visible_store(self, visibility: Visibility) -> VisibleStore:
        """What a visibility shows, as of what was applied at the call or later.

        Raises UnavailableError: Overloaded where too many views are followed.
        """
        for _ in range(_ATTEMPTS):
            since, annotated = self._main.writer.applied_index, self._annotations.count
            if self.sees_all(visibility):
                return self._whole(annotated)
            try:
                view = await self._kept_or_made(self._reduced(visibility))
                await view.catch_up()
            except ViewLost:
                continue
            if view.serves(visibility, since):
                holds = partial(view.serves, visibility, since)
                return VisibleStore(
                    view.key,
                    view.quads,
                    view.schema,
                    view.applied,
                    view.checkpoints,
                    holds,
                    view,
                    view.text,
                    view.large,
                )
        raise Overloaded("what may be seen of the graph is changing: ask again")

    async def view_of_exactly(self, visibility: Visibility) -> View:
        """A view for who follows it: of all SIDs of the visibility, whichever of them annotate now, so that
        the same is seen of it for as long as it lives. Raises as `seen`.
        """
        if not (visibility.default_graph or visibility.patterns):
            visibility = NO_VISIBILITY
        for _ in range(_ATTEMPTS):
            with suppress(ViewLost):
                view = await self._kept_or_made(visibility)
                await view.catch_up()
                return view
        raise Overloaded("what may be seen of the graph is changing: ask again")

    def _whole(self, annotated: int) -> VisibleStore:
        main, annotations = self._main, self._annotations

        def holds() -> bool:
            return annotations.count == annotated

        return VisibleStore(
            None,
            main.quads,
            self._schema,
            main.writer.applied,
            main.checkpoints,
            holds,
            None,
            self._text,
            self._large,
        )

    def _reduced(self, visibility: Visibility) -> Visibility:
        """The same for all who see the same."""
        if not (visibility.default_graph or visibility.patterns):
            return NO_VISIBILITY
        index = self._main.writer.applied.exact
        if index is None or index != self._used_index:
            self._used, self._used_index = {}, index
        used = self._used.get(visibility.sids)
        if used is None:
            used = self._used[visibility.sids] = frozenset(filter(self._annotates, visibility.sids))
        return replace(visibility, sids=used)

    def _annotates(self, sid: str) -> bool:
        quads = self._main.quads.quads_matching(None, ALLOWED_SID, Literal(sid), None)
        return next(iter(quads), None) is not None

    async def _kept_or_made(self, visibility: Visibility) -> View:
        key = visibility.to_json()
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
            making = self._making[key] = asyncio.get_running_loop().create_task(self._make(key, visibility))
            making.add_done_callback(lambda _: self._making.pop(key, None))
        return await asyncio.shield(making)

    async def _make(self, key: str, visibility: Visibility) -> View:
        async with self._one_made:
            self._make_room()
            stream = await self._follow(None, 0)
            try:
                async with self._main.directory.copied(self._main.quads, self._main.writer) as (state, index):
                    path = self._main.directory.new_path()
                    schema, union = SchemaWatch(), self._union_default_graph
                    quads, nested = await asyncio.to_thread(
                        build_view, visibility, state, path, (schema,), union_default_graph=union
                    )
            except BaseException:
                stream.close()
                raise
            delete_after(quads, path)
            feed = EntryFeed(stream, index, self._main.writer.applied)
            view = View(key, visibility, self._main, quads, schema, nested, feed, index, self._release)
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
