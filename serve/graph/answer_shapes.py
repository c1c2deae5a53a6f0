"""The shapes of JSON answers whose handlers write them member by member, for the OpenAPI document.

A test holds real answers against them (`tests/unit/serve/test_openapi.py`).
"""

from dataclasses import dataclass
from typing import Any, Literal

from graphdb.node import EmbeddedStore, NodeStatus, RunningQuery
from graphdb.saved_queries import SavedQuery

__all__ = [
    "AlertHistory",
    "AlertList",
    "AlertTest",
    "ApiKeyList",
    "CallResult",
    "Confirmed",
    "Depths",
    "GraphConfirmed",
    "GraphQLRequest",
    "GraphQLResult",
    "HealthRecord",
    "HistoryRecord",
    "Holon",
    "HolonList",
    "HolonicHealth",
    "MembraneReport",
    "NamedStateList",
    "NamedStateRecord",
    "PortalList",
    "PurgeList",
    "PurgeShown",
    "QueryCheck",
    "QueryList",
    "QueryPlanned",
    "SavedQueryList",
    "SchemaRefreshed",
    "ServiceIndex",
    "ShownAlert",
    "StateDifference",
    "Success",
    "ValidationReport",
    "WhoAmI",
]


@dataclass(frozen=True, slots=True)
class ServiceIndex:
    """The paths of the port, each with its purpose."""

    service: str
    endpoints: dict[str, str]


@dataclass(frozen=True, slots=True)
class WhoAmI:
    """The principal of a request; expires_at is in seconds since 1970, null for credentials without end."""

    name: str
    provider: str
    roles: list[str]
    permission: Literal["none", "read", "write", "admin"]
    sees_everything: bool
    expires_at: float | None


@dataclass(frozen=True, slots=True)
class ShownKey:
    """An API key, without its digest; expires_at is null for a key without end."""

    name: str
    roles: list[str]
    sids: list[str]
    expires_at: str | None


@dataclass(frozen=True, slots=True)
class ApiKeyList:
    """The API keys of the configuration."""

    api_keys: list[ShownKey]


@dataclass(frozen=True, slots=True)
class QueryPlanned:
    """How a query would be answered. warnings: the limits that it comes close to."""

    evaluated: Literal["at once", "by the column view", "by a reader"]
    reasons: list[str]
    warnings: list[str]
    repeatable: bool
    cacheable: bool


@dataclass(slots=True)
class QueryCheck:
    """Whether a text would be accepted. line and column count from 1; form and the rest are null as the text
    is refused, or unless they are asked for.
    """

    valid: bool
    form: str | None = None  # SELECT, ASK, CONSTRUCT, DESCRIBE or UPDATE
    error: str | None = None
    line: int | None = None
    column: int | None = None
    plan: QueryPlanned | None = None


@dataclass(frozen=True, slots=True)
class Success:
    """Done."""

    success: bool


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A write that is on disk, and the log index at which it is visible."""

    success: bool
    message: str
    snapshot_index: int
    affected_triples: int


@dataclass(frozen=True, slots=True)
class GraphConfirmed:
    """The same, and the graph that was written to."""

    success: bool
    message: str
    snapshot_index: int
    affected_triples: int
    graph: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRecord(NodeStatus):
    """How the node is. views: the state of each that follows the log, by name: following, waiting (to try
    again), restarting (is made anew), starting or failed. purge_error: why this node cannot get on with a
    purge now; absent if it can.
    """

    embedded_store: EmbeddedStore
    views: dict[str, str]
    purge_error: str | None = None


@dataclass(frozen=True, slots=True)
class QueryList:
    """The running queries, the oldest first."""

    queries: list[RunningQuery]


@dataclass(frozen=True, slots=True)
class PastEntry:
    """What one entry of the log changed. more: the rest of it is on the next page."""

    index: int
    timestamp: str
    author: str | None
    interface: str | None
    removed: list[str]
    added: list[str]
    dropped_graphs: list[str]
    created_graphs: list[str]
    more: bool = False


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """A page of past changes, the newest first. cursor: where the next page begins, null at the end.
    purged_index: of the newest purge; what stands before it is not all that there was.
    """

    entries: list[PastEntry]
    oldest_index: int
    purged_index: int | None
    snapshot_index: int
    cursor: str | None


@dataclass(frozen=True, slots=True)
class StateDifference:
    """What leads from one state to another; statements are N-Quads. purged_index: of the newest purge."""

    from_index: int
    to_index: int
    purged_index: int | None
    removed: list[str]
    added: list[str]
    dropped_graphs: list[str]
    created_graphs: list[str]


@dataclass(frozen=True, slots=True)
class NamedStateRecord:
    """A named state. named_at: ISO 8601, UTC. kept: whether this node still has it; history_bytes: the disk
    that its history takes from this state on.
    """

    name: str
    index: int
    named_at: str
    named_by: str | None
    kept: bool
    history_bytes: int


@dataclass(frozen=True, slots=True)
class NamedStateList:
    """Named states, by name."""

    snapshots: list[NamedStateRecord]


@dataclass(frozen=True, slots=True)
class PurgeShown:
    """A purge. index: of the log, states before it lack what was purged; scope: resource or graph. done:
    whether every node has written its files anew; waiting_nodes: those that have not. digest: SHA-256, in
    hexadecimal, of the salt, the scope and the IRI, with line feeds between them.
    """

    index: int
    scope: str
    purged_at: str
    purged_by: str | None
    done: bool
    waiting_nodes: list[int]
    digest: str
    salt: str


@dataclass(frozen=True, slots=True)
class PurgeList:
    """Purges, in the order of the log."""

    purges: list[PurgeShown]


@dataclass(frozen=True, slots=True)
class SavedQueryList:
    """Saved queries, by name."""

    queries: list[SavedQuery]


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a function of GeoSPARQL; datatype is an IRI."""

    function: str
    result: bool | int | float | str
    datatype: str


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """One result of a validation."""

    focusNode: str
    resultPath: str | None
    severity: str
    message: str
    sourceShape: str
    sourceConstraintComponent: str


@dataclass(frozen=True, slots=True)
class ValidationStats:
    """The statistics of a validation."""

    focus_nodes_validated: int
    constraints_checked: int
    violations: int
    warnings: int
    infos: int
    duration_ms: float


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """Whether a graph conforms to shapes, and where not."""

    conforms: bool
    results: list[ValidationResult]
    stats: ValidationStats


@dataclass(frozen=True, slots=True)
class MembraneReport:
    """The report of a holon's interior."""

    iri: str
    conforms: bool
    results: list[ValidationResult]
    stats: ValidationStats


@dataclass(frozen=True, slots=True)
class ShownAlert:
    """An alert without its secret."""

    id: str
    name: str
    query: str
    condition: str
    interval_seconds: int
    webhook: str
    notify: Literal["interval", "change"]
    signed: bool
    status: Literal["active", "paused", "error"]
    created_at: str
    last_evaluated_at: str | None
    last_value: int | float | None
    last_fired_at: str | None
    fire_count: int
    last_error: str | None


@dataclass(frozen=True, slots=True)
class AlertList:
    """Alerts, the oldest first."""

    alerts: list[ShownAlert]


@dataclass(frozen=True, slots=True)
class AlertDelivery:
    """One call of a webhook."""

    id: str
    fired_at: str
    snapshot_index: int
    result: int | float | None
    status: str
    attempts: int
    status_code: int | None
    error: str | None
    finished_at: str | None


@dataclass(frozen=True, slots=True)
class AlertHistory:
    """The last deliveries, the newest first."""

    history: list[AlertDelivery]


@dataclass(frozen=True, slots=True)
class AlertTest:
    """The outcome of a test."""

    result: int | float | None
    snapshot_index: int
    holds: bool
    delivered: bool
    status_code: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class HolonicHealth:
    """The holonic interface is there."""

    available: bool
    default_tenant: str


@dataclass(frozen=True, slots=True)
class LayerGraph:
    """A graph of a layer; ntriples has its triples if one holon is requested."""

    graph: str
    triples: int
    ntriples: str | None = None


@dataclass(frozen=True, slots=True)
class Layers:
    """The graphs of a holon that hold triples, by layer."""

    interior: list[LayerGraph]
    boundary: list[LayerGraph]
    context: list[LayerGraph]
    projection: list[LayerGraph]


@dataclass(frozen=True, slots=True)
class Holon:
    """A holon and its layers."""

    iri: str
    label: str | None
    member_of: str | None
    tenant: str
    created_at: str
    layers: Layers


@dataclass(frozen=True, slots=True)
class HolonList:
    """The holons of a tenant."""

    holons: list[Holon]


@dataclass(frozen=True, slots=True)
class HolonDepth:
    """How deep a holon is nested; null for one in a cycle, or below one."""

    iri: str
    depth: int | None


@dataclass(frozen=True, slots=True)
class Depths:
    """How deep the holons of a tenant are nested."""

    tenant: str
    depth: int
    holons: list[HolonDepth]


@dataclass(frozen=True, slots=True)
class ShownPortal:
    """A portal."""

    iri: str
    source: str
    target: str
    construct_query: str


@dataclass(frozen=True, slots=True)
class PortalList:
    """The portals of a tenant, or of one holon."""

    portals: list[ShownPortal]


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    """An operation, by GraphQL over HTTP."""

    query: str
    variables: dict[str, Any] | None = None
    operationName: str | None = None
    extensions: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GraphQLResult:
    """The result of an operation, by GraphQL over HTTP."""

    data: dict[str, Any] | None = None
    errors: list[dict[str, Any]] | None = None
    extensions: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SchemaRefreshed:
    """The rebuilt schema of GraphQL."""

    success: bool
    message: str
    snapshot_index: int
    types: int
