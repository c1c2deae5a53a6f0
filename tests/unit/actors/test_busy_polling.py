"""An event loop that polls for what is about to come, and only then."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from actors import busy_polling
from actors.busy_polling import BusyPolling, processors

SOON_S, LATE_S = 0.05, 0.2  # how long it polls, and what is longer


class Looks(selectors.DefaultSelector):
    """Counts how often the loop has looked without sleeping."""

    without_sleep = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.without_sleep += timeout is not None and timeout <= 0
        return super().select(timeout)


Waits = Callable[[float], Coroutine[Any, Any, int]]


def looks(work: Callable[[Waits, BusyPolling], Coroutine[Any, Any, list[int]]]) -> list[int]:
    """Do this with a function that sleeps and says how often the loop has looked meanwhile."""
    selector = Looks()

    async def waited(seconds: float) -> int:
        before = selector.without_sleep
        await asyncio.sleep(seconds)
        return selector.without_sleep - before

    async def all_work() -> list[int]:
        return await work(waited, BusyPolling(SOON_S))

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        return runner.run(all_work())


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy_polling, "processors", lambda: 2.0)


async def expected(waited: Waits, polling: BusyPolling, comes_after_s: float) -> int:
    polling.expect()
    found = await waited(comes_after_s)
    polling.came()
    await asyncio.sleep(0)
    return found


def test_it_polls_where_the_last_came_soon() -> None:
    async def work(waited: Waits, polling: BusyPolling) -> list[int]:
        return [await expected(waited, polling, SOON_S / 10) for _ in range(3)]

    first, second, third = looks(work)
    assert first <= 2  # of the sleep itself
    assert min(second, third) > 20


def test_what_does_not_come_is_polled_for_once() -> None:
    async def work(waited: Waits, polling: BusyPolling) -> list[int]:
        seconds = (SOON_S / 10, LATE_S, LATE_S, SOON_S / 10, SOON_S / 10)
        return [await expected(waited, polling, one) for one in seconds]

    found = looks(work)
    assert [count > 20 for count in found] == [False, True, False, False, True]


def test_the_loop_sleeps_when_the_time_is_over_and_when_it_has_come() -> None:
    async def work(waited: Waits, polling: BusyPolling) -> list[int]:
        await expected(waited, polling, 0)
        after_came = await waited(LATE_S)
        polling.expect()
        await asyncio.sleep(LATE_S)
        return [after_came, await waited(LATE_S)]

    assert max(looks(work)) <= 2


def test_one_processor_is_left_to_whoever_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy_polling, "processors", lambda: 1.5)

    async def work(waited: Waits, polling: BusyPolling) -> list[int]:
        return [await expected(waited, polling, SOON_S / 10) for _ in range(3)]

    assert max(looks(work)) <= 2


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
