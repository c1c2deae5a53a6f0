"""Who listens to a live query: one subscription, and all of them to the same query."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from graphdb.errors import GraphDBError
from graphdb.live.matcher import LiveQuery
from graphdb.live.notifications import Notification

__all__ = ["Group", "LiveSink", "Subscription"]


class LiveSink(Protocol):
    """Where notifications go. It is called on the event loop, and never waits."""

    def opened(self, subscription: str, index: int) -> None:
        """The subscription begins: what changes behind index is told, and nothing was told before."""

    def notify(self, subscriptions: Sequence[str], notification: Notification) -> None:
        """All of these are told the same."""

    def ended(self, subscriptions: Sequence[str], error: GraphDBError) -> None:
        """The node cannot go on with these; whoever wants may subscribe again behind what was told last."""


@dataclass(eq=False, slots=True)
class Subscription:
    """One of a sink's."""

    id: str
    query: LiveQuery
    sink: LiveSink
    from_index: int = 0  # only what is behind it is told
    is_open: bool = True


@dataclass(eq=False, slots=True)
class Group:
    """All who have asked for the same: it is matched once."""

    members: dict[str, Subscription] = field(default_factory=dict)
    by_sink: dict[LiveSink, list[str]] | None = None  # made anew after a change of members
    later_index: int = 0  # up to there not all members are told everything

    def add(self, subscription: Subscription, from_index: int) -> None:
        """Tell it what is behind from_index."""
        subscription.from_index = from_index
        self.later_index = max(self.later_index, from_index)
        self.members[subscription.id] = subscription
        self.by_sink = None

    def remove(self, subscription_id: str) -> None:
        """Tell it nothing more."""
        del self.members[subscription_id]
        self.by_sink = None

    def tell(self, notification: Notification) -> int:
        """How many were told."""
        if notification.index <= self.later_index:
            count = 0
            for one in self.members.values():
                if notification.index > one.from_index:
                    one.sink.notify((one.id,), notification)
                    count += 1
            return count
        if self.by_sink is None:
            self.by_sink = {}
            for one in self.members.values():
                self.by_sink.setdefault(one.sink, []).append(one.id)
        for sink, ids in self.by_sink.items():
            sink.notify(ids, notification)
        return len(self.members)
