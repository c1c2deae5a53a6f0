"""`PortActor`: what the actors that own a port have in common."""

import asyncio
import functools
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from actors.wire.server import private_directory
from graphdb.config import Settings
from graphdb.errors import StorageFull, UnavailableError
from serve.deployments.listening import take_socket
from serve.port.listen import Listen

if TYPE_CHECKING:  # see PortActor
    from serve.port.server import Hosted

__all__ = ["STOP_S", "PortActor", "end_process", "graph_socket", "search_socket", "start_patiently"]

T = TypeVar("T")
logger = logging.getLogger(__name__)
STOP_S = 15.0
PREPARE_S = 5.0  # of that, while the port still serves
_PATIENCE_S = 600.0  # for what else has to come up, on a machine that may be busy
_AGAIN_S = 0.1
_TOLD_S = 5.0  # for which a port that has ended still says why, to a service that starts
_SWITCH_S = 0.0005  # at most so long a thread that parses or plans keeps the event loop waiting for its turn


class PortActor:
    """One of a kind on each node: serves a port, and owns its state.

    It is made within a moment whatever the state needs to recover. Ray makes one again whose process has
    ended, and the process ends when its port does, because a port without its thread does not answer.
    """

    def __init__(
        self,
        listen: Listen,
        host: Callable[[], Awaitable["Hosted"]],
        directory: str,
        socket_path: str | None = None,
    ) -> None:
        """host makes the state, on the port's event loop; directory: where the running service hands out its
        sockets; for socket_path see `PortServer`.
        """
        # at the top, `graphdb serve`, which knows the classes of its ports, would load the HTTP server too
        from serve.port.server import PortServer

        sys.setswitchinterval(_SWITCH_S)
        self._is_stopping = False
        self._server = PortServer(
            listen, host, socket_path, functools.partial(take_socket, directory), self._note_end
        )

    def _note_end(self) -> None:
        """On the port's thread, when it ends."""
        if not self._is_stopping:
            logger.error("the port has ended: %s", self._server.failure)
            time.sleep(_TOLD_S)
            end_process()

    def state(self) -> tuple[bool, str | None]:
        """Whether the node has recovered and serves, and if it never will, why."""
        return self._server.ready.is_set(), self._server.failure

    async def stop(self) -> None:
        """Finish the running requests, close the state; the actor is of no use afterwards."""
        self._is_stopping = True
        await self._server.prepare_and_stop(self._prepare_stop(), PREPARE_S, STOP_S)

    def _prepare_stop(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """Prepare the stop while the port still serves."""
        return None

    async def _on_port(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return await self._server.perform(coroutine)


def end_process() -> NoReturn:
    """Have Ray make the actor of this process again."""
    os._exit(1)


def graph_socket(settings: Settings) -> str:
    """The socket of the graph port for the node's other processes, in a directory of this user only."""
    return os.path.join(private_directory(str(settings.server.data_dir / "graph")), "graph.sock")


def search_socket(settings: Settings) -> str:
    """That of the search port, likewise."""
    return os.path.join(private_directory(str(settings.server.data_dir / "search-port")), "search.sock")


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
