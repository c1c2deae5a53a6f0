"""`IndexWatch`: tells who waits for it that more of a log can be read."""

from functools import partial

from actors.log.protocol import Index
from actors.wire.deadlines import Deadlines
from actors.wire.server import Call

__all__ = ["IndexWatch"]


class IndexWatch:
    """Owned by a log, used on its loop. Each append wakes the views that wait, so requests wait here without
    futures.
    """

    def __init__(self, index: int) -> None:
        self._index = index
        self._waiting: dict[Call, int] = {}  # what each that waits knows
        self._deadlines = Deadlines(self._answer)

    def advance(self, index: int) -> None:
        """Entries up to index can be read."""
        self._index = index
        if self._waiting:
            for call in [call for call, known_index in self._waiting.items() if known_index < index]:
                self._answer(call)

    def watch(self, call: Call) -> None:
        """Answer a `WatchIndex` with the last index that can be read, once it is greater than known_index or
        the time is up.
        """
        known_index = call.request.known_index
        if known_index < self._index:
            call.answer(Index(self._index))
            return
        self._waiting[call] = known_index
        self._deadlines.set(call, call.request.timeout_s)
        call.on_gone = partial(self._forget, call)

    def _answer(self, call: Call) -> None:
        self._forget(call)
        call.answer(Index(self._index))

    def _forget(self, call: Call) -> None:
        del self._waiting[call]
        self._deadlines.over(call)
