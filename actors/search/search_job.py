"""What waits to be logged: commands, and how those of several callers share one log entry."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphdb.search.catalog.catalog_commands import Command, DocumentWrite, Outcome, WriteDocuments
from graphdb.search.catalog.command_codec import encode_command
from graphdb.search.errors import SearchError

__all__ = ["ENTRY_BYTES_MAX", "ENTRY_WRITES_MAX", "SearchJob", "SharedEntry", "join", "write_bytes"]

ENTRY_BYTES_MAX = 1 << 20  # of documents in one entry, unless one alone is larger
ENTRY_WRITES_MAX = 1000
_WRITE_BYTES = 64  # what a write takes beside its texts, about


def write_bytes(write: DocumentWrite) -> int:
    """What a write takes in an entry, about."""
    operation = write.operation
    return _WRITE_BYTES + len(operation.body) + len(operation.doc_id) + len(write.index)


@dataclass(eq=False, slots=True)
class SearchJob:
    """One caller's command. logged: it is in the log, for good; outcome: it has taken effect here."""

    command: Command
    size_bytes: int
    logged: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    outcome: "asyncio.Future[Outcome]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def fail(self, error: Exception) -> None:
        """Answer it so, unless it is answered or nobody waits any more."""
        for future in (self.logged, self.outcome):
            if not future.done():
                future.set_exception(error)
                future.exception()  # who waits for the one does not look at the other

    def note_logged(self) -> None:
        if not self.logged.done():
            self.logged.set_result(None)

    def succeed(self, outcome: Outcome) -> None:
        self.note_logged()
        if not self.outcome.done():
            self.outcome.set_result(outcome)


@dataclass(eq=False, slots=True)
class SharedEntry:
    """One log entry, and those whose commands are in it."""

    request_id: bytes
    command: Command
    jobs: Sequence[SearchJob]
    answered: "asyncio.Future[None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    maybe_stored: bool = False  # see `actors.log.group_commit.Job`
    give_up_at: float | None = None

    def try_encode(self) -> bytes | None:
        """Its payload; None where some command in it cannot be written down."""
        try:
            return encode_command(self.command)
        except SearchError:
            return None

    def fail_culprits(self) -> list[SearchJob]:
        """After try_encode has failed: answer those at whom it lay; the others."""
        innocent = []
        for job in self.jobs:
            try:
                encode_command(job.command)
            except SearchError as error:
                job.fail(error)
            else:
                innocent.append(job)
        return innocent

    def fail(self, error: Exception) -> None:
        """Answer all of the jobs so."""
        for job in self.jobs:
            job.fail(error)

    def note_logged(self) -> None:
        for job in self.jobs:
            job.note_logged()

    def succeed(self, outcome: Outcome) -> None:
        """Give each job its part of what has come of the entry."""
        if not self.answered.done():
            self.answered.set_result(None)
        if len(self.jobs) == 1 or outcome.error is not None:
            for job in self.jobs:
                job.succeed(outcome)
            return
        results: Sequence[Any] = outcome.value
        start = 0
        for job in self.jobs:
            assert isinstance(job.command, WriteDocuments)
            stop = start + len(job.command.writes)
            job.succeed(Outcome(list(results[start:stop])))
            start = stop


def join(queue: deque[SearchJob]) -> tuple[Command, list[SearchJob]]:
    """Take the first job, and those right behind it that can share its entry; the command of them all."""
    jobs = [queue.popleft()]
    size_bytes, count = jobs[0].size_bytes, _count(jobs[0])
    while queue and _may_share(jobs[0]) and _may_share(queue[0]):
        size_bytes += queue[0].size_bytes
        count += _count(queue[0])
        if size_bytes > ENTRY_BYTES_MAX or count > ENTRY_WRITES_MAX:
            break
        jobs.append(queue.popleft())
    first = jobs[0].command
    if len(jobs) == 1 or not isinstance(first, WriteDocuments):
        return first, jobs
    commands = [job.command for job in jobs if isinstance(job.command, WriteDocuments)]
    writes = tuple(write for command in commands for write in command.writes)
    return replace(first, writes=writes, refresh=any(command.refresh for command in commands)), jobs


def _may_share(job: SearchJob) -> bool:
    return isinstance(job.command, WriteDocuments) and job.command.cursor is None


def _count(job: SearchJob) -> int:
    return len(job.command.writes) if isinstance(job.command, WriteDocuments) else 1
