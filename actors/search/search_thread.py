"""`SearchThread`: the one thread on which a node's catalogue changes, and those beside it for long work."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["SearchThread"]

T = TypeVar("T")
_NICENESS = 10  # of merges: they can wait, searches and writes cannot


class SearchThread:
    """For one event loop."""

    def __init__(self) -> None:
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="search-writer")
        self._builder = ThreadPoolExecutor(max_workers=1, thread_name_prefix="search-builder")
        self._saver = ThreadPoolExecutor(max_workers=1, thread_name_prefix="search-saver")
        self._merger = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="search-merger", initializer=_give_way
        )

    async def write(self, function: Callable[..., T], *arguments: object) -> T:
        """Call it where the catalogue may be changed, after what was given before."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, function, *arguments)

    async def build(self, function: Callable[..., T], *arguments: object) -> T:
        """Make segments of what was written, while writes go on; searches wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._builder, function, *arguments)

    async def save(self, function: Callable[..., T], *arguments: object) -> T:
        """Write to disk while writes go on."""
        return await asyncio.get_running_loop().run_in_executor(self._saver, function, *arguments)

    async def beside(self, function: Callable[..., T], *arguments: object) -> T:
        """Call it while writes go on, giving way to all else."""
        return await asyncio.get_running_loop().run_in_executor(self._merger, function, *arguments)

    def close(self) -> None:
        """Finish what was given, however long that takes; nothing more may be given. Any thread."""
        for executor in (self._writer, self._builder, self._saver, self._merger):
            executor.shutdown()


def _give_way() -> None:
    """Linux keeps the niceness of each thread apart; where that is not allowed, it stays as it is."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
