"""`ClientThreads`: what clients do on threads of their own for as long as a `with` block lasts."""

import threading
from collections.abc import Callable, Iterable
from typing import Self

__all__ = ["ClientThreads"]


class ClientThreads:
    """Started by `with`, which waits in the end until all have returned: soon after `_ended` is set."""

    def __init__(self, runs: Iterable[Callable[[], None]]) -> None:
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=run) for run in runs]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
