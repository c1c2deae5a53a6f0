"""`LogClient`: the update log as seen from another process, over its Unix domain socket."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from actors.log.protocol import (
    LOG_MESSAGES,
    Append,
    AskStatus,
    AskViews,
    DropBefore,
    Entries,
    Index,
    LogStatus,
    Read,
    ReportedStatuses,
    ReportView,
    TruncateBefore,
    WatchIndex,
    decode_entries,
    encode_entries,
)
from actors.wire.client import WireClient
from actors.wire.messages import Done, Messages
from graphdb.errors import LogUnavailable, OutcomeUnknown
from graphdb.log.views import ViewStatus
from graphdb.model import LogEntry

__all__ = ["LogAccess", "LogClient"]

T = TypeVar("T")
_APPEND_S = 20.0  # a log that syncs for longer hangs; what it was given may still be stored
_ANSWER_S = 10.0
_WATCH_S = 10.0


class LogAccess(Protocol):
    """The update log from its users' side; `LogClient` is the one of a node that stands alone."""

    # whether it can tell at once what has become of an append whose answer was lost; where not, that is known
    # when the places that the entries would have are taken
    settles_at_once: bool

    async def append(self, entries: list[LogEntry], expected_index: int = 0) -> int: ...
    async def read(self, from_index: int, max_bytes: int = ...) -> list[LogEntry]: ...
    async def status(self) -> LogStatus: ...
    async def confirm(self, index: int) -> bool: ...
    async def truncate_before(self, index: int, view: str) -> None: ...
    async def drop_before(self, index: int) -> int: ...
    async def append_unconditionally(self, entries: Sequence[LogEntry]) -> int: ...
    async def watch_index(self, known_index: int, timeout_s: float = ...) -> int: ...
    async def report_view(self, status: ViewStatus) -> None: ...
    async def reported_views(self) -> Sequence[ViewStatus]: ...
    async def close(self) -> None: ...


class LogClient:
    """Requests to an `UpdateLog`, any number at a time, for one event loop.

    It connects when first used, and again after the connection was lost; then it asks `endpoint` anew where
    the log is, for a restarted log may listen elsewhere. LogUnavailable means that nothing was sent, or that
    the log has refused; OutcomeUnknown that the answer to an append was lost, or has not come in time.
    """

    settles_at_once = True

    def __init__(
        self,
        endpoint: Callable[[], Awaitable[str]],
        messages: Messages = LOG_MESSAGES,
        *,
        omits_search: bool = False,
    ) -> None:
        """endpoint answers the path of the socket, or raises LogUnavailable. omits_search: entries of search
        may be read without their payloads, which are documents that views of quads have no use for.
        """
        self._omits_search = omits_search
        self._wire = WireClient(messages, "the update log does", endpoint, away=LogUnavailable)

    async def append(self, entries: Sequence[LogEntry], expected_index: int = 0) -> int:
        """See `UpdateLog.append`. Raises StorageFull, LogUnavailable, OutcomeUnknown."""
        request = Append(expected_index, encode_entries(entries))
        return (await self._wire.ask(request, Index, _APPEND_S)).index

    async def append_unconditionally(self, entries: Sequence[LogEntry]) -> int:
        """Store entries behind whatever there is, wherever in the cluster that is done; the first's index.

        They can be read here at that index, perhaps a moment later. Raises NotLeader (none leads),
        StorageFull, Overloaded, LogUnavailable (nothing was stored), OutcomeUnknown.
        """
        return await self.append(entries)

    async def read(self, from_index: int, max_bytes: int = 4 << 20) -> list[LogEntry]:
        """See `UpdateLog.read`. Raises CorruptionError, LogUnavailable."""
        asked = Read(from_index, max_bytes, self._omits_search)
        return decode_entries((await self._ask(asked, Entries)).entries)

    async def status(self) -> LogStatus:
        """See `UpdateLog.status`. Raises LogUnavailable."""
        return await self._ask(AskStatus(), LogStatus)

    async def watch_index(self, known_index: int, timeout_s: float = _WATCH_S) -> int:
        """The last index that can be read: as soon as it is more than known_index, else when the time is up.

        Raises LogUnavailable.
        """
        request = WatchIndex(known_index, timeout_s)
        return (await self._ask(request, Index, timeout_s=timeout_s + _ANSWER_S)).index

    async def confirm(self, index: int) -> bool:
        """Whether nothing that concerns quads had been stored behind index at the call: nobody else writes
        such entries here.
        """
        return True

    async def truncate_before(self, index: int, view: str) -> None:
        """See `UpdateLog.truncate_before`. Raises LogUnavailable, StorageFull."""
        await self._ask(TruncateBefore(index, view), Done)

    async def drop_before(self, index: int) -> int:
        """See `UpdateLog.drop_before`. Raises LogUnavailable, StorageFull."""
        return (await self._ask(DropBefore(index), Index)).index

    async def report_view(self, status: ViewStatus) -> None:
        """Tell the log how well a view of this process follows it. Raises LogUnavailable."""
        await self._ask(ReportView(status), Done)

    async def reported_views(self) -> Sequence[ViewStatus]:
        """See `ViewReports.statuses`. Raises LogUnavailable."""
        return (await self._ask(AskViews(), ReportedStatuses)).statuses

    async def close(self) -> None:
        """End the connection; requests under way fail."""
        self._wire.close()

    async def _ask(self, request: object, answer: type[T], *, timeout_s: float | None = _ANSWER_S) -> T:
        """A request that may be repeated, so that a lost answer means no more than an unavailable log.

        timeout_s: None where whoever asks waits as long as it takes.
        """
        try:
            return await self._wire.ask(request, answer, timeout_s)
        except OutcomeUnknown as error:
            raise LogUnavailable(error.reason) from error
