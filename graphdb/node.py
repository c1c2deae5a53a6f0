"""What a node answers and says of itself, as every edge and every kind of node understands it."""

from dataclasses import dataclass

from pyoxigraph import QueryBoolean, QuerySolutions, QueryTriples

from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat
from graphdb.sparql.syntax import Query

__all__ = ["ClusterMember", "Evaluated", "NodeStatus", "QueryRequest", "RunningQuery"]


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """A query for a reader: what to evaluate, and within which bounds."""

    query: Query
    dataset: Dataset  # one that names graphs overrides the FROM clauses of the query
    format: ResultFormat
    timeout_s: float  # from now to the last byte of the answer, waiting for a reader included
    principal: str | None = None  # who asks, as `GET /queries` shows it
    explain: bool = False  # answer with what `graphdb.store.explaining.explain` writes, in place of format


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """A query as `GET /queries` shows it."""

    id: str
    text: str
    form: str  # SELECT, ASK, CONSTRUCT, DESCRIBE or UPDATE
    state: str  # queued, running
    where: str | None  # which process evaluates it; None while it is queued
    started_at: str  # ISO 8601, UTC
    age_seconds: float
    principal: str | None


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
