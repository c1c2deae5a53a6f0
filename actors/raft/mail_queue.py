"""`MailQueue`: from any thread to one coroutine, bounded; when it is full the oldest message goes."""

import asyncio
from collections import deque
from threading import Lock

__all__ = ["MailQueue"]


class MailQueue:
    """Putting never blocks and never fails. One coroutine on the loop takes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, messages_max: int, bytes_max: int) -> None:
        """bytes_max may be exceeded by a single message."""
        self._loop = loop
        self._messages_max, self._bytes_max = messages_max, bytes_max
        self._lock = Lock()
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self.dropped_count = 0

    def put(self, messages: list[bytes]) -> None:
        """Add messages behind those that wait."""
        with self._lock:
            was_empty = not self._messages
            for message in messages:
                self._messages.append(message)
                self._bytes += len(message)
            while len(self._messages) > 1 and self._is_over():
                self._bytes -= len(self._messages.popleft())
                self.dropped_count += 1
        if was_empty:
            self._wake()

    async def take(self) -> bytes:
        """The oldest message; waits for one."""
        while True:
            with self._lock:
                if self._messages:
                    message = self._messages.popleft()
                    self._bytes -= len(message)
                    return message
                self._filled.clear()
            await self._filled.wait()

    def clear(self) -> None:
        """Forget what waits."""
        with self._lock:
            self._messages.clear()
            self._bytes = 0

    def _wake(self) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._filled.set()  # a good deal faster than the way through the loop's own pipe
        else:
            self._loop.call_soon_threadsafe(self._filled.set)

    def _is_over(self) -> bool:
        return len(self._messages) > self._messages_max or self._bytes > self._bytes_max
