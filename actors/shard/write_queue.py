"""`WriteQueue`: what waits for the writer's next turn."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from actors.shard.write_batch import EntryPlan, WriteJob
from graphdb.log.request_ids import key_part

__all__ = ["TurnJob", "WriteQueue"]


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

    def put_back(self, jobs: Iterable[WriteJob]) -> None:
        """In front of all others, in this order."""
        self._jobs.extendleft(reversed([*jobs]))

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

    def take_writes(self, count_max: int) -> list[WriteJob]:
        """The changes in front whose callers still wait, no two of them with the same id or key.

        The second waits until it is known what has become of the first.
        """
        jobs: dict[bytes, WriteJob] = {}
        later: list[WriteJob] = []
        while self._jobs and len(jobs) < count_max and isinstance(job := self._jobs[0], WriteJob):
            if _is_entry(job):
                break
            self._jobs.popleft()
            if not job.answer.done() and jobs.setdefault(key_part(job.request_id), job) is not job:
                later.append(job)
        if later:
            self.put_back(later)
        return [*jobs.values()]

    def fail_all(self, error: Exception) -> None:
        """Nothing that waits will be done."""
        while self._jobs:
            self._jobs.popleft().fail(error)


def _is_entry(job: WriteJob | TurnJob) -> bool:
    return isinstance(job, WriteJob) and isinstance(job.plan, EntryPlan)
