"""`open_shard`: a StoreShard over a real log and real readers, without Ray."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.readers.client import ReaderClient
from actors.readers.store_reader import StoreReader
from actors.shard.store_shard import StoreShard
from graphdb.config import Settings
from graphdb.errors import UnavailableError
from graphdb.log.file_log import FileLogConfig
from tests.support.readers import answering

__all__ = ["SMALL_LOG", "no_readers", "open_shard", "stand_alone"]

SMALL_LOG = FileLogConfig(segment_bytes=65_536, reserve_bytes=65_536)


def no_readers() -> ReaderClient:
    """For a shard that is asked nothing that a reader would have to evaluate."""

    async def endpoint() -> str:
        raise UnavailableError("this node has no readers")

    return ReaderClient(endpoint)


@asynccontextmanager
async def open_shard(directory: Path, **sections: dict[str, Any]) -> AsyncIterator[StoreShard]:
    """A started node on a directory. sections are those of the configuration; one reader unless told more."""
    server = {"data_dir": directory} | sections.pop("server", {})
    readers = {"count": 1} | sections.pop("readers", {})
    settings = Settings.model_validate({"server": server, "readers": readers, **sections})
    log = UpdateLog(str(directory / "log"), SMALL_LOG, socket_directory=str(directory))
    reader = await asyncio.to_thread(StoreReader, settings, socket_directory=str(directory))
    client = ReaderClient(answering(reader.endpoint()))
    shard = StoreShard(settings, LogClient(answering(log.endpoint())), client)
    try:
        await shard.start()
        yield shard
    finally:
        await shard.close()
        await asyncio.to_thread(reader.close)
        log.close()


@asynccontextmanager
async def stand_alone(directory: Path) -> AsyncIterator[StoreShard]:
    """A started node on a directory, without readers."""
    log = UpdateLog(str(directory / "log"), SMALL_LOG)
    shard = StoreShard(
        Settings(server={"data_dir": directory}), LogClient(answering(log.endpoint())), no_readers()
    )
    try:
        await shard.start()
        yield shard
    finally:
        await shard.close()
        log.close()
