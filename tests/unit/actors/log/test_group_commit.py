"""What a job is told, for each way in which an append may end."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from actors.log.group_commit import Appended, GroupCommit
from graphdb.errors import (
    CorruptionError,
    GraphDBError,
    LogCompacted,
    LogUnavailable,
    OutcomeUnknown,
    StorageFull,
    UnavailableError,
)

pytestmark = pytest.mark.anyio

LOST = OutcomeUnknown("the answer was lost")
AWAY = LogUnavailable("away")


@dataclass(eq=False)
class TestedJob:
    __test__ = False

    is_found: bool = False  # in the log, once that is settled
    maybe_stored: bool = False
    give_up_at: float | None = None
    answer: object = None

    def fail(self, error: Exception) -> None:
        self.answer = error


@dataclass
class ToldOutcomes:
    refusals: tuple[type[UnavailableError], ...] = (StorageFull,)
    decides_later: bool = False
    settled: bool = False
    faults: list[GraphDBError] = field(default_factory=list)

    def may_be_stored(self, error: UnavailableError) -> bool:
        return self.decides_later or isinstance(error, OutcomeUnknown)

    def answer_known(self, job: TestedJob) -> bool:
        if job.is_found and self.settled:
            job.answer = "stored"
        return job.answer is not None

    def fall_behind(self, error: GraphDBError) -> None:
        self.faults.append(error)

    def settle(self, end: bool | Exception) -> Callable[[UnavailableError | None], Awaitable[bool]]:
        async def settle(error: UnavailableError | None) -> bool:
            if isinstance(end, Exception):
                raise end
            self.settled = end
            return end

        return settle


def sending(fate: int | Exception) -> Callable[[], Awaitable[int]]:
    async def send() -> int:
        if isinstance(fate, Exception):
            raise fate
        return fate

    return send


async def outcome(
    fate: int | Exception,
    end: bool | Exception,
    job: TestedJob,
    *,
    wait_s: float = 10,
    decides_later: bool = False,
) -> tuple[Appended[TestedJob], ToldOutcomes]:
    outcomes = ToldOutcomes(decides_later=decides_later)
    commit = GroupCommit[TestedJob](outcomes, wait_s)
    return await commit.append(sending(fate), [job], [job], outcomes.settle(end)), outcomes


async def test_what_is_stored_may_be_stored_whatever_comes_after() -> None:
    job = TestedJob()
    appended, outcomes = await outcome(5, False, job)
    assert (appended, job.answer, job.maybe_stored) == (Appended(5), None, True)
    GroupCommit[TestedJob](outcomes, 1).fail([job], StorageFull("full"))
    assert isinstance(job.answer, OutcomeUnknown)


@pytest.mark.parametrize("fate", [0, AWAY, LOST])
async def test_what_is_not_found_is_tried_again(fate: int | Exception) -> None:
    job = TestedJob()
    appended, _ = await outcome(fate, True, job)
    assert appended == Appended(0, [job])
    assert (job.answer, job.maybe_stored) == (None, False)
    assert job.give_up_at is not None


@pytest.mark.parametrize("fate", [0, AWAY, LOST])
async def test_what_is_found_is_answered(fate: int | Exception) -> None:
    job = TestedJob(is_found=True)
    appended, _ = await outcome(fate, True, job)
    assert (appended.first_index, [*appended.again], job.answer) == (0, [], "stored")


@pytest.mark.parametrize(
    ("fate", "end", "decides_later", "told"),
    [
        pytest.param(StorageFull("full"), True, False, StorageFull, id="refused"),
        pytest.param(0, False, False, LogUnavailable, id="another was first, and what it is does not show"),
        pytest.param(AWAY, False, False, LogUnavailable, id="not sent"),
        pytest.param(AWAY, False, True, OutcomeUnknown, id="refused by a leader, and decided later"),
        pytest.param(LOST, False, False, OutcomeUnknown, id="lost, and it does not show in time"),
        pytest.param(LOST, LogCompacted("gone"), False, OutcomeUnknown, id="lost, and the place is lost too"),
        pytest.param(AWAY, LogCompacted("gone"), False, LogCompacted, id="not sent, and the place is lost"),
        pytest.param(LOST, CorruptionError("bad", "log"), False, CorruptionError, id="the log is damaged"),
    ],
)
async def test_a_job_fails_as_far_as_its_outcome_is_known(
    fate: Exception, end: bool | Exception, decides_later: bool, told: type[Exception]
) -> None:
    job = TestedJob()
    appended, outcomes = await outcome(fate, end, job, decides_later=decides_later)
    assert (appended.first_index, [*appended.again], type(job.answer)) == (0, [], told)
    assert outcomes.faults == ([end] if isinstance(end, Exception) else [])


async def test_a_job_gives_up_after_its_time_and_is_told_that_nothing_was_stored() -> None:
    job = TestedJob(give_up_at=0.0)
    appended, _ = await outcome(LOST, True, job)
    assert ([*appended.again], type(job.answer)) == ([], LogUnavailable)
    job = TestedJob(give_up_at=0.0)
    appended, _ = await outcome(0, True, job)
    assert [*appended.again] == [job], "another's entry is no failure of the log"
