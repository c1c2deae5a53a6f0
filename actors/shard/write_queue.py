"""`WriteQueue`: what waits for a `ShardWriter`'s next turn: writes, and work that has a turn of its own."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphdb.access.writer_state import Planned, WholeState
from graphdb.log.request_ids import key_part
from graphdb.model import (
    UNKNOWN_AUTHOR,
    Author,
    ChangeSet,
    Confirmation,
    EntryKind,
    ForeseeingOutcome,
    Outcome,
)
from graphdb.rdf.quad_lines import LineChange
from graphdb.sparql.plain_data import OneTriple
from graphdb.store.overlay import Overlay

__all__ = ["EntryPlan", "Plan", "Seeing", "TurnJob", "WriteJob", "WriteQueue"]

Plan: TypeAlias = Callable[[Overlay], Iterable[ChangeSet] | LineChange]
Seeing: TypeAlias = Callable[[Overlay], Planned]
"""How whoever writes sees a state: made anew for each planning."""


@dataclass(frozen=True, slots=True)
class EntryPlan:
    """A write that changes no quads: it is one entry of a kind of its own, and has a turn of its own."""

    kind: EntryKind
    payload: Callable[[], bytes]  # for the present state; raises what its request is answered with
    is_slow: bool = False  # it is made on the writer's thread


@dataclass(slots=True, eq=False)
class WriteJob:
    """One request for a write, until it is answered."""

    plan: Plan | EntryPlan | OneTriple
    quick: bool  # planning takes microseconds: no thread is worth it
    request_id: bytes  # the same however often it is planned
    since: int | None  # the log index behind which all entries of this request are, if there are any
    is_new: bool  # its id was made for it, and is not in the log
    answer: Outcome
    seeing: Seeing = WholeState
    author: Author = UNKNOWN_AUTHOR
    sent: bool = False  # by this writer, to the log
    maybe_stored: bool = False  # sent, and not known to be refused
    give_up_at: float | None = None  # on the event loop's clock; set when the log first fails it

    def note_sent(self, last_index: int) -> None:
        """It goes to the log, behind last_index."""
        self.sent, self.is_new = True, False
        if self.since is None:
            self.since = last_index

    def foresee(self, confirmation: Confirmation) -> None:
        """It will probably be answered so."""
        if isinstance(self.answer, ForeseeingOutcome) and not self.answer.done():
            self.answer.foresee(confirmation)

    def succeed(self, confirmation: Confirmation) -> None:
        """Answer it so, unless nobody waits any more."""
        if not self.answer.done():
            self.answer.set_result(confirmation)

    def fail(self, error: Exception) -> None:
        """Answer it so, unless nobody waits any more."""
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(slots=True)
class TurnJob:
    """Something to do between two batches, with the index that the store is at: on a thread, or, where
    perform is of the event loop, there until it is done.
    """

    perform: Callable[[int], Any]
    answer: "asyncio.Future[Any]"
    on_loop: bool = False

    def fail(self, error: Exception) -> None:
        """Answer it so, unless nobody waits any more."""
        if not self.answer.done():
            self.answer.set_exception(error)


class WriteQueue:
    """Owned by a `ShardWriter`, on its event loop."""

    def __init__(self) -> None:
        self._jobs: deque[WriteJob | TurnJob] = deque()

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: WriteJob | TurnJob) -> None:
        """Behind all others."""
        self._jobs.append(job)

    def put_back(self, jobs: Iterable[WriteJob | TurnJob]) -> None:
        """In front of all others, in this order."""
        self._jobs.extendleft(reversed([*jobs]))

    @property
    def begins_apart(self) -> bool:
        """Whether the first job has a turn of its own."""
        return bool(self._jobs) and (isinstance(self._jobs[0], TurnJob) or _is_entry(self._jobs[0]))

    def take_turn(self) -> TurnJob | None:
        """The first job, if it wants a turn of its own."""
        if self._jobs and isinstance(job := self._jobs[0], TurnJob):
            self._jobs.popleft()
            return job
        return None

    def take_entry(self) -> WriteJob | None:
        """The first job, if it is an entry of another kind than changes; None if nobody waits for it."""
        if not (self._jobs and _is_entry(self._jobs[0])):
            return None
        job = self._jobs.popleft()
        assert isinstance(job, WriteJob)
        return None if job.answer.done() else job

    def take_writes(self, count_max: int, planned: Sequence[WriteJob] = ()) -> list[WriteJob]:
        """The changes in front whose callers still wait, to stand in one batch with those that are planned:
        count_max of all, and no two with the same id or key.

        The second waits until it is known what has become of the first.
        """
        jobs = {job.request_id if job.is_new else key_part(job.request_id): job for job in planned}
        later: list[WriteJob] = []
        while self._jobs and len(jobs) < count_max and isinstance(job := self._jobs[0], WriteJob):
            if isinstance(job.plan, EntryPlan):
                break
            self._jobs.popleft()
            if job.answer.done():
                continue
            # an id that was made for it is nobody else's
            part = job.request_id if job.is_new else key_part(job.request_id)
            if jobs.setdefault(part, job) is not job:
                later.append(job)
        if later:
            self.put_back(later)
        return [*jobs.values()][len(planned) :]

    def take_quick(self, count_max: int, takes: Callable[[WriteJob], bool]) -> list[WriteJob]:
        """The quick changes in front whose callers still wait, as far as takes says so of those with an id
        that was not made for them.
        """
        jobs: list[WriteJob] = []
        while self._jobs and len(jobs) < count_max:
            job = self._jobs[0]
            if not isinstance(job, WriteJob) or not job.quick:
                break
            if not job.answer.done():
                if not (job.is_new or takes(job)):  # an id that was made for it is nobody else's
                    break
                jobs.append(job)
            self._jobs.popleft()
        return jobs

    def fail_all(self, error: Exception) -> None:
        """Nothing that waits will be done."""
        while self._jobs:
            self._jobs.popleft().fail(error)


def _is_entry(job: WriteJob | TurnJob) -> bool:
    return isinstance(job, WriteJob) and isinstance(job.plan, EntryPlan)
