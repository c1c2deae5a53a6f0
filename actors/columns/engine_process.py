"""`EngineProcess`: the process that DuckDB runs in, from its parent's side."""

import asyncio
import contextlib
import logging
import socket
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from actors.bounded_process import BoundedProcess, spawn
from actors.columns.engine_protocol import ENGINE_MESSAGES, Alive, AskSetup, EngineSetup, LogAt
from actors.wire.messages import Done
from actors.wire.server import Call, ServerConnection, WireServer

__all__ = ["EngineProcess", "EngineWishes"]

logger = logging.getLogger(__name__)
_SILENCE_S = 10.0  # after which one that says nothing is killed: something keeps Python from its turn
_CLOSING_S = 5.0


@dataclass(frozen=True)
class EngineWishes:
    """What an engine is given: what it opens, where the log is, and who hears that it is alive."""

    setup: EngineSetup
    find_log: Callable[[], Awaitable[str]]
    listening: Callable[[], None]


class EngineProcess(BoundedProcess):
    """Start it, and have `serve` run; it returns when the process is gone."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        memory_limit_mb: int,
        connection: ServerConnection,
        wishes: EngineWishes,
    ) -> None:
        super().__init__(process, memory_limit_mb)
        self._connection, self._wishes = connection, wishes
        self._silence: asyncio.TimerHandle | None = None  # from when it has said first that it is alive

    @classmethod
    async def start(cls, wishes: EngineWishes, memory_limit_mb: int) -> "EngineProcess":
        """Raises OSError."""
        server = WireServer(ENGINE_MESSAGES, "the column view", "", lambda call: engine._answer(call))
        ours, theirs = socket.socketpair()
        with theirs:
            connection = await server.adopt(ours)
            try:
                # what it logs goes where the messages of this process go
                process = spawn("actors.columns.engine", theirs, [str(memory_limit_mb)], stderr=None)
                engine = cls(process, memory_limit_mb, connection, wishes)
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
                call.answer(self._wishes.setup)
            case Alive():
                self._note_alive()
                call.answer(Done())
            case _:
                call.run(self._find_log(call))

    async def _find_log(self, call: Call) -> None:
        call.answer(LogAt(await self._wishes.find_log()))

    def _note_alive(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
        self._silence = self._loop.call_later(_SILENCE_S, self._give_up)
        self._wishes.listening()

    def _give_up(self) -> None:
        logger.warning("%s has said nothing for %g s and is killed", self.where, _SILENCE_S)
        self._connection.close()
