"""`RowRoom`: how many bytes what is made of segments for searches may take in a process."""

from threading import RLock

__all__ = ["RowRoom"]


class RowRoom:
    """How much the rows of all segments take. Any thread; also while the garbage collector runs in one."""

    def __init__(self, most: int) -> None:
        self._left, self._lock = most, RLock()

    def take(self, size: int) -> bool:
        """Whether there is so much."""
        with self._lock:
            if self._left < size:
                return False
            self._left -= size
            return True

    def give_back(self, sizes: list[int]) -> None:
        """Those of what is gone."""
        with self._lock:
            self._left += sum(sizes)
