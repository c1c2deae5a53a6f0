"""`SpatialKeeper`: keeps a store's spatial index up, on a thread that gives way."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from actors.log.applied_index import AppliedIndex
from graphdb.geo.spatial_index import SpatialIndex
from graphdb.store.quad_store import QuadStore

__all__ = ["SpatialKeeper"]

logger = logging.getLogger(__name__)
_TURN_S = 0.004  # about as long as the event loop may wait for Python
_REST_S_MIN = 0.002
_AFTER_FAILURE_S = 30.0


class SpatialKeeper:
    """Owned by an open store or a view, on its event loop. A store without geometries costs a look at its
    start.
    """

    def __init__(self, quads: QuadStore, applied: AppliedIndex, directory: Path) -> None:
        """directory is for the index's files, which have no names."""
        self._quads, self._applied, self._directory = quads, applied, directory
        self._loop = asyncio.get_running_loop()
        self._work = asyncio.Event()
        # one thread: the engine's iterators end the process when used on another than their own
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spatial")
        self._task = self._loop.create_task(self._run())

    async def close(self) -> None:
        """Let go of the store."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._thread.shutdown()

    async def _run(self) -> None:
        while True:
            index = SpatialIndex(self._quads.objects_of, self._directory, self._has_work)
            self._quads.spatial_index = index
            try:
                await self._keep_up(index)
            except Exception:
                logger.exception("the spatial index failed; queries go without, and it is made anew soon")
            finally:
                self._quads.spatial_index = None
                await asyncio.shield(self._on_thread(index.close))
            await asyncio.sleep(_AFTER_FAILURE_S)

    async def _keep_up(self, index: SpatialIndex) -> None:
        while True:
            self._work.clear()
            while index.has_work:
                if self._applied.exact is not None:
                    index.begin()
                began = time.perf_counter()
                await self._on_thread(_steps, index)
                if (exact := self._applied.exact) is not None:
                    index.publish(exact)
                # as long a rest as the work took: the event loop has been waiting for Python meanwhile
                await asyncio.sleep(max(_REST_S_MIN, time.perf_counter() - began))
            await self._work.wait()

    def _has_work(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._work.set)

    async def _on_thread(self, function: Callable[..., None], *arguments: SpatialIndex) -> None:
        await self._loop.run_in_executor(self._thread, function, *arguments)


def _steps(index: SpatialIndex) -> None:
    """Some, for a few milliseconds."""
    until = time.perf_counter() + _TURN_S
    while index.step() and time.perf_counter() < until:
        pass
