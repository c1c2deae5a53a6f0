"""`UpdateTurn`: how long the planning of one update may keep the writer, and with it all other updates."""

import time

from actors.readers.running_queries import QueryRun
from graphdb.errors import QueryTimeout

__all__ = ["UpdateTurn"]


class UpdateTurn:
    """Made when planning begins, on the writer's thread: what waited before that does not count."""

    def __init__(self, run: QueryRun, timeout_s: float) -> None:
        self.run = run
        self._timeout_s = timeout_s
        self._ends = time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        """How much of the time limit is left."""
        return max(0.0, self._ends - time.monotonic())

    def check(self) -> None:
        """Raises QueryCancelled, QueryTimeout."""
        self.run.check()
        if time.monotonic() >= self._ends:
            raise self.past_limit()

    def past_limit(self) -> QueryTimeout:
        """What to tell whoever sent the update."""
        return QueryTimeout(f"the update took longer than {self._timeout_s:g} s and was ended")
