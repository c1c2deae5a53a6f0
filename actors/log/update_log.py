"""`UpdateLog`: owns the log directory, orders entries, and shares one sync among all who wait for one.

It is called in two ways: as an actor (about a millisecond a call) and over a Unix domain socket (`LogClient`,
a few tenths of that). Both end in one queue. One thread runs the socket's event loop and the log: while it
syncs, requests gather in the sockets, and share the next sync. A thread of its own for the log would add two
hand-overs to each append and win nothing, for without the log there is nothing to do.
"""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import uvloop

from actors.futures import answer, fail
from actors.log.index_watch import IndexWatch
from actors.log.protocol import Append, Index, LogStatus, decode_entries, encode_entries, place_entries
from actors.log.server import Handler, at_once, log_handlers, log_server
from actors.loop_thread import LoopThread
from actors.wire.server import Call
from graphdb.log.codec import PlacedEntries
from graphdb.log.file_log import FileLog, FileLogConfig
from graphdb.log.file_system import FileSystem, RealFileSystem
from graphdb.log.log_end import LogEnd
from graphdb.log.views import QUADS, LogViews
from graphdb.model import LogEntry

__all__ = ["UpdateLog"]

T = TypeVar("T")
_BATCH_BYTES_MAX = 16 << 20  # more than this is written in several batches, each with its sync


@dataclass(frozen=True, slots=True)
class _OnThread:
    """Whoever has called a method of `UpdateLog`."""

    future: "Future[Any]"

    def answer(self, result: object) -> None:
        answer(self.future, result)

    def fail(self, error: BaseException) -> None:
        fail(self.future, error)


class _Append(NamedTuple):
    entries: bytes  # as they travel
    expected_index: int
    caller: _OnThread | Call


class _Other(NamedTuple):
    """Anything else that the log's thread shall do."""

    perform: Callable[[], object]
    caller: _OnThread | Call


class UpdateLog:
    """The update log as a service. Methods block until done and may be called on any thread.

    Appends that arrive while the disk syncs wait for it and then share the next sync. What append has
    returned for is on disk. Requests take effect in the order of their arrival, so a read sees every append
    that came before it.
    """

    def __init__(
        self,
        directory: str,
        config: FileLogConfig | None = None,
        *,
        views: Iterable[str] = (QUADS,),
        keep_bytes: int = 0,
        file_system: FileSystem | None = None,
        socket_directory: str | None = None,
    ) -> None:
        """Open the log in a directory and begin to listen.

        views: who follows the log; it forgets nothing before each has said what it needs no more, and never
        the newest keep_bytes, for those who resume.
        socket_directory is for tests; by default a private one is made under the system's directory for
        temporary files. Raises LogUnavailable where another process has the log open, CorruptionError.
        """
        self._log = FileLog(file_system or RealFileSystem(), directory, config)
        self._end = LogEnd.of_opened(self._log.last_index)
        self._views = LogViews(views)
        self._keep_bytes = keep_bytes
        self._watch = IndexWatch(self._log.last_index)
        self._jobs: deque[_Append | _Other] = deque()
        handlers = log_handlers(self, self._watch, self._in_turn) | {Append: self._serve_append}
        self._server = log_server(handlers, directory, socket_directory)
        self._thread = LoopThread("log", uvloop.new_event_loop)
        self._thread.run(self._server.start())

    def endpoint(self) -> str:
        """The path of the socket, for `LogClient`."""
        return self._server.path

    def append(self, entries: list[LogEntry], expected_index: int = 0) -> int:
        """Store entries, in order and without others between them, and return the first one's log_index.

        Their own log_index does not count. Where expected_index is given, they were planned upon the entries
        before it, and get that index or, behind entries that do not concern quads, a later one. Where others
        are there (`LogEnd`), nothing is stored and 0 is returned: somebody else has written meanwhile.
        Raises StorageFull, LogUnavailable (nothing was stored), OutcomeUnknown.
        """
        future: Future[Index] = Future()
        self._enqueue(_Append(encode_entries(entries), expected_index, _OnThread(future)))
        return future.result().index

    def read(self, from_index: int, max_bytes: int = 4 << 20) -> list[LogEntry]:
        """Entries from from_index on, at least one, as many as fit max_bytes; none at the end of the log.

        Raises CorruptionError where from_index has been compacted away, LogUnavailable.
        """
        return decode_entries(self._submit(lambda: self.read_now(from_index, max_bytes, False)).result())

    def status(self) -> LogStatus:
        """What the log holds."""
        return self._submit(self.status_now).result()

    def truncate_before(self, index: int, view: str) -> None:
        """A view needs no entries before index: drop those that nobody needs, in whole segments.

        Raises LogUnavailable, StorageFull.
        """
        self._submit(lambda: self.truncate_before_now(index, view)).result()

    def drop_before(self, index: int) -> int:
        """Drop the entries before index, whatever is kept for those who resume, with the segments in which
        they stand; the first one that is left. Where that is before index, a view needs some of these
        segments: ask again when it has gone on.

        Raises LogUnavailable, StorageFull.
        """
        return self._submit(lambda: self.drop_before_now(index)).result()

    def close(self) -> None:
        """Finish what is waiting, stop listening, let go of the directory."""
        self._thread.run(self._server.close())
        self._submit(self._log.close).result()
        self._thread.close()

    # what the socket's handlers call, on the log's thread

    def read_now(self, from_index: int, max_bytes: int, omits_search: bool) -> bytes:
        """`read`: the entries encoded, as they travel. omits_search: see `FileLog.read`."""
        return encode_entries(self._log.read(from_index, max_bytes, omits_search))

    def status_now(self) -> LogStatus:
        """`status`."""
        return LogStatus(self._log.first_index, self._log.last_index, self._log.held_bytes)

    def truncate_before_now(self, index: int, view: str) -> None:
        """`truncate_before`."""
        needed_from = self._views.release(view, index)
        kept_from = self._log.index_before(self._log.last_index, self._keep_bytes) + 1
        self._log.truncate_before(min(needed_from, kept_from))

    def drop_before_now(self, index: int) -> int:
        """`drop_before`."""
        end = self._log.end_segment(index)
        needed_from = self._views.needed_from
        self._log.truncate_before(end if needed_from is None else min(end, needed_from))
        return self._log.first_index

    def _serve_append(self, call: Call) -> None:
        self._enqueue(_Append(call.request.entries, call.request.expected_index, call))

    def _in_turn(self, perform: Callable[[Any], object]) -> Handler:
        """As `at_once`, but after the appends that came before."""

        serve_now = at_once(perform)

        def serve(call: Call) -> None:
            if self._jobs:
                self._enqueue(_Other(partial(perform, call.request), call))
            else:
                serve_now(call)

        return serve

    def _submit(self, function: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        self._enqueue(_Other(function, _OnThread(future)))
        return future

    def _enqueue(self, job: _Append | _Other) -> None:
        self._jobs.append(job)
        self._thread.call_soon(self._perform_waiting)

    def _perform_waiting(self) -> None:
        """On the log's thread: do all that waits, in order, neighbouring appends with one sync."""
        while self._jobs:
            job = self._jobs.popleft()
            if isinstance(job, _Append):
                self._commit(self._gather(job))
            else:
                try:
                    job.caller.answer(job.perform())
                except Exception as error:  # noqa: BLE001 the caller gets it
                    job.caller.fail(error)

    def _gather(self, first: _Append) -> list[_Append]:
        """An append and those that wait right behind it, up to a size."""
        batch = [first]
        if not self._jobs:
            return batch
        size = len(first.entries)
        while self._jobs and size < _BATCH_BYTES_MAX:
            job = self._jobs[0]
            if not isinstance(job, _Append):
                break
            batch.append(job)
            size += len(job.entries)
            self._jobs.popleft()
        return batch

    def _commit(self, batch: list[_Append]) -> None:
        """Store a batch with one sync, and answer."""
        try:
            answers = self._store(batch)
        except Exception as error:  # noqa: BLE001 the callers get it
            for job in batch:
                job.caller.fail(error)
            return
        for caller, index in answers:
            caller.answer(Index(index))
        self._watch.advance(self._end.last_index)

    def _store(self, batch: list[_Append]) -> list[tuple[_OnThread | Call, int]]:
        """What is to be answered to whom, but for those who have failed by themselves."""
        end, begin, start = self._end, 0, 0
        answers: list[tuple[_OnThread | Call, int]] = []
        placed: list[PlacedEntries] = []
        for job in batch:
            first_index = end.last_index + 1
            if not end.admits(job.expected_index):
                answers.append((job.caller, 0))
                continue
            if not placed:
                begin = start = self._log.begin_append()
            try:
                entries = place_entries(job.entries, first_index, start, begin)
            except Exception as error:  # noqa: BLE001 the caller gets it
                job.caller.fail(error)
                continue
            answers.append((job.caller, first_index))
            placed.append(entries)
            end, start = end.extended_by(entries.kinds), start + len(entries.data)
        if placed:
            self._log.append_placed(placed)
            self._end = end
        return answers
