"""An event loop that polls for what is about to come, and only then."""

import asyncio
from pathlib import Path

import pytest

from actors import busy_polling
from actors.busy_polling import BusyPolling, processors

pytestmark = pytest.mark.anyio
POLLS_S, SOON_S, LATE_S = 1.0, 0.5, 1.5  # how long it polls; what is less, and what is longer
_TURNS = 5


class Clock:
    """In place of `perf_counter`. A loop that polls reads it in each turn."""

    def __init__(self) -> None:
        self.now, self.reads = 0.0, 0

    def __call__(self) -> float:
        self.reads += 1
        return self.now

    async def is_polled(self) -> bool:
        """Whether the loop polls: it has not slept in some turns of it."""
        before = self.reads
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        return self.reads - before >= _TURNS - 1

    async def comes_after(self, polling: BusyPolling, seconds: float) -> bool:
        """Whether the loop polls for what comes after a while."""
        polling.expect()
        found = await self.is_polled()
        self.now += seconds
        polling.came()
        await asyncio.sleep(0)
        return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """With two processors."""
    clock = Clock()
    monkeypatch.setattr(busy_polling, "perf_counter", clock)
    monkeypatch.setattr(busy_polling, "processors", lambda: 2.0)
    return clock


async def test_it_polls_where_the_last_came_soon(clock: Clock) -> None:
    polling = BusyPolling(POLLS_S)
    seconds = (SOON_S, SOON_S, LATE_S, LATE_S, SOON_S, SOON_S)
    polled = [await clock.comes_after(polling, one) for one in seconds]
    assert polled == [False, True, True, False, False, True]


async def test_the_loop_sleeps_when_it_has_come(clock: Clock) -> None:
    polling = BusyPolling(POLLS_S)
    for _ in range(2):
        await clock.comes_after(polling, SOON_S)
    assert not await clock.is_polled()


async def test_the_loop_sleeps_when_the_time_is_over(clock: Clock) -> None:
    polling = BusyPolling(POLLS_S)
    await clock.comes_after(polling, SOON_S)
    polling.expect()
    assert await clock.is_polled()
    clock.now += LATE_S
    assert not await clock.is_polled()


async def test_one_processor_is_left_to_whoever_is_waited_for(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(busy_polling, "processors", lambda: 1.5)
    polling = BusyPolling(POLLS_S)
    assert [await clock.comes_after(polling, SOON_S) for _ in range(3)] == [False] * 3


@pytest.mark.parametrize(
    ("groups", "files", "found"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n"}, None),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n"}, 0.5),
        ("0::/\n", {"cpu.max": "25000 100000\n"}, 0.25),
        (
            "2:cpu,cpuacct:/a\n0::/\n",
            {"cpu/a/cpu.cfs_quota_us": "50000\n", "cpu/a/cpu.cfs_period_us": "200000\n"},
            0.25,
        ),
        ("2:cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "-1\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, None),
        ("1:memory:/a\n", {"cpu.max": "10000 100000"}, None),
    ],
    ids=["no quota", "of a group above", "of a container", "version 1", "none in version 1", "not of these"],
)
def test_quotas_of_control_groups_count(
    tmp_path: Path, groups: str, files: dict[str, str], found: float | None
) -> None:
    for name, text in files.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "own").write_text(groups)
    unlimited = processors(tmp_path / "nothing", tmp_path / "groups")
    assert unlimited >= 1
    assert processors(tmp_path / "own", tmp_path / "groups") == (unlimited if found is None else found)
