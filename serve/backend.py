"""What the edges need of a node, one protocol for each capability.

`serve/` knows only these protocols; `serve/deployments/` wires them to the actors, and tests to memory.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Protocol

from pyoxigraph import NamedNode, Quad

from graphdb.access.principal import Principal
from graphdb.access.visibility import Visibility
from graphdb.alerts.definition import Definition
from graphdb.errors import GraphDBError
from graphdb.graphql.edits import Edits
from graphdb.live.changes import LoggedChange
from graphdb.live.matcher import LiveQuery
from graphdb.live.notifications import Notification
from graphdb.log.views import ViewStatus
from graphdb.model import Confirmation, GraphName, NamedGraph
from graphdb.node import (
    ClusterMember,
    ClusterReport,
    Consistency,
    EmbeddedStore,
    Evaluated,
    FunctionCall,
    LiveReport,
    NodeStatus,
    QueryRequest,
    RunningQuery,
    ValidationRequest,
)
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import Query
from graphdb.sparql.syntax import Update
from graphdb.store.small_joins import LittleJoin
from graphdb.store.view import StoreView, Subject, Term

__all__ = [
    "Admin",
    "AlertRequests",
    "AnswerStream",
    "ChangeStream",
    "Changes",
    "ClusterMember",
    "EmbeddedStore",
    "Evaluated",
    "FunctionCall",
    "Functions",
    "GraphLive",
    "GraphNode",
    "GraphReads",
    "GraphWrites",
    "LiveReport",
    "LiveSink",
    "NodeStatus",
    "Progress",
    "Queries",
    "QueryRequest",
    "RunningQueries",
    "RunningQuery",
    "ValidationRequest",
    "Writing",
]


class AnswerStream(Protocol):
    """The answer of one query, made by a reader while it is read. Used on one event loop."""

    query_id: str
    snapshot_index: int  # the answer is of the state at this log index, or of a later one
    is_exact: bool  # of exactly this one
    where: str  # which process evaluates it

    async def read(self) -> bytes | None:
        """The next piece of the answer in the format asked for, about 64 kB; None at its end.

        Where the request says explain, each piece is what `graphdb.store.explaining.explain` hands out.
        Only None says that the answer is whole. Waits as long as the request's time limit allows.
        Raises EvaluationFailed, NotAcceptable, LimitExceeded, QueryTimeout, QueryMemoryExceeded,
        QueryCancelled, UnavailableError.
        """

    def close(self) -> None:
        """Nothing more will be read: a query that still runs is ended. Closing twice is allowed."""


class ChangeStream(Protocol):
    """The changes of the log, in its order, from a place in it on. Used on one event loop."""

    through: int  # all that stands up to there was handed out

    async def read(self, wait_s: float) -> list[LoggedChange] | None:
        """The next changes; none where nothing has come for wait_s, perhaps none where others than changes
        have. None: the stream has ended, for the node stops.

        Raises ChangesForgotten: the log has gone on without the reader.
        """

    def close(self) -> None:
        """Nothing more will be read. Closing twice is allowed."""


class LiveSink(Protocol):
    """Where the notifications of live queries go. It is called on the event loop, and never waits."""

    def opened(self, subscription: str, index: int) -> None:
        """The subscription begins: what changes behind index is told, and nothing was told before."""

    def notify(self, subscriptions: Sequence[str], notification: Notification) -> None:
        """All of these are told the same."""

    def ended(self, subscriptions: Sequence[str], error: GraphDBError) -> None:
        """The node cannot go on with these; whoever wants may subscribe again behind what was told last."""


class AlertRequests(Protocol):
    """The alerts of the whole cluster, by id or name, as JSON members: `graphdb.alerts.definition`.

    All raise NotFound for an alert that is not there, and UnavailableError. A request_id as for updates.
    """

    def of(self, principal: Principal) -> "AlertRequests":
        """As somebody may ask: who does not see everything has only their own alerts, and these see what
        their maker sees when making them.
        """

    async def create(self, definition: Definition, request_id: bytes | None) -> dict[str, Any]:
        """The alert, which is evaluated at once.

        Raises InvalidParameter, QuerySyntaxError, LimitExceeded, HostNotAllowed (SERVICE), AlreadyExists.
        """

    async def delete(self, name_or_id: str, request_id: bytes | None) -> None:
        """It is gone, with what it had still to tell."""

    async def pause(self, name_or_id: str, request_id: bytes | None) -> dict[str, Any]:
        """Evaluate it no more; the alert."""

    async def resume(self, name_or_id: str, request_id: bytes | None) -> dict[str, Any]:
        """Evaluate it again; the alert."""

    def show(self, name_or_id: str) -> dict[str, Any]:
        """The alert, as far as this node knows."""

    def show_all(self) -> list[dict[str, Any]]:
        """All of them, the oldest first."""

    def history(self, name_or_id: str) -> list[dict[str, Any]]:
        """Its last deliveries, the newest first."""

    async def test(self, name_or_id: str) -> dict[str, Any]:
        """Evaluate it now, and tell its webhook so, once and whether the condition holds or not; what has
        become of both. Nothing of it is remembered.

        Raises what its query raises.
        """


class GraphReads(Protocol):
    """The graph as one visibility shows it, at the state of when it was asked for or a later one. Methods
    without `async` block (in native code, without the GIL) and may be called on any thread.
    """

    @property
    def view_key(self) -> str | None:
        """The same where the same is seen, None where everything is: answers are kept by it."""

    def query(self, query: Query, dataset: Dataset) -> Evaluated:
        """Start evaluating a query that is cheap, or joins little, here; rows are computed as they are taken.

        Raises LimitExceeded, EvaluationFailed, HostNotAllowed.
        """

    def joins_little(self, join: LittleJoin) -> bool:
        """Whether what the store holds now makes it a matter of a millisecond or two to evaluate a join."""

    async def start_query(self, request: QueryRequest) -> "AnswerStream":
        """Have a reader evaluate a query that may take long. It sees at least what was applied at the call.

        Waits, within bounds, for a reader to be free. Whoever gets the stream closes it; cancelling the call
        ends the query.
        Raises LimitExceeded, HostNotAllowed, Overloaded, QueryTimeout, QueryCancelled, UnavailableError.
        """

    async def explain_columns(self, request: QueryRequest) -> dict[str, Any]:
        """Whether the column view would answer a query that may take long, as JSON values.

        "path" is "columns" or "reader"; "reason" says why the columns do not answer; where they do,
        "estimate" is what they would look at, from statistics alone, and "plan" is DuckDB's, as text.
        """

    async def start_validation(self, request: ValidationRequest) -> "AnswerStream":
        """Have a reader validate a graph against SHACL shapes, and write the report; else as `start_query`.

        What the shapes or the graphs are is found out while the answer is read, which raises RdfSyntaxError,
        MalformedShapes, InvalidParameter (shapes in a named graph of the document), UnknownGraph as well.
        """

    def exact_index(self) -> int | None:
        """The log index of exactly the state that a query on this node would see now.

        None while a change is being applied: what is seen is then the state before or after it.
        """

    def snapshot_index(self) -> int:
        """The log index of the last entry that readers see."""

    def graph_exists(self, graph: NamedGraph) -> bool:
        """True also for a graph that was created empty."""

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        """The quads of one graph (None: the default graph) of one consistent state.

        Raises UnknownGraph.
        """

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """See `StoreView.quads_matching`; as of the call."""

    def dataset_quads(self) -> Iterator[Quad]:
        """Every quad of one consistent state."""

    def schema_state(self) -> object:
        """See `SchemaWatch.state`: another object whenever ontology or shapes may be others than before."""


class GraphWrites(Protocol):
    """Writing to the graph as one visibility shows it: nothing that is not seen is changed, or tells of
    itself.

    All raise Forbidden, and write nothing, where a graph is not seen or annotations are not the writer's
    to make. What they count is as the writer sees it: what is there already, hidden, counts as added.
    """

    async def update(self, update: Update, using: Dataset, request_id: bytes | None = None) -> Confirmation:
        """Evaluate the whole request, log its effect, apply it. Atomic.

        A request_id (`graphdb.log.request_ids`) that the log has seen lately is confirmed as it was then, and
        has no effect again.
        Raises LimitExceeded, EvaluationFailed, UnknownGraph, AlreadyExists, HostNotAllowed,
        InvalidParameter, UnavailableError.
        """

    async def write_graph(
        self,
        body: AsyncIterator[bytes],
        syntax: RdfSyntax,
        *,
        graph: NamedNode | None,
        whole_dataset: bool,
        replace: bool,
        base_iri: str | None,
        request_id: bytes | None = None,
        precondition: Callable[[StoreView], None] | None = None,
    ) -> Confirmation:
        """Read an RDF document (already decompressed) to its end, then put it in as one atomic change.

        With whole_dataset the body's own graph names count: replace empties every graph that the body names
        first, else they are merged. Without it everything goes to `graph` (None: the default graph), and a
        named graph in the body is InvalidParameter. Nothing is stored unless the whole body parses.
        precondition is called, perhaps more than once and on another thread, with the very state that the
        change is of; what it raises is raised, and nothing stored. A node of a cluster takes none.
        Raises RdfSyntaxError, InvalidParameter, BodyTooLarge (passed through from the iterator),
        UnavailableError.
        """

    async def delete_graph(self, graph: NamedNode | None, request_id: bytes | None = None) -> Confirmation:
        """Delete a named graph, or empty the default graph (None).

        Raises UnknownGraph.
        """

    async def edit(self, edits: Edits, request_id: bytes | None = None) -> Confirmation:
        """Change resources as one atomic change; request_id as for `update`.

        Raises EditRefused, ShapesViolated, UnavailableError.
        """


class GraphLive(Protocol):
    """The changes of the graph as one visibility shows it."""

    async def follow_changes(self, since: int | None, timeout_s: float) -> "ChangeStream":
        """What changes behind the log index since, None: from now on, as it is applied here.

        Raises ChangesForgotten, IndexNotReached (the node is not at since after timeout_s), UnavailableError.
        """

    async def subscribe(self, query: LiveQuery, since: int | None, sink: LiveSink) -> str:
        """Tell a sink what becomes of a query's records behind the log index since, None: from now on, each
        change once, in the order of the log; the id of the subscription.

        Raises ChangesForgotten, IndexNotReached, Overloaded (too many are open), UnavailableError.
        """


class Queries(Protocol):
    """The graph by what whoever asks may see of it. check_query may be called on any thread."""

    async def reads(self, visibility: Visibility) -> GraphReads:
        """What a visibility shows, as of what was applied at the call or later. Raises UnavailableError."""

    def check_query(self, query: Query) -> None:
        """What every way of asking checks first. Raises LimitExceeded, HostNotAllowed."""


class Functions(Protocol):
    """Functions that know nothing of the graph."""

    async def call_function(self, call: FunctionCall) -> bytes:
        """Have a reader call a function of GeoSPARQL: see `graphdb.geo.evaluate.evaluation_json`.

        Waits, within bounds, for a reader to be free. Cancelling the call ends it.
        Raises UnknownFunction, InvalidParameter, BadGeometry, LimitExceeded, Overloaded, QueryTimeout,
        QueryMemoryExceeded, QueryCancelled, UnavailableError.
        """


class RunningQueries(Protocol):
    """What is under way. May be called on any thread."""

    def running_queries(self) -> list[RunningQuery]:
        """What queries, validations and updates are under way, the oldest first."""

    def cancel_query(self, query_id: str) -> bool:
        """End a running query: whoever reads it meets QueryCancelled. False where no such query runs."""


class Progress(Protocol):
    """How far readers on this node see the log. snapshot_index may be called on any thread."""

    def snapshot_index(self) -> int:
        """The log index of the last entry that readers see."""

    async def wait_for_index(self, index: int, timeout_s: float) -> None:
        """Return once readers see the effect of the log up to index. Raises IndexNotReached."""

    async def reach(self, consistency: Consistency, timeout_s: float) -> None:
        """Return once what readers on this node see is as new as consistency asks for.

        Raises NotLeader where no leader can tell, IndexNotReached, UnavailableError.
        """


class Writing(Protocol):
    """Writing to the graph, for whoever may."""

    def writes(self, visibility: Visibility) -> GraphWrites:
        """Writing as a visibility shows it."""


class Changes(Protocol):
    """What changes in the graph. Methods without `async` may be called on any thread."""

    def live(self, visibility: Visibility) -> GraphLive:
        """Changes as a visibility shows them."""

    async def unsubscribe(self, subscription: str) -> bool:
        """Tell it nothing more, from the call on; False where there is none such."""

    def embedded_store(self) -> EmbeddedStore:
        """How live queries fare; never blocks, never raises."""

    def live_report(self) -> LiveReport:
        """The same in figures; never blocks, never raises."""


class Admin(Protocol):
    """The node, and the cluster that it is in. Methods without `async` may be called on any thread."""

    def status(self) -> NodeStatus:
        """How the node is; never blocks, never raises."""

    def cluster(self) -> ClusterReport | None:
        """What the node knows of its cluster, None where it stands alone; never blocks, never raises."""

    def view_statuses(self) -> list[ViewStatus]:
        """How well the views of this node follow its log, those of other processes as of their last report;
        never blocks, never raises.
        """

    async def add_member(self, node_id: int, address: str) -> None:
        """Expect a new node, or a known one at a new address; it gets its vote when it has caught up.

        Any node takes it, and has the leader do it; so below. Raises NotClustered, UnavailableError.
        """

    async def remove_member(self, node_id: int) -> None:
        """Take a node out of the cluster; no error where it is not in it.

        Raises NotClustered, MembershipRefused (the last voter stays), UnavailableError.
        """

    async def hand_over(self, node_id: int) -> None:
        """Have this member lead, if it does not yet.

        Raises NotClustered, MembershipRefused (it has no vote), UnavailableError (it cannot take over now).
        """


class GraphNode(Protocol):
    """One node's graph, by what can be asked of it: whoever gets it hands on what each edge needs."""

    @property
    def queries(self) -> Queries: ...
    @property
    def functions(self) -> Functions: ...
    @property
    def running(self) -> RunningQueries: ...
    @property
    def progress(self) -> Progress: ...
    @property
    def writing(self) -> Writing: ...
    @property
    def changes(self) -> Changes: ...
    @property
    def alerts(self) -> AlertRequests: ...
    @property
    def admin(self) -> Admin: ...
