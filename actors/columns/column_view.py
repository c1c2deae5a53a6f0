"""`ColumnView`: owns the node's column view, which answers analytical queries.

DuckDB runs in a process of its own (`engine.py`), on a Unix domain socket (`ColumnClient`). It is killed and
started again where it takes too much memory, or a query in it does not end. Whatever happens to it, the view
is opened again or made anew, and meanwhile the readers answer.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable

from actors.columns.engine_process import EngineProcess, EngineWishes
from actors.columns.engine_protocol import EngineSetup
from actors.loop_thread import LoopThread
from actors.wire.private_socket import private_directory
from graphdb.config import Settings

__all__ = ["ColumnView"]

logger = logging.getLogger(__name__)
_BESIDE_MB = (
    512  # what the process may have beside DuckDB's memory: Python, answers on their way, large strings
)
_PATIENCE_S = 30.0  # for the first start; one that is late comes later
_AGAIN_S, _AGAIN_S_MAX = 0.1, 10.0  # between a process's end and the next one's start
_LASTING_S = 10.0  # a process that lives for less has failed, and the next pause is longer


class ColumnView:
    """The column view as a service. Methods block until done and may be called on any thread."""

    def __init__(
        self,
        settings: Settings,
        find_log: Callable[[], Awaitable[str]],
        *,
        socket_directory: str | None = None,
    ) -> None:
        """Begin to listen; the view is opened, or waits for a copy of the store, in the background.

        find_log is `LogClient`'s. socket_directory is for tests; by default a private one is made under the
        system's directory for temporary files.
        """
        data_dir = settings.server.data_dir
        self._path = os.path.join(socket_directory or private_directory(str(data_dir)), "columns.sock")
        self._setup = EngineSetup(
            str(data_dir / "columns"),
            settings.server.disk_reserve_mb,
            self._path,
            settings.columns.model_dump(mode="json"),
            settings.security.figures(),
        )
        self._memory_limit_mb = settings.columns.memory_limit_mb + _BESIDE_MB
        self._find_log = find_log
        self._engine: EngineProcess | None = None
        self._thread = LoopThread("columns")
        self._thread.run(self._start())

    def endpoint(self) -> str:
        """The path of the socket, for `ColumnClient`."""
        return self._path

    def close(self) -> None:
        """End what runs, stop listening, close the view."""
        self._thread.run(self._close())
        self._thread.close()

    async def _start(self) -> None:
        self._is_listening = asyncio.Event()
        self._keeping = asyncio.create_task(self._keep())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                await self._is_listening.wait()

    async def _keep(self) -> None:
        """Keep an engine running."""
        loop, failures = asyncio.get_running_loop(), 0
        wishes = EngineWishes(self._setup, self._find_log, self._is_listening.set)
        while True:
            began = loop.time()
            try:
                self._engine = await EngineProcess.start(wishes, self._memory_limit_mb)
                await self._engine.serve()
            except OSError as error:
                logger.error("the column view does not start: %s", error)
            pause = min(_AGAIN_S * 2**failures, _AGAIN_S_MAX)
            failures = 0 if loop.time() - began > _LASTING_S else min(failures + 1, 10)
            await asyncio.sleep(pause)

    async def _close(self) -> None:
        self._keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._keeping
        if self._engine is not None:
            await self._engine.close()
