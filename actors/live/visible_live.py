"""`VisibleLive`: live queries and changes for principals who do not see the whole graph. `VisibleChanges`:
what changes in a view, as far back as somebody has followed it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from actors.live.change_log import ChangeStream, RecentChanges
from actors.live.listeners import LiveSink
from actors.live.subscription_hub import SubscriptionHub
from actors.log.view_sources import ViewLost
from actors.views.view import Listener, View
from actors.views.views import Views
from graphdb.access.annotations import AnnotationWatch
from graphdb.access.visibility import Visibility
from graphdb.errors import ChangesForgotten, GraphDBError, LogUnavailable, Overloaded
from graphdb.live.changes import LoggedChange
from graphdb.live.matcher import LiveQuery
from graphdb.live.notifications import Notification
from graphdb.model import LogEntry
from graphdb.node import LiveReport

__all__ = ["Followable", "GuardedSink", "GuardedStream", "VisibleChanges", "VisibleGraph", "VisibleLive"]

# What is told is applied, and what brings an annotation is noted before it is applied. So what was read or is
# to be told while the condition holds is of a time without any.


class GuardedStream:
    """A `ChangeStream` that ends with ChangesForgotten when the condition holds no more."""

    def __init__(self, stream: ChangeStream, holds: Callable[[], bool]) -> None:
        self._stream, self._holds = stream, holds
        self.through = stream.through

    async def read(self, wait_s: float) -> list[LoggedChange] | None:
        """See `ChangeStream.read`."""
        changes = await self._stream.read(wait_s)
        if changes is not None and not self._holds():
            raise ChangesForgotten(self.through, self._stream.through + 1)
        self.through = self._stream.through
        return changes

    def close(self) -> None:
        self._stream.close()


class GuardedSink:
    """A `LiveSink` whose subscriptions end with ChangesForgotten when the condition holds no more."""

    def __init__(
        self, sink: LiveSink, holds: Callable[[], bool], end: Callable[[Sequence[str]], None]
    ) -> None:
        """end: the subscriptions are to be told nothing more."""
        self._sink, self._holds, self._end = sink, holds, end
        self.is_over = False

    def opened(self, subscription: str, index: int) -> None:
        self._sink.opened(subscription, index)

    def notify(self, subscriptions: Sequence[str], notification: Notification) -> None:
        if self._holds():
            self._sink.notify(subscriptions, notification)
        elif not self.is_over:
            self.is_over = True
            self._sink.ended(subscriptions, ChangesForgotten(notification.index - 1, notification.index + 1))
            self._end(subscriptions)

    def ended(self, subscriptions: Sequence[str], error: GraphDBError) -> None:
        if not self.is_over:
            self._sink.ended(subscriptions, error)


class VisibleChanges:
    """On the event loop of the shard. The log does not tell what a view has changed, so what is not in memory
    any more is forgotten.
    """

    def __init__(self, view: View, wait_for_index: Callable[[int, float], Awaitable[None]]) -> None:
        """Made by `begin`."""
        self.view, self._wait_for_index = view, wait_for_index
        self._recent = RecentChanges(view.index)
        self._streams: set[ChangeStream] = set()
        self._stop: Callable[[], None] = lambda: None
        self.is_lost = False

    @classmethod
    async def begin(
        cls, view: View, wait_for_index: Callable[[int, float], Awaitable[None]]
    ) -> "VisibleChanges":
        """Follow a view from now on. Raises ViewLost."""
        changes = cls(view, wait_for_index)
        stop = await view.listen(Listener(changes._take, changes._lose))
        changes._stop = stop
        changes._recent.begin_at(view.index)
        return changes

    @property
    def is_followed(self) -> bool:
        """Whether anybody reads."""
        return bool(self._streams)

    async def open(self, since: int | None, timeout_s: float) -> ChangeStream:
        """See `ChangeLog.open`. Raises ViewLost as well."""
        if since is not None:
            await self._wait_for_index(since, timeout_s)
        await self.view.catch_up()
        if since is not None and since < self._recent.after_index:
            raise ChangesForgotten(since, self._recent.after_index + 1)
        place = self.view.index if since is None else since
        stream = ChangeStream(_Forgotten(self._recent), self._recent, place, self._streams.discard)
        self._streams.add(stream)
        return stream

    def close(self) -> None:
        """End all streams; the view need not stay."""
        self._stop()
        for stream in tuple(self._streams):
            stream.close()

    def _take(self, changes: Sequence[LoggedChange], through: int) -> None:
        self._recent.take(changes, through)

    def _lose(self) -> None:
        self.is_lost = True
        self.close()


class _Forgotten:
    """What a stream reads that is not in memory."""

    def __init__(self, recent: RecentChanges) -> None:
        self._recent = recent

    async def entries(self, after: int, through: int) -> list[LogEntry]:
        raise ChangesForgotten(after, self._recent.after_index + 1)

    def changes(self, entry: LogEntry) -> AsyncIterator[LoggedChange]:
        raise AssertionError("there are no entries")


_KEEP_S = 60.0  # that the changes of a view are remembered for nobody: a client that comes back resumes
_LOOK_S = 5.0
_ATTEMPTS = 3

Follow = Callable[[int | None, float], Awaitable[ChangeStream]]


@dataclass(frozen=True, slots=True)
class Followable:
    """The graph of a shard as it is now. What opens it raises LogUnavailable while there is none."""

    views: Views
    watch: AnnotationWatch
    applied_index: int


@dataclass(slots=True)
class _Followed:
    """One visibility that somebody follows, or has followed a while ago."""

    changes: VisibleChanges
    hub: SubscriptionHub
    unused_since: float | None = None  # on the loop's clock


@dataclass(slots=True)
class _Place:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    followed: _Followed | None = None


class VisibleLive:
    """Owned by a shard, on its event loop. Equal visibilities share one view, what it remembers, and one hub.

    A visibility that sees the graph as it is, since nothing is annotated, follows the graph itself; with the
    first annotation it has to begin anew. All others follow the view of exactly their visibility.
    """

    def __init__(
        self,
        opened: Callable[[], Followable],
        wait_for_index: Callable[[int, float], Awaitable[None]],
        follow_whole: Follow,
        whole: SubscriptionHub,
        make_hub: Callable[[Follow, View], SubscriptionHub],
        subscriptions_max: int,
    ) -> None:
        """whole: the hub of the graph itself; make_hub makes that of a view."""
        self._opened, self._wait_for_index = opened, wait_for_index
        self._follow_whole, self._whole, self._make_hub = follow_whole, whole, make_hub
        self._subscriptions_max = subscriptions_max
        self._places: dict[str, _Place] = {}
        self._clean: tuple[AnnotationWatch, int, int] | None = None  # watch, its count, known clean since
        self._sweeping: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[bool]] = set()
        self._told_before = 0  # by hubs that have gone
        self._closed = False

    def of(self, visibility: Visibility) -> "VisibleGraph":
        """For one who asks."""
        return VisibleGraph(visibility, self)

    @property
    def subscription_count(self) -> int:
        """Of all visibilities that have views of their own."""
        return sum(hub.subscription_count for hub in self._hubs())

    def check_room(self) -> None:
        """Of all visibilities together. Raises Overloaded where no further subscription is allowed."""
        open_now = self.subscription_count + self._whole.subscription_count
        if open_now >= self._subscriptions_max:
            raise Overloaded(f"{open_now} subscriptions are open already (live.max_subscriptions)")

    def report(self, whole: LiveReport) -> LiveReport:
        """That of the graph itself, with those of the views."""
        reports = [whole, *(hub.report(None) for hub in self._hubs())]
        return LiveReport(
            subscriptions=sum(one.subscriptions for one in reports),
            queries=sum(one.queries for one in reports),
            reevaluated_queries=sum(one.reevaluated_queries for one in reports),
            notifications=self._told_before + sum(one.notifications for one in reports),
            lag_entries=whole.lag_entries,
        )

    def _hubs(self) -> list[SubscriptionHub]:
        return [place.followed.hub for place in self._places.values() if place.followed is not None]

    async def follow(
        self, visibility: Visibility, since: int | None, timeout_s: float
    ) -> ChangeStream | GuardedStream:
        """See `GraphLive.follow_changes`."""
        holds = self._unannotated(visibility, since)
        if holds is not None:
            return GuardedStream(await self._follow_whole(since, timeout_s), holds)
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(ViewLost):
                return await (await self._followed(visibility)).changes.open(since, timeout_s)
        raise Overloaded("what may be seen of the graph is changing: ask again")

    async def subscribe(
        self, visibility: Visibility, query: LiveQuery, since: int | None, sink: LiveSink
    ) -> str:
        """See `GraphLive.subscribe`."""
        self.check_room()
        holds = self._unannotated(visibility, since)
        if holds is not None:
            guarded = GuardedSink(sink, holds, self._end)
            subscription = await self._whole.subscribe(query, since, guarded)
            if guarded.is_over:
                await self._whole.unsubscribe(subscription)
            return subscription
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(ViewLost):
                return await (await self._followed(visibility)).hub.subscribe(query, since, sink)
        raise Overloaded("what may be seen of the graph is changing: ask again")

    async def end_all(self, error: GraphDBError) -> None:
        """See `SubscriptionHub.end_all`, of the views' hubs."""
        for hub in self._hubs():
            await hub.end_all(error)

    async def unsubscribe(self, subscription: str) -> bool:
        """See `serve.backend.Changes.unsubscribe`."""
        for hub in self._hubs():
            if await hub.unsubscribe(subscription):
                return True
        return False

    async def close(self) -> None:
        """End what is open, and open nothing else."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeping
        await asyncio.gather(*self._ending, return_exceptions=True)
        for place in self._places.values():
            async with place.turn:
                if place.followed is not None:
                    await self._let_go(place.followed)
                    place.followed = None

    def _unannotated(self, visibility: Visibility, since: int | None) -> Callable[[], bool] | None:
        """Where a visibility shows the graph as it is: whether it does so still. None: it does not.

        Raises ChangesForgotten: behind since there may have been annotations.
        """
        now = self._opened()
        watch, count = now.watch, now.watch.count  # taken before the look: see `AnnotationWatch`
        if not now.views.sees_all(visibility):
            return None
        if self._clean is None or self._clean[:2] != (watch, count):
            self._clean = watch, count, now.applied_index
        if since is not None and since < self._clean[2]:
            raise ChangesForgotten(since, self._clean[2] + 1)

        def holds() -> bool:
            try:
                return self._opened().watch is watch and watch.count == count
            except LogUnavailable:
                return False

        return holds

    def _end(self, subscriptions: Sequence[str]) -> None:
        for one in subscriptions:
            task = asyncio.get_running_loop().create_task(self._whole.unsubscribe(one))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _followed(self, visibility: Visibility) -> _Followed:
        """Raises ViewLost, Overloaded, LogUnavailable."""
        key = visibility.to_json()
        place = self._places.setdefault(key, _Place())
        async with place.turn:
            if self._closed:
                raise LogUnavailable("the node is stopping")
            self._places[key] = place  # it may have been let go while this waited
            found = place.followed
            if found is not None and found.changes.is_lost:
                await self._let_go(found)
                found = place.followed = None
            if found is None:
                view = await self._opened().views.view_of_exactly(visibility)
                changes = await VisibleChanges.begin(view, self._wait_for_index)
                found = place.followed = _Followed(changes, self._make_hub(changes.open, view))
            found.unused_since = None
            if self._sweeping is None or self._sweeping.done():
                self._sweeping = asyncio.get_running_loop().create_task(self._sweep())
            return found

    async def _sweep(self) -> None:
        """Let go of what nobody has followed for a while, until there is nothing."""
        while self._places:
            await asyncio.sleep(_LOOK_S)
            now = asyncio.get_running_loop().time()
            for key, place in tuple(self._places.items()):
                async with place.turn:
                    found = place.followed
                    if found is not None and not found.changes.is_lost and not self._is_over(found, now):
                        continue
                    place.followed = None
                    del self._places[key]
                    if found is not None:
                        await self._let_go(found)

    async def _let_go(self, followed: _Followed) -> None:
        self._told_before += followed.hub.report(None).notifications
        await followed.hub.close()
        followed.changes.close()

    @staticmethod
    def _is_over(found: _Followed, now: float) -> bool:
        if found.changes.is_followed:
            found.unused_since = None
        elif found.unused_since is None:
            found.unused_since = now
        return found.unused_since is not None and now - found.unused_since >= _KEEP_S


@dataclass(frozen=True, slots=True)
class VisibleGraph:
    """See `serve.backend.GraphLive`."""

    visibility: Visibility
    live: VisibleLive

    async def follow_changes(self, since: int | None, timeout_s: float) -> ChangeStream | GuardedStream:
        """See `GraphLive.follow_changes`."""
        return await self.live.follow(self.visibility, since, timeout_s)

    async def subscribe(self, query: LiveQuery, since: int | None, sink: LiveSink) -> str:
        """See `GraphLive.subscribe`."""
        return await self.live.subscribe(self.visibility, query, since, sink)
