"""A process to kill: a shard over its log, which sends the number of each acknowledged update."""

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path

from pyoxigraph import NamedNode

from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.node.store_lifecycle import StoreConfig
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.log.file_log import FileLogConfig
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from graphdb.store import clearing
from tests.support.shards import Shard, no_readers

WRITERS = 8
CLEARED = NamedNode("urn:cleared")
CLEARED_QUADS = 50


def serve(data_dir: Path, first: int, acknowledged: Connection) -> None:
    """Until killed."""
    asyncio.run(_serve(data_dir, first, acknowledged))


async def _serve(data_dir: Path, first: int, acknowledged: Connection) -> None:
    log = UpdateLog(
        str(data_dir / "log"),
        FileLogConfig(segment_bytes=8192, reserve_bytes=8192),
        socket_directory=str(data_dir),
    )

    async def endpoint() -> str:
        return log.endpoint()

    settings = Settings(server={"data_dir": data_dir})
    shard = Shard.standalone(
        settings, LogClient(endpoint), no_readers(), StoreConfig(checkpoint_log_bytes=20_000)
    )
    await shard.start()
    clearing.CLEARED_QUADS_MIN = CLEARED_QUADS
    writers = (_write(shard, first + writer, acknowledged) for writer in range(WRITERS))
    await asyncio.gather(*writers, _clear(shard))


async def _clear(shard: Shard) -> None:
    """Fill a graph, and empty it as a large one."""
    triples = " ".join(f"<urn:s{number}> <urn:p> {number} ." for number in range(CLEARED_QUADS))
    while True:
        for text in (f"INSERT DATA {{ GRAPH {CLEARED} {{ {triples} }} }}", f"DROP GRAPH {CLEARED}"):
            await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())


async def _write(shard: Shard, number: int, acknowledged: Connection) -> None:
    while True:
        text = f"INSERT DATA {{ <urn:update> <urn:number> {number} . _:b <urn:twin> {number} }}"
        await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())
        acknowledged.send_bytes(b"%d" % number)
        number += WRITERS
