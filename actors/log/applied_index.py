"""`AppliedIndex`: how far a view has followed the log, as its readers see it."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

from graphdb.errors import LogUnavailable

__all__ = ["AppliedIndex"]


class _Changing:
    """See `AppliedIndex.changing`. A class: every write enters it."""

    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self._begin, self._end = begin, end

    def __enter__(self) -> None:
        self._begin()

    def __exit__(self, *raised: object) -> None:
        self._end()


class AppliedIndex:
    """Belongs to whoever changes the view, on one event loop. It may be read on any thread."""

    def __init__(self, read: Callable[[], int]) -> None:
        """read returns the log index of the last entry whose effect is in the view."""
        self._read = read
        self._is_changing = False
        self._awaited: dict[asyncio.Future[None], int] = {}

    @property
    def current(self) -> int:
        """The log index of the last entry that readers see; they may see one more that is being applied."""
        return self._read()

    @property
    def exact(self) -> int | None:
        """The log index of exactly the state that readers see; None while a change is being applied."""
        return None if self._is_changing else self._read()

    def changing(self) -> AbstractContextManager[None]:
        """Around whatever changes the view and what read() returns."""
        return _Changing(self._begin_change, self._end_change)

    def _begin_change(self) -> None:
        self._is_changing = True

    def _end_change(self) -> None:
        self._is_changing = False
        if self._awaited:
            self._wake()

    async def wait_for(self, index: int) -> None:
        """Return once current is at least index. Raises LogUnavailable: see `end_waits`."""
        if self.current >= index:
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited[reached] = index
        try:
            await reached
        finally:
            del self._awaited[reached]
            del reached  # an error that it has, has this frame, and would keep the view until a collection

    def end_waits(self, reason: str) -> None:
        """Nothing will come any more: LogUnavailable for whoever waits now, who lets go of the view so."""
        for reached in self._awaited:
            if not reached.done():
                reached.set_exception(LogUnavailable(reason))

    def _wake(self) -> None:
        for reached, index in self._awaited.items():
            if index <= self.current and not reached.done():
                reached.set_result(None)
