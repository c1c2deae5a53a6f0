"""`Changes`: what changes in a node's graph, for those who follow it or subscribe to live queries."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from actors.live.change_log import ChangeLog, ChangeStream
from actors.live.hub_making import MakeHub
from actors.live.listeners import LiveSink
from actors.live.subscription_hub import SubscriptionHub
from actors.live.visible_live import Followable, VisibleGraph, VisibleLive
from actors.node.open_store import CurrentStore
from actors.node.queries import Progress
from graphdb.access.visibility import Visibility
from graphdb.errors import ChangesForgotten
from graphdb.live.matcher import LiveQuery
from graphdb.node import EmbeddedStore, LiveReport

__all__ = ["Changes", "WholeGraph"]


@dataclass(frozen=True, slots=True)
class WholeGraph:
    """See `serve.backend.GraphLive`; for those who see everything."""

    changes: ChangeLog
    hub: SubscriptionHub
    seen: VisibleLive

    async def follow_changes(self, since: int | None, timeout_s: float) -> ChangeStream:
        """See `serve.backend.GraphLive.follow_changes`."""
        return await self.changes.open(since, timeout_s)

    async def subscribe(self, query: LiveQuery, since: int | None, sink: LiveSink) -> str:
        """See `serve.backend.GraphLive.subscribe`."""
        self.seen.check_room()
        return await self.hub.subscribe(query, since, sink)


class Changes:
    """See `serve.backend.Changes`. For one event loop."""

    def __init__(
        self,
        current: CurrentStore,
        progress: Progress,
        changes: ChangeLog,
        make_hub: MakeHub,
        role: Callable[[], str],
        *,
        subscriptions_max: int,
    ) -> None:
        """changes are those of the node's log; role is what the node has in its cluster now."""
        self._current, self._changes, self._role = current, changes, role
        self._hub = make_hub(
            changes.open,
            lambda: current.opened().quads,
            lambda make: current.opened().writer.in_turn(make),
        )
        self._visible_live = VisibleLive(
            self._followable,
            progress.wait_for_index,
            changes.open,
            self._hub,
            lambda follow, view: make_hub(follow, lambda: view.quads, view.in_turn),
            subscriptions_max,
        )
        self.whole = WholeGraph(changes, self._hub, self._visible_live)

    def _followable(self) -> Followable:
        store = self._current.opened()
        return Followable(store.views, store.annotations, store.writer.applied_index)

    def live(self, visibility: Visibility) -> WholeGraph | VisibleGraph:
        """See `serve.backend.Changes.live`."""
        return self.whole if visibility.is_whole else self._visible_live.of(visibility)

    async def unsubscribe(self, subscription: str) -> bool:
        """See `serve.backend.Changes.unsubscribe`."""
        return await self._hub.unsubscribe(subscription) or await self._visible_live.unsubscribe(subscription)

    async def forget(self) -> None:
        """Keep nothing of changes up to now: live queries end, and whoever has one may ask it anew."""
        index = self._current.applied_index or 0
        self._changes.forget()
        error = ChangesForgotten(index, index + 1)
        await self._hub.end_all(error)
        await self._visible_live.end_all(error)

    async def end_streams(self) -> None:
        """End what goes on for as long as the node does, live queries and streams of changes."""
        await self._hub.close()
        await self._visible_live.close()
        await self._changes.close()

    def embedded_store(self) -> EmbeddedStore:
        """See `serve.backend.Changes.embedded_store`."""
        status = self._hub.status(self._role(), self._current.applied_index)
        listeners = status.active_listener_count + self._visible_live.subscription_count
        return replace(status, active_listener_count=listeners)

    def live_report(self) -> LiveReport:
        """See `serve.backend.Changes.live_report`."""
        return self._visible_live.report(self._hub.report(self._current.applied_index))
