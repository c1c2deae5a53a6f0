"""`PortWatch`: the open connections of one port, how many there may be, and which of them are too slow.

One timer checks all of them. A connection sets the time of its next check (`look_at`), so a request costs a
few assignments and no timer of its own.
"""

import asyncio
import contextlib
import math
import resource
import sys
from collections import Counter
from typing import Protocol

from graphdb.access.lockout import TrustedProxies, client_key
from graphdb.config.service import Server
from serve.port.known_heads import KnownHeads

__all__ = ["NEVER", "PortWatch", "private_limits"]

NEVER = math.inf
_TICK_S = 0.5
_REFUSED_MAX = 100  # connections over the limit that are being answered with 503
_PRIVATE_HEADER_BYTES = 4 << 20  # one header names all groups of the principal that a request is made for


class Watched(Protocol):
    """One connection."""

    look_at: float  # in the watch's time

    def look(self) -> None:
        """Called once that time has passed. It sets another, or ends the connection."""


class PortWatch:
    """Used on the port's event loop alone.

    `now` is in seconds, with the resolution of the timer. It does not advance while the loop is blocked,
    because clients are not slow if their input waits to be read.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        shortest_s = min(
            server.head_timeout_seconds,
            server.body_timeout_seconds,
            server.idle_timeout_seconds,
            server.write_timeout_seconds,
        )
        self._tick_s = min(_TICK_S, shortest_s / 4)
        # Counted from the last tick, which may be one tick ago, so that no connection is cut early.
        self.head_s = server.head_timeout_seconds + self._tick_s
        self.body_s = server.body_timeout_seconds + self._tick_s
        self.idle_s = server.idle_timeout_seconds + self._tick_s
        self.write_s = server.write_timeout_seconds + self._tick_s
        self.now = 0.0
        self.known_heads = KnownHeads()
        self._proxies = TrustedProxies(server.trusted_proxies)
        self._connections_max = min(server.max_connections, _open_files_max() // 2)
        self._connections: dict[Watched, str | None] = {}  # the address that each counts for
        self._of_address: Counter[str] = Counter()
        self._refused: set[Watched] = set()  # watched too, and not counted
        self._timer: asyncio.TimerHandle | None = None
        self._looked_at = 0.0

    def enter(self, connection: Watched, peer: str | None) -> bool:
        """Watch a connection from now on; whether there is room for it. One that is watched stays so.

        peer is its address; None on a Unix domain socket.
        """
        if connection in self._connections:
            return True
        key = None if peer is None or self._proxies.trusts(peer) else client_key(peer)
        if len(self._connections) >= self._connections_max or (
            key is not None and self._of_address[key] >= self.server.max_connections_per_address
        ):
            return False
        self._connections[connection] = key
        if key is not None:
            self._of_address[key] += 1
        self._run()
        return True

    def refuse(self, connection: Watched) -> bool:
        """Watch a connection over the limit while it is answered. False: too many of these; close it at
        once.
        """
        if len(self._refused) >= _REFUSED_MAX:
            return False
        self._refused.add(connection)
        self._run()
        return True

    def leave(self, connection: Watched) -> None:
        """It is gone, or was never there."""
        self._refused.discard(connection)
        key = self._connections.pop(connection, None)
        if key is not None:
            self._of_address[key] -= 1
            if not self._of_address[key]:
                del self._of_address[key]

    def replace(self, connection: Watched, successor: Watched) -> None:
        """The same connection speaks another protocol now."""
        self._connections[successor] = self._connections.pop(connection)

    def _run(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._looked_at = loop.time()
            self._timer = loop.call_later(self._tick_s, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        time = loop.time()
        self.now += min(time - self._looked_at, 2 * self._tick_s)
        self._looked_at, now = time, self.now
        for connection in [one for one in (*self._connections, *self._refused) if one.look_at <= now]:
            connection.look()
        watches = self._connections or self._refused
        self._timer = loop.call_later(self._tick_s, self._look) if watches else None


def private_limits(server: Server) -> Server:
    """For the Unix domain socket. Only the service's own processes connect there, and one of their headers
    says all that a principal is.
    """
    return server.model_copy(update={"max_header_bytes": _PRIVATE_HEADER_BYTES})


def _open_files_max() -> int:
    """The largest number of open files, raised to the hard limit if it is permitted."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # not more than the system's own limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
