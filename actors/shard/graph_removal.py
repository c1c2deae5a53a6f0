"""`GraphRemoval`: removes the graphs that a store hides, beside its writer, and keeps what waits for that."""

import asyncio
import logging
from collections.abc import Callable

from actors.shard.write_queue import TurnJob, WriteJob, WriteQueue
from actors.worker_thread import on_thread
from graphdb.errors import CorruptionError, GraphDBError, LogUnavailable, UnavailableError
from graphdb.public_text import fault_text
from graphdb.store.quad_store import QuadStore

__all__ = ["GraphRemoval"]

logger = logging.getLogger(__name__)


class GraphRemoval:
    """Owned by a `ShardWriter`, on its event loop."""

    def __init__(
        self,
        quads: QuadStore,
        queue: WriteQueue,
        on_fault: Callable[[GraphDBError], None],
        on_end: Callable[[], None],
    ) -> None:
        """on_fault is told why removing has failed; it begins again with the next `look`. on_end is called
        each time that nothing is under way any more.
        """
        self._quads, self._queue = quads, queue
        self._on_fault, self._on_end = on_fault, on_end
        self._parked: list[WriteJob | TurnJob] = []
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def parked(self) -> int:
        """How many wait."""
        return len(self._parked)

    @property
    def is_under_way(self) -> bool:
        """Whether on_end will be called."""
        return self._task is not None

    @property
    def holds_turns(self) -> bool:
        """Whether what looks at the engine itself has to wait."""
        return self._quads.is_removing

    def park(self, *jobs: WriteJob | TurnJob) -> None:
        """They wait until nothing is hidden."""
        self._parked += jobs

    def unpark(self) -> None:
        """They are the first in the queue again."""
        self._queue.put_back(self._parked)
        self._parked.clear()

    def look(self) -> None:
        """Begin where there is anything to do; put back what waits where there is not."""
        if self._task is not None:
            return
        if self._quads.is_removing:
            self._task = asyncio.get_running_loop().create_task(self._run())
        elif self._parked:
            self.unpark()

    def stop(self) -> None:
        """Remove no more than what somebody waits for. The rest goes when the log is replayed at the next
        start.
        """
        self._closing = True

    async def close(self) -> None:
        """Let go of the store, after a step that is under way."""
        self.stop()
        try:
            if (task := self._task) is not None:
                await task
        finally:
            self._quads.let_go()

    async def _run(self) -> None:
        try:
            while self._quads.is_removing and (self._parked or not self._closing):
                await on_thread(self._quads.remove_some)
        except (UnavailableError, CorruptionError) as error:
            self._on_fault(error)
        except Exception as error:
            logger.exception("removing graphs failed")
            self._on_fault(LogUnavailable(f"removing graphs failed: {fault_text(error)}", 5))
        finally:
            self._task = None
            self._on_end()
