"""`SearchWanted`: as of which log index other nodes need this one's search indexes on its disk."""

from collections.abc import Callable

__all__ = ["SearchWanted"]

_WANTED_S = 5.0  # who needs them asks again and again


class SearchWanted:
    """For one thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock gives seconds that never go back."""
        self._clock = clock
        self._index, self._asked_at = 0, float("-inf")

    def note(self, log_index: int) -> None:
        """Some node needs them as of there."""
        self._index, self._asked_at = max(self.index(), log_index), self._clock()

    def index(self) -> int:
        """0 where nobody has asked lately."""
        return self._index if self._clock() < self._asked_at + _WANTED_S else 0
