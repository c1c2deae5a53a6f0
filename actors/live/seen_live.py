"""`SeenLive`: live queries and changes for those who do not see the whole graph."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from actors.live.change_log import ChangeStream
from actors.live.guarded import GuardedSink, GuardedStream
from actors.live.listeners import LiveSink
from actors.live.seen_changes import SeenChanges
from actors.live.subscription_hub import SubscriptionHub
from actors.log.view_runner import ViewLost
from actors.views.view import View
from actors.views.views import Views
from graphdb.access.annotations import AnnotationWatch
from graphdb.access.visibility import Visibility
from graphdb.errors import ChangesForgotten, LogUnavailable, Overloaded
from graphdb.live.matcher import LiveQuery
from graphdb.node import LiveReport

__all__ = ["Followable", "SeenGraph", "SeenLive"]

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

    changes: SeenChanges
    hub: SubscriptionHub
    unused_since: float | None = None  # on the loop's clock


@dataclass(slots=True)
class _Place:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    followed: _Followed | None = None


class SeenLive:
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

    def of(self, visibility: Visibility) -> "SeenGraph":
        """For one who asks."""
        return SeenGraph(visibility, self)

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
                changes = await SeenChanges.begin(view, self._wait_for_index)
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
class SeenGraph:
    """See `serve.backend.GraphLive`."""

    visibility: Visibility
    live: SeenLive

    async def follow_changes(self, since: int | None, timeout_s: float) -> ChangeStream | GuardedStream:
        """See `GraphLive.follow_changes`."""
        return await self.live.follow(self.visibility, since, timeout_s)

    async def subscribe(self, query: LiveQuery, since: int | None, sink: LiveSink) -> str:
        """See `GraphLive.subscribe`."""
        return await self.live.subscribe(self.visibility, query, since, sink)
