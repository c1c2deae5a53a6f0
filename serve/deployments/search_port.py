"""`SearchPort`: the actor behind port 9200."""

import asyncio
import functools
import importlib
from typing import TYPE_CHECKING, Any

from graphdb.config import Settings
from graphdb.errors import UnavailableError
from serve.deployments.listening import search_listen
from serve.deployments.port_actor import PortActor, search_socket

if TYPE_CHECKING:  # `graphdb serve` imports this module too, and it needs nothing of what a port hosts
    from serve.deployments.hosted_search import HostedSearch

__all__ = ["SearchPort"]


class SearchPort(PortActor):
    """Owns the node's search indexes."""

    def __init__(self, settings: Settings, namespace: str, directory: str) -> None:
        """directory: of the running service."""
        self._hosted: HostedSearch | None = None
        host = functools.partial(self._host, settings, namespace, directory)
        super().__init__(search_listen(settings), host, directory, search_socket(settings))

    async def _host(self, settings: Settings, namespace: str, directory: str) -> "HostedSearch":
        hosting: Any = await asyncio.to_thread(importlib.import_module, "serve.deployments.hosted_search")
        hosted: HostedSearch = hosting.HostedSearch(settings, namespace, directory)
        self._hosted = hosted
        return hosted

    async def flush(self) -> None:
        """Put on disk all that was applied, for a backup. Raises UnavailableError."""
        if self._hosted is None:
            raise UnavailableError("the service is starting")
        await self._on_port(self._hosted.search.flush())
