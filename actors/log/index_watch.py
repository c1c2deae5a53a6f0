"""`IndexWatch`: tells who waits for it that more of a log can be read."""

import asyncio
from concurrent.futures import Future

from actors.futures import answer

__all__ = ["IndexWatch"]


class IndexWatch:
    """Owned by a log, used on its loop."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._known: dict[Future[int], int] = {}  # what each that waits knows

    def advance(self, index: int) -> None:
        """Entries up to index can be read."""
        self._index = index
        for future, known_index in tuple(self._known.items()):
            if known_index < index:
                answer(future, index)

    def watch(self, known_index: int, timeout_s: float) -> "Future[int]":
        """The last index that can be read, once it is greater than known_index or the time is up."""
        future: Future[int] = Future()
        if known_index < self._index:
            answer(future, self._index)
            return future
        self._known[future] = known_index
        giving_up = asyncio.get_running_loop().call_later(timeout_s, lambda: answer(future, self._index))

        def forget(_: "Future[int]") -> None:
            giving_up.cancel()
            del self._known[future]

        future.add_done_callback(forget)
        return future
