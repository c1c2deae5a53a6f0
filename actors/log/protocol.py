"""What a `LogClient` and a log say to each other (`actors.wire`).

    request                 answer
    Append                  Index: the first log_index; 0: not admitted (`LogEnd`)
    Read                    Entries
    AskStatus               LogStatus
    TruncateBefore          Done
    DropBefore              Index: the first that is left
    WatchIndex              Index: the last that can be read; once there is more
    ReportView              Done
    AskViews                ReportedStatuses

Entries travel as bytes, encoded as in the log (`graphdb.log.codec`), those of Append with log_index 0.
Answers may come in another order than their requests.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from actors.wire.messages import Messages
from graphdb.errors import CorruptionError
from graphdb.log import codec
from graphdb.log.views import ViewStatus
from graphdb.model import LogEntry

__all__ = [
    "LOG_MESSAGES",
    "Append",
    "AskStatus",
    "AskViews",
    "DropBefore",
    "Entries",
    "Index",
    "LogStatus",
    "Read",
    "ReportView",
    "ReportedStatuses",
    "TruncateBefore",
    "WatchIndex",
    "decode_entries",
    "encode_entries",
    "place_entries",
]


@dataclass(frozen=True, slots=True)
class Append:
    """See `UpdateLog.append`."""

    expected_index: int
    entries: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Read:
    """See `UpdateLog.read`."""

    from_index: int
    max_bytes: int
    omits_search: bool = False


@dataclass(frozen=True, slots=True)
class Entries:
    """What was read."""

    entries: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AskStatus:
    """See `UpdateLog.status`."""


@dataclass(frozen=True, slots=True)
class LogStatus:
    """What the log holds: entries first_index to last_index; none where last_index is first_index - 1."""

    first_index: int
    last_index: int
    held_bytes: int = field(default=0, compare=False)  # on disk


@dataclass(frozen=True, slots=True)
class TruncateBefore:
    """See `UpdateLog.truncate_before`."""

    index: int
    view: str


@dataclass(frozen=True, slots=True)
class DropBefore:
    """See `UpdateLog.drop_before`."""

    index: int


@dataclass(frozen=True, slots=True)
class WatchIndex:
    """See `LogClient.watch_index`."""

    known_index: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Index:
    """A log_index."""

    index: int


@dataclass(frozen=True, slots=True)
class ReportView:
    """See `LogClient.report_view`."""

    status: ViewStatus


@dataclass(frozen=True, slots=True)
class AskViews:
    """See `LogClient.reported_views`."""


@dataclass(frozen=True, slots=True)
class ReportedStatuses:
    """Of each view that was ever reported."""

    statuses: list[ViewStatus]


LOG_MESSAGES = Messages(
    Append,
    Read,
    Entries,
    AskStatus,
    LogStatus,
    TruncateBefore,
    DropBefore,
    WatchIndex,
    Index,
    ReportView,
    AskViews,
    ReportedStatuses,
)


def encode_entries(entries: Iterable[LogEntry]) -> bytes:
    return b"".join(map(codec.encode_entry, entries))


def decode_entries(body: bytes) -> list[LogEntry]:
    """Raises CorruptionError."""
    entries = codec.decode_entries(body)
    if entries is None:
        raise _damage()
    return entries


def place_entries(body: bytes, first_index: int, start: int, durable_bytes: int) -> codec.PlacedEntries:
    """See `codec.place_entries`. Raises CorruptionError."""
    placed = codec.place_entries(body, first_index, start, durable_bytes)
    if placed is None:
        raise _damage()
    return placed


def _damage() -> CorruptionError:
    return CorruptionError("an entry was damaged on its way", "log socket")
