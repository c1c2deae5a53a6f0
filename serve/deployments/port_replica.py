"""`PortReplica`: what the Serve replicas that own a port have in common."""

import asyncio
import functools
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from actors.wire.server import private_directory
from graphdb.config import Settings
from graphdb.errors import StorageFull, UnavailableError
from serve.deployments.listening import take_socket
from serve.port_server import Hosted, Listen, PortServer

__all__ = ["STOP_S", "PortReplica", "graph_socket", "start_patiently"]

T = TypeVar("T")
STOP_S = 15.0
PREPARE_S = 5.0  # of that, while the port still serves
_PATIENCE_S = 600.0  # for what else has to come up, on a machine that may be busy
_AGAIN_S = 0.1
_SWITCH_S = 0.0005  # at most so long a thread that parses or plans keeps the event loop waiting for its turn


class PortReplica:
    """One replica on each node: serves a port, and owns its state.

    It is made within a moment whatever the state needs to recover, so that Serve never takes a long recovery
    for a failed start. A killed one is made again by Serve.
    """

    def __init__(
        self,
        listen: Listen,
        host: Callable[[], Awaitable[Hosted]],
        directory: str,
        socket_path: str | None = None,
    ) -> None:
        """host makes the state, on the port's event loop; directory: where the running service hands out its
        sockets; for socket_path see `PortServer`.
        """
        from actors import ray_private

        ray_private.keep_replica_on_loopback()
        sys.setswitchinterval(_SWITCH_S)
        self._server = PortServer(listen, host, socket_path, functools.partial(take_socket, directory))

    def check_health(self) -> None:
        """Serve replaces the replica if this raises, because a port without its thread does not answer."""
        if not self._server.is_alive:
            raise RuntimeError(self._server.failure or "the port's thread has ended")

    def state(self) -> tuple[bool, str | None]:
        """Whether the node has recovered and serves, and if it never will, why."""
        return self._server.ready.is_set(), self._server.failure

    async def stop(self) -> None:
        """Finish the running requests, close the state; the replica is of no use afterwards."""
        await self._server.prepare_and_stop(self._prepare_stop(), PREPARE_S, STOP_S)

    def _prepare_stop(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """Prepare the stop while the port still serves."""
        return None

    async def _on_port(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return await self._server.perform(coroutine)


def graph_socket(settings: Settings) -> str:
    """The socket of the graph port for the node's other processes, in a directory of this user only."""
    return os.path.join(private_directory(str(settings.server.data_dir / "graph")), "graph.sock")


async def start_patiently(start: Callable[[], Awaitable[None]]) -> None:
    """Recover; waits for a log that is restarting, and for files of a process that is ending."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return await start()
        except UnavailableError as error:
            # a full disk may stay so for longer; /health says it meanwhile
            if time.monotonic() > deadline and not isinstance(error, StorageFull):
                raise
        await asyncio.sleep(_AGAIN_S)
