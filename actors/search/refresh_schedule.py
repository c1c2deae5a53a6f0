"""`RefreshSchedule`: which index is to be refreshed when, and who waits for it."""

import asyncio
from collections.abc import Callable, Iterable

from graphdb.search.catalog.index_settings import refresh_interval_ms
from graphdb.search.catalog.state import Index

__all__ = ["RefreshSchedule"]

_WAITING_MAX = (
    1000  # writes that wait for a refresh of one index, before it is forced; Elasticsearch's number
)


def refresh_interval_s(index: Index) -> float | None:
    """How long what was written may stay unfindable; None where only a request refreshes."""
    interval_ms = refresh_interval_ms(index.settings)
    return interval_ms / 1000 if interval_ms >= 0 else None


class RefreshSchedule:
    """For one event loop. Times are of any clock that only goes forward, in seconds."""

    def __init__(self, find: Callable[[str], Index | None]) -> None:
        """find tells an index by its name."""
        self._find = find
        self._written_at: dict[str, float] = {}  # the first write since the last refresh
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    def note_written(self, names: Iterable[str], now: float) -> None:
        """These indexes have something to refresh."""
        for name in names:
            self._written_at.setdefault(name, now)

    async def wait_for(self, names: Iterable[str]) -> None:
        """Return once all of these indexes have been refreshed, or are gone."""
        for future in [self._join(name) for name in names]:
            await future

    def _join(self, name: str) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, []).append(future)
        return future

    def take_due(self, now: float) -> list[str]:
        """The indexes to refresh now; they count as refreshed from here on."""
        due = [name for name in self._written_at.keys() | self._waiting.keys() if self._is_due(name, now)]
        for name in due:
            self._written_at.pop(name, None)
        return due

    def take_waiting(self, names: Iterable[str]) -> "list[asyncio.Future[None]]":
        """Who waits for these indexes; tell them when the refresh is done."""
        return [future for name in names for future in self._waiting.pop(name, ())]

    def take_all_waiting(self) -> "list[asyncio.Future[None]]":
        """Everybody."""
        return self.take_waiting(list(self._waiting))

    def _is_due(self, name: str, now: float) -> bool:
        index = self._find(name)
        if index is None or name not in self._written_at or len(self._waiting.get(name, ())) >= _WAITING_MAX:
            return True
        interval_s = refresh_interval_s(index)
        return interval_s is not None and now - self._written_at[name] >= interval_s
