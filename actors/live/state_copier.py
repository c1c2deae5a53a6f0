"""`StateCopier`: copies of a node's store in the state of one log index, hard links where possible."""

import asyncio
import itertools
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from pyoxigraph import Store

from actors.live.live_copy import CopiedState
from graphdb.errors import StorageFull
from graphdb.public_text import fault_text
from graphdb.store.quad_store import QuadStore

__all__ = ["InTurn", "StateCopier"]

InTurn: TypeAlias = Callable[[Callable[[int], int]], Awaitable[int]]


class StateCopier:
    """Owns the directory: what is in it at the start is of a process before this one."""

    def __init__(self, directory: Path) -> None:
        """It is on the store's file system."""
        self._directory = directory
        self._names = (f"copy-{number}" for number in itertools.count())
        self._is_clean = False

    async def copy(self, quads: QuadStore, in_turn: InTurn) -> CopiedState:
        """The state of a store while it stands still. in_turn calls what it is given then, with the index.

        Raises StorageFull, CorruptionError, LogUnavailable.
        """
        path = self._directory / next(self._names)
        await asyncio.to_thread(self._clean)

        def make(index: int) -> int:
            quads.checkpoint(path)
            return index

        try:
            index = await in_turn(make)
            store = await asyncio.to_thread(Store, path)
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            raise StorageFull(f"copying the store for live queries: {fault_text(error)}", 5) from error
        return CopiedState(QuadStore(store), index, str(path))

    def _clean(self) -> None:
        if not self._is_clean:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory.mkdir(parents=True, exist_ok=True)
            self._is_clean = True
