"""`IndexKeeper`: keeps an index of a store up, behind its changes, on a thread that gives way."""

import asyncio
import contextlib
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

from actors.log.applied_index import AppliedIndex

__all__ = ["IndexKeeper", "SteppedIndex"]

logger = logging.getLogger(__name__)
_TURN_S = 0.004  # about as long as the event loop may wait for Python
_REST_S_MIN = 0.002
_AFTER_FAILURE_S = 30.0


class SteppedIndex(Protocol):
    """An index that takes in a store and its changes step by step."""

    @property
    def has_work(self) -> bool:
        """Whether there is something to begin or to take in."""

    def begin(self) -> None:
        """Begin to build what is due. No change is being applied."""

    def step(self) -> bool:
        """Take in some. Returns whether there was any."""

    def close(self) -> None:
        """Release the store. On the thread of `step`."""


K = TypeVar("K", bound=SteppedIndex)
T = TypeVar("T")


class IndexKeeper(ABC, Generic[K]):
    """Owned by an open store or a view, on its event loop. An index that fails is made anew after a while."""

    def __init__(self, applied: AppliedIndex, name: str, on_failure: str) -> None:
        """name: of the thread; on_failure: what the log says then."""
        self._applied, self._name, self._on_failure = applied, name, on_failure
        self._loop = asyncio.get_running_loop()
        self._work = asyncio.Event()
        self._thread: ThreadPoolExecutor | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def _has_begun(self) -> bool:
        return self._task is not None

    def _begin(self) -> None:
        # one thread: the engine's iterators end the process when used on another than their own
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=self._name)
        self._task = self._loop.create_task(self._run())

    async def close(self) -> None:
        """Let go of the store."""
        if self._task is None or self._thread is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._thread.shutdown()

    @abstractmethod
    async def _make(self) -> K:
        """A new index, which calls _has_work."""

    @abstractmethod
    def _show(self, index: K | None) -> None:
        """Have queries use the index from here on, or none."""

    def _note_steps(self, index: K) -> None:
        """Some steps were made."""

    @property
    def _is_waited_for(self) -> bool:
        """Whether it is not to give way."""
        return False

    async def _wait_for_work(self, _index: K) -> None:
        await self._work.wait()

    async def _run(self) -> None:
        while True:
            index = await self._make()
            self._show(index)
            try:
                await self._keep_up(index)
            except Exception:
                logger.exception(self._on_failure)
            finally:
                self._show(None)
                await asyncio.shield(self._on_thread(index.close))
            await asyncio.sleep(_AFTER_FAILURE_S)

    async def _keep_up(self, index: K) -> None:
        while True:
            self._work.clear()
            while index.has_work:
                if self._applied.exact is not None:
                    index.begin()
                worked_s = await self._on_thread(lambda: _steps(index))
                self._note_steps(index)
                if not self._is_waited_for:
                    # as long a rest as the work took: the event loop has been waiting for Python meanwhile
                    await asyncio.sleep(max(_REST_S_MIN, worked_s))
            await self._wait_for_work(index)

    def _has_work(self) -> None:
        """On any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._work.set)

    async def _on_thread(self, function: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._thread, function)


def _steps(index: SteppedIndex) -> float:
    """Some, for a few milliseconds. Returns how many seconds of the processor it took: while this waits for
    Python, the event loop has it.
    """
    began = time.thread_time()
    while index.step() and time.thread_time() - began < _TURN_S:
        pass
    return time.thread_time() - began
