"""`python -m actors.columns.engine FD MEMORY_LIMIT_MB`: the process that DuckDB runs in.

Over the socket of this number it hears what it is to open (an `EngineSetup`), asks where the log is, and
says that it is alive (`Control`). Clients come to it directly, over the socket that the setup names. It ends
in order when the other end of its socket closes, and with its parent however that ends.
"""

import asyncio
import contextlib
import logging
import os
import socket
import sys
from itertools import count
from pathlib import Path

import uvloop

from actors.columns.engine_protocol import ALIVE_S, Control, EngineSetup
from actors.columns.server import ColumnServer
from actors.columns.view_files import ViewFiles
from actors.columns.view_keeper import ViewKeeper
from actors.disk_room import DiskRoom
from actors.error_codec import decode_error
from actors.frames import Frame, encode_frame, read_frame
from actors.log.client import LogClient
from actors.process_bounds import settle
from graphdb.config.limits import GateLimits
from graphdb.config.service import Columns
from graphdb.errors import LogUnavailable

__all__: list[str] = []

_THREAD_MB = 16  # address space of a thread of DuckDB, which has one for each processor


class _Parent:
    """The other end of the socket: what is asked of it, and its leaving."""

    def __init__(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._asked: dict[int, asyncio.Future[Frame]] = {}
        self._numbers = count(1)

    async def setup(self) -> EngineSetup:
        frame = await read_frame(self._incoming)
        if frame is None:
            sys.exit(0)
        return EngineSetup.decode(frame.body)

    async def find_log(self) -> str:
        """For `LogClient`. Raises LogUnavailable, ConfigError."""
        number = next(self._numbers)
        self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self.say(Control.FIND_LOG, number)
            frame = await self._asked[number]
        finally:
            del self._asked[number]
        if frame.code == Control.ERROR:
            raise decode_error(frame.body)
        return frame.body.decode()

    def say(self, message: Control, number: int = 0) -> None:
        if self._outgoing.is_closing():
            raise LogUnavailable("the column view is closing")
        self._outgoing.write(encode_frame(message, number, b""))

    async def until_gone(self) -> None:
        """Hand answers on until the other end closes."""
        while (frame := await read_frame(self._incoming)) is not None:
            asked = self._asked.get(frame.number)
            if asked is not None and not asked.done():
                asked.set_result(frame)


async def _keep_saying_alive(parent: _Parent) -> None:
    with contextlib.suppress(LogUnavailable):
        while True:
            parent.say(Control.ALIVE)
            await asyncio.sleep(ALIVE_S)


async def _run(connection: socket.socket) -> None:
    parent = _Parent(*await asyncio.open_unix_connection(sock=connection))
    setup = await parent.setup()
    settings = Columns.model_validate(setup.columns)
    log = LogClient(parent.find_log)
    directory = Path(setup.directory)
    room = DiskRoom(directory.parent, setup.disk_reserve_mb << 20)
    keeper = ViewKeeper(ViewFiles(directory, settings), log, room)
    server = ColumnServer(keeper, settings, GateLimits(**setup.limits), setup.socket_path)
    await server.start()
    tasks = [asyncio.create_task(keeper.run()), asyncio.create_task(_keep_saying_alive(parent))]
    await parent.until_gone()
    await server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await keeper.close()
    await log.close()


def _main() -> None:
    fd, memory_limit_mb = map(int, sys.argv[1:])
    settle(memory_limit_mb + _THREAD_MB * (os.cpu_count() or 1))
    logging.basicConfig(format="%(name)s: %(message)s")
    uvloop.run(_run(socket.socket(fileno=fd)))


if __name__ == "__main__":
    _main()
