"""What a node answers and says of itself, as every edge and every kind of node understands it."""

from dataclasses import dataclass

from pyoxigraph import QueryBoolean, QuerySolutions, QueryTriples

__all__ = ["ClusterMember", "Evaluated", "NodeStatus"]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A query's answer as the engine gives it, lazily, and the log index that it was read at or after."""

    answer: QuerySolutions | QueryTriples | QueryBoolean
    snapshot_index: int


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """One node as the others see it."""

    node_id: int
    address: str  # host:port of 7002
    role: str
    reachable: bool


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What /health reports of the node itself; the interface's health record, field by field."""

    status: str  # healthy, starting, degraded, error
    role: str  # leader, follower, candidate, standalone
    node_id: int
    snapshot_index: int
    current_term: int
    cluster_members: tuple[ClusterMember, ...]
    replication_lag: int | None
    index_loaded: bool
    uptime_seconds: int
