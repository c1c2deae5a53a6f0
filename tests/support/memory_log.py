"""`MemoryLog`: an update log in memory, for one event loop, that fails as a test tells it."""

import asyncio
from collections.abc import Callable, Sequence

from actors.log.protocol import LogStatus
from graphdb.errors import LogCompacted, OutcomeUnknown
from graphdb.log.views import ViewStatus
from graphdb.model import LogEntry

__all__ = ["MemoryLog", "answer_is_lost"]

Fault = Callable[["MemoryLog", Sequence[LogEntry]], None]


class MemoryLog:
    """A `LogAccess`. faults: one for each append to come, called in its place unless it returns."""

    def __init__(self, *, settles_at_once: bool = True) -> None:
        self.settles_at_once = settles_at_once
        self.entries: list[LogEntry] = []
        self.first_index = 1
        self.appends: list[int] = []  # how many entries each had
        self.faults: list[Fault] = []
        self.released: dict[str, int] = {}
        self.reported: dict[str, ViewStatus] = {}
        self.holding = asyncio.Event()  # appends wait for it
        self.holding.set()
        self._grown = asyncio.Event()

    def store(self, entries: Sequence[LogEntry]) -> int:
        """Have them in the log, whoever wrote them."""
        first = self.last_index + 1
        self.entries += [entry.at(index, entry.raft_term) for index, entry in enumerate(entries, first)]
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()
        return first

    def forget_before(self, index: int) -> None:
        self.entries = [entry for entry in self.entries if entry.log_index >= index]
        self.first_index = index

    def become(self, entries: Sequence[LogEntry]) -> None:
        """Have these entries, where they stand, and no others: a snapshot stands for those before."""
        self.entries, self.first_index = list(entries), entries[0].log_index
        self.store([])

    @property
    def last_index(self) -> int:
        return self.first_index + len(self.entries) - 1

    async def append(self, entries: Sequence[LogEntry], expected_index: int = 0) -> int:
        raise AssertionError("search entries have no expected index")

    async def append_unconditionally(self, entries: Sequence[LogEntry]) -> int:
        self.appends.append(len(entries))
        await self.holding.wait()
        if self.faults:
            self.faults.pop(0)(self, entries)
        return self.store(entries)

    async def read(self, from_index: int, max_bytes: int = 4 << 20) -> list[LogEntry]:
        if from_index < self.first_index:
            raise LogCompacted(f"the log begins at {self.first_index}")
        return self.entries[from_index - self.first_index :]

    async def status(self) -> LogStatus:
        return LogStatus(self.first_index, self.last_index)

    async def watch_index(self, known_index: int, timeout_s: float = 10.0) -> int:
        while self.last_index <= known_index:
            await self._grown.wait()
        return self.last_index

    async def confirm(self, index: int) -> bool:
        return True

    async def truncate_before(self, index: int, view: str) -> None:
        self.released[view] = index

    async def drop_before(self, index: int) -> int:
        return index

    async def report_view(self, status: ViewStatus) -> None:
        self.reported[status.name] = status

    async def reported_views(self) -> list[ViewStatus]:
        return list(self.reported.values())

    async def close(self) -> None:
        """Nothing is held."""


def answer_is_lost(stored: bool) -> Fault:
    """An append of which the caller does not hear whether it was stored."""

    def fault(log: MemoryLog, entries: Sequence[LogEntry]) -> None:
        if stored:
            log.store(entries)
        raise OutcomeUnknown("the answer was lost")

    return fault
