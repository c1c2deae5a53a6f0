"""Who the nodes are to clients of the search port: names and ids, the same at all nodes and over restarts."""

import base64
import uuid
from dataclasses import dataclass, replace
from functools import lru_cache

from graphdb.config import Settings
from graphdb.errors import GraphDBError
from graphdb.node import ClusterMember, NodeStatus
from graphdb.search.catalog.state import CatalogState, KnownNode
from serve.search.backend import SearchBackend

__all__ = [
    "COMPATIBLE_VERSION",
    "INDEX_VERSION",
    "LUCENE_VERSION",
    "TRANSPORT_VERSION",
    "VERSION",
    "Identity",
    "NodeName",
]

COMPATIBLE_VERSION = "8.19.0"  # of Elasticsearch: whose API this is
# Its numbers for the formats of its indexes and between its nodes, which its clients want to see.
INDEX_VERSION, TRANSPORT_VERSION = 8_536_000, 8_841_000
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
# Any will do, but it must never change: the ids of nodes are made with it.
_NAMESPACE = uuid.UUID("5f2d9a3e-8c1b-4e7a-9d36-0b4c7e1f6a92")


UNKNOWN = "_na_"  # the cluster's id before it has one


@dataclass(frozen=True, slots=True)
class NodeName:
    """A member of the cluster, as every node shows it.

    id: as clients know it. host: of http_address, else where its peers reach it. http_address: host:port of
    its search port, None where it has not told. transport_address: host:port for its peers.
    """

    number: int
    id: str
    name: str
    host: str
    http_address: str | None
    transport_address: str
    leads: bool
    reachable: bool

    @property
    def roles(self) -> list[str]:
        """Clients that look for nodes pass over those that are nothing but `master`."""
        return ["data", "ingest", "master"] if self.http_address is not None else ["master"]


class Identity:
    """Of one node, and of its cluster as far as the catalogue knows it."""

    def __init__(self, node: SearchBackend, settings: Settings) -> None:
        self._node, self.number = node, settings.cluster.node_id
        self.cluster_name = settings.search.cluster_name
        # without this setting, a standalone node has the address of the request
        self.is_told_address = settings.cluster.enabled or settings.search.publish_address is not None

    @property
    def name(self) -> str:
        """Of this node."""
        return self._node.own.name

    @property
    def cluster_uuid(self) -> str:
        """The same on every node and over restarts; `_na_` before a node has introduced itself."""
        state = self._state()
        return UNKNOWN if state is None or state.cluster_uuid is None else state.cluster_uuid

    @property
    def node_id(self) -> str:
        """Of this node."""
        return _node_id(self.cluster_uuid, self.number)

    def here(self, status: NodeStatus) -> NodeName:
        """This node."""
        return next(node for node in self.members(status) if node.number == self.number)

    def members(self, status: NodeStatus) -> list[NodeName]:
        """All nodes of the cluster, by number: the same at each of them."""
        state, uuid = self._state(), self.cluster_uuid
        known = {} if state is None else dict(state.nodes)
        known[self.number] = self._node.own
        members = {member.node_id: member for member in status.cluster_members}
        role = "leader" if status.role == "standalone" else status.role
        own = ClusterMember(self.number, self._node.own.address, role, True)
        members[self.number] = replace(members.get(self.number, own), role=role, reachable=True)
        return [_named(members[number], known.get(number), uuid) for number in sorted(members)]

    def _state(self) -> CatalogState | None:
        try:
            return self._node.catalog.state
        except GraphDBError:
            return None


def _named(member: ClusterMember, known: KnownNode | None, cluster_uuid: str) -> NodeName:
    return NodeName(
        member.node_id,
        _node_id(cluster_uuid, member.node_id),
        f"node-{member.node_id}" if known is None else known.name,
        (member.address if known is None else known.address).rpartition(":")[0].strip("[]"),
        None if known is None else known.address,
        member.address,
        member.role == "leader",
        member.reachable,
    )


@lru_cache(maxsize=256)
def _node_id(cluster_uuid: str, number: int) -> str:
    """22 characters, as the ids of Elasticsearch."""
    digest = uuid.uuid5(_NAMESPACE, f"{cluster_uuid}/{number}").bytes
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
