"""The Unix domain socket that a log listens on."""

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol, TypeAlias

from actors.log.index_watch import IndexWatch
from actors.log.protocol import (
    LOG_MESSAGES,
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
)
from actors.log.view_reports import ViewReports
from actors.wire.messages import Done, Messages
from actors.wire.server import Call, WireServer, private_directory
from graphdb.errors import LogUnavailable

__all__ = [
    "Answered",
    "Handler",
    "ServedLog",
    "at_once",
    "done",
    "done_after",
    "in_time",
    "log_handlers",
    "log_server",
    "unchanged",
]

Handler: TypeAlias = Callable[[Call], None]  # as `WireServer` serves calls; what it raises is the answer

# the outcome of a request, and the message that tells it
Answered: TypeAlias = "tuple[Future[Any], Callable[[Any], object]]"


def at_once(answer: Callable[[Any], object]) -> Handler:
    """Answers a request with what is made of it."""
    return lambda call: call.answer(answer(call.request))


def in_time(begin: Callable[[Any], Answered]) -> Handler:
    """Answers a request when its future is done."""
    return lambda call: call.answer_with(*begin(call.request))


class ServedLog(Protocol):
    """What every log answers within the call, on its loop."""

    def status_now(self) -> LogStatus: ...
    def read_now(self, from_index: int, max_bytes: int, omits_search: bool) -> bytes: ...
    def truncate_before_now(self, index: int, view: str) -> None: ...
    def drop_before_now(self, index: int) -> int: ...


def log_handlers(
    log: ServedLog, watch: IndexWatch, answering: Callable[[Callable[[Any], object]], Handler] = at_once
) -> dict[type[Any], Handler]:
    """How a log answers the requests of `actors.log.protocol`, but for appends. answering: `at_once`, or what
    does so in turn with appends.
    """

    return {
        Read: answering(
            lambda asked: Entries(log.read_now(asked.from_index, asked.max_bytes, asked.omits_search))
        ),
        AskStatus: answering(lambda _: log.status_now()),
        TruncateBefore: answering(done_after(lambda asked: log.truncate_before_now(asked.index, asked.view))),
        DropBefore: answering(lambda asked: Index(log.drop_before_now(asked.index))),
        WatchIndex: watch.watch,
    }


def done(_: object) -> Done:
    """The answer that says no more than that it is done."""
    return Done()


def done_after(perform: Callable[[Any], None]) -> Callable[[Any], Done]:
    """Of a request that is performed, the same answer."""

    def answer(asked: Any) -> Done:
        perform(asked)
        return Done()

    return answer


def unchanged(outcome: object) -> object:
    """An outcome that is a message."""
    return outcome


def log_server(
    handlers: Mapping[type[Any], Handler],
    log_directory: str,
    socket_directory: str | None,
    messages: Messages = LOG_MESSAGES,
) -> WireServer:
    """Serves one log, on the event loop that the log works on. handlers: by the kind of the request, of
    these messages. They are called on the loop. Appends and all else go over one connection of each client,
    so they do not wait for each other.
    """

    reports = ViewReports(time.monotonic)

    def serve(call: Call) -> None:
        request = call.request
        if handler := handlers.get(type(request)):
            handler(call)
        elif isinstance(request, ReportView):
            reports.note(request.status)
            call.answer(Done())
        elif isinstance(request, AskViews):
            call.answer(ReportedStatuses(reports.statuses()))
        else:
            call.fail(LogUnavailable(f"the log knows no request {type(request).__name__}"))

    path = os.path.join(socket_directory or private_directory(log_directory), "log.sock")
    return WireServer(messages, "the log", path, serve, otherwise=LogUnavailable)
