"""Limits on time that hold on a busy machine too.

`HANG_S` is for what has to come at some time. `quick_enough` is for what is promised to come soon: what the
product does wrong is slow each time, what the machine does is not.
"""

import time
from collections.abc import Callable, Iterator
from types import TracebackType

__all__ = ["HANG_S", "Stopwatch", "quick_enough", "wait_until"]

HANG_S = 120.0
_TRIES = 5


def wait_until(true: Callable[[], object]) -> None:
    """Wait until true() is; raises AssertionError where that takes longer than anything may."""
    deadline = time.monotonic() + HANG_S
    while not true():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.005)


class Stopwatch:
    """Runs within its `with`."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0

    def __enter__(self) -> "Stopwatch":
        self._began = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.monotonic() - self._began


def quick_enough(limit_s: float) -> Iterator[Stopwatch]:
    """Stopwatches for the same work, until it has taken less than limit_s.

    Raises AssertionError where it takes longer each time. Whatever else is asserted holds each time.
    """
    taken = []
    for _ in range(_TRIES):
        stopwatch = Stopwatch()
        yield stopwatch
        if stopwatch.seconds < limit_s:
            return
        taken.append(f"{stopwatch.seconds:.2f}")
    raise AssertionError(f"it is to take less than {limit_s} s, and took {', '.join(taken)} s")
