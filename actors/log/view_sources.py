"""What a `ViewRunner` is given: where entries come from, how a view begins anew, how long to wait."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from graphdb.errors import ChangesForgotten, CorruptionError, LogCompacted, UnavailableError
from graphdb.log.codec import entries_bytes
from graphdb.log.views import SnapshotView
from graphdb.model import LogEntry

__all__ = ["LOST", "LogReading", "Pace", "ReadableLog", "Restart", "Snapshot", "Source", "ViewLost"]

E_co = TypeVar("E_co", covariant=True)


class ViewLost(UnavailableError):
    """A view cannot go on from its place; another one can be made."""


LOST = (LogCompacted, ChangesForgotten, ViewLost)  # no later attempt from the same place can succeed


class Source(Protocol[E_co]):
    """Where a view's entries come from: a log, or what another view has applied of it."""

    async def watch_index(self, known_index: int, timeout_s: float) -> int:
        """The last index that can be read, as soon as it is more than known_index; else when the time is up.

        Raises UnavailableError.
        """
        ...

    async def read(self, after_index: int) -> Sequence[E_co]:
        """The next entries after after_index, in order and without a gap; none at the end.

        Raises UnavailableError, LogCompacted or ChangesForgotten (they are gone), CorruptionError.
        """
        ...


class ReadableLog(Protocol):
    """What `LogReading` needs of a `LogAccess`."""

    async def read(self, from_index: int, max_bytes: int = ...) -> list[LogEntry]: ...
    async def watch_index(self, known_index: int, timeout_s: float = ...) -> int: ...


class LogReading:
    """A log as a `Source`."""

    def __init__(self, log: ReadableLog, batch_bytes: int = 0) -> None:
        """batch_bytes: entries are read until they are of about this size, or to the end of the log; by
        default what the log gives at once.
        """
        self._log, self._batch_bytes = log, batch_bytes

    async def watch_index(self, known_index: int, timeout_s: float) -> int:
        """See `Source.watch_index`."""
        return await self._log.watch_index(known_index, timeout_s)

    async def read(self, after_index: int) -> list[LogEntry]:
        """See `Source.read`."""
        entries = await self._log.read(after_index + 1)
        if entries and entries[0].log_index != after_index + 1:
            raise CorruptionError(f"the entry {after_index + 1} is missing", "update log")
        if entries and self._batch_bytes:
            size_bytes = entries_bytes(entries)
            while size_bytes < self._batch_bytes:
                more = await self._log.read(entries[-1].log_index + 1)
                if not more:
                    break
                entries += more
                size_bytes += entries_bytes(more)
        return entries


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state to begin anew from. tree: the directory that holds it, if the view needs one."""

    log_index: int
    tree: Path | None = None


@dataclass(frozen=True, slots=True)
class Restart:
    """How a view begins anew where it cannot go on: it adopts what snapshots yields, as soon as there is one.

    Leaving the context says that the view has adopted it, or has failed to.
    """

    view: SnapshotView[Any, Any]
    snapshots: Callable[[], AbstractAsyncContextManager[Snapshot]]


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a runner waits. All in seconds."""

    watch_s: float = 10.0  # a long poll of the source is answered after this at the latest
    watch_pause_s: float = 0.0  # between two long polls
    behind_watch_s: float = 1.0  # and this where the view has more to apply already: for reports only
    again_s: float = 0.1  # after a failure that may pass, doubled with each one that follows,
    again_s_max: float = 0.1  # up to this,
    anew_s_max: float = 60.0  # or up to this where the view is to begin anew
    behind_s: float = 0.005  # when the source does not have yet what was heard of
    gather_s: float = 0.0  # entries that come meanwhile are applied together, unless somebody waits for them
    idle_s: float | None = None  # without anything new, after which the view may tidy up; None: it never does
