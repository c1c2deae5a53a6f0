"""`SeenChanges`: what changes in a view, for all who follow it, as far back as somebody has followed it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from actors.live.change_log import ChangeStream
from actors.live.recent_changes import RecentChanges
from actors.views.view import Listener, View
from graphdb.errors import ChangesForgotten
from graphdb.live.changes import LoggedChange
from graphdb.model import LogEntry

__all__ = ["SeenChanges"]


class SeenChanges:
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
    ) -> "SeenChanges":
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
