"""`GraphPort`: the actor behind port 7001."""

import asyncio
import functools
import importlib
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphdb.config import Settings
from graphdb.errors import UnavailableError
from graphdb.model import Confirmation
from serve.deployments.listening import graph_listen
from serve.deployments.port_actor import PortActor, graph_socket

if TYPE_CHECKING:  # `graphdb serve` imports this module too, and it needs nothing of what a port hosts
    from serve.deployments.hosted_graph import HostedGraph

__all__ = ["GraphPort"]


class GraphPort(PortActor):
    """Owns the node's store, and answers notebooks through its methods."""

    def __init__(self, settings: Settings, namespace: str, directory: str) -> None:
        """directory: of the running service."""
        self._graph: HostedGraph | None = None
        super().__init__(
            graph_listen(settings),
            functools.partial(self._host, settings, namespace, directory),
            directory,
            graph_socket(settings) if settings.search.enabled else None,
        )

    async def _host(self, settings: Settings, namespace: str, directory: str) -> "HostedGraph":
        hosting: Any = await asyncio.to_thread(importlib.import_module, "serve.deployments.hosted_graph")
        graph: HostedGraph = hosting.HostedGraph(settings, namespace, directory)
        self._graph = graph
        return graph

    def _prepare_stop(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        return self._graph.prepare_close if self._graph is not None else None

    async def answer(self, text: str, form: str, as_of: str | None = None) -> tuple[bytes, int | None]:
        """See `HostedGraph.answer`."""
        return await self._on_port(self._hosted().answer(text, form, as_of))

    async def report(
        self, shapes: str | None, shapes_graph: str | None, data_graph: str, as_of: str | None = None
    ) -> tuple[bytes, int | None]:
        """See `HostedGraph.report`."""
        return await self._on_port(self._hosted().report(shapes, shapes_graph, data_graph, as_of))

    async def update(self, text: str) -> Confirmation:
        """See `HostedGraph.update`."""
        return await self._on_port(self._hosted().update(text))

    def status(self) -> dict[str, Any]:
        """The node's own part of the health record."""
        return asdict(self._hosted().status())

    async def backup(self, directory: str) -> int:
        """Write the present state to a directory that does not exist yet; the log index that it is of."""
        return await self._on_port(self._hosted().backup(Path(directory)))

    def _hosted(self) -> "HostedGraph":
        if self._graph is None:
            raise UnavailableError("the service is starting")
        return self._graph
