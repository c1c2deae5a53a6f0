"""`/history` in pages: what changed, newest first, as much as a page holds; and the net of many changes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from graphdb.errors import InvalidParameter, LimitExceeded
from graphdb.history.asked import AskedChanges
from graphdb.history.moments import Moment
from graphdb.history.past_log import PastChange, Scanned
from graphdb.model import Author, ChangeSet
from graphdb.store.net_change import NetChange

__all__ = [
    "Cursor",
    "Difference",
    "Entry",
    "HistoryPage",
    "Page",
    "PageLimits",
    "PageRequest",
    "Past",
    "Shown",
    "net_change",
    "read_cursor",
    "read_page",
]

Shown = Callable[[PastChange], ChangeSet]
"""What of a change a reader may see; it is called with one change after the other, the newest first."""


class Past(Protocol):
    """See `PastLog`."""

    def first_index(self, last_index: int) -> int: ...
    def scan(
        self,
        first_index: int,
        last_index: int,
        *,
        newest_first: bool = ...,
        needle: bytes = ...,
        skipped_parts: int = ...,
    ) -> Iterator[Scanned]: ...


class Cursor(NamedTuple):
    """Where a page begins: at an entry, behind some of its parts and some quads of the next part."""

    log_index: int
    part: int = 0
    offset: int = 0

    def __str__(self) -> str:
        return ".".join(map(str, self))


_CURSOR = re.compile(r"(\d{1,18})\.(\d{1,9})\.(\d{1,9})", re.ASCII)


def read_cursor(text: str) -> Cursor:
    """Raises InvalidParameter."""
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise InvalidParameter("cursor", f"{text[:100]!r} is not the cursor of an answer")
    return Cursor(*map(int, found.groups()))


@dataclass(slots=True)
class Entry:
    """What one entry of the log changed, as far as it is on a page: in pieces."""

    log_index: int
    timestamp_ms: int
    author: Author
    changes: list[ChangeSet]
    has_more: bool = False  # on the next page


@dataclass(frozen=True, slots=True)
class Page:
    """cursor: where the next page begins; None at the end of what is kept."""

    entries: list[Entry]
    cursor: Cursor | None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The changes behind since, up to until; None: from the oldest one that is kept, to the newest."""

    changes: AskedChanges
    limit: int  # entries
    since: Moment | None = None
    until: Moment | None = None
    cursor: Cursor | None = None


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """oldest_index: the oldest state that the changes which are kept lead back to."""

    entries: list[Entry]
    cursor: Cursor | None
    oldest_index: int
    snapshot_index: int


@dataclass(frozen=True, slots=True)
class Difference:
    """What leads from the state at one index to that at another, which may be an earlier one."""

    change: ChangeSet
    from_index: int
    to_index: int


@dataclass(frozen=True, slots=True)
class PageLimits:
    """Of one page. is_over is asked between two pieces of work: whether the page has taken long enough; then
    it may have no entries, and a cursor.
    """

    entries: int
    quads: int
    is_over: Callable[[], bool]


def read_page(
    past: Past, asked: AskedChanges, first_index: int, start: Cursor, shown: Shown, limits: PageLimits
) -> Page:
    """The page that begins at start and goes back to first_index, which has to be kept.

    Raises HistoryForgotten, LogUnavailable, CorruptionError, and what shown raises.
    """
    entries: list[Entry] = []
    room = limits.quads
    scan = past.scan(
        first_index, start.log_index, newest_first=True, needle=asked.needle, skipped_parts=start.part
    )
    for scanned in scan:
        for piece in scanned.changes:
            at = Cursor(piece.log_index, piece.part)
            at = start if at[:2] == start[:2] else at
            change = _from(at.offset, asked.part_of(shown(piece)))
            continues = bool(entries) and entries[-1].log_index == piece.log_index
            if change:
                if not continues and len(entries) == limits.entries:
                    return Page(entries, at)
                if not continues:
                    entries.append(Entry(piece.log_index, piece.timestamp_ms, piece.author, []))
                fitting = _up_to(room, change)
                entries[-1].changes.append(fitting)
                room -= fitting.affected_triples
                if fitting.affected_triples < change.affected_triples:
                    entries[-1].has_more = True
                    offset = at.offset + fitting.affected_triples
                    return Page(entries, at._replace(offset=offset))
            if limits.is_over():
                # the entry may go on; nothing tells before its next part is read
                return Page(entries, Cursor(piece.log_index, piece.part + 1))
        if limits.is_over() and scanned.next_index >= first_index:
            return Page(entries, Cursor(scanned.next_index))
    return Page(entries, None)


def _from(offset: int, change: ChangeSet) -> ChangeSet:
    """A change without its first quads; with some quads gone, without graphs."""
    if not offset:
        return change
    removed = len(change.removed)
    return ChangeSet(change.removed[offset:], change.added[max(0, offset - removed) :])


def _up_to(count: int, change: ChangeSet) -> ChangeSet:
    """A change with so many quads at most, and its graphs."""
    if change.affected_triples <= count:
        return change
    removed = change.removed[:count]
    added = change.added[: count - len(removed)]
    return ChangeSet(removed, added, change.dropped_graphs, change.created_graphs)


def net_change(
    past: Past,
    asked: AskedChanges,
    first_index: int,
    last_index: int,
    quads_max: int,
    check: Callable[[], None],
) -> ChangeSet:
    """What the entries from first_index to last_index changed in all: what was removed and added again, or
    the other way round, is in neither. check is called between two pieces of work.

    Raises LimitExceeded where it is, or becomes on the way, more than quads_max quads, and as `read_page`.
    """
    undoing = NetChange()  # from the last entry back to the first
    for scanned in past.scan(first_index, last_index, newest_first=True, needle=asked.needle):
        check()
        for piece in scanned.changes:
            undoing.push(asked.part_of(piece.change).inverse)
            count = len(undoing.removed) + len(undoing.added)
            if count > quads_max:
                raise LimitExceeded("quads of a difference", count, quads_max)
    return undoing.to_change_set().inverse
