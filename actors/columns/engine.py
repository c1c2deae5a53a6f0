"""`python -m actors.columns.engine FD MEMORY_LIMIT_MB`: the process that DuckDB runs in.

Over the socket of this number it asks what it is to open (an `EngineSetup`) and where the log is, and says
that it is alive. Clients come to it directly, over the socket that the setup names. It ends in order when the
other end of its socket closes, and with its parent however that ends.
"""

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import uvloop

from actors.columns.database import ViewFiles
from actors.columns.protocol import (
    ALIVE_S,
    ENGINE_MESSAGES,
    Alive,
    AskSetup,
    EngineSetup,
    FindLog,
    LogAt,
)
from actors.columns.server import ColumnServer
from actors.columns.view_keeper import ViewKeeper
from actors.disk_room import DiskRoom
from actors.freed_memory import keep_freed
from actors.log.client import LogClient
from actors.log.view_reports import report_views
from actors.process_bounds import give_way, settle
from actors.wire.client import WireClient
from actors.wire.messages import Done
from graphdb.errors import LogUnavailable, OutcomeUnknown, UnavailableError

if TYPE_CHECKING:  # only the process of a view that is divided loads what shards need
    from actors.columns.shard_set import ShardSet

__all__ = ["Divide", "run_engine"]

Divide: TypeAlias = Callable[[EngineSetup], "ShardSet | None"]
_THREAD_MB = 16  # address space of a thread of DuckDB, which has one for each processor


async def _say_alive(parent: WireClient) -> None:
    """Now and then, until the parent is gone."""
    with contextlib.suppress(UnavailableError):
        while True:
            await parent.ask(Alive(), Done, None)
            await asyncio.sleep(ALIVE_S)


async def _no_other_parent() -> str:
    raise LogUnavailable("the column view is closing")


async def _run(connection: socket.socket, divide: Divide | None) -> None:
    parent = WireClient(ENGINE_MESSAGES, "the column view does", _no_other_parent, away=LogUnavailable)
    await parent.adopt(connection)
    try:
        setup = await parent.ask(AskSetup(), EngineSetup, None)
    except UnavailableError:
        return

    async def find_log() -> str:
        """For `LogClient`. Raises LogUnavailable, ConfigError."""
        try:
            return (await parent.ask(FindLog(), LogAt, None)).path
        except OutcomeUnknown as error:
            raise LogUnavailable(error.reason) from error

    log = LogClient(find_log, omits_search=True)
    directory = Path(setup.directory)
    data_dir = directory.parent
    room = DiskRoom(data_dir, setup.disk_reserve_mb << 20)

    def oldest(log_index: int) -> int:
        # it is not needed before something has changed for a while
        from graphdb.history.past_log import PastLog

        with contextlib.closing(PastLog(data_dir)) as past:
            return past.first_index(log_index) - 1

    keeper = ViewKeeper(ViewFiles(directory, setup.columns), log, room, give_way, oldest)
    server = ColumnServer(keeper, setup.columns, setup.socket_path)
    await server.start()
    working = keeper.run(), _say_alive(parent), report_views(log, keeper.view_status)
    tasks = [asyncio.create_task(work) for work in working]
    dividing = asyncio.create_task(_divided(keeper, divide, setup))
    await parent.until_gone()
    await server.close()
    await dividing
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await keeper.close()
    await log.close()


async def _divided(keeper: ViewKeeper, divide: Divide | None, setup: EngineSetup) -> None:
    """The view answers meanwhile: a connection to Ray takes seconds, and on a busy machine many."""
    shards = None if divide is None else await asyncio.to_thread(divide, setup)
    if shards is not None:
        await keeper.divide(shards)


def run_engine(divide: Divide | None = None, beside_mb: int = 0) -> None:
    """The whole process. divide makes the shards of the view, if there are to be any; beside_mb is the
    address space that takes.
    """
    fd, memory_limit_mb = map(int, sys.argv[1:])
    settle(memory_limit_mb + _THREAD_MB * (os.cpu_count() or 1) + beside_mb)
    keep_freed()
    logging.basicConfig(format="%(name)s: %(message)s")
    uvloop.run(_run(socket.socket(fileno=fd), divide))


if __name__ == "__main__":
    run_engine()
