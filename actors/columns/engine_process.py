"""`EngineProcess`: the process that DuckDB runs in, from its parent's side."""

import asyncio
import contextlib
import logging
import socket
import subprocess
from collections.abc import Awaitable, Callable

from actors.bounded_process import BoundedProcess, spawn
from actors.columns.engine_protocol import Control, EngineSetup
from actors.error_codec import encode_error
from actors.frames import Frame, encode_frame, read_frame
from graphdb.errors import GraphDBError

__all__ = ["EngineProcess"]

logger = logging.getLogger(__name__)
_SILENCE_S = 10.0  # after which one that says nothing is killed: something keeps Python from its turn
_CLOSING_S = 5.0


class EngineProcess(BoundedProcess):
    """Start it, and have `serve` run; it returns when the process is gone."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        memory_limit_mb: int,
        incoming: asyncio.StreamReader,
        outgoing: asyncio.StreamWriter,
    ) -> None:
        super().__init__(process, memory_limit_mb)
        self._incoming, self._outgoing = incoming, outgoing
        self._answering: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(cls, setup: EngineSetup, memory_limit_mb: int) -> "EngineProcess":
        """Raises OSError."""
        ours, theirs = socket.socketpair()
        with theirs:
            incoming, outgoing = await asyncio.open_unix_connection(sock=ours)
            try:
                # what it logs goes where the messages of this process go
                process = spawn("actors.columns.engine", theirs, [str(memory_limit_mb)], stderr=None)
                engine = cls(process, memory_limit_mb, incoming, outgoing)
            except BaseException:
                outgoing.transport.abort()
                raise
        engine._send(Frame(Control.SETUP, 0, setup.encode()))
        engine.watch_memory()
        return engine

    @property
    def where(self) -> str:
        return f"the column view (process {self.pid})"

    async def serve(self, find_log: Callable[[], Awaitable[str]], listening: Callable[[], None]) -> None:
        """Answer its questions until it is gone; listening is called each time that it says to be alive."""
        silence_s = None
        while True:
            try:
                async with asyncio.timeout(silence_s):
                    frame = await read_frame(self._incoming)
            except TimeoutError:
                logger.warning("%s has said nothing for %g s and is killed", self.where, _SILENCE_S)
                break
            if frame is None:
                break
            silence_s = _SILENCE_S
            if frame.code == Control.ALIVE:
                listening()
            else:
                answering = asyncio.create_task(self._answer(frame.number, find_log))
                self._answering.add(answering)
                answering.add_done_callback(self._answering.discard)
        self.kill()
        await self.ended.wait()
        if self.has_filled_memory():
            logger.warning("%s took more than its memory and was killed", self.where)

    async def close(self) -> None:
        """Have it end in order, or else."""
        self._is_to_end = True
        self._outgoing.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                await self.ended.wait()
        self.kill()
        await self.ended.wait()

    def let_go(self) -> None:
        self._outgoing.transport.abort()

    async def _answer(self, number: int, find_log: Callable[[], Awaitable[str]]) -> None:
        try:
            self._send(Frame(Control.LOG, number, (await find_log()).encode()))
        except GraphDBError as error:
            self._send(Frame(Control.ERROR, number, encode_error(error)))

    def _send(self, frame: Frame) -> None:
        if not self._outgoing.is_closing():
            self._outgoing.write(encode_frame(frame.code, frame.number, frame.body))
