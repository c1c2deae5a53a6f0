"""Search nodes over real or scripted logs, without Ray, and what tests write to them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from actors.log.client import LogAccess, LogClient
from actors.log.update_log import UpdateLog
from actors.search.open_search import SearchConfig
from actors.search.search_node import SearchNode
from graphdb.config import Settings
from graphdb.log.views import QUADS, SEARCH
from graphdb.search.catalog.catalog_commands import DocumentWrite
from graphdb.search.catalog.state import Index
from graphdb.search.segments.operations import Action, Operation
from tests.support.readers import answering
from tests.support.shards import SMALL_LOG

__all__ = ["found", "index_of", "indexed", "open_node", "source_of", "started"]


@asynccontextmanager
async def started(
    directory: Path, log: LogAccess, config: SearchConfig | None = None, graph: Any = None
) -> AsyncIterator[SearchNode]:
    """A node over any log; graph is a `GraphAccess`."""
    settings = Settings.model_validate({"server": {"data_dir": directory}})
    node = SearchNode(settings, log, graph, config or SearchConfig(publish_identity_s=None))
    try:
        await node.start()
        yield node
    finally:
        await node.close()


@asynccontextmanager
async def open_node(directory: Path, config: SearchConfig | None = None) -> AsyncIterator[SearchNode]:
    """A node over a real log in the directory."""
    views = (QUADS, SEARCH)
    log = UpdateLog(str(directory / "log"), SMALL_LOG, views=views, socket_directory=str(directory))
    try:
        async with started(directory, LogClient(answering(log.endpoint())), config) as node:
            yield node
    finally:
        log.close()


def indexed(number: int, index: str = "books") -> DocumentWrite:
    """A document that is written whole; its `_id` and `number` are the number."""
    body = orjson.dumps({"number": number, "title": f"the book number {number}"})
    return DocumentWrite(index, Operation(Action.INDEX, str(number), body))


def index_of(node: SearchNode, name: str = "books") -> Index:
    """It has to be there."""
    index = node.catalog.find(name)
    assert index is not None
    return index


def source_of(node: SearchNode, number: int, index: str = "books") -> bytes | None:
    """A document as it was written last."""
    document = index_of(node, index).shards.get(str(number))
    return None if document is None else document.source


def found(node: SearchNode, index: str = "books") -> int:
    """How many documents a search can find."""
    return index_of(node, index).shards.stats().documents
