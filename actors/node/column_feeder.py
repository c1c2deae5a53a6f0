"""`ColumnFeeder`: gives a column view a copy of the store whenever it has to be made anew."""

import asyncio
import logging
import shutil
from pathlib import Path

from actors.columns.client import ColumnClient
from actors.columns.protocol import Load
from actors.node.open_store import CurrentStore
from graphdb.errors import GraphDBError, StorageFull

__all__ = ["ColumnFeeder"]

logger = logging.getLogger(__name__)
_AGAIN_S = 1.0
_VIEW_SHARE = 4  # the view, and rows on their way, take less than that part of the store's tables


class ColumnFeeder:
    """Owned by a `StoreLifecycle`, on its event loop; it owns the directory."""

    def __init__(self, columns: ColumnClient, directory: Path, current: CurrentStore) -> None:
        """directory is on the store's file system."""
        self._columns, self._directory, self._current = columns, directory, current

    async def run(self) -> None:
        """For ever."""
        while True:
            try:
                await self._columns.wait_wanted()
                await self._feed()
            except GraphDBError as error:
                logger.debug("the column view is not fed now: %s", error)
                await asyncio.sleep(_AGAIN_S)
            except Exception:
                logger.exception("feeding the column view failed")
                await asyncio.sleep(_AGAIN_S)

    async def _feed(self) -> None:
        path = self._directory / "copy"
        try:
            index = await self._copy(path)
            await self._columns.load(Load(str(path), index))
        finally:
            await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)

    async def _copy(self, path: Path) -> int:
        """The log index that it is of. Whoever waits for the view afterwards has nothing of the store."""
        shard = self._current.opened()
        table_bytes, _ = await asyncio.to_thread(shard.directory.engine_files)
        if not shard.checkpointer.room.admits(table_bytes // _VIEW_SHARE):
            raise StorageFull("the disk has no room for the column view")
        await asyncio.to_thread(self._clean)

        def make(_applied_index: int) -> int:
            shard.quads.checkpoint(path)
            # parts of a large change that is not closed yet have had no effect, and are to be read again
            return shard.replayer.resume_index

        return await shard.writer.in_turn(make)

    def _clean(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(parents=True)
