"""`open_columns`: a Shard over a real log, real readers and a real column view, without Ray."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors.columns.client import ColumnClient
from actors.columns.column_view import ColumnView
from actors.columns.protocol import ColumnStatus
from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.readers.client import ReaderClient
from actors.readers.store_reader import StoreReader
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.errors import UnavailableError
from graphdb.history.moments import read_moment
from graphdb.node import QueryRequest
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import ResultFormat
from tests.support.readers import answering
from tests.support.shards import SMALL_LOG, Shard
from tests.support.timing import HANG_S

__all__ = ["ColumnNode", "open_columns", "until_following", "until_listening"]


@dataclass(slots=True)
class ColumnNode:
    """A node with its column view."""

    shard: Shard
    columns: ColumnClient
    view: ColumnView

    async def query(
        self,
        text: str,
        format: ResultFormat = ResultFormat.CSV,
        timeout_s: float = HANG_S,
        *,
        uniting: bool = False,
        as_of: int | None = None,
    ) -> tuple[str, bytes]:
        """Where the answer came from (columns, reader), and the answer. uniting: of all graphs as one. as_of:
        of the state behind this log index.
        """
        return await self.answer(self.request(text, format, timeout_s), uniting=uniting, as_of=as_of)

    async def answer(
        self, request: QueryRequest, *, uniting: bool = False, as_of: int | None = None
    ) -> tuple[str, bytes]:
        """As `query`."""
        moment = None if as_of is None else read_moment(str(as_of))
        reads = await self.shard.reads(FULL_VISIBILITY, moment, HANG_S)
        reads = reads.uniting_graphs() if uniting else reads
        stream = await reads.start_query(request)
        try:
            assert stream.snapshot_index >= 0
            pieces = []
            while (piece := await stream.read()) is not None:
                pieces.append(piece)
            return stream.where.split()[0], b"".join(pieces)
        finally:
            stream.close()

    def request(
        self, text: str, format: ResultFormat = ResultFormat.CSV, timeout_s: float = HANG_S
    ) -> QueryRequest:
        return QueryRequest(parse_query(text, None), Dataset(), format, timeout_s)

    async def update(self, text: str) -> int:
        return (
            await self.shard.writes(FULL_VISIBILITY).update(parse_update(text, None), Dataset())
        ).snapshot_index

    async def following(self) -> ColumnStatus:
        """Wait until the view follows the log."""
        return await until_following(self.columns)


async def until_following(columns: ColumnClient) -> ColumnStatus:
    """Wait until a view follows its log."""
    async with asyncio.timeout(120):
        while (status := await until_listening(columns)).state != "following":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return status


async def until_listening(columns: ColumnClient) -> ColumnStatus:
    """Wait until a view's engine answers."""
    async with asyncio.timeout(120):  # its process gives way to all else, also while it starts
        while True:
            with suppress(UnavailableError):
                return await columns.status()
            await asyncio.sleep(0.02)


@asynccontextmanager
async def open_columns(directory: Path, **sections: dict[str, Any]) -> AsyncIterator[ColumnNode]:
    """A started node on a directory. sections are those of the configuration; one reader unless told more."""
    server = {"data_dir": directory} | sections.pop("server", {})
    readers = {"count": 1, "queue_timeout_seconds": HANG_S} | sections.pop("readers", {})
    # however busy the machine is: the engine gives way to all else
    of_columns = {"wait_seconds": 20, "chosen_by_cost": False} | sections.pop("columns", {})
    settings = Settings.model_validate(
        {"server": server, "readers": readers, "columns": of_columns, **sections}
    )
    sockets = str(directory)
    log = UpdateLog(str(directory / "log"), SMALL_LOG, socket_directory=sockets)
    reader = await asyncio.to_thread(StoreReader, settings, socket_directory=sockets)
    find_log = answering(log.endpoint())
    view = await asyncio.to_thread(lambda: ColumnView(settings, find_log, socket_directory=sockets))
    columns = ColumnClient(answering(view.endpoint()))
    client = ReaderClient(answering(reader.endpoint()))
    shard = Shard.standalone(settings, LogClient(find_log), client, columns=columns)
    try:
        await until_listening(columns)
        await shard.start()
        yield ColumnNode(shard, columns, view)
    finally:
        await shard.close()
        await asyncio.to_thread(view.close)
        await asyncio.to_thread(reader.close)
        log.close()
