"""`StateCopier`: copies of a node's store in the state of one log index, hard links where possible."""

import asyncio
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

from pyoxigraph import Store

from actors.live.live_copy import CopiedState
from actors.shard.open_shard import OpenShard
from graphdb.errors import StorageFull
from graphdb.store.quad_store import QuadStore

__all__ = ["StateCopier"]


class StateCopier:
    """Owns the directory: what is in it at the start is of a process before this one."""

    def __init__(self, directory: Path, opened: Callable[[], OpenShard]) -> None:
        """directory is on the store's file system; opened raises LogUnavailable where there is no store."""
        self._directory, self._opened = directory, opened
        self._names = (f"copy-{number}" for number in itertools.count())
        self._is_clean = False

    async def copy(self) -> CopiedState:
        """The state between two writes. Raises StorageFull, CorruptionError, LogUnavailable."""
        path = self._directory / next(self._names)
        shard = self._opened()
        await asyncio.to_thread(self._clean)

        def make(index: int) -> int:
            shard.quads.checkpoint(path)
            return index

        try:
            index = await shard.writer.in_turn(make)
            store = await asyncio.to_thread(Store, path)
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            raise StorageFull(f"copying the store for live queries: {error}") from error
        return CopiedState(QuadStore(store), index, str(path))

    def _clean(self) -> None:
        if not self._is_clean:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory.mkdir(parents=True, exist_ok=True)
            self._is_clean = True
