"""Requests that are planned together: one sync of the log and one change of the store for all of them."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

from actors.shard.write_guard import WriteGuard
from graphdb.access.writer_state import Planned, WholeState
from graphdb.errors import Forbidden
from graphdb.log.codec import encode_change_parts
from graphdb.model import ChangeSet, Confirmation, EntryKind, LogEntry
from graphdb.store.overlay import BaseNotApplied, Overlay
from graphdb.store.quad_store import QuadStore

__all__ = ["Attempt", "Batch", "EntryPlan", "LargeWrite", "Plan", "Seeing", "WriteJob", "plan_batch"]

Plan: TypeAlias = Callable[[Overlay], Iterable[ChangeSet]]
Seeing: TypeAlias = Callable[[Overlay], Planned]
"""How whoever writes sees a state: made anew for each planning."""


@dataclass(frozen=True, slots=True)
class EntryPlan:
    """A write that changes no quads: it is one entry of a kind of its own, and has a turn of its own."""

    kind: EntryKind
    payload: Callable[[], bytes]  # for the present state; raises what its request is answered with


@dataclass(slots=True, eq=False)
class WriteJob:
    """One request for a write, until it is answered."""

    plan: Plan | EntryPlan
    quick: bool  # planning takes microseconds: no thread is worth it
    request_id: bytes  # the same however often it is planned
    since: int | None  # the log index behind which all entries of this request are, if there are any
    is_new: bool  # its id was made for it, and is not in the log
    answer: "asyncio.Future[Confirmation]"
    seeing: Seeing = WholeState
    sent: bool = False  # by this writer, to the log
    maybe_stored: bool = False  # sent, and not known to be refused
    give_up_at: float | None = None  # on the event loop's clock; set when the log first fails it

    def note_sent(self, last_index: int) -> None:
        """It goes to the log, behind last_index."""
        self.sent, self.is_new = True, False
        if self.since is None:
            self.since = last_index

    def succeed(self, confirmation: Confirmation) -> None:
        """Answer it so, unless nobody waits any more."""
        if not self.answer.done():
            self.answer.set_result(confirmation)

    def fail(self, error: Exception) -> None:
        """Answer it so, unless nobody waits any more."""
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(slots=True, eq=False)
class Attempt:
    """A job as it was planned once."""

    job: WriteJob
    affected_triples: int = 0  # as whoever writes sees it
    payload: bytes = b""  # empty: nothing to log
    change: ChangeSet = field(default_factory=ChangeSet)  # that the payload encodes
    error: Exception | None = None  # what planning ended in


class LargeWrite:
    """A job whose change does not fit one log entry: a stream of parts, planned as it is taken.

    The stream may read from the engine, so it is made, taken and closed on one and the same thread.
    """

    def __init__(
        self, attempt: Attempt, planned: Planned, parts: Iterator[ChangeSet], part_bytes: int
    ) -> None:
        """parts are as planned, not what they really change."""
        self.attempt = attempt
        self.adds = False  # as far as the parts were taken
        self._payloads = self._encode(planned, parts, part_bytes)

    def _encode(self, planned: Planned, parts: Iterator[ChangeSet], part_bytes: int) -> Iterator[bytes]:
        try:
            for part in parts:
                self.attempt.affected_triples += part.affected_triples
                told = part.affected_triples
                change = planned.real_change(part)
                self.adds = self.adds or change.adds
                yield from encode_change_parts(change, part_bytes, told)
        finally:
            del parts  # on this thread, as the engine wants it: an error's traceback would keep them

    def next_payload(self) -> bytes | None:
        """The next part, encoded and counted; None at the end. Raises what planning raises."""
        return next(self._payloads, None)

    def close(self) -> None:
        """Let go of the stream."""
        self._payloads = iter(())


@dataclass(slots=True)
class Batch:
    """Attempts in order, and what the store will be after them.

    Where there is a `large` one, those before it change nothing; `deferred` are for the next batch.
    """

    overlay: Overlay
    attempts: list[Attempt] = field(default_factory=list)
    large: LargeWrite | None = None
    deferred: list[WriteJob] = field(default_factory=list)

    @property
    def jobs(self) -> list[WriteJob]:
        """Of all attempts."""
        return [attempt.job for attempt in self.attempts]

    @property
    def logged(self) -> list[Attempt]:
        """Those that change something, each with an entry of its own."""
        return [attempt for attempt in self.attempts if attempt.payload]

    def entries(self, timestamp_ms: int) -> list[LogEntry]:
        """The log entries of those that change something."""
        return [
            LogEntry(0, 0, EntryKind.CHANGES, attempt.job.request_id, timestamp_ms, attempt.payload)
            for attempt in self.logged
        ]

    def succeed(self, index: int) -> None:
        """Answer all: their entries stand right behind index, and are applied."""
        for attempt in self.attempts:
            if attempt.payload:
                index += 1
            if attempt.error is not None:
                attempt.job.fail(attempt.error)
            else:
                attempt.job.succeed(Confirmation(index, attempt.affected_triples))


def plan_batch(
    jobs: list[WriteJob], quads: QuadStore, index: int, part_bytes: int, guard: WriteGuard | None
) -> Batch:
    """Plan jobs one upon the other, as far as they can be planned before the first of them is applied.

    quads is at this log index. guard may refuse what was planned.
    """
    batch = Batch(Overlay(quads))
    if guard is not None:
        guard.begin(batch.overlay, index)
    for position, job in enumerate(jobs):
        attempt = Attempt(job)
        try:
            batch.large = _plan(attempt, batch.overlay, part_bytes, guard)
        except BaseNotApplied:
            batch.deferred = jobs[position:]
            break
        except Exception as error:  # noqa: BLE001 whoever asked gets it
            attempt.error = error
        if batch.large is not None:
            batch.deferred = jobs[position + 1 :]
            break
        batch.attempts.append(attempt)
    return batch


def _plan(attempt: Attempt, overlay: Overlay, part_bytes: int, guard: WriteGuard | None) -> LargeWrite | None:
    """Plan one request and lay its change over the state, unless it is a large one."""
    plan = attempt.job.plan
    assert not isinstance(plan, EntryPlan), "it has a turn of its own"
    planned = attempt.job.seeing(overlay)
    parts = iter(plan(planned.state))
    first = next(parts, ChangeSet())
    second = next(parts, None)
    if not first:
        return None
    try:
        change = planned.real_change(first)
    except Forbidden:
        parts = iter(())  # what reads from the engine must end here, and not with an error's traceback
        raise
    told = first.affected_triples
    payloads = encode_change_parts(change, part_bytes, told) if second is None else []
    if len(payloads) > 1 or second is not None:
        if overlay.pending:
            raise BaseNotApplied
        if guard is None:
            rest = chain((first,), () if second is None else (second,), parts)
            return LargeWrite(attempt, planned, rest, part_bytes)
        parts = iter(())  # as above
        whole = first if second is None else None
        return _guarded_large(attempt, plan, planned, part_bytes, guard, whole)
    if guard is not None:
        guard.check(planned.state, first)
    # what changes nothing for its writer has no entry; what does has one, even if it really does not
    attempt.payload, attempt.change, attempt.affected_triples = payloads[0], change, told
    overlay.push(change)
    return None


def _guarded_large(
    attempt: Attempt,
    again: Plan,
    planned: Planned,
    part_bytes: int,
    guard: WriteGuard,
    whole: ChangeSet | None,
) -> LargeWrite:
    """A large change that was planned once already.

    whole is one that came in one piece: that of an update, which may ask the time or draw random numbers. The
    parts of others are the same at each planning.
    """

    def plan() -> Iterator[ChangeSet]:
        return iter(again(planned.state) if whole is None else (whole,))

    guard.check_parts(planned.state, plan)
    return LargeWrite(attempt, planned, plan(), part_bytes)
