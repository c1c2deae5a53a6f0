"""The Unix domain socket that a log listens on."""

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol, TypeAlias

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
)
from actors.log.view_reports import ViewReports
from actors.wire.messages import Done, Messages
from actors.wire.server import Call, WireServer, private_directory
from graphdb.errors import LogUnavailable
from graphdb.model import LogEntry

__all__ = ["Answered", "Handler", "ServedLog", "done", "log_handlers", "log_server", "unchanged"]

# the outcome of a request, and the message that tells it
Answered: TypeAlias = "tuple[Future[Any], Callable[[Any], object]]"
Handler: TypeAlias = Callable[[Any], Answered]


class ServedLog(Protocol):
    """What every log answers."""

    def submit_append(self, entries: list[LogEntry], expected_index: int) -> "Future[int]": ...
    def submit_read(self, from_index: int, max_bytes: int, omits_search: bool = False) -> "Future[bytes]": ...
    def submit_status(self) -> "Future[LogStatus]": ...
    def submit_truncate_before(self, index: int, view: str) -> "Future[None]": ...
    def submit_drop_before(self, index: int) -> "Future[int]": ...
    def submit_watch_index(self, known_index: int, timeout_s: float) -> "Future[int]": ...


def log_handlers(log: ServedLog) -> dict[type[Any], Handler]:
    """How a log answers the requests of `actors.log.protocol`."""

    return {
        Append: lambda asked: (log.submit_append(decode_entries(asked.entries), asked.expected_index), Index),
        Read: lambda asked: (
            log.submit_read(asked.from_index, asked.max_bytes, asked.omits_search),
            Entries,
        ),
        AskStatus: lambda _: (log.submit_status(), unchanged),
        TruncateBefore: lambda asked: (log.submit_truncate_before(asked.index, asked.view), done),
        DropBefore: lambda asked: (log.submit_drop_before(asked.index), Index),
        WatchIndex: lambda asked: (log.submit_watch_index(asked.known_index, asked.timeout_s), Index),
    }


def done(_: object) -> Done:
    """The answer that says no more than that it is done."""
    return Done()


def unchanged(outcome: object) -> object:
    """An outcome that is a message."""
    return outcome


def log_server(
    handlers: Mapping[type[Any], Handler],
    log_directory: str,
    socket_directory: str | None,
    messages: Messages = LOG_MESSAGES,
    append: Callable[[Call], None] | None = None,
) -> WireServer:
    """Serves one log, on the event loop that the log works on. handlers: by the kind of the request, of
    these messages. They are called on the loop, and their futures answered there. append: sees to requests
    to append by itself, in place of their handler. Appends and all else go over one connection of each
    client, so they do not wait for each other.
    """

    reports = ViewReports(time.monotonic)

    def serve(call: Call) -> None:
        request = call.request
        if append is not None and type(request) is Append:
            append(call)
        elif handler := handlers.get(type(request)):
            call.answer_with(*handler(request))
        elif isinstance(request, ReportView):
            reports.note(request.status)
            call.answer(Done())
        elif isinstance(request, AskViews):
            call.answer(ReportedStatuses(reports.statuses()))
        else:
            call.fail(LogUnavailable(f"the log knows no request {type(request).__name__}"))

    path = os.path.join(socket_directory or private_directory(log_directory), "log.sock")
    return WireServer(messages, "the log", path, serve, otherwise=LogUnavailable)
