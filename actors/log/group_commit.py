"""`GroupCommit`: takes the entries of many requests into the log with one append, and finds out what has
become of them when that fails. Both writers of a node use it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

from graphdb.errors import (
    CorruptionError,
    GraphDBError,
    LogUnavailable,
    OutcomeUnknown,
    UnavailableError,
)

__all__ = ["Appended", "GroupCommit", "Job", "Outcomes", "Settle"]


class Job(Protocol):
    """What waits to be logged, until it is answered."""

    maybe_stored: bool  # sent, and not known to be refused
    give_up_at: float | None  # on the event loop's clock; set when the log first fails it

    def fail(self, error: Exception) -> None:
        """Answer it so, unless it is answered already."""
        ...


J = TypeVar("J", bound=Job)
J_contra = TypeVar("J_contra", bound=Job, contravariant=True)

Settle: TypeAlias = Callable[[UnavailableError | None], Awaitable[bool]]
"""Return True once it is certain which of the sent jobs the log has taken, or will take, so that
`Outcomes.answer_known` can tell; False where that cannot be told in time. The argument is why the append
failed, None: another entry was there first. Raises UnavailableError, CorruptionError where the writer's view
cannot follow the log.
"""


class Outcomes(Protocol[J_contra]):
    """What a writer knows of its log and of its view of the log."""

    refusals: tuple[type[UnavailableError], ...]  # nothing was stored, and to try again would not help now

    def may_be_stored(self, error: UnavailableError) -> bool:
        """Whether entries may be in the log, or come into it still, after an append has failed so."""
        ...

    def answer_known(self, job: J_contra) -> bool:
        """Answer a job if its outcome is known by now; whether it is answered."""
        ...

    def fall_behind(self, error: GraphDBError) -> None:
        """The view cannot follow the log now, for this reason."""
        ...


@dataclass(frozen=True, slots=True)
class Appended(Generic[J]):
    """first_index: of the entries, 0 where they are not known to be stored; then `again` are the jobs that
    certainly have no entry and should be tried again, and all others are answered.
    """

    first_index: int
    again: Sequence[J] = field(default=())


class GroupCommit(Generic[J]):
    """For one event loop. It keeps nothing between two calls, and any number may be under way.

    A job is told that it failed only if it has no entry in the log and never will have; else it is told
    OutcomeUnknown. A job is given back to be tried again only if it certainly has no entry.
    """

    def __init__(self, outcomes: Outcomes[J], wait_s: float) -> None:
        """wait_s: how long a job waits for a log that fails."""
        self._outcomes, self._wait_s = outcomes, wait_s

    async def append(
        self, send: Callable[[], Awaitable[int]], jobs: Sequence[J], sent: Sequence[J], settle: Settle
    ) -> Appended[J]:
        """Have entries stored. send appends them and returns the index of the first, or 0: another entry was
        there first. sent are those of the jobs that the entries would store.
        """
        try:
            index = await send()
        except self._outcomes.refusals as error:
            self.fail(jobs, error)
            return Appended(0)
        except UnavailableError as error:
            for job in sent:
                job.maybe_stored = self._outcomes.may_be_stored(error)
            return Appended(0, await self._recover(jobs, settle, error))
        if index == 0:
            return Appended(0, await self._recover(jobs, settle, None))
        for job in sent:
            job.maybe_stored = True
        return Appended(index)

    def fail(self, jobs: Sequence[J], error: GraphDBError) -> None:
        """Answer those whose outcome is not known."""
        for job in jobs:
            if self._outcomes.answer_known(job):
                continue
            if job.maybe_stored and not isinstance(error, CorruptionError):
                job.fail(OutcomeUnknown(f"the write may have been stored, and will show if so: {error}", 5))
            elif isinstance(error, OutcomeUnknown):
                job.fail(LogUnavailable(f"the write was not stored: {error}", error.retry_after_s))
            else:
                job.fail(error)

    async def _recover(
        self, jobs: Sequence[J], settle: Settle, error: UnavailableError | None
    ) -> Sequence[J]:
        """After an append that failed: find out what the log holds; the jobs that are not found there."""
        try:
            settled = await settle(error)
        except (UnavailableError, CorruptionError) as fault:
            self._outcomes.fall_behind(fault)
            self.fail(jobs, fault)
            return ()
        if settled:
            return self._not_found(jobs, error)
        self.fail(jobs, error or LogUnavailable("what the log holds last is not decided yet", 5))
        return ()

    def _not_found(self, jobs: Sequence[J], error: UnavailableError | None) -> list[J]:
        now = asyncio.get_running_loop().time()
        again: list[J] = []
        for job in jobs:
            job.maybe_stored = False  # if it is not found now, it never will be
            if job.give_up_at is None:
                job.give_up_at = now + self._wait_s
            if error is not None and job.give_up_at < now:
                self.fail([job], error)
            elif not self._outcomes.answer_known(job):
                again.append(job)
        return again
