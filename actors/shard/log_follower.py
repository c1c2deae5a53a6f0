"""`LogFollower`: brings a store to where the log is."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from actors.log.client import LogAccess
from actors.shard.applied_index import AppliedIndex
from graphdb.errors import CorruptionError, LogUnavailable
from graphdb.log.replay import Replayer
from graphdb.model import LogEntry

__all__ = ["LogFollower"]


class LogFollower:
    """Owned by a `ShardWriter`, on its event loop. One call at a time, and nothing else replays meanwhile."""

    def __init__(
        self,
        log: LogAccess,
        replayer: Replayer,
        on_thread: Callable[..., Awaitable[Any]],
        *,
        wait_s: float,
        poll_s: float,
        on_logged: Callable[[Sequence[LogEntry]], None],
    ) -> None:
        """on_thread calls a function on the thread that may use the store; on_logged is told what has been
        applied.
        """
        self._log = log
        self._replayer = replayer
        self._on_thread = on_thread
        self._wait_s, self._poll_s = wait_s, poll_s
        self._on_logged = on_logged
        self._heard_index = 0
        self.applied = AppliedIndex(lambda: replayer.applied_index)

    def hear(self, committed_index: int) -> None:
        """The log can be read that far."""
        self._heard_index = max(self._heard_index, committed_index)

    @property
    def is_behind(self) -> bool:
        """Whether there is more in the log, as far as is known."""
        return self._heard_index > self._replayer.applied_index

    async def catch_up(self, progress: Callable[[int], None] = lambda applied_index: None) -> None:
        """Apply what the log holds and the store does not. progress is told the index that is reached.

        Raises UnavailableError (LogCompacted: for good), CorruptionError; what was applied before that stays.
        """
        while True:
            heard_index, expected = self._heard_index, self._replayer.applied_index + 1
            entries = await self._log.read(expected)
            if not entries:
                if self._heard_index == heard_index:  # else something may have come behind the read
                    self._heard_index = 0
                return
            if entries[0].log_index != expected:
                raise CorruptionError(f"the entry {expected} is missing", "update log")
            with self.applied.changing():
                await self._on_thread(self._replayer.replay, entries)
            self._on_logged(entries)
            progress(self._replayer.applied_index)

    async def follow(self, is_settled: Callable[[], bool], *, pause: bool) -> bool:
        """Catch up until is_settled, or for wait_s: False. pause says to let the log come to itself first.

        Raises as catch_up does, LogUnavailable only after wait_s.
        """
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + self._wait_s
        while True:
            if pause:
                await asyncio.sleep(self._poll_s)
            pause = True
            try:
                await self.catch_up()
            except LogUnavailable:
                if clock() >= give_up_at:
                    raise
            else:
                if is_settled():
                    return True
                if clock() >= give_up_at:
                    return False
