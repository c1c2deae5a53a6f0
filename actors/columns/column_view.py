"""`ColumnView`: owns the node's column view, which answers analytical queries. `EngineProcess`: the process
that DuckDB runs in, from its parent's side.

DuckDB runs in a process of its own (`engine.py`), on a Unix domain socket (`ColumnClient`). It is killed and
started again where it takes too much memory, or a query in it does not end. Whatever happens to it, the view
is opened again or made anew, and meanwhile the readers answer.
"""

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from actors.bounded_process import BoundedProcess, spawn
from actors.columns.protocol import (
    ALIVE_S,
    ENGINE_MESSAGES,
    Alive,
    AskSetup,
    EngineSetup,
    LogAt,
    RayAt,
    ViewSettings,
)
from actors.loop_thread import LoopThread
from actors.wire.messages import Done
from actors.wire.server import Call, ServerConnection, WireServer, private_directory
from graphdb.config import Settings

__all__ = ["ColumnView", "EngineOptions", "EngineProcess"]

logger = logging.getLogger(__name__)
_SILENCE_S = 10.0  # after which one that says nothing is killed: something keeps Python from its turn
_CLOSING_S = 5.0
# Until there is a view, which then gives way as all do that answer queries. At 10 a view of 1.5 million
# quads took 65 s to be made beside ten processes that never rested, and meanwhile readers answer.
_NICENESS_BUILDING = 5


@dataclass(frozen=True)
class EngineOptions:
    """What an engine is given: what it opens, and where the log is."""

    setup: EngineSetup
    find_log: Callable[[], Awaitable[str]]
    module: str


class EngineProcess(BoundedProcess):
    """Start it, and have `serve` run; it returns when the process is gone."""

    look_s = ALIVE_S  # it is watched at rest too; DuckDB keeps to a limit of its own, and the kernel to one

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        memory_limit_mb: int,
        connection: ServerConnection,
        options: EngineOptions,
    ) -> None:
        super().__init__(process, memory_limit_mb)
        self._connection, self._options = connection, options
        self._silence: asyncio.TimerHandle | None = None  # from when it has said first that it is alive

    @classmethod
    async def start(cls, options: EngineOptions, memory_limit_mb: int) -> "EngineProcess":
        """Raises OSError."""
        server = WireServer(ENGINE_MESSAGES, "the column view", "", lambda call: engine._answer(call))
        ours, theirs = socket.socketpair()
        with theirs:
            connection = await server.adopt(ours)
            try:
                # what it logs goes where the messages of this process go
                process = spawn(
                    options.module,
                    theirs,
                    [str(memory_limit_mb)],
                    stderr=None,
                    niceness=_NICENESS_BUILDING,
                )
                engine = cls(process, memory_limit_mb, connection, options)
            except BaseException:
                connection.close()
                raise
        engine.watch_memory()
        return engine

    @property
    def where(self) -> str:
        return f"the column view (process {self.pid})"

    async def serve(self) -> None:
        """Answer its questions until it is gone."""
        await self._connection.ended()
        self.kill()
        await self.ended.wait()
        if self._silence is not None:
            self._silence.cancel()
        if self.has_filled_memory():
            logger.warning("%s took more than its memory and was killed", self.where)

    async def close(self) -> None:
        """Have it end in order, or else."""
        self._is_to_end = True
        self._connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                await self.ended.wait()
        self.kill()
        await self.ended.wait()

    def let_go(self) -> None:
        self._connection.close()

    def _answer(self, call: Call) -> None:
        match call.request:
            case AskSetup():
                call.answer(self._options.setup)
            case Alive():
                self._note_alive()
                call.answer(Done())
            case _:
                call.run(self._find_log(call))

    async def _find_log(self, call: Call) -> None:
        call.answer(LogAt(await self._options.find_log()))

    def _note_alive(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
        self._silence = self._loop.call_later(_SILENCE_S, self._give_up)

    def _give_up(self) -> None:
        logger.warning("%s has said nothing for %g s and is killed", self.where, _SILENCE_S)
        self._connection.close()


_BESIDE_MB = (
    512  # what the process may have beside DuckDB's memory: Python, answers on their way, large strings
)
_RAY_MB = 256  # of a process that is connected to Ray
_ENGINE, _DIVIDED_ENGINE = "actors.columns.engine", "actors.divided_columns"
_AGAIN_S, _AGAIN_S_MAX = 0.1, 10.0  # between a process's end and the next one's start
_LASTING_S = 10.0  # a process that lives for less has failed, and the next pause is longer


class ColumnView:
    """The column view as a service. Methods block until done and may be called on any thread."""

    def __init__(
        self,
        settings: Settings,
        find_log: Callable[[], Awaitable[str]],
        *,
        ray_at: RayAt | None = None,
        socket_directory: str | None = None,
    ) -> None:
        """Have an engine started, which listens soon and opens the view, or waits for a copy of the store.

        find_log is `LogClient`'s. ray_at is for shards; None: there are none, whatever the settings say.
        socket_directory is for tests; by default a private one is made under the system's directory for
        temporary files.
        """
        data_dir = settings.server.data_dir
        self._path = os.path.join(socket_directory or private_directory(str(data_dir)), "columns.sock")
        self._setup = EngineSetup(
            str(data_dir / "columns"),
            settings.server.disk_reserve_mb,
            self._path,
            ViewSettings.of(settings.columns),
            ray_at,
        )
        is_divided = ray_at is not None and settings.columns.shards != 1
        self._module = _DIVIDED_ENGINE if is_divided else _ENGINE
        self._memory_limit_mb = settings.columns.memory_limit_mb + _BESIDE_MB + is_divided * _RAY_MB
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
        self._keeping = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        """Keep an engine running."""
        loop, failures = asyncio.get_running_loop(), 0
        options = EngineOptions(self._setup, self._find_log, self._module)
        while True:
            began = loop.time()
            try:
                self._engine = await EngineProcess.start(options, self._memory_limit_mb)
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
