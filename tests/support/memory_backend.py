"""`MemoryBackend`: the promises of `serve.backend.GraphNode` kept in memory, without a log.

Planning, staging and applying are the real ones; what is missing is durability.
"""

import asyncio
import copy
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import Any, Generic, Protocol, Self, TypeVar

from pyoxigraph import BlankNode, NamedNode, Quad, Store

from actors.alerts.alert_service import AlertService
from actors.live.live_copy import CopiedState
from actors.live.subscription_hub import SubscriptionHub
from actors.node.named_states import NamedStateService
from actors.node.namespaces import NamespaceService
from actors.node.own_book import Book as PlannedBook
from actors.node.purges import PurgeService
from actors.node.saved_queries import SavedQueryService
from graphdb.access.principal import Principal
from graphdb.access.visibility import Visibility
from graphdb.alerts.book import AlertBook
from graphdb.alerts.commands import Command
from graphdb.config import Live, Settings
from graphdb.config.limits import GateLimits
from graphdb.errors import (
    HistoryForgotten,
    HostNotAllowed,
    IndexNotReached,
    InvalidParameter,
    KeyReused,
    NotFound,
    Overloaded,
    UnavailableError,
)
from graphdb.geometry.evaluate import evaluation_json
from graphdb.graphql.editing import EditCheck, EditPlanner, LastChanges, forgotten
from graphdb.graphql.edits import Edits
from graphdb.graphql.schema_triples import SchemaWatch
from graphdb.history.moments import Moment, index_of
from graphdb.history.named_states import NamedStateBook
from graphdb.history.purges import PurgeBook
from graphdb.live.matcher import LiveQuery
from graphdb.log.replay import Book as AppliedBook
from graphdb.log.request_ids import key_part
from graphdb.log.views import ViewStatus
from graphdb.model import (
    UNKNOWN_AUTHOR,
    Author,
    ChangeSet,
    Confirmation,
    GraphName,
    NamedGraph,
    Outcome,
)
from graphdb.namespaces import NamespaceBook
from graphdb.node import (
    ClusterReport,
    Consistency,
    LiveReport,
    MergedGraphs,
    ShapesDocument,
    ValidationRequest,
)
from graphdb.planning import gate
from graphdb.planning.engine_text import engine_text
from graphdb.planning.sources import scans_of
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.patch import QuadPatch
from graphdb.rdf.pieces import Sink
from graphdb.rdf.reading import read_quads
from graphdb.saved_queries import SavedQueryBook
from graphdb.shacl.change_check import Report, check_report
from graphdb.shacl.data_graph import DataGraphName
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.validation import (
    answer_validation,
    check_known,
    data_graph_named,
    merged_graphs,
    merged_triples,
    shapes_in_document,
    shapes_in_graph,
)
from graphdb.sparql.dataset import Dataset, own_dataset
from graphdb.sparql.parser import Query
from graphdb.sparql.results import Answer, write_answer
from graphdb.sparql.syntax import Update
from graphdb.sparql.terms import Iri
from graphdb.store.explaining import explain
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.store.small_joins import SmallJoin
from graphdb.store.staging import StagedBody, graph_deletion, patch_parts
from graphdb.store.view import StoreView, Subject, Term
from graphdb.store.word_searches import WordSearch
from graphdb.transactions.changes import TransactionCommit
from graphdb.updates.planner import UpdateContext, plan_update
from serve.backend import (
    AnswerStream,
    ClusterMember,
    EmbeddedStore,
    Evaluated,
    FunctionCall,
    LiveSink,
    NodeStatus,
    QueryOutcome,
    QueryRequest,
    RunningQuery,
    Transaction,
)
from tests.support.memory_changes import MemoryChanges, MemoryChangeStream
from tests.support.memory_cluster import MemoryCluster
from tests.support.memory_evaluation import MemoryEvaluation
from tests.support.memory_history import MemoryHistory
from tests.support.memory_reader import MemoryReaders, MemoryStream, Write

__all__ = ["MemoryBackend"]


class MemoryBackend:
    """A node that forgets everything at its end. It stands alone, unless a test puts it in a cluster."""

    def __init__(
        self,
        *,
        union_default_graph: bool = False,
        limits: GateLimits | None = None,
        settings: Settings | None = None,
    ) -> None:
        """settings are those of alerts, which are evaluated once their timer is started."""
        self._limits = limits or GateLimits()
        self._schema = SchemaWatch()
        self.store = QuadStore(Store(), (self._schema,), union_default_graph=union_default_graph)
        self.status_word = "healthy"
        self.entries_at_once = -1  # no join is little, so that tests choose what a reader gets
        self.readers = MemoryReaders()
        self.peers = MemoryCluster()
        self.logged = MemoryChanges()
        self.evaluation = MemoryEvaluation(union_default_graph=union_default_graph)
        self.hub = SubscriptionHub(
            self.follow_changes,  # type: ignore[arg-type] # a twin of the stream
            self._copy_state,
            self.evaluation,
            union_default_graph=union_default_graph,
            limits=Live(max_subscriptions=1_000),
            timeout_s=1,
        )
        check = EditCheck(
            self._limits,
            time.monotonic,
            self.schema_state,
            self._validate_apart,
            union_default_graph=union_default_graph,
        )
        self._edits = EditPlanner(check)
        self.book = AlertBook()
        self.alerts = AlertService(self, self, self, settings or Settings())
        self.saved_queries = SavedQueryService(_MemoryBookLog(self, SavedQueryBook()))
        self.transactions = _NoTransactions()
        self.namespaces = NamespaceService(_MemoryBookLog(self, NamespaceBook()))
        self._state_names = NamedStateBook()
        names = _MemoryBookLog(self, self._state_names)
        self.named_states = NamedStateService(names, self.history, lambda _: nullcontext(), keeps_past=True)
        self._purges = PurgeBook()
        self.purging = _NothingToPurge()
        self.purges = PurgeService(_MemoryBookLog(self, self._purges), self.purging)
        self.book.on_change = self.alerts.timer.wake
        self._confirmed: dict[bytes, tuple[bytes, Confirmation]] = {}  # ids and answers, by `key_part`
        self._index = 0
        self._is_changing = False
        self._writing = threading.Lock()
        self._begun: set[asyncio.Task[None]] = set()
        self._made: dict[int | None, Self] = {}  # states of the past

    view_key: str | None = None

    @property
    def queries(self) -> Self:
        """It is all capabilities of a node by itself; see `serve.backend.GraphNode`."""
        return self

    functions = running = progress = writing = changes = admin = queries

    async def reads(
        self, visibility: Visibility, as_of: Moment | None = None, timeout_s: float = 0.0
    ) -> Self:
        """Memory has no views: only those who see everything are served."""
        assert visibility.has_all_graphs
        return self if as_of is None else await self._past(as_of, timeout_s)

    async def unmade(
        self, visibility: Visibility, as_of: Moment, timeout_s: float, *, is_look_up: bool
    ) -> None:
        """Memory has no columns."""

    def unmade_at_once(self, as_of: Moment) -> None:
        """As `unmade`."""

    def made_at_once(self, as_of: Moment) -> Self | None:
        """Where it was asked for before, and nothing was purged."""
        return None if self.purges.last_index() else self._made.get(as_of.log_index)

    async def _past(self, moment: Moment, timeout_s: float) -> Self:
        """By a log index or a name."""
        try:
            await self.wait_for_index(moment.log_index or 0, timeout_s)
        except IndexNotReached as error:
            raise InvalidParameter("as_of", str(error)) from None
        index = index_of(moment, self.history, self._index, self._state_names.index_of)
        if index + 1 < self.logged.first_index:
            raise HistoryForgotten(str(moment), self.logged.first_index - 1)
        past = copy.copy(self)
        past.store = QuadStore((await self._copy_state()).quads._store)
        for logged in reversed(self.logged.changes):
            if logged.index > index:
                past.store.apply(logged.change.inverse)
        past._index, past._is_changing, past._schema = index, False, SchemaWatch()
        past.view_key = f"as of {index}"
        self._made[index] = past
        return past

    def whole_reads(self) -> Self:
        return self

    def writes(self, visibility: Visibility, author: Author = UNKNOWN_AUTHOR) -> Self:
        assert visibility.has_all_graphs
        return self

    @property
    def history(self) -> MemoryHistory:
        return MemoryHistory(
            self.logged.changes,
            self.snapshot_index,
            lambda: self.logged.first_index,
            self._state_names.index_of,
        )

    def live(self, visibility: Visibility) -> Self:
        assert visibility.has_all_graphs
        return self

    def uniting_graphs(self) -> Self:
        other = copy.copy(self)
        other.store = self.store.uniting_graphs()
        return other

    def query(self, query: Query, dataset: Dataset) -> Evaluated:
        self._check(query)
        return Evaluated(self.store.query(query, dataset), self._index)

    def query_text(self, text: str, base_iri: str | None) -> Evaluated:
        return Evaluated(self.store.query_text(text, Dataset(), base_iri=base_iri), self._index)

    def _check(self, query: Query) -> None:
        if self.view_key is None:
            gate.check_present(query)
        self.check_query(query)

    def check_query(self, query: Query) -> None:
        gate.check(query, self._limits)
        for endpoint in query.service_hosts:
            raise HostNotAllowed("SERVICE", endpoint.value if isinstance(endpoint, Iri) else "any host")

    async def explain_columns(self, request: QueryRequest) -> dict[str, Any]:
        return {"path": "reader", "reason": "there is no column view", "plan": None, "ways": []}

    def begin_query(self, request: QueryRequest, outcome: QueryOutcome) -> Callable[[], None] | None:
        return None

    async def start_query(self, request: QueryRequest) -> AnswerStream:
        request = request.with_own_names()
        self._check(request.query)

        def begin(stream: MemoryStream) -> Write:
            with self._writing:  # so that the index is exactly that of what the query sees
                stream.has_begun(self._index)
                if request.explain:
                    return partial(self._explain, request)
                return partial(write_answer, self.store.query(request.query, request.dataset), request.format)

        return await self.readers.start(MemoryStream(request), begin)

    def _explain(self, request: QueryRequest, sink: Sink) -> None:
        query = request.query

        def ask(text: str) -> Answer:
            dataset = request.dataset or own_dataset(query)
            return self.store.query_text(
                text, dataset, base_iri=query.base_iri, calls_geometry=made.calls_geometry
            )

        made = engine_text(query)
        counts = [scan.count_query for scan in scans_of(query)]
        explain(ask, lambda: ask(made.text), counts, sink, time.monotonic)

    async def start_validation(self, request: ValidationRequest) -> AnswerStream:
        def begin(stream: MemoryStream) -> Write:
            with self._writing:
                stream.has_begun(self._index)
                return partial(self._validate, request)

        return await self.readers.start(MemoryStream(request), begin)

    def _validate(self, request: ValidationRequest, sink: Sink) -> None:
        store, given = self.store._store, request.shapes
        if isinstance(request.data_graph, MergedGraphs):
            data, graph = merged_graphs(request.data_graph.graphs, store)
        else:
            data, graph = store, data_graph_named(request.data_graph)
            check_known(graph, store)
        match given:
            case NamedNode():
                shapes = shapes_in_graph(given.value, store)
            case MergedGraphs():
                shapes = merged_triples(given.graphs, store)
            case ShapesDocument():
                shapes = shapes_in_document(given.content, given.syntax)
        answer_validation(data, graph, shapes, request.report_syntax, sink, time.monotonic, GateLimits())

    def _validate_apart(
        self, store: QuadStore, graph: DataGraphName, shapes: Shapes, nodes: Iterable[Term] | None
    ) -> Report:
        return check_report(store._store, graph, shapes, nodes, time.monotonic)

    async def call_function(self, call: FunctionCall) -> bytes:
        return b"".join(await asyncio.to_thread(lambda: list(evaluation_json(call.function, call.args))))

    def running_queries(self) -> list[RunningQuery]:
        return [stream.shown() for stream in self.readers.streams.values()]

    def cancel_query(self, query_id: str) -> bool:
        return self.readers.cancel(query_id)

    def exact_index(self) -> int | None:
        return None if self._is_changing else self._index

    async def wait_for_index(self, index: int, timeout_s: float) -> None:
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self._index < index:
            if asyncio.get_running_loop().time() >= deadline:
                raise IndexNotReached(f"this node is at index {self._index}, not yet at {index}")
            await asyncio.sleep(0.005)

    def look_up(self, join: SmallJoin) -> Evaluated | None:
        index, is_exact = self._index, not self._is_changing  # whatever a test has `exact_index` tell
        found = join.answer(self.store, self.entries_at_once) if is_exact else None
        if found is None or self._is_changing or self._index != index:
            return None
        return Evaluated(found, index)

    def search(self, join: SmallJoin, query: Callable[[], Query]) -> Evaluated | None:
        return None

    def search_words(self, search: WordSearch, words: str) -> tuple[bytes, int] | None:
        return None

    def is_small_join(self, join: SmallJoin) -> bool:
        return join.fits(self.store, self.entries_at_once)

    async def reach(self, consistency: Consistency, timeout_s: float) -> None:
        self.peers.reach(consistency, timeout_s)

    async def update(self, update: Update, using: Dataset, request_id: bytes | None = None) -> Confirmation:
        gate.check(update, self._limits)

        def change() -> Confirmation:
            context = UpdateContext(fresh_blank_node=lambda: BlankNode(token_hex(16)))
            return self._apply([plan_update(update, Overlay(self.store), using, context)])

        return await asyncio.to_thread(self._once, request_id, change)

    def begin_update(self, update: Update, outcome: Outcome, author: Author = UNKNOWN_AUTHOR) -> bool:
        async def report() -> None:
            try:
                outcome.set_result(await self.update(update, Dataset()))
            except Exception as error:  # noqa: BLE001 whoever asked gets it
                outcome.set_exception(error)

        task = asyncio.get_running_loop().create_task(report())
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        return True

    def _once(self, request_id: bytes | None, change: Callable[[], Confirmation]) -> Confirmation:
        with self._writing:
            if request_id is None:
                return change()
            known_id, confirmation = self._confirmed.get(key_part(request_id), (request_id, None))
            if known_id != request_id:
                raise KeyReused
            if confirmation is not None:
                return replace(confirmation, message="applied before")
            before, confirmation = self._index, change()
            if self._index > before:
                self._confirmed[key_part(request_id)] = request_id, confirmation
            return confirmation

    def _apply(self, parts: Iterable[ChangeSet]) -> Confirmation:
        changes = [part for part in parts if part]
        if changes:
            self._is_changing = True
            try:
                self.store.apply_many(changes)
                self.logged.note(self._index + 1, changes)
                self._index += 1
            finally:
                self._is_changing = False
        return Confirmation(self._index, sum(part.affected_triples for part in changes))

    def graph_exists(self, graph: NamedGraph) -> bool:
        return self.store.graph_exists(graph)

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        return self.store.graph_quads(graph)

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        return self.store.quads_matching(subject, predicate, object_, graph)

    def dataset_quads(self) -> Iterator[Quad]:
        return self.store.dataset_quads()

    def snapshot_index(self) -> int:
        return self._index

    def schema_state(self) -> object:
        return self._schema.state

    async def follow_changes(self, since: int | None, timeout_s: float) -> MemoryChangeStream:
        if since is not None:
            await self.wait_for_index(since, timeout_s)
        return self.logged.open(self._index if since is None else since, lambda: self._index)

    async def _copy_state(self) -> CopiedState:
        with self._writing:
            copy = Store()
            copy.bulk_extend(self.store.dataset_quads())
            for graph in self.store.named_graphs():
                copy.add_graph(graph)
            return CopiedState(QuadStore(copy), self._index)

    async def subscribe(self, query: LiveQuery, since: int | None, sink: LiveSink) -> str:
        return await self.hub.subscribe(query, since, sink)

    async def unsubscribe(self, subscription: str) -> bool:
        return await self.hub.unsubscribe(subscription)

    def live_report(self) -> LiveReport:
        return self.hub.report(self._index)

    def view_statuses(self) -> list[ViewStatus]:
        return [ViewStatus("quads", "following", self._index, self._index, None, 0, self._index, 0.5)]

    def embedded_store(self) -> EmbeddedStore:
        return self.hub.status("standalone", self._index)

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
        document = b"".join([chunk async for chunk in body])

        def write() -> Confirmation:
            quads = read_quads(document, syntax, base_iri=base_iri, fresh_blank_nodes=not keep_blank_nodes)
            with StagedBody(quads, graph=graph, whole_dataset=whole_dataset, directory=None) as staged:

                def change() -> Confirmation:
                    if precondition is not None:
                        precondition(self.store)
                    return self._apply(staged.parts(self.store, replace=replace, clear=clear))

                return self._once(request_id, change)

        return await asyncio.to_thread(write)

    async def delete_graph(self, graph: NamedNode | None, request_id: bytes | None = None) -> Confirmation:
        return self._once(request_id, lambda: self._apply(graph_deletion(self.store, graph)))

    async def patch(self, patch: QuadPatch, request_id: bytes | None = None) -> Confirmation:
        return self._once(request_id, lambda: self._apply(list(patch_parts(self.store, patch))))

    async def commit(self, commit: TransactionCommit, request_id: bytes | None = None) -> Confirmation:
        return self._once(request_id, lambda: self._apply([commit.plan(self.store)]))

    async def edit(self, edits: Edits, request_id: bytes | None = None) -> Confirmation:
        def change() -> Confirmation:
            last, since = LastChanges(edits), edits.unchanged_since
            if since is not None and since + 1 < self.logged.first_index:
                raise forgotten(edits)
            for one in self.logged.changes:
                last.note(one.index, one.change)
            return self._apply([self._edits.plan(edits, Overlay(self.store), last)])

        if edits.unchanged_since is not None:
            await self.wait_for_index(edits.unchanged_since, 0.1)
        return await asyncio.to_thread(self._once, request_id, change)

    def leads(self) -> bool:
        return True

    def alert_book(self) -> AlertBook:
        return self.book

    async def change_alerts(self, command: Command, request_id: bytes | None = None) -> Confirmation:
        return self.log_beside(request_id, self.book, lambda: self.book.plan(command, 1_000))

    def log_beside(
        self, request_id: bytes | None, book: AppliedBook, plan: Callable[[], bytes]
    ) -> Confirmation:
        """An entry that a book beside the quads follows."""

        def change() -> Confirmation:
            book.apply(self._index + 1, plan())
            self._index += 1
            return Confirmation(self._index, 0)

        return self._once(request_id, change)

    def cluster(self) -> ClusterReport | None:
        return self.peers.report

    async def add_member(self, node_id: int, address: str) -> None:
        self.peers.add_member(node_id, address)

    async def remove_member(self, node_id: int) -> None:
        self.peers.remove_member(node_id)

    async def hand_over(self, node_id: int) -> None:
        self.peers.hand_over(node_id)

    def status(self) -> NodeStatus:
        report = self.peers.report
        if report is not None:
            return self._clustered_status(report)
        return NodeStatus(
            status=self.status_word,
            role="standalone",
            node_id=1,
            snapshot_index=self._index,
            current_term=0,
            cluster_members=(ClusterMember(1, "127.0.0.1:7002", "standalone", True),),
            replication_lag=None,
            index_loaded=True,
            uptime_seconds=0,
        )

    def _clustered_status(self, report: ClusterReport) -> NodeStatus:
        members = tuple(
            ClusterMember(member.node_id, member.address, member.role, member.reachable)
            for member in report.members
        )
        return NodeStatus(
            status=self.status_word,
            role=report.role,
            node_id=report.node_id,
            snapshot_index=self._index,
            current_term=report.term,
            cluster_members=members,
            replication_lag=report.commit_index - self._index if report.role == "follower" else None,
            index_loaded=True,
            uptime_seconds=0,
        )


class _NoTransactions:
    """See `serve.backend.Transactions`: a real node is needed for them."""

    timeout_s = 60.0
    open_count = 0

    async def begin(self, principal: Principal) -> Transaction:
        raise Overloaded("memory has no transactions")

    def find(self, transaction_id: str, principal: Principal) -> Transaction:
        raise NotFound("transaction", transaction_id)

    def home_of(self, transaction_id: str) -> int | None:
        return None

    async def ask_other(self, node_id: int, request: bytes) -> bytes:
        raise UnavailableError("memory stands alone")

    def serve_others(self, perform: Callable[[bytes], Awaitable[bytes]]) -> None:
        pass


class _AppliedBook(PlannedBook, AppliedBook, Protocol):
    """Both ends of a book."""


B = TypeVar("B", bound=_AppliedBook)


class _NothingToPurge:
    """See `actors.node.purges.Purging`: there are no files."""

    error: str | None = None

    async def wait_done(self, log_index: int, timeout_s: float) -> None: ...


class _MemoryBookLog(Generic[B]):
    """See `actors.node.own_book.BookLog`."""

    def __init__(self, backend: MemoryBackend, book: B) -> None:
        self._backend, self._book = backend, book

    def book(self) -> B:
        return self._book

    async def change(self, command: object, request_id: bytes | None = None) -> Confirmation:
        return self._backend.log_beside(request_id, self._book, lambda: self._book.plan(command))
