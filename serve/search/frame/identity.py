"""Who this node is to clients of the search port: names and ids that stay over restarts."""

import base64
import platform
import socket
import uuid
from dataclasses import dataclass
from functools import cache

from graphdb.config import Settings
from graphdb.node import NodeStatus

__all__ = ["COMPATIBLE_VERSION", "LUCENE_VERSION", "VERSION", "Identity", "NodeName"]

COMPATIBLE_VERSION = "8.19.0"  # of Elasticsearch: whose API this is
LUCENE_VERSION = "9.12.2"
VERSION = {
    "number": COMPATIBLE_VERSION,
    "build_flavor": "default",
    "build_type": "graphdb",
    "build_hash": "unknown",
    "build_date": "2025-07-23T22:05:09.318144637Z",
    "build_snapshot": False,
    "lucene_version": LUCENE_VERSION,
    "minimum_wire_compatibility_version": "7.17.0",
    "minimum_index_compatibility_version": "7.0.0",
}
# Any will do, but it must never change: the ids of clusters and nodes are made with it.
_NAMESPACE = uuid.UUID("5f2d9a3e-8c1b-4e7a-9d36-0b4c7e1f6a92")


@dataclass(frozen=True, slots=True)
class NodeName:
    """A member of the cluster: id as clients know it, name, host, whether it leads and is reachable."""

    id: str
    name: str
    host: str
    leads: bool
    reachable: bool


class Identity:
    """Of one node. The cluster's id follows from its name, so that all nodes say the same.

    publish_address: where clients reach its search port.
    """

    def __init__(self, settings: Settings) -> None:
        self.cluster_name = settings.search.cluster_name
        self.cluster_uuid = _id(self.cluster_name)
        self.name = settings.search.node_name or platform.node() or "graphdb"
        self._host = _reachable(settings.server.host)
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.publish_address = f"{host}:{settings.search.port}"

    def here(self, status: NodeStatus) -> NodeName:
        """This node."""
        leads = status.role in ("leader", "standalone")
        return NodeName(self._node_id(status.node_id), self.name, self._host, leads, True)

    def members(self, status: NodeStatus) -> list[NodeName]:
        """All nodes of the cluster, this one first. Others go by number: their names are not known."""
        others = [
            NodeName(
                self._node_id(member.node_id),
                f"node-{member.node_id}",
                member.address.rpartition(":")[0].strip("[]"),
                member.role == "leader",
                member.reachable,
            )
            for member in status.cluster_members
            if member.node_id != status.node_id
        ]
        return [self.here(status), *others]

    def _node_id(self, number: int) -> str:
        return _id(f"{self.cluster_name}/{number}")


def _id(text: str) -> str:
    """22 characters, as the ids of Elasticsearch."""
    return base64.urlsafe_b64encode(uuid.uuid5(_NAMESPACE, text).bytes).decode().rstrip("=")


@cache
def _reachable(host: str) -> str:
    """An address to name where the node listens at all of them."""
    if host not in ("0.0.0.0", "::", ""):
        return host
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
