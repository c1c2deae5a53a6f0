"""`MemoryHistory`: the past of a `MemoryBackend`."""

from collections.abc import Callable, Iterator, Sequence

from graphdb.access.visibility import Visibility
from graphdb.errors import HistoryForgotten
from graphdb.history.asked import AskedChanges
from graphdb.history.moments import Moment, index_of
from graphdb.history.named_states import KeptState, NamedState
from graphdb.history.pages import (
    Cursor,
    Difference,
    HistoryPage,
    PageLimits,
    PageRequest,
    net_change,
    read_page,
)
from graphdb.history.past_log import PastChange, Scanned
from graphdb.live.changes import LoggedChange
from graphdb.model import Author, Interface

__all__ = ["MemoryHistory"]

AUTHOR = Author("basic:ann", Interface.SPARQL_UPDATE)


class MemoryHistory:
    """See `serve.backend.History`, and `graphdb.history.pages.Past`. Everybody sees everything."""

    def __init__(
        self,
        changes: Sequence[LoggedChange],
        last_index: Callable[[], int],
        first_index: Callable[[], int],
        named: Callable[[str], int | None],
    ) -> None:
        self._changes, self._last_index, self._first_index = changes, last_index, first_index
        self._named = named

    async def page(self, asked: PageRequest, visibility: Visibility) -> HistoryPage:
        first = self.first_index(0) if asked.since is None else self._index_of(asked.since) + 1
        last = self._last_index() if asked.until is None else self._index_of(asked.until)
        start = asked.cursor or Cursor(last)
        start = start if start.log_index <= last else Cursor(last)
        limits = PageLimits(asked.limit, 1_000, lambda: False)
        page = read_page(self, asked.changes, first, start, lambda change: change.change, limits)
        return HistoryPage(page.entries, page.cursor, self.first_index(0) - 1, self._last_index())

    async def difference(
        self, asked: AskedChanges, since: Moment, until: Moment | None, visibility: Visibility
    ) -> Difference:
        first = self._index_of(since)
        last = self._last_index() if until is None else self._index_of(until)
        low, high = sorted((first, last))
        change = net_change(self, asked, low + 1, high, 10_000, lambda: None)
        return Difference(change if first <= last else change.inverse, first, last)

    def _index_of(self, at: Moment) -> int:
        return index_of(at, self, self._last_index(), self._named)

    def index_at(self, time_ms: int, last_index: int) -> int | None:
        return max((one.index for one in self._changes if one.timestamp_ms <= time_ms), default=None)

    async def place_of(self, at: Moment | None) -> tuple[int, int]:
        index = self._last_index() if at is None else self._index_of(at)
        if index < (oldest := self.first_index(0) - 1):
            raise HistoryForgotten(str(index), oldest)
        return index, index + 1

    async def kept(self, states: Sequence[NamedState]) -> list[KeptState]:
        return [KeptState(state, state.log_index >= self.first_index(0) - 1, 0) for state in states]

    def first_index(self, last_index: int) -> int:
        return self._first_index()

    def scan(
        self,
        first_index: int,
        last_index: int,
        *,
        newest_first: bool = False,
        needle: bytes = b"",
        skipped_parts: int = 0,
    ) -> Iterator[Scanned]:
        assert newest_first
        if first_index < self.first_index(0):
            raise HistoryForgotten(str(first_index - 1), self.first_index(0) - 1)
        for index in range(last_index, first_index - 1, -1):
            parts = [one for one in self._changes if one.index == index][::-1]
            pieces = [
                PastChange(index, one.timestamp_ms, AUTHOR, one.change, number)
                for number, one in enumerate(parts)
                if index != last_index or number >= skipped_parts
            ]
            yield Scanned(index - 1, iter(pieces))
