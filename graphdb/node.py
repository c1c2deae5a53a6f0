"""What a node answers and says of itself, as every edge and every kind of node understands it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias

from pyoxigraph import NamedNode, QueryBoolean, QuerySolutions, QueryTriples

from graphdb.access.principal import Principal
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.algebra import TextSearch
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat
from graphdb.sparql.syntax import Query
from graphdb.sparql.text_tables import TextTable
from graphdb.store.search_tables import Table

__all__ = [
    "ClusterMember",
    "ClusterReport",
    "Consistency",
    "EmbeddedStore",
    "Entities",
    "Evaluated",
    "FunctionCall",
    "LiveReport",
    "MergedGraphs",
    "NodeStatus",
    "OwnNames",
    "PeerReport",
    "QueryRequest",
    "RunningQuery",
    "Searching",
    "ShapesDocument",
    "ValidationRequest",
    "worse_status",
]

Entities: TypeAlias = Callable[[TextSearch, Table | None, int], Awaitable[list[Any]]]
"""Returns so many of the entities of the pattern that a search is within, as terms of the engine; among those
of a table of one column, where there is one.
"""
Searching: TypeAlias = Callable[[int, Entities], Awaitable[Mapping[str, Table]]]
"""Finds what the searches of a query find in the state of a log index, by their names. Entities are those
of the same state. Raises Stale for a state that is too old.
"""

_STATUSES = ("healthy", "degraded", "starting", "error")  # each says more than those before


def worse_status(one: str, other: str) -> str:
    """The status of what has two parts."""
    return max(one, other, key=_STATUSES.index)


class Consistency(Enum):
    """How new a read has to be, whichever node answers it. On a node that stands alone all are the same."""

    LOCAL = "local"  # what this node has applied
    LEADER = "leader"  # what the leader had applied at the call; a leader that was just deposed may not know
    LINEARIZABLE = "linearizable"  # everything that was confirmed before the call, by any node


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """A query for a reader: what to evaluate, and within which bounds."""

    query: Query
    dataset: Dataset  # one that names graphs overrides the FROM clauses of the query
    format: ResultFormat
    timeout_s: float  # from now to the last byte of the answer, waiting for a reader included
    principal: str | None = None  # who asks, as `GET /queries` shows it
    explain: bool = False  # answer with what `graphdb.store.explaining.explain` writes, in place of format
    query_id: str | None = None  # the client's choice for the list of running queries; None: any
    caller: Principal | None = None  # who asks, for searches of the search port; None: these are refused
    searching: Searching | None = None  # what its searches find; set by the node
    own: "OwnNames | None" = None  # and literals, where those in query are another text's

    @property
    def text(self) -> str:
        """As the client has sent it."""
        return self.query.text if self.own is None else self.own.text

    def with_own_names(self) -> "QueryRequest":
        """The same with the tree of its own text, which is parsed only now."""
        return self if self.own is None else replace(self, query=self.own.read(), own=None)


@dataclass(frozen=True, slots=True)
class OwnNames:
    """A text that differs from one that is known in names of variables and values of literals alone."""

    text: str
    columns: tuple[str, ...]  # of a SELECT, in order
    literals: tuple[tuple[int, int, str], ...]  # from where to where in the known text, and the value
    read: Callable[[], Query]


@dataclass(frozen=True, slots=True)
class ShapesDocument:
    """SHACL shapes as a request brings them: not parsed yet."""

    content: bytes = field(repr=False)
    syntax: RdfSyntax


@dataclass(frozen=True, slots=True)
class MergedGraphs:
    """Named graphs together, as one graph; those that do not exist hold nothing."""

    graphs: tuple[NamedNode, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.graphs))


@dataclass(frozen=True, slots=True)
class ValidationRequest:
    """A SHACL validation for a reader: of what, by which shapes, and within which bounds."""

    shapes: ShapesDocument | NamedNode | MergedGraphs  # a document, or graphs of the store
    # the IRI of a named graph, "default", "union" (all graphs together); or some graphs together
    data_graph: str | MergedGraphs
    report_syntax: RdfSyntax | None  # None: the report of the interface, in JSON
    timeout_s: float  # from now to the last byte of the report, waiting for a reader included
    principal: str | None = None  # who asks, as `GET /queries` shows it

    @property
    def text(self) -> str:
        """What `GET /queries` shows: shapes may be long."""
        given = isinstance(self.shapes, ShapesDocument)
        shapes = "given shapes" if given else f"the shapes of {self.shapes}"
        if isinstance(self.data_graph, MergedGraphs):
            data = str(self.data_graph)
        else:
            data = f"the {self.data_graph} graph" if self.is_of_no_name else f"<{self.data_graph}>"
        return f"validate {data} against {shapes}"

    @property
    def is_of_no_name(self) -> bool:
        """Whether the data graph is none that has a name."""
        return self.data_graph in ("default", "union")


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function of GeoSPARQL for a reader. See `graphdb.geometry.evaluate`."""

    function: str
    args: tuple[str, ...] = field(repr=False)
    timeout_s: float  # waiting for a reader included
    principal: str | None = None  # who asks, as `GET /queries` shows it

    @property
    def text(self) -> str:
        """What `GET /queries` shows: geometries may be long."""
        return f"{self.function[:100]}({', '.join(arg[:60] for arg in self.args[:10])})"


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """A query as `GET /queries` shows it."""

    id: str
    text: str
    form: str  # SELECT, ASK, CONSTRUCT, DESCRIBE, UPDATE, VALIDATE or CALL
    state: str  # queued, running
    where: str | None  # which process evaluates it; None while it is queued
    started_at: str  # ISO 8601, UTC
    age_seconds: float
    principal: str | None  # with its provider: `Principal.qualified_name`


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A query's answer as the engine gives it, lazily, or in whole; and the log index that it was read at or
    after.
    """

    answer: QuerySolutions | QueryTriples | QueryBoolean | TextTable
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
    """What /health reports of the node itself; the interface's health record, field by field, and the reason
    of a status that is not healthy, where one is known.
    """

    status: str  # healthy, starting, degraded, error
    role: str  # leader, follower, candidate, standalone
    node_id: int
    snapshot_index: int
    current_term: int
    cluster_members: tuple[ClusterMember, ...]
    replication_lag: int | None
    index_loaded: bool
    uptime_seconds: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class EmbeddedStore:
    """What /health reports of the copy that live queries follow, in the interface's names."""

    url: str
    namespace: str
    database: str
    ready: bool  # whether live queries are taken
    projection_bootstrapped: bool  # whether nothing has to be built up before that
    last_projected_log_index: int  # up to where all who listen have been told
    active_listener_count: int
    listener_role: str  # that of the node


@dataclass(frozen=True, slots=True)
class LiveReport:
    """What /metrics reports of live queries."""

    subscriptions: int
    queries: int  # equal ones count once
    reevaluated_queries: int  # among them
    notifications: int  # since the start, each told to one subscription
    lag_entries: int  # of the log, by which the last to be told is behind


@dataclass(frozen=True, slots=True)
class PeerReport:
    """One member of the cluster, as the reporting node knows it."""

    node_id: int
    address: str  # host:port of 7002
    role: str  # leader, follower, learner (has no vote yet), candidate (only the reporting node itself)
    reachable: bool
    matched_index: int | None  # how far its log is known to go; None where the reporting node does not lead


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What a node knows of its cluster: `GET /cluster`, the metrics and `graphdb cluster status`."""

    node_id: int
    role: str  # leader, follower, learner, candidate, newcomer (in no cluster yet)
    term: int
    leader_id: int | None
    commit_index: int
    last_index: int  # of this node's log; what is behind commit_index may still be taken back
    applied_index: int
    elections: int  # leaders that this process has seen come
    messages_dropped: int  # to peers that were too slow to take them
    members: tuple[PeerReport, ...]  # this node too, by node_id
