"""How often search asks for more of the log: seldom, while none of it is for search."""

import asyncio

import pytest

from actors.search import log_reading
from actors.search.log_reading import ChangeReader, OwnEntries, RecentEntries
from graphdb.model import EntryKind, LogEntry

pytestmark = pytest.mark.anyio


class Log:
    """Entries of these kinds."""

    def __init__(self, *kinds: EntryKind) -> None:
        self._kinds = kinds

    async def read(self, from_index: int, max_bytes: int = 0) -> list[LogEntry]:
        entries = [LogEntry(index, 1, kind, bytes(16), 0, b"") for index, kind in enumerate(self._kinds, 1)]
        return entries[from_index - 1 :]

    async def watch_index(self, known_index: int, timeout_s: float = 0) -> int:
        return 9


async def asks_at_once(own: OwnEntries) -> bool:
    asking = asyncio.create_task(own.watch_index(2, 10))
    for _ in range(5):
        await asyncio.sleep(0)
    at_once = asking.done()
    asking.cancel()
    return at_once


@pytest.mark.parametrize(
    ("kinds", "all_matter", "at_once"),
    [
        ([EntryKind.CHANGES, EntryKind.CHANGES], False, False),
        ([EntryKind.CHANGES, EntryKind.SEARCH], False, True),
        ([EntryKind.CHANGES, EntryKind.CHANGES], True, True),
        ([], False, True),
    ],
    ids=["quads", "quads and documents", "quads that an index follows", "nothing"],
)
async def test_other_entries_are_let_gather(
    kinds: list[EntryKind], all_matter: bool, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reading, "_PASSED_OVER_S", 1000.0)
    own = OwnEntries(Log(*kinds), lambda: all_matter)
    assert await asks_at_once(own)
    await own.read(0)
    assert await asks_at_once(own) == at_once


async def test_who_reads_changes_is_counted() -> None:
    recent = RecentEntries(0)
    readers = [ChangeReader(None, recent, 0) for _ in range(2)]  # type: ignore[arg-type]
    assert recent.readers == 2
    for reader in readers:
        reader.close()
    assert recent.readers == 0
