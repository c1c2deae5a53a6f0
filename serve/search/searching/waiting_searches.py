"""`WaitingSearches`: short searches of a busy port, some of which other processes make.

While searches take most of the port's time, each waits for its turn until all that have come are read. The
port then hands on as many as the processes beside it can take, and makes one of the others itself. Handing
one on costs a tenth of a millisecond: no task is made, and the processes get the body as it was parsed.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from typing import Protocol

from serve.port.application import LaterAnswer

__all__ = ["SearchLoad", "WaitingSearch", "WaitingSearches"]

# It is busy for this part of a time, with searches that take longer than handing them on does.
_BUSY, _LONG_S = 0.6, 0.00025
_LOOKED_AT_S, _KEPT_S = 0.25, 2.0

_AT_A_TIME, _IN_TURN = 1, 2  # searches that a process has; more where others wait here too


class WaitingSearch(LaterAnswer, ABC):
    """The answer to a search that waits for its turn."""

    __slots__ = ()

    @abstractmethod
    def hand_on(self, most: int) -> bool:
        """Have another process answer, if one has fewer searches than most."""

    @abstractmethod
    def search(self) -> None:
        """Answer it, here."""


class Clock(Protocol):
    """Seconds, which only grow."""

    def __call__(self) -> float: ...


class SearchLoad:
    """How much of the time goes by with searches, and whether they come over several connections."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = self._busy_until = self._alone_until = 0.0
        self._taken_s, self._count = 0.0, 0
        self._made_s = _LONG_S  # that one takes which is made here
        self._askers: set[int] = set()
        self._was_busy = False

    @property
    def is_shared(self) -> bool:
        """Whether more than one client waits."""
        return len(self._askers) > 1

    def note(self, taken_s: float) -> None:
        """A search was made here."""
        self._taken_s += taken_s
        self._count += 1
        self._made_s += (taken_s - self._made_s) / 16

    def note_handed_on(self) -> None:
        """A search was made elsewhere, which would have taken this process as long as others."""
        self._taken_s += self._made_s
        self._count += 1

    def note_asker(self, asker: int) -> None:
        """asker: of a search that waits; one for each connection."""
        self._askers.add(asker)

    def is_high(self) -> bool:
        """Whether searches are to wait for their turn."""
        now = self._clock()
        passed = now - self._since
        if passed >= _LOOKED_AT_S:
            if self._was_busy and not self.is_shared:
                self._alone_until = now + _KEPT_S  # a client that waits for each answer gains nothing
            if self._taken_s > max(_BUSY * passed, _LONG_S * self._count):
                self._busy_until = now + _KEPT_S
            self._since, self._taken_s, self._count = now, 0.0, 0
            self._was_busy = self._alone_until <= now < self._busy_until
            self._askers.clear()
        return self._alone_until <= now < self._busy_until


class WaitingSearches:
    """For one event loop."""

    def __init__(self, load: SearchLoad) -> None:
        self._load = load
        self._waiting: deque[WaitingSearch] = deque()  # at most one for each connection
        self._is_due = False

    def add(self, search: WaitingSearch) -> None:
        """Have it answered, after the call that receives it."""
        self._waiting.append(search)
        self._go_on()

    def _go_on(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._is_due = False
        waiting, load = self._waiting, self._load
        while waiting:
            search = waiting.popleft()
            load.note_asker(id(search.connection))
            if search.disconnected:
                continue
            if load.is_shared and search.hand_on(_IN_TURN if waiting else _AT_A_TIME):
                load.note_handed_on()
                continue
            search.search()
            break
        if waiting:
            self._go_on()
