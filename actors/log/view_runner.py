"""`ViewRunner`: keeps a view where the log is. All views of a node follow the log by it.

It reads on, waits for more with a long poll, tries again with a growing pause what may pass, has a view begin
anew where the log has forgotten its place, lets clients wait for an index, and reports how well the view
follows.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import nullcontext, suppress
from typing import Any, Generic, TypeVar

from actors.log.applied_index import AppliedIndex
from actors.log.view_sources import LOST, Pace, Restart, Snapshot, Source
from graphdb.errors import (
    ConfigError,
    CorruptionError,
    GraphDBError,
    LogUnavailable,
    UnavailableError,
)
from graphdb.log.views import SnapshotView, View, ViewStatus
from graphdb.public_text import fault_text

__all__ = ["ViewRunner"]

logger = logging.getLogger(__name__)

E = TypeVar("E")
R = TypeVar("R")
Perform = Callable[..., Awaitable[Any]]

_DOUBLINGS_MAX = 16


async def _at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _ignore(*_: Any) -> None:
    return None


async def _do_nothing() -> None:
    return None


class _ReachedIndex:
    """Up to where `on_applied` was called. Readers may keep it without the runner."""

    def __init__(self, last_index: int) -> None:
        self.last_index = last_index

    def index(self) -> int:
        return self.last_index


class ViewRunner(Generic[E, R]):
    """For one event loop. One of `run`, `catch_up`, `keep_up`, `settle` at a time, and nothing else applies
    to the view meanwhile, unless `perform` keeps the two apart. `come_to` may be called by many.

    `run` is for a view that changes only by following the log. An owner that changes the view itself, too,
    calls `keep_up` between its own work, and runs `watch` beside that.

    A cancelled call lets an application that has begun come to its end, with all that follows from it: a
    view is never left between two entries, and whoever waits is told.
    """

    def __init__(
        self,
        name: str,
        view: View[E, R],
        source: Source[E],
        *,
        perform: Perform = _at_once,
        perform_now: Callable[..., Any] | None = None,
        on_applied: Callable[[Sequence[E], R], None] = _ignore,
        applied: AppliedIndex | None = None,
        on_heard: Callable[[], Awaitable[None]] = _do_nothing,
        ready: Callable[[], Awaitable[None]] = _do_nothing,
        on_idle: Callable[[], Awaitable[None]] = _do_nothing,
        restart: Restart | None = None,
        pace: Pace | None = None,
    ) -> None:
        """name is for logs and reports, such as "quads".

        perform calls a function of the view's where the view may be changed, such as on its thread; it may
        hand more to it. perform_now: the same within the call, for `apply_now`.
        on_applied is told, on the event loop, what was applied and what `View.apply` has returned.
        applied is for a view that others change too, or whose readers see another index than its own: then
        perform says when the view is changing. By default an index counts as applied once on_applied has been
        told.
        on_heard is awaited when `watch` has heard of more entries.
        ready is awaited before each round of `run`, and raises UnavailableError to put it off; on_idle is
        awaited when nothing was new for pace.idle_s. restart: None where whoever calls `run` handles a lost
        place.
        """
        self.name = name
        self._view, self._source, self._pace = view, source, pace or Pace()
        self._perform, self._perform_now, self._on_applied = perform, perform_now, on_applied
        self._on_heard, self._ready, self._on_idle, self._restart = on_heard, ready, on_idle, restart
        self._reached = _ReachedIndex(view.index)
        self.applied = applied or AppliedIndex(self._reached.index)
        self._changing = nullcontext if applied else self.applied.changing
        self._heard_index = 0
        self._wake, self._hurry, self._there = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._waiting = 0  # how many wait in `reach`: as long as anybody does, nothing is gathered
        self._coming: asyncio.Task[bool] | None = None
        self._is_lost = False  # the view begins anew next
        self._rests = False  # `run` waits for more
        self._broken: Exception | None = None  # what `apply_now` has met, for `run` to raise
        # why the owner of the view is to call `keep_up` again; it never keeps a traceback, whose frames would
        # hold the view's files open
        self.fault: GraphDBError | None = None
        self._waits = self._losses = 0  # failures in a row that may pass; that end in a new beginning
        self._state, self._failures = "starting", 0
        self._error: str | None = None
        self._entries, self._apply_s = 0, 0.0

    # how far it is

    def hear(self, index: int) -> None:
        """The source can be read that far."""
        self._heard_index = max(self._heard_index, index)
        if self.is_behind:
            self._wake.set()

    @property
    def is_behind(self) -> bool:
        """Whether there is more to apply, as far as is known."""
        return self._heard_index > self._view.index

    async def reach(self, index: int, timeout_s: float) -> bool:
        """Have what is gathered applied; whether the view has come to index in time."""
        if self.applied.current >= index:
            return True
        self._waiting += 1
        self._hurry.set()
        try:
            async with asyncio.timeout(timeout_s):
                await self.applied.wait_for(index)
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._hurry.clear()
        return True

    def hurry(self) -> None:
        """Have what gathers now, or gathers next, applied at once."""
        self._hurry.set()

    def status(self) -> ViewStatus:
        """Never blocks, never raises."""
        return ViewStatus(
            self.name,
            self._state,
            self._view.index,
            self._heard_index,
            self._error,
            self._failures,
            self._entries,
            self._apply_s,
        )

    # to where the source is now

    async def catch_up(self, progress: Callable[[int], None] = _ignore) -> None:
        """Apply what the source has and the view does not. progress is told each index that is reached.

        Raises UnavailableError (LogCompacted: for good), CorruptionError; what was applied before that stays.
        """
        while True:
            heard_index = self._heard_index
            if not await self._advance():
                if self._heard_index == heard_index:  # else something may have come after the read
                    self._heard_index = 0
                    self._there.set()
                return
            progress(self._view.index)

    async def settle(
        self, is_settled: Callable[[], bool], *, wait_s: float, poll_s: float, pause: bool
    ) -> bool:
        """Catch up until is_settled, or for wait_s: False. pause: wait for poll_s first, as before each
        further attempt.

        Raises as `catch_up`, LogUnavailable only after wait_s.
        """
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + wait_s
        while True:
            if pause:
                await asyncio.sleep(poll_s)
            pause = True
            try:
                await self.catch_up()
            except LogUnavailable:
                if clock() >= give_up_at:
                    raise
            else:
                if is_settled():
                    return True
                if clock() >= give_up_at:
                    return False

    async def come_to(self, index: int) -> None:
        """Apply until the view is at index or further. Those who ask meanwhile share the work, which goes on
        when one of them no longer waits. Raises as `catch_up`.
        """
        while self._view.index < index:
            if self._coming is None or self._coming.done():
                self._coming = asyncio.get_running_loop().create_task(self._advance())
                self._coming.add_done_callback(_note_asked)
            await asyncio.shield(self._coming)

    # now and then, between other work of the view's owner

    @property
    def is_up(self) -> bool:
        """Whether `keep_up` has nothing to do, as far as is known."""
        return self.fault is None and self._heard_index <= self._view.index

    async def keep_up(self, *, wait_s: float, poll_s: float, gather: bool = False) -> bool:
        """Follow the log where there is more, or where the view had fallen behind; whether it follows now.

        gather: entries may gather before they are applied, until `hurry` is called.

        If not, `fault` is the reason, `retry_s` says when to call this again, and a call before that tries
        again at once. wait_s: a log that goes away is tried for so long, each poll_s, before it is a fault.
        """
        try:
            if gather and self.fault is None and self.is_behind:
                await self._gather()
            if self.fault is None and not await self._come_to_heard():
                await self.settle(_is_settled, wait_s=wait_s, poll_s=poll_s, pause=False)
            elif self.fault is not None and _may_pass(self.fault):
                await self.catch_up()
                self.fault = None
        except GraphDBError as error:
            self.fall_behind(error)
        return self.fault is None

    async def _come_to_heard(self) -> bool:
        """Apply what was heard of, without another read to find that there is no more; False where the source
        does not have it, or is away.
        """
        try:
            while self.is_behind:
                if not await self._advance():
                    return False
        except LogUnavailable:
            return False
        return True

    def fall_behind(self, error: GraphDBError) -> None:
        """The owner could not apply what the log holds, for this reason: `keep_up` tries to."""
        if self.fault is None or not _may_pass(error):
            # as text: whoever keeps the record would keep the error's frames, and with them the view's files
            behind = self.name, self._view.index, str(error)
            logger.error("the view of %s is behind the log at %d: %s", *behind)
        self._note_failure(error)
        self._waits += 1
        self._state = "failed" if isinstance(error, CorruptionError) else "waiting"
        if isinstance(error, LOST):
            self._state = "restarting"  # the owner sees to it
        self.fault = _without_traceback(error)

    @property
    def retry_s(self) -> float | None:
        """How long after a failed `keep_up` the next attempt is due; None where none could succeed."""
        if self.fault is None or not _may_pass(self.fault):
            return None
        return self._backed_off(self._waits, self._pace.again_s_max)

    # within the call

    @property
    def rests(self) -> bool:
        """Whether `run` waits for more, and nothing changes the view."""
        return self._rests and self._broken is None and (self._coming is None or self._coming.done())

    def apply_now(self, entries: Sequence[E]) -> None:
        """While it `rests`: apply the next entries, which takes a moment, without the turns of the event loop
        that `run` needs. What goes wrong is for `run`.
        """
        assert self._perform_now is not None, "`run` does it"
        began = asyncio.get_running_loop().time()
        try:
            with self._changing():
                result: R = self._perform_now(self._view.apply, entries)
                self._note_applied(entries, result, began)
        except Exception as error:  # noqa: BLE001 it is raised by `run`
            self._broken = error
            self._wake.set()

    # for ever

    async def run(self) -> None:
        """Follow until cancelled. What may pass is waited for. A view that cannot go on from its place begins
        anew where there is a `Restart`; else that raises LogCompacted, ChangesForgotten, CorruptionError, or
        what else the view or the source has raised.
        """
        watching = asyncio.get_running_loop().create_task(self.watch())
        try:
            while True:
                try:
                    await self._round()
                except Exception as error:  # noqa: BLE001 what cannot be mended is raised
                    await asyncio.sleep(self._pause_after(error))
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def begin_anew(self, error: Exception) -> None:
        """Before `run`: the view has no place to go on from, for this reason."""
        self._pause_after(error)
        self._state, self._is_lost = "restarting", True

    async def close(self) -> None:
        """Break off what `come_to` has begun, or let it come to its end."""
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.gather(self._coming, return_exceptions=True)

    async def watch(self) -> None:
        """Hear how far the source can be read, until cancelled. `run` does it by itself."""
        while True:
            try:
                known_index = max(self._heard_index, self._view.index)
                index = await self._source.watch_index(known_index, self._pace.watch_s)
                self.hear(index)
                if index > known_index:
                    await self._on_heard()
            except Exception as error:
                if not isinstance(error, GraphDBError):
                    logger.error("watching the log for the view of %s failed", self.name, exc_info=error)
                await asyncio.sleep(self._pace.again_s)
            await asyncio.sleep(self._pace.watch_pause_s)
            await self._until_there()

    async def _until_there(self) -> None:
        """What comes beside what the view is to apply already tells it nothing: it reads to the end. So the
        source is asked again once the view is there, and now and then, to report how far behind it is.
        """
        self._there.clear()
        if self.is_behind:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pace.behind_watch_s):
                    await self._there.wait()

    async def _round(self) -> None:
        if self._is_lost:
            await self._begin_anew()
        await self._ready()
        if self._error is None:
            self._state = "following"
        if not await self._wait():
            return
        if self._pace.gather_s:
            await self._gather()
        if not await self._advance():
            await asyncio.sleep(self._pace.behind_s)

    async def _wait(self) -> bool:
        """Whether there is more; waits for it, and lets the view tidy up when nothing comes."""
        if not self.is_behind:
            self._wake.clear()
            try:
                await self._rest()
            except TimeoutError:
                await self._on_idle()
                self._note_success()
        return self.is_behind

    async def _rest(self) -> None:
        """Until there is more. Raises TimeoutError, what `apply_now` has met."""
        self._rests = True
        try:
            async with asyncio.timeout(self._pace.idle_s):
                await self._wake.wait()
        finally:
            self._rests = False
        broken, self._broken = self._broken, None
        if broken is not None:
            raise broken

    async def _gather(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pace.gather_s):
                await self._hurry.wait()
        if not self._waiting:
            self._hurry.clear()

    async def _advance(self) -> bool:
        """Apply the next entries; False where there are none."""
        entries = await self._source.read(self._view.index)
        if entries:
            await _to_its_end(self._apply(entries))
            self._view.check()
        self._note_success()
        return bool(entries)

    async def _apply(self, entries: Sequence[E]) -> None:
        began = asyncio.get_running_loop().time()
        with self._changing():
            result: R = await self._perform(self._view.apply, entries)
            self._note_applied(entries, result, began)
        self._note_place()

    def _note_applied(self, entries: Sequence[E], result: R, began: float) -> None:
        self._on_applied(entries, result)
        self._reached.last_index = self._view.index
        self._entries += len(entries)
        self._apply_s += asyncio.get_running_loop().time() - began

    async def _begin_anew(self) -> None:
        assert self._restart is not None
        async with self._restart.snapshots() as snapshot:
            await _to_its_end(self._adopt(self._restart.view, snapshot))
        self._is_lost, self._state, self._error = False, "following", None

    async def _adopt(self, view: SnapshotView[Any, Any], snapshot: Snapshot) -> None:
        with self._changing():
            await self._perform(view.adopt_snapshot, snapshot.log_index, snapshot.tree)
            self._reached.last_index = view.index
        self._note_place()

    def _note_place(self) -> None:
        if not self.is_behind:
            self._there.set()

    # how well it follows

    def _note_success(self) -> None:
        self._state, self._error = "following", None
        self._waits = self._losses = 0

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        self._error = fault_text(error)

    def _pause_after(self, error: Exception) -> float:
        """How long to wait before the next attempt. Raises the error where there is to be none.

        A lost view begins anew at once, however often it had to wait before; if it is lost again, it waits.
        """
        self._note_failure(error)
        if not self._is_lost and isinstance(error, UnavailableError) and _may_pass(error):
            logger.debug("the view of %s waits: %s", self.name, error)
            self._state = "waiting"
            self._waits += 1
            return self._backed_off(self._waits, self._pace.again_s_max)
        if self._restart is None:
            self._state = "failed"
            raise error
        self._log_new_beginning(error)
        self._losses += 1
        is_first = not self._is_lost and self._losses == 1
        self._state, self._is_lost = "restarting", True
        return 0.0 if is_first else self._backed_off(self._losses, self._pace.anew_s_max)

    def _log_new_beginning(self, error: Exception) -> None:
        """A mistake of ours with its traceback."""
        known = isinstance(error, GraphDBError | OSError)
        logger.warning(
            "the view of %s is to begin anew: %s", self.name, error, exc_info=None if known else error
        )

    def _backed_off(self, in_a_row: int, s_max: float) -> float:
        doublings = min(in_a_row - 1, _DOUBLINGS_MAX)
        return min(s_max, self._pace.again_s * float(2**doublings))


def _is_settled() -> bool:
    return True


def _may_pass(error: Exception) -> bool:
    """Whether a later attempt from the same place can succeed."""
    return not isinstance(error, (CorruptionError, *LOST))


def _without_traceback(error: GraphDBError) -> GraphDBError:
    """The same error anew. A log that cannot start (ConfigError) is one that is away to those who write."""
    if isinstance(error, ConfigError):
        return LogUnavailable(str(error), 5)
    return type(error)(*error.args)


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Await work. It comes to its end although this is cancelled, and only then is this."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_note_asked)
        await asyncio.wait([task])
        raise


def _note_asked(task: "asyncio.Task[Any]") -> None:
    """It may be that nobody asks any more how the task has ended."""
    if not task.cancelled():
        task.exception()
