"""`Shard`: a node called as one object; `open_shard`: one over a real log and real readers, without Ray."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from actors.clustering.clustered_node import clustered_node
from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.node.graph_node import GraphNode, standalone_node
from actors.node.open_store import OpenStore
from actors.readers.client import ReaderClient
from actors.readers.store_reader import StoreReader
from graphdb.access.visibility import Visibility
from graphdb.config import Settings
from graphdb.errors import UnavailableError
from graphdb.live.matcher import LiveQuery
from graphdb.log.file_log import FileLogConfig
from graphdb.model import UNKNOWN_AUTHOR, Author
from graphdb.node import RunningQuery
from serve.backend import GraphLive, GraphWrites, LiveSink
from tests.support.readers import answering
from tests.support.timing import HANG_S

__all__ = ["SMALL_LOG", "Shard", "no_readers", "open_shard", "stand_alone"]

SMALL_LOG = FileLogConfig(segment_bytes=65_536, reserve_bytes=65_536)


class Shard:
    """A node whose capabilities are called as if they were one: what a story tells needs many of them. Reads
    and changes are those of a visibility that sees everything.
    """

    def __init__(self, node: GraphNode[Any]) -> None:
        self.node = node

    @classmethod
    def standalone(cls, *arguments: Any, **options: Any) -> "Shard":
        """See `standalone_node`."""
        return cls(standalone_node(*arguments, **options))

    @classmethod
    def clustered(cls, *arguments: Any, **options: Any) -> "Shard":
        """See `clustered_node`."""
        return cls(clustered_node(*arguments, **options))

    def writes(self, visibility: Visibility, author: Author = UNKNOWN_AUTHOR) -> GraphWrites:
        writes: GraphWrites = self.node.writing.writes(visibility, author)
        return writes

    @property
    def open(self) -> OpenStore | None:
        return self.node.parts.current.open

    def opened(self) -> OpenStore:
        return self.node.parts.current.opened()

    def snapshot_index(self) -> int:
        return self.node.progress.snapshot_index()

    def running_queries(self) -> list[RunningQuery]:
        return self.node.running.running_queries()

    async def subscribe(self, query: LiveQuery, since: int | None, sink: LiveSink) -> str:
        return await self.node.changes.whole.subscribe(query, since, sink)

    def live(self, visibility: Visibility) -> GraphLive:
        live: GraphLive = self.node.changes.live(visibility)
        return live

    def __getattr__(self, name: str) -> Any:
        node = self.__dict__["node"]
        for part in (
            node,
            node.queries,
            node.queries.whole,
            node.progress,
            node.writing,
            node.changes,
            node.changes.whole,
            node.admin,
            node.alerts._log,
            node.parts.current,
            node.lifecycle,
            node.company,
        ):
            if hasattr(part, name):
                return getattr(part, name)
        raise AttributeError(name)


def no_readers() -> ReaderClient:
    """For a shard that is asked nothing that a reader would have to evaluate."""

    async def endpoint() -> str:
        raise UnavailableError("this node has no readers")

    return ReaderClient(endpoint)


@asynccontextmanager
async def open_shard(directory: Path, **sections: dict[str, Any]) -> AsyncIterator[Shard]:
    """A started node on a directory. sections are those of the configuration; one reader unless told more."""
    server = {"data_dir": directory} | sections.pop("server", {})
    readers = {"count": 1, "queue_timeout_seconds": HANG_S} | sections.pop("readers", {})
    settings = Settings.model_validate({"server": server, "readers": readers, **sections})
    log = UpdateLog(str(directory / "log"), SMALL_LOG, socket_directory=str(directory))
    reader = await asyncio.to_thread(StoreReader, settings, socket_directory=str(directory))
    client = ReaderClient(answering(reader.endpoint()))
    shard = Shard.standalone(settings, LogClient(answering(log.endpoint())), client)
    try:
        await shard.start()
        yield shard
    finally:
        await shard.close()
        await asyncio.to_thread(reader.close)
        log.close()


@asynccontextmanager
async def stand_alone(directory: Path, **sections: dict[str, Any]) -> AsyncIterator[Shard]:
    """A started node on a directory, without readers. sections are those of the configuration."""
    log = UpdateLog(str(directory / "log"), SMALL_LOG)
    settings = Settings.model_validate({"server": {"data_dir": directory}, **sections})
    shard = Shard.standalone(settings, LogClient(answering(log.endpoint())), no_readers())
    try:
        await shard.start()
        yield shard
    finally:
        await shard.close()
        log.close()
