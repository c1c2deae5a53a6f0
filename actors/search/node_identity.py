"""Who a node is to clients of its search port: what it says of itself in the log, so that all nodes know."""

import asyncio
import contextlib
import platform
import secrets
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from graphdb.config import Settings
from graphdb.config.service import split_address
from graphdb.errors import GraphDBError
from graphdb.search.catalog.catalog_commands import IntroduceNode
from graphdb.search.catalog.state import CatalogState, KnownNode

__all__ = ["known_node", "publish_identity"]

_ALL_INTERFACES = ("0.0.0.0", "::", "[::]")
_UUID_BYTES = 16


def known_node(settings: Settings) -> KnownNode:
    """A node by its settings, where they say so; else by its machine."""
    name = settings.search.node_name or platform.node() or "graphdb"
    if settings.search.publish_address is not None:
        return KnownNode(name, settings.search.publish_address)
    host = _reachable_host(settings)
    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return KnownNode(name, f"{bracketed}:{settings.search.port}")


def _reachable_host(settings: Settings) -> str:
    """Where the port listens at all addresses, the one at which other nodes reach this one, or a guess."""
    if settings.server.host not in _ALL_INTERFACES:
        return settings.server.host
    peer_host, _ = split_address(settings.cluster.address)
    if settings.cluster.enabled and peer_host not in _ALL_INTERFACES:
        return peer_host
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


async def publish_identity(
    node_id: int,
    own: KnownNode,
    state: Callable[[], CatalogState | None],
    perform: Callable[[IntroduceNode], Awaitable[Any]],
    look_s: float,
) -> None:
    """Introduce a node whenever the catalogue, if it is open, does not know it as it is."""
    while True:
        known = state()
        if known is not None and (known.nodes.get(node_id) != own or known.cluster_uuid is None):
            cluster_uuid = secrets.token_urlsafe(_UUID_BYTES)
            with contextlib.suppress(GraphDBError):  # no leader, a full disk: it is tried again
                await perform(IntroduceNode(node_id, own.name, own.address, cluster_uuid))
        await asyncio.sleep(look_s)
