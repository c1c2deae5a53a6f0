"""`TokenBucket`: how many events a second are let through, with a burst."""

import time

__all__ = ["TokenBucket"]


class TokenBucket:
    """Holds burst tokens when full and gains per_second of them."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second, self._burst = per_second, burst
        self._tokens = burst
        self._filled_at = time.monotonic()

    def take(self, tokens: float = 1) -> float:
        """Take tokens; how many seconds to wait before the event they stand for may happen."""
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now
        self._tokens -= tokens
        return max(0.0, -self._tokens / self._per_second)

    def try_take(self) -> bool:
        """Take one token if there is one."""
        if self.take(0) > 0 or self._tokens < 1:
            return False
        self._tokens -= 1
        return True
