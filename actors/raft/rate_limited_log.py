"""`RateLimitedLog`: warnings that whoever reaches the port can cause, a few a minute at most."""

import logging
import time

__all__ = ["RateLimitedLog"]

_PAUSE_S = 60.0


class RateLimitedLog:
    """One warning a topic a minute; the next one says how many were left out. For one thread."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._topics: dict[str, tuple[float, int]] = {}  # when the last one was written, how many not since

    def warn(self, topic: str, message: str, *arguments: object) -> None:
        """topic is one of a few words of ours, message a format for arguments."""
        written_at, left_out = self._topics.get(topic, (float("-inf"), 0))
        if time.monotonic() < written_at + _PAUSE_S:
            self._topics[topic] = (written_at, left_out + 1)
            return
        self._topics[topic] = (time.monotonic(), 0)
        self._logger.warning(f"{message} (%d more like it since the last such line)", *arguments, left_out)
