"""`Checkpointer`: flushes the store now and then, so that the log behind it can go."""

import asyncio
import logging

from actors.log.client import LogAccess
from actors.shard.store_directory import KeptBeside, StoreDirectory
from graphdb.errors import CorruptionError, UnavailableError
from graphdb.log.replay import Replayer
from graphdb.log.views import QUADS
from graphdb.store.quad_store import QuadStore

__all__ = ["Checkpointer"]

logger = logging.getLogger(__name__)


class Checkpointer:
    """Owned by a `StoreShard`. It works beside the writer and never keeps it waiting."""

    def __init__(
        self,
        directory: StoreDirectory,
        quads: QuadStore,
        kept: KeptBeside,
        replayer: Replayer,
        log: LogAccess,
        every_bytes: int,
    ) -> None:
        """replayer knows how far quads has got; a checkpoint is due when the log has grown by every_bytes."""
        self._directory = directory
        self._quads = quads
        self._kept = kept
        self._replayer = replayer
        self._log = log
        self._every_bytes = every_bytes
        self._grown_bytes = 0
        self._held_bytes: int | None = None  # by the log, the fewest since the last checkpoint
        self._task: asyncio.Task[None] | None = None

    def count(self, logged_bytes: int) -> None:
        """The log has grown by so much; begin a checkpoint if one is due."""
        self._grown_bytes += logged_bytes
        if self._grown_bytes >= self._every_bytes:
            self._begin()

    async def look(self) -> None:
        """See how the log has grown by what others write, which is not read for the store; begin a checkpoint
        if one is due. Raises LogUnavailable.
        """
        held_bytes = (await self._log.status()).held_bytes
        self._held_bytes = min(held_bytes, held_bytes if self._held_bytes is None else self._held_bytes)
        if held_bytes - self._held_bytes >= self._every_bytes:
            self._begin()

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._grown_bytes, self._held_bytes = 0, None
            self._task = asyncio.get_running_loop().create_task(self._try())

    async def _try(self) -> None:
        try:
            await self.checkpoint()
        except (UnavailableError, CorruptionError) as error:
            logger.warning("no checkpoint: %s; the log keeps what it would have dropped", error)

    async def checkpoint(self) -> None:
        """Flush the store, record how far it is and what is kept beside it, drop the log before that.

        Raises StorageFull, LogUnavailable, CorruptionError; whatever was not reached is done the next time.
        """
        # read before the flush: what is applied meanwhile may not be in it
        index = self._replayer.resume_index
        await asyncio.to_thread(self._quads.flush)
        await asyncio.to_thread(self._record, index)
        await self._log.truncate_before(index + 1, QUADS)

    def _record(self, index: int) -> None:
        self._directory.write_beside(self._kept)
        self._directory.write_applied(index)

    async def finish(self) -> None:
        """Wait for a checkpoint that is under way."""
        if self._task is not None:
            await self._task

    async def close(self) -> None:
        """Make a last checkpoint, after one that is under way."""
        await self.finish()
        await self._try()
