"""What is told of the graph itself to those who see all of it only as long as nothing is annotated."""

from collections.abc import Callable, Sequence

from actors.live.change_log import ChangeStream
from actors.live.listeners import LiveSink
from graphdb.errors import ChangesForgotten, GraphDBError
from graphdb.live.changes import LoggedChange
from graphdb.live.notifications import Notification

__all__ = ["GuardedSink", "GuardedStream"]

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
