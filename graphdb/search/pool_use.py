"""`PoolUse`: how busy the workers of one kind are, as `_cat/thread_pool` shows them."""

from dataclasses import dataclass

__all__ = ["PoolCounter", "PoolUse"]


@dataclass(frozen=True, slots=True)
class PoolUse:
    """size: how many work at once; queue_size: how many may wait, -1: no number bounds them. rejected,
    completed: since the process began; largest: most that were at work at once.

    waiting_bytes: of what is under way or waits, at most bytes_max (0: nothing bounds it).
    taken_bytes: of all so far.
    """

    size: int
    queue_size: int = -1
    active: int = 0
    queue: int = 0
    rejected: int = 0
    completed: int = 0
    largest: int = 0
    waiting_bytes: int = 0
    taken_bytes: int = 0
    bytes_max: int = 0


@dataclass(slots=True)
class PoolCounter:
    """What a pool counts. For one thread."""

    rejected: int = 0
    completed: int = 0
    largest: int = 0

    def note_active(self, active: int) -> None:
        self.largest = max(self.largest, active)

    def use(self, size: int, queue_size: int, active: int, queue: int) -> PoolUse:
        """The counts, with what is under way now."""
        return PoolUse(size, queue_size, active, queue, self.rejected, self.completed, self.largest)
