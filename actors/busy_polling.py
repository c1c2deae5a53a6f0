"""`BusyPolling`: an event loop that does not sleep while what it waits for is about to come.

A thread that sleeps until a message comes takes 30 to 60 µs to wake on a virtual machine, whose processor is
halted meanwhile. So a loop that is likely to hear of something within a moment looks for it again and again:
busy polling, as sockets have it on Linux (`SO_BUSY_POLL`). As KVM does for its guests (`halt_poll_ns`), it
goes by what came last, and polls only while that pays.
"""

import asyncio
import os
from contextlib import suppress
from functools import cache
from math import inf
from pathlib import Path
from time import perf_counter

__all__ = ["BusyPolling", "processors"]


class BusyPolling:
    """For one event loop, and one kind of thing that it waits for, one at a time.

    It polls where the last one came within the time, and otherwise sleeps as usual. So what does not come
    costs one time in vain, and a loop at rest costs nothing.
    """

    def __init__(self, most_s: float) -> None:
        """most_s: how long it is worth polling; 0: never. It never does on one processor, on which whoever it
        waits for could not run.
        """
        self._most_s = most_s if processors() >= 2 else 0.0
        self._expected_at: float | None = None
        self._is_soon = False  # as the last one was
        self._is_polling = False

    def expect(self) -> None:
        """From now on it is waited for. On the loop."""
        if self._most_s:
            self._expected_at = perf_counter()
            if self._is_soon and not self._is_polling:
                self._is_polling = True
                asyncio.get_running_loop().call_soon(self._poll)

    def came(self) -> None:
        """What was expected, if anything was, has come."""
        if self._expected_at is not None:
            self._is_soon = perf_counter() - self._expected_at < self._most_s
            self._expected_at = None

    def _poll(self) -> None:
        expected_at = self._expected_at
        if expected_at is not None and perf_counter() - expected_at < self._most_s:
            os.sched_yield()  # whoever else waits for this processor goes first
            asyncio.get_running_loop().call_soon(self._poll)  # a loop with more to do looks without sleeping
        else:
            self._is_polling = False


@cache
def processors(groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> float:
    """How many processors this process may keep busy: those that it may run on, or what the quotas of its
    control groups leave of them (`cpu.max`, in version 1 `cpu.cfs_quota_us`).

    groups: the list of its control groups; root: where they are mounted.
    """
    found = float(len(os.sched_getaffinity(0)))
    with suppress(OSError):
        for line in groups.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                found = min(found, _quota(root / "cpu" if controllers else root, path))
    return found


def _quota(root: Path, path: str) -> float:
    """The least of a control group and those that it is in."""
    group = root / path.strip("/")
    return min(_own_quota(one) for one in (group, *group.parents) if one.is_relative_to(root))


def _own_quota(group: Path) -> float:
    for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        with suppress(OSError, ValueError):  # what is not Linux itself may write what it likes
            quota, period = " ".join((group / file).read_text() for file in files).split()
            return inf if quota in ("max", "-1") else int(quota) / int(period)
    return inf
