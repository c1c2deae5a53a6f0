"""A process to kill: a search node over its log, behind a real port, which it sends."""

import asyncio
import socket
from multiprocessing.connection import Connection
from pathlib import Path

import uvicorn

from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.search import search_node
from actors.search.open_search import SearchConfig
from graphdb.config import Settings
from graphdb.log.views import QUADS, SEARCH
from serve.search_app import build_search_app
from tests.support.readers import answering
from tests.support.search_nodes import started
from tests.support.shards import SMALL_LOG

SWEEP_S = 0.05  # so that what was left is soon ended, beside the first look at the start


def serve(directory: Path, repositories: Path, ready: Connection) -> None:
    """Until killed."""
    search_node._SWEEP_S = SWEEP_S
    asyncio.run(_serve(directory, repositories, ready))


async def _serve(directory: Path, repositories: Path, ready: Connection) -> None:
    views = (QUADS, SEARCH)
    log = UpdateLog(str(directory / "log"), SMALL_LOG, views=views, socket_directory=str(directory))
    settings = Settings.model_validate({"search": {"snapshot_paths": [str(repositories)]}})
    config = SearchConfig(publish_identity_s=None)
    async with started(directory, LogClient(answering(log.endpoint())), config) as node:
        app = build_search_app(node, settings)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            ready.send(listening.getsockname()[1])
            server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical"))
            await server.serve(sockets=[listening])
