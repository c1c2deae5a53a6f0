"""`Deadlines`: times by which much is to be over, with one timer of the event loop."""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Generic, TypeVar

__all__ = ["Deadlines"]

K = TypeVar("K")
_TIMER_S = 0.001  # the loop's timers are that exact


class Deadlines(Generic[K]):
    """For one event loop. Most of what has a deadline is over long before, and a timer of its own would be
    most of its cost. The one timer here is moved to earlier times only. Where what it was set for is over, it
    finds what is due next.
    """

    def __init__(self, expire: Callable[[K], object]) -> None:
        """expire is called with what is due, which is forgotten before."""
        self._expire = expire
        self._due: dict[K, float] = {}  # on the loop's clock
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf

    def set(self, key: K, timeout_s: float) -> None:
        """It is due after timeout_s, unless it is over before."""
        self._due[key] = at = asyncio.get_running_loop().time() + timeout_s
        if at < self._timer_at:
            self._look_at(at)

    def over(self, key: K) -> None:
        """It is not waited for any more. Nothing happens where it has no deadline."""
        self._due.pop(key, None)

    def close(self) -> None:
        """Forget everything."""
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = None, inf

    def _look_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = asyncio.get_running_loop().call_at(at, self._look), at

    def _look(self) -> None:
        self._timer, self._timer_at = None, inf
        now = asyncio.get_running_loop().time() + _TIMER_S
        for key in [key for key, at in self._due.items() if at <= now]:
            if self._due.pop(key, None) is not None:  # else it is over by what another has led to
                self._expire(key)
        if self._due:
            self._look_at(min(self._due.values()))
