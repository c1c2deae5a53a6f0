"""`ConnectionLoad`: when a port that searches keep busy lends some of its connections, and to whom."""

from collections.abc import Callable
from typing import Protocol

from serve.port.lending import Borrowable, Lender

__all__ = ["Clock", "ConnectionLoad"]

_BUSY = 0.3  # of the time goes by with searches, and about as much with what is around them
_LOOKED_AT_S, _KEPT_S = 0.25, 2.0
_AGAIN_S = 0.02  # since a connection was lent, until it is again: that costs 0.1 ms, with its way back


class Clock(Protocol):
    """Seconds, which only grow."""

    def __call__(self) -> float: ...


class ConnectionLoad:
    """For one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = self._busy_until = 0.0
        self._taken_s = 0.0
        self._askers: set[Borrowable] = set()  # whose connections are here, since
        self._were_asking = 0  # before
        self._lent_at: dict[Borrowable, float] = {}  # of late

    def note(self, taken_s: float) -> None:
        """A search was made here."""
        self._taken_s += taken_s

    def is_high(self) -> bool:
        """Whether connections may be lent."""
        now = self._clock()
        passed = now - self._since
        if passed >= _LOOKED_AT_S:
            if self._taken_s > _BUSY * passed:
                self._busy_until = now + _KEPT_S
            self._since, self._taken_s = now, 0.0
            self._were_asking = len(self._askers)
            self._askers.clear()
            self._lent_at = {one: at for one, at in self._lent_at.items() if now - at < _AGAIN_S}
        return now < self._busy_until

    def offer(self, connection: Borrowable, lender: Callable[[], Lender | None]) -> None:
        """Lend a connection that was answered here, if the process has fewer than the port afterwards."""
        self._askers.add(connection)
        here = max(len(self._askers), self._were_asking)
        now = self._clock()
        if here < 2 or now - self._lent_at.get(connection, -_AGAIN_S) < _AGAIN_S:
            return
        to = lender()
        if to is None or len(to) + 1 > here - 1 or not to.lend(connection):
            return
        self._lent_at[connection] = now
        self._askers.discard(connection)
        self._were_asking -= 1
