"""What the edges need of a node, one protocol for each capability.

`serve/` knows only these protocols; `serve/deployments/` wires them to the actors, and tests to memory.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from pyoxigraph import NamedNode, Quad

from graphdb.access.principal import Principal
from graphdb.access.visibility import Visibility
from graphdb.alerts.definition import Definition
from graphdb.errors import GraphDBError
from graphdb.graphql.edits import Edits
from graphdb.history.asked import AskedChanges
from graphdb.history.moments import Moment
from graphdb.history.named_states import KeptState
from graphdb.history.pages import Difference, HistoryPage, PageRequest
from graphdb.history.purges import PurgeRecord
from graphdb.history.purging import PurgeScope
from graphdb.live.changes import LoggedChange
from graphdb.live.matcher import LiveQuery
from graphdb.live.notifications import Notification
from graphdb.log.views import ViewStatus
from graphdb.model import Author, Confirmation, GraphName, NamedGraph, Outcome
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
from graphdb.rdf.patch import QuadPatch
from graphdb.saved_queries import QueryDraft, SavedQuery
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import Query
from graphdb.sparql.syntax import Update
from graphdb.store.small_joins import SmallJoin
from graphdb.store.view import StoreView, Subject, Term
from graphdb.store.word_searches import WordSearch
from graphdb.transactions.changes import TransactionCommit
from graphdb.transactions.read_pattern import ReadPattern

__all__ = [
    "Admin",
    "AlertRequests",
    "AnswerOrigin",
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
    "History",
    "LiveReport",
    "LiveSink",
    "NamedStates",
    "Namespaces",
    "NodeStatus",
    "Progress",
    "Purges",
    "QueriedState",
    "Queries",
    "QueryOutcome",
    "QueryRequest",
    "RunningQueries",
    "RunningQuery",
    "SavedQueries",
    "Transaction",
    "Transactions",
    "ValidationRequest",
    "Writing",
]


class AnswerOrigin(Protocol):
    """Where the answer to one query comes from."""

    @property
    def query_id(self) -> str:
        """As on the list of running queries."""

    @property
    def snapshot_index(self) -> int:
        """The answer is of the state at this log index, or of a later one."""

    @property
    def is_exact(self) -> bool:
        """Whether it is of exactly this one."""

    @property
    def where(self) -> str:
        """Which process evaluates it."""


class AnswerStream(AnswerOrigin, Protocol):
    """The answer to one query, which a reader produces while it is read. Used on one event loop."""

    async def read(self) -> bytes | None:
        """The next piece of the answer in the format asked for, about 64 kB; None at its end.

        If the request says explain, the pieces are those of `graphdb.store.explaining.explain`.
        The answer is complete only when None is returned. Waits within the request's time limit.
        Raises EvaluationFailed, NotAcceptable, LimitExceeded, QueryTimeout, QueryMemoryExceeded,
        QueryCancelled, UnavailableError.
        """

    def close(self) -> None:
        """Stop reading, and end the query if it is still running. Closing twice is allowed."""


class QueryOutcome(Protocol):
    """Is told what has become of a query that `GraphReads.begin_query` began: one of both, once, on the event
    loop.
    """

    def answered(self, origin: AnswerOrigin, body: bytes) -> None:
        """This is all of the answer."""

    def goes_on(self, start: Callable[[], Awaitable[AnswerStream]]) -> None:
        """The answer is long, or not there: start is to be awaited, as `GraphReads.start_query`."""


class ChangeStream(Protocol):
    """The changes after one index of the log, in its order. Used on one event loop."""

    through: int  # everything up to this log index has been returned

    async def read(self, wait_s: float) -> list[LoggedChange] | None:
        """The next changes; empty if there are none within wait_s, or if only other entries were read. None:
        the stream has ended, because the node stops.

        Raises ChangesForgotten if the log does not have the next changes any more.
        """

    def close(self) -> None:
        """Stop reading. Closing twice is allowed."""


class LiveSink(Protocol):
    """Receives the notifications of live queries. It is called on the event loop, and never waits."""

    def opened(self, subscription: str, index: int) -> None:
        """The subscription is open: changes after index are reported. Called before any notification."""

    def notify(self, subscriptions: Sequence[str], notification: Notification) -> None:
        """One notification for all of these subscriptions."""

    def ended(self, subscriptions: Sequence[str], error: GraphDBError) -> None:
        """The node cannot continue these. The client may subscribe again, after the last reported index."""


class AlertRequests(Protocol):
    """The alerts of the whole cluster, by id or name, as JSON members: `graphdb.alerts.definition`.

    All raise NotFound for an unknown alert, and UnavailableError. request_id: as for updates.
    """

    def of(self, principal: Principal) -> "AlertRequests":
        """The alerts that a principal may access: with restricted visibility only its own. An alert keeps
        the visibility that its creator had at its creation.
        """

    async def create(self, definition: Definition, request_id: bytes | None) -> dict[str, Any]:
        """The alert, which is evaluated at once.

        Raises InvalidParameter, QuerySyntaxError, LimitExceeded, HostNotAllowed (SERVICE), AlreadyExists.
        """

    async def delete(self, name_or_id: str, request_id: bytes | None) -> None:
        """Delete the alert, with its pending deliveries."""

    async def pause(self, name_or_id: str, request_id: bytes | None) -> dict[str, Any]:
        """Stop evaluating it. Returns the alert."""

    async def resume(self, name_or_id: str, request_id: bytes | None) -> dict[str, Any]:
        """Evaluate it again. Returns the alert."""

    def show(self, name_or_id: str) -> dict[str, Any]:
        """The alert, as far as this node knows."""

    def show_all(self) -> list[dict[str, Any]]:
        """All of them, the oldest first."""

    def history(self, name_or_id: str) -> list[dict[str, Any]]:
        """Its last deliveries, the newest first."""

    async def test(self, name_or_id: str) -> dict[str, Any]:
        """Evaluate it now, and call its webhook once, whether or not the condition holds. Returns the outcome
        of both. Nothing is stored.

        Raises what its query raises.
        """


class QueriedState(Protocol):
    """What queries are answered from: `GraphReads`, or a state of the past that is not there to be read."""

    @property
    def view_key(self) -> str | None:
        """A key of the visible data, for caches of answers; None if everything is visible."""

    def uniting_graphs(self) -> "QueriedState":
        """The same graph, with the union of all graphs as the default graph of queries without a dataset."""

    async def start_query(self, request: QueryRequest) -> "AnswerStream":
        """Have a reader evaluate a query that may take long, on the state at the call or a later one.

        Waits, within bounds, for a free reader. The caller closes the stream; cancelling the call ends the
        query.
        Raises LimitExceeded, HostNotAllowed, Overloaded, QueryTimeout, QueryCancelled, UnavailableError.
        """

    def begin_query(self, request: QueryRequest, outcome: QueryOutcome) -> Callable[[], None] | None:
        """Begin a query that may take long without waiting for anything, if that is possible now; None where
        it has to be asked of `start_query`. Otherwise outcome is told of it later, unless what is returned is
        called before: nobody wants the answer any more, and the query ends.

        Raises LimitExceeded, HostNotAllowed.
        """

    def exact_index(self) -> int | None:
        """The log index of exactly the state that a query on this node would read now.

        None while a change is being applied: a query then reads the state before or after it.
        """

    def snapshot_index(self) -> int:
        """The log index of the last entry that readers see."""


class GraphReads(QueriedState, Protocol):
    """The graph with one visibility, at the state of the call to `Queries.reads` or a later one.

    Methods without `async` block (in native code, without the GIL) and may be called on any thread.
    """

    def uniting_graphs(self) -> "GraphReads":
        """See `QueriedState.uniting_graphs`."""

    def query(self, query: Query, dataset: Dataset) -> Evaluated:
        """Start evaluating a cheap query or a small join on this thread; rows are computed as they are read.

        Raises LimitExceeded, EvaluationFailed, HostNotAllowed.
        """

    def query_text(self, text: str, base_iri: str | None) -> Evaluated:
        """`query` for the engine's text (`graphdb.planning.engine_text`) of a query that `check_query` has
        passed, without a dataset of its own. Raises EvaluationFailed.
        """

    def look_up(self, join: SmallJoin) -> Evaluated | None:
        """The answer to the query of a join with columns (`SmallJoin.answer`) at one state; None if that has
        none at this moment. Raises OverBudget if the join is not small.
        """

    def search(self, join: SmallJoin, query: Callable[[], Query]) -> Evaluated | None:
        """The answer to a query with searches that is this join, at one state; query is called if need be.

        None if a search has to wait or may take long. Raises OverBudget if the join is not small, and what
        `start_query` raises of searches.
        """

    def search_words(self, search: WordSearch, words: str) -> tuple[bytes, int] | None:
        """The answer to a search for words, and the log index of its state; None where `search` has to be
        asked. Raises EvaluationFailed, Overloaded.
        """

    def is_small_join(self, join: SmallJoin) -> bool:
        """Whether the join takes at most a millisecond or two on the present data."""

    async def explain_columns(self, request: QueryRequest) -> dict[str, Any]:
        """Whether the column view would answer a query that may take long, as JSON values.

        "path" is "columns" or "reader"; "reason" says why the columns do not answer. If they do, "estimate"
        is the data that they would read, from statistics alone, and "plan" is DuckDB's, as text. "ways" has
        an object for the columns and one for a reader: "way", whether it is "possible" or the "reason" why
        not, "estimated_rows", "estimated_ms", "took_ms" of its last answer, and whether it is "chosen".
        """

    async def start_validation(self, request: ValidationRequest) -> "AnswerStream":
        """Have a reader validate a graph against SHACL shapes and write the report; otherwise as
        `start_query`.

        Shapes and graphs are read while the answer is read, which therefore also raises RdfSyntaxError,
        MalformedShapes, InvalidParameter (shapes in a named graph of the document) and UnknownGraph.
        """

    def graph_exists(self, graph: NamedGraph) -> bool:
        """True also for an empty graph that was created."""

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
        """See `SchemaWatch.state`: a new object whenever ontology or shapes may have changed."""


class GraphWrites(Protocol):
    """Writing to the graph with one visibility: hidden data are neither changed nor disclosed.

    All raise Forbidden, and write nothing, if a graph is hidden or the writer may not write annotations.
    Counts are as the writer sees them: an inserted quad that already exists hidden counts as added.
    """

    async def update(self, update: Update, using: Dataset, request_id: bytes | None = None) -> Confirmation:
        """Evaluate the whole request, log its effect, apply it. Atomic.

        A repeated request_id (`graphdb.log.request_ids`) gets the first confirmation again, and has no
        further effect.
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
        clear: bool = False,
        keep_blank_nodes: bool = False,
        request_id: bytes | None = None,
        precondition: Callable[[StoreView], None] | None = None,
    ) -> Confirmation:
        """Read an RDF document (already decompressed) to its end, then store it as one atomic change.

        With whole_dataset the graph names in the body count: replace first empties every graph that the body
        names; otherwise the quads are merged. clear deletes all other graphs, and empties the default graph,
        as far as they are visible. keep_blank_nodes: labels are those of the body, and name the blank nodes
        of the store that have them. Without whole_dataset all triples go to `graph` (None: the
        default graph), and a named graph in the body raises InvalidParameter. Nothing is stored unless the
        whole body parses. precondition is called, perhaps more than once and on another thread, with exactly
        the state that is changed. If it raises, nothing is stored. Cluster nodes do not support it.
        Raises RdfSyntaxError, InvalidParameter, BodyTooLarge (passed through from the iterator),
        UnavailableError.
        """

    async def delete_graph(self, graph: NamedNode | None, request_id: bytes | None = None) -> Confirmation:
        """Delete a named graph, or empty the default graph (None).

        Raises UnknownGraph.
        """

    async def patch(self, patch: QuadPatch, request_id: bytes | None = None) -> Confirmation:
        """Remove and add quads as one atomic change.

        Raises UnavailableError.
        """

    async def edit(self, edits: Edits, request_id: bytes | None = None) -> Confirmation:
        """Change resources as one atomic change; request_id as for `update`.

        Raises EditRefused, ShapesViolated, UnavailableError.
        """

    async def commit(self, commit: TransactionCommit, request_id: bytes | None = None) -> Confirmation:
        """Make true what a transaction wants, as one atomic change; request_id as for `update`.

        Raises TransactionConflict if what it has read is another by now, ShapesViolated, UnavailableError.
        """


class GraphLive(Protocol):
    """The changes of the graph with one visibility."""

    async def follow_changes(self, since: int | None, timeout_s: float) -> "ChangeStream":
        """The changes after the log index since (None: from now on), as this node applies them.

        Raises ChangesForgotten, IndexNotReached (the node has not reached since in timeout_s),
        UnavailableError.
        """

    async def subscribe(self, query: LiveQuery, since: int | None, sink: LiveSink) -> str:
        """Report the changes of a query's records after the log index since (None: from now on) to a sink.

        Each change is reported once, in the order of the log. Returns the id of the subscription.

        Raises ChangesForgotten, IndexNotReached, Overloaded (too many are open), UnavailableError.
        """


class Queries(Protocol):
    """Reading the graph with a visibility. check_query may be called on any thread."""

    async def reads(
        self, visibility: Visibility, as_of: Moment | None = None, timeout_s: float = 0.0
    ) -> GraphReads:
        """The visible graph, at the state of the call or a later one. Raises UnavailableError.

        as_of: exactly the state at a moment, and of it what was visible then and is visible now. This waits
        up to timeout_s for a moment of the future, and for the state to be made. It also raises
        InvalidParameter (the moment does not come in time, or is before all entries), HistoryForgotten and
        LimitExceeded. A query that names a state itself is refused unless that has been asked for so.
        """

    async def unmade(
        self, visibility: Visibility, as_of: Moment, timeout_s: float, *, is_look_up: bool
    ) -> QueriedState | None:
        """A state of the past, where queries may be answered without what `reads` waits for; None where that
        has to be made, or is there. It is made still for a query that needs it. is_look_up: the query is
        faster there, so that this waits a moment for it. Raises as `reads`, but for LimitExceeded.
        """

    def made_at_once(self, as_of: Moment) -> GraphReads | None:
        """The whole graph as of a log index, if it can be read now, and has all that it had: the answer needs
        no `X-History-Purged`.
        """

    def unmade_at_once(self, as_of: Moment) -> QueriedState | None:
        """As made_at_once() for `unmade`, of a state that it has given lately."""

    def whole_reads(self) -> GraphReads:
        """The whole graph, as `reads` for a visibility of everything."""

    def check_query(self, query: Query) -> None:
        """Check the limits of a query before evaluation. Raises LimitExceeded, HostNotAllowed."""


class Functions(Protocol):
    """Functions that do not read the graph."""

    async def call_function(self, call: FunctionCall) -> bytes:
        """Have a reader call a function of GeoSPARQL: see `graphdb.geometry.evaluate.evaluation_json`.

        Waits, within bounds, for a free reader. Cancelling the call ends it.
        Raises UnknownFunction, InvalidParameter, BadGeometry, LimitExceeded, Overloaded, QueryTimeout,
        QueryMemoryExceeded, QueryCancelled, UnavailableError.
        """


class RunningQueries(Protocol):
    """The running queries and updates. May be called on any thread."""

    def running_queries(self) -> list[RunningQuery]:
        """The running queries, validations and updates, the oldest first."""

    def cancel_query(self, query_id: str) -> bool:
        """End a running query: its reader gets QueryCancelled. False for an unknown id."""


class SavedQueries(Protocol):
    """The queries that users keep. A principal sees its own, and those that others share; it changes its own
    only, unless it may administer. Changes are logged, as updates are, and take a request_id as those do.
    """

    def list(self, principal: Principal) -> list[SavedQuery]:
        """Those that the principal sees, by name, as far as this node has followed the log.

        This and `show` may be called on any thread. Both raise UnavailableError.
        """

    def show(self, query_id: str, principal: Principal) -> SavedQuery:
        """One of `list`. Raises NotFound."""

    async def create(self, draft: QueryDraft, principal: Principal, request_id: bytes | None) -> SavedQuery:
        """Keep a new one. Raises LimitExceeded, UnavailableError."""

    async def replace(
        self, query_id: str, draft: QueryDraft, principal: Principal, request_id: bytes | None
    ) -> SavedQuery:
        """Change one; its owner stays. Raises NotFound, Forbidden, LimitExceeded, UnavailableError."""

    async def delete(self, query_id: str, principal: Principal, request_id: bytes | None) -> None:
        """Raises NotFound, Forbidden, UnavailableError."""


class Namespaces(Protocol):
    """The prefixes that clients keep, the same for all. Changes are logged, as updates are, and take a
    request_id as those do.
    """

    def namespaces(self) -> Mapping[str, str]:
        """The IRI of each prefix, as far as this node has followed the log. Any thread.

        Raises UnavailableError.
        """

    async def set(self, prefix: str, iri: str, request_id: bytes | None) -> Confirmation:
        """Have a prefix stand for the start of IRIs.

        Raises InvalidParameter, LimitExceeded, UnavailableError.
        """

    async def remove(self, prefix: str | None, request_id: bytes | None) -> Confirmation:
        """Remove a prefix, or all for None; no error if there is no such prefix. Raises UnavailableError."""


class Purges(Protocol):
    """What was taken from all states of the past, as far as this node has followed the log."""

    def last_index(self) -> int:
        """The log index of the newest purge, 0 without one: states before it lack something that they had.

        Raises UnavailableError.
        """

    def list(self) -> Sequence[PurgeRecord]:
        """In the order of the log. Raises UnavailableError."""

    def error(self) -> str | None:
        """Why this node cannot get on with a purge now; None if it can, or has none to do. Any thread."""

    async def purge(
        self, scope: PurgeScope, purged_by: str, request_id: bytes | None, timeout_s: float
    ) -> PurgeRecord:
        """Take a scope from the present and from all states before, on all nodes. Returns when this node's
        files are without it, or the time is up: then it goes on.

        purged_by: `Principal.qualified_name`, or "". Raises ShapesViolated where enforced shapes forbid the
        deletion, LimitExceeded, KeyReused, UnavailableError.
        """


class NamedStates(Protocol):
    """Names of past states, the same for all; `Moment` has them. What leads back to a named state is kept.
    Changes are logged, as updates are, and take a request_id as those do.
    """

    async def list(self) -> Sequence[KeptState]:
        """By name, as far as this node has followed the log. Raises UnavailableError."""

    async def show(self, name: str) -> KeptState:
        """One of `list`. Raises NotFound, UnavailableError."""

    async def create(
        self, name: str, at: Moment | None, named_by: str, request_id: bytes | None
    ) -> KeptState:
        """Name the state at a moment (None: now); no effect where it has that name already.

        named_by: `Principal.qualified_name`, or "". Raises InvalidParameter, AlreadyExists (another state has
        the name), HistoryForgotten, IndexNotReached, LimitExceeded, UnavailableError.
        """

    async def delete(self, name: str, request_id: bytes | None) -> None:
        """Raises NotFound, UnavailableError."""


class Transaction(Protocol):
    """A transaction over several requests, which wait for each other. It reads the state at its begin with
    its own changes laid over it, and holds no lock.

    All but note_query, note_pattern, touch and rollback raise NotFound if it has ended, TransactionConflict
    if its commit was refused, and UnavailableError.
    """

    id: str

    async def reads(self) -> GraphReads:
        """The state that it reads. What is read of it has to be noted."""

    def note_query(self, query: Query, *, has_dataset: bool) -> None:
        """A query of `GraphReads.uniting_graphs` reads it. has_dataset: the request names the graphs."""

    def note_pattern(self, pattern: ReadPattern) -> None:
        """These quads are read."""

    async def add(self, quads: Callable[[], Iterable[Quad]]) -> None:
        """Add quads, or nothing if anything is raised. quads is called on another thread.

        Raises Forbidden, LimitExceeded, and what quads raises.
        """

    async def remove(self, patterns: Callable[[], Iterable[ReadPattern]]) -> None:
        """Remove the quads of patterns; otherwise as `add`."""

    async def update(self, update: Update, using: Dataset) -> None:
        """Evaluate an update, without LOAD. Raises what `GraphWrites.update` raises."""

    async def commit(
        self, commit: Callable[[TransactionCommit, bytes], Awaitable[Confirmation]]
    ) -> Confirmation:
        """End it by `GraphWrites.commit`, if it wants anything; with the request id of all its attempts.

        After TransactionConflict it can only be rolled back; after every other error it goes on.
        """

    def touch(self) -> None:
        """It is not forgotten: its time limit begins anew."""

    async def rollback(self) -> None:
        """End it."""


class Transactions(Protocol):
    """The transactions that are open on this node; others of a cluster pass on what is asked about them."""

    @property
    def open_count(self) -> int:
        """How many are open. Any thread."""

    @property
    def timeout_s(self) -> float:
        """Seconds without a request after which one is rolled back."""

    async def begin(self, principal: Principal) -> Transaction:
        """A new one, which this principal alone may use. Raises UnavailableError: Overloaded if too many are
        open.
        """

    def find(self, transaction_id: str, principal: Principal) -> Transaction:
        """One that is open. It ends if the principal may not see the same as at its begin.

        Raises NotFound.
        """

    def home_of(self, transaction_id: str) -> int | None:
        """The other node of the cluster on which it lives or lived; None for one of this node."""

    async def ask_other(self, node_id: int, request: bytes) -> bytes:
        """What serve_others has another node answer. Raises UnavailableError."""

    def serve_others(self, perform: Callable[[bytes], Awaitable[bytes]]) -> None:
        """Have the requests of other nodes performed, from now on."""


class Progress(Protocol):
    """How far readers on this node see the log. snapshot_index may be called on any thread."""

    def snapshot_index(self) -> int:
        """The log index of the last entry that readers see."""

    async def wait_for_index(self, index: int, timeout_s: float) -> None:
        """Return once readers see the effect of the log up to index. Raises IndexNotReached."""

    async def reach(self, consistency: Consistency, timeout_s: float) -> None:
        """Return once the state that readers on this node see satisfies the consistency level.

        Raises NotLeader without a reachable leader, IndexNotReached, UnavailableError.
        """


class Writing(Protocol):
    """Writing to the graph with a visibility."""

    def writes(self, visibility: Visibility, author: Author = ...) -> GraphWrites:
        """Writing to the visible graph; author is what the log says of who has written."""

    def begin_update(self, update: Update, outcome: Outcome, author: Author = ...) -> bool:
        """`GraphWrites.update` for INSERT DATA and DELETE DATA of few quads, with everything visible, without
        a task: its end is reported to outcome, after this call. On the event loop.

        False: nothing was begun, and the update has to go the usual way. Raises UnavailableError.
        """


class Changes(Protocol):
    """Changes of the graph. Methods without `async` may be called on any thread."""

    def live(self, visibility: Visibility) -> GraphLive:
        """The changes of the visible graph."""

    async def unsubscribe(self, subscription: str) -> bool:
        """End a subscription at once; False for an unknown one."""

    def embedded_store(self) -> EmbeddedStore:
        """The state of live queries; never blocks, never raises."""

    def live_report(self) -> LiveReport:
        """The same in figures; never blocks, never raises."""


class History(Protocol):
    """The changes of the past, as far back as they are kept. Only what is visible now, and was then."""

    async def page(self, asked: PageRequest, visibility: Visibility) -> HistoryPage:
        """As many changes as fit on a page, and as are found in a second or two; the newest first.

        Raises HistoryForgotten, IndexNotReached, LimitExceeded, UnavailableError.
        """

    async def difference(
        self, asked: AskedChanges, since: Moment, until: Moment | None, visibility: Visibility
    ) -> Difference:
        """The net change from the state at since to the one at until (None: now), which may be older.

        Raises as `page`, and QueryTimeout.
        """


class Admin(Protocol):
    """The node, and the cluster that it is in. Methods without `async` may be called on any thread."""

    def status(self) -> NodeStatus:
        """The state of the node; never blocks, never raises."""

    def cluster(self) -> ClusterReport | None:
        """What the node knows about its cluster, None for a standalone node; never blocks, never raises."""

    def view_statuses(self) -> list[ViewStatus]:
        """How well the views of this node follow its log, those of other processes as of their last report;
        never blocks, never raises.
        """

    async def add_member(self, node_id: int, address: str) -> None:
        """Expect a new node, or a known one at a new address; it gets its vote when it has caught up.

        Any node accepts this and the next two, and forwards them to the leader.
        Raises NotClustered, UnavailableError.
        """

    async def remove_member(self, node_id: int) -> None:
        """Remove a node from the cluster; no error if it is not a member.

        Raises NotClustered, MembershipRefused (the last voter stays), UnavailableError.
        """

    async def hand_over(self, node_id: int) -> None:
        """Transfer leadership to this member.

        Raises NotClustered, MembershipRefused (it has no vote), UnavailableError (it cannot take over now).
        """


class GraphNode(Protocol):
    """The capabilities of one node. `build_app` hands each endpoint those that it uses."""

    @property
    def queries(self) -> Queries: ...
    @property
    def functions(self) -> Functions: ...
    @property
    def running(self) -> RunningQueries: ...
    @property
    def saved_queries(self) -> SavedQueries: ...
    @property
    def namespaces(self) -> Namespaces: ...
    @property
    def named_states(self) -> NamedStates: ...
    @property
    def purges(self) -> Purges: ...
    @property
    def transactions(self) -> Transactions: ...
    @property
    def progress(self) -> Progress: ...
    @property
    def writing(self) -> Writing: ...
    @property
    def changes(self) -> Changes: ...
    @property
    def history(self) -> History: ...
    @property
    def alerts(self) -> AlertRequests: ...
    @property
    def admin(self) -> Admin: ...
