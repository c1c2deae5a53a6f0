"""`SearchNode`: one node's search indexes, from recovery to close."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from actors.clustering.cluster_follower import ClusterFollower
from actors.clustering.cluster_report import node_status
from actors.disk_room import MARGIN_BYTES, DiskRoom
from actors.egress.remote_clusters import RemoteClusters
from actors.egress.reranking import RerankingModels
from actors.log.client import LogAccess
from actors.log.view_reports import report_views
from actors.raft.log_requests import ClusterView, ForwardedRequest, RequestQueue
from actors.raft.raft_log_client import QueueWorker, RaftLogClient
from actors.raft.search_requests import SEARCH_REQUEST
from actors.search.document_writer import ToldWrite, fits_one_entry
from actors.search.graph_follower import GraphFollower, note_end
from actors.search.index_follower import FollowerContext, run_plan
from actors.search.lifecycle_keeper import LifecycleKeeper
from actors.search.node_identity import known_node, publish_identity
from actors.search.open_search import OpenSearch, SearchConfig, now_ms
from actors.search.recovery import PeerRecovery, SearchDirectory, SearchRecovery
from actors.search.unfinished_work import UnfinishedWork
from graphdb.access.principal import INDEXER
from graphdb.config import Settings
from graphdb.errors import CorruptionError, LogCompacted, LogUnavailable, UnavailableError
from graphdb.log.views import SEARCH, ViewStatus, health
from graphdb.node import ClusterMember, NodeStatus
from graphdb.public_text import fault_text, public_text
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import (
    Command,
    CreateIndex,
    DeleteComponentTemplates,
    DeleteDataStreams,
    DeleteIndexTemplates,
    DeleteIndices,
    DeleteLifecycles,
    DocumentWrite,
    EndSnapshotWork,
    ForgetDeletions,
    IntroduceNode,
    RefreshIndices,
    SetOperationMode,
    WriteResult,
)
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.contexts import RANDOM_BYTES, SearchContexts, make_context_id
from graphdb.search.errors import SearchError
from graphdb.search.following.graph_settings import completed_body
from graphdb.search.pool_use import PoolUse
from graphdb.search.segments.operations import Action, OperationResult

if TYPE_CHECKING:  # most nodes search their shards themselves
    from actors.search.host_follower import HostProcesses
    from actors.search.search_processes import SearchProcesses
    from actors.search.shard_cluster import ShardCluster

__all__ = ["SearchNode"]

logger = logging.getLogger(__name__)

_REACH_S = 0.005
_SWEEP_S = 10.0
# on a full disk too: what makes room, and what reading needs
_TAKEN_WHEN_FULL = (
    DeleteIndices,
    EndSnapshotWork,
    DeleteDataStreams,
    DeleteLifecycles,
    DeleteIndexTemplates,
    DeleteComponentTemplates,
    RefreshIndices,
    ForgetDeletions,
    IntroduceNode,
    SetOperationMode,
)
_DELETION_BYTES = 2048  # that one takes in the log and in what is flushed, at most about
_COMMAND_BYTES = 16 << 10  # what a command that writes no documents counts as, among those that wait


class SearchNode:
    """The backend of the search port (`serve.search.backend.SearchBackend`), for one event loop.

    Before start() has returned, and while a snapshot takes the place of the indexes, everything but status()
    raises LogUnavailable. A write is in the log, on disk, before it is answered, and has taken effect here.
    """

    def __init__(
        self, settings: Settings, log: LogAccess, graph: Any = None, config: SearchConfig | None = None
    ) -> None:
        """Nothing is opened yet. log belongs to this node from here on; graph is a `GraphAccess`."""
        self.graph = graph
        self.remotes = RemoteClusters(settings.security)
        self.rerankers = RerankingModels(settings.search.rerankers)
        self.own = known_node(settings)
        self.filling: set[str] = set()
        self.shards: ShardCluster | None = None  # see search_on
        self.helpers: SearchProcesses | None = None  # see search_beside
        node_id = settings.cluster.node_id
        self.contexts = SearchContexts(
            now_ms, lambda: make_context_id(node_id, secrets.token_bytes(RANDOM_BYTES))
        )
        self._settings = settings
        self._log = log
        self._config = config or SearchConfig()
        self._directory = SearchDirectory(settings.server.data_dir)
        self._room = DiskRoom.of(settings.server)
        self._started_at = time.monotonic()
        self._open: OpenSearch | None = None
        self._graph_follower: GraphFollower | None = None
        self._failure: CorruptionError | None = None
        self.failed = asyncio.Event()  # nothing is followed any more, see must_restart
        self._tasks: list[asyncio.Task[None]] = []
        self._reporting: asyncio.Task[None] | None = None
        self._cluster = (
            # its runner watches the log too, at its own pace
            ClusterFollower(settings.cluster.node_id, log, self._hear, hears_commits=False)
            if isinstance(log, RaftLogClient)
            else None
        )
        peer_recovery = (
            PeerRecovery(settings.cluster.node_id, log, self._directory.fetched)
            if isinstance(log, RaftLogClient)
            else None
        )
        self._perform_for_others: Callable[[bytes], Awaitable[bytes]] | None = None
        self._run_snapshots: Callable[[CatalogState, int], Awaitable[None]] | None = None
        self._worker = (
            QueueWorker(log, RequestQueue.SEARCH, self._answer_other)
            if isinstance(log, RaftLogClient)
            else None
        )
        self._unfinished = UnfinishedWork(
            node_id, self.filling, self.perform, self._reached, self._config.away_s
        )
        self._recovery = SearchRecovery(
            self._directory, log, self._config, self._room, self._cluster, peer_recovery
        )

    # from start to close

    async def start(self) -> None:
        """Open the indexes and apply what the log has beyond them, then go on following it.

        Where they cannot be opened, nor made anew, it returns too: the status is "error" then, and whatever
        is asked for says why. Raises UnavailableError; then it may be called again.
        """
        if self._cluster is not None and self._worker is not None:
            self._cluster.start()
            self._worker.start()
        if self._reporting is None:
            self._reporting = asyncio.get_running_loop().create_task(
                report_views(self._log, self.view_status)
            )
        try:
            self._open = await self._recovery.open()
            self._open.tell_changes(self._note_change)
        except CorruptionError as error:
            return self._give_up(error)
        begin = asyncio.get_running_loop().create_task
        self._tasks = [begin(self._run(self._open)), begin(self._sweep()), begin(self._keep_lifecycles())]
        self._tasks.append(begin(self._keep_snapshots()))
        if self._config.publish_identity_s is not None:
            self._tasks.append(begin(self._publish_identity(self._config.publish_identity_s)))

    async def close(self) -> None:
        """Answer who waits, put everything on disk, let go of the log."""
        if self._worker is not None:
            await self._worker.close()
        if self.shards is not None:
            self.shards.close()
        if self.helpers is not None:
            await self.helpers.close()
        ending = [*self._tasks, *([] if self._reporting is None else [self._reporting])]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        if self._cluster is not None:
            await self._cluster.close()
        opened, self._open = self._open, None
        if opened is not None:
            await opened.close(LogUnavailable("the node is stopping"))
        await self._log.close()

    def search_on(self, processes: "HostProcesses") -> None:
        """Have the shards of indexes searched by these, from now on."""
        from actors.search.shard_cluster import ShardCluster

        self.shards = ShardCluster(processes, lambda: self.catalog)
        self.shards.start()

    def search_beside(self, most: int, module: str) -> None:
        """Have up to so many processes search, too, when this one is busy. module: what they are."""
        from actors.search.search_processes import SearchProcesses, idle_s

        search = self._settings.search
        scorer = [search.hybrid_scorer, *map(str, search.linear_weights)]
        limit_s = self._settings.server.query_timeout_seconds
        self.helpers = SearchProcesses(most, lambda: self.catalog, limit_s, scorer, idle_s, module)

    def _note_change(self) -> None:
        if self.helpers is not None:
            self.helpers.check()

    async def until_indexed(self) -> None:
        """Return once there is an index."""
        while True:
            opened = self._open
            if opened is None:
                await asyncio.sleep(1)
                continue
            seen = opened.recent.last_index
            if opened.view.catalog.indexes():
                return
            with suppress(TimeoutError):  # another catalogue may have taken its place
                async with asyncio.timeout(_SWEEP_S):
                    await opened.recent.beyond(seen)

    @property
    def must_restart(self) -> bool:
        """Whether memory ran out in the middle of a change: a new process makes the state of the log."""
        return self._open is not None and self._open.view.torn

    async def _run(self, opened: OpenSearch) -> None:
        """Follow the log; where it begins later meanwhile, begin again with what a peer has sent."""
        try:
            while True:
                try:
                    await self._run_open(opened)
                except LogCompacted:
                    logger.warning(
                        "the log begins behind what the search indexes have: taking over a snapshot"
                    )
                    self._open = None
                    await opened.close(LogUnavailable("a snapshot takes the place of the search indexes"))
                    opened = self._open = await self._open_again()
                    opened.tell_changes(self._note_change)
        except CorruptionError as error:
            failure = error
        except Exception as error:
            logger.exception("following the log has ended")
            failure = CorruptionError(f"following the log failed: {fault_text(error)}", "search")
        self._give_up(failure)
        await opened.commits.close(LogUnavailable(str(failure)))  # nothing more takes effect here

    async def _run_open(self, opened: OpenSearch) -> None:
        """Follow the log, let indexes follow the graph meanwhile. Raises LogCompacted, CorruptionError."""
        if self.graph is None:
            return await opened.run()
        graph = self.graph.acting_for(INDEXER)
        context = FollowerContext(self, graph, self.graph, self._log, opened.recent)
        follower = GraphFollower(opened.view.catalog, self._leads, context, self._settings.security)
        self._graph_follower = follower
        task = asyncio.get_running_loop().create_task(follower.run())
        task.add_done_callback(note_end)
        try:
            await opened.run()
        finally:
            self._graph_follower = None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _leads(self) -> bool:
        view = None if self._cluster is None else self._cluster.view
        return self._cluster is None or (view is not None and view.role == "leader")

    def _give_up(self, error: CorruptionError) -> None:
        logger.error("NO SEARCH: %s", error)
        self._failure = error
        self.failed.set()

    async def _open_again(self) -> OpenSearch:
        while True:
            try:
                return await self._recovery.open()
            except UnavailableError as error:
                logger.warning("the search indexes cannot be opened yet: %s", error)
                await asyncio.sleep(1)

    async def _keep_lifecycles(self) -> None:
        """Where this node leads, do now and then what the lifecycles of indexes ask for."""
        keeper = LifecycleKeeper(self.perform, now_ms, self._config.lifecycles_s)
        while True:
            await asyncio.sleep(self._config.lifecycles_s)
            if self._open is not None and self._leads() and self._open.view.catalog.lifecycles:
                await keeper.look(self._open.view.catalog.state)

    async def _keep_snapshots(self) -> None:
        """Where this node leads, have snapshots made and deleted as policies say."""
        while True:
            await asyncio.sleep(self._config.lifecycles_s)
            if self._open is not None and self._leads() and self._run_snapshots is not None:
                await self._run_snapshots(self._open.view.catalog.state, now_ms())

    async def _sweep(self) -> None:
        """Now and then, let go of scrolls and points in time that have expired, with what they hold, and of
        indexes that were not filled to their end.
        """
        while True:
            if self._open is not None:
                await self._unfinished.end(self._open.view.catalog.state)
            await asyncio.sleep(_SWEEP_S)
            self.contexts.sweep()

    def _reached(self) -> set[int] | None:
        """The numbers of the members that this node reaches; None where another node leads."""
        if not self._leads():
            return None
        view = None if self._cluster is None else self._cluster.view
        return set() if view is None else {one.node_id for one in view.members if one.reachable}

    async def _publish_identity(self, look_s: float) -> None:
        def state() -> CatalogState | None:
            return None if self._open is None else self._open.view.catalog.state

        node_id = self._settings.cluster.node_id
        await publish_identity(node_id, self.own, state, self.perform, look_s)

    def _hear(self, view: ClusterView) -> None:
        if self._open is not None:
            self._open.runner.hear(view.committed_index)
            if view.snapshot_wanted or view.search_flush_index > self._open.view.saved_index:
                self._open.upkeep.request_flush()

    # what the edges ask for; see `SearchBackend`

    @property
    def catalog(self) -> Catalog:
        """Raises LogUnavailable while there is none, SearchError (503) where there will be none."""
        return self._opened().view.catalog

    async def perform(self, command: Command) -> Any:
        """Check a command, log it, apply it here: its outcome's value.

        Raises SearchError, UnavailableError (OutcomeUnknown: it may take effect still).
        """
        opened = self._opened()
        if isinstance(command, CreateIndex) and self.graph is not None:
            graph = self.graph.acting_for(INDEXER)
            body = await run_plan(completed_body(command.body, self._settings.security), graph)
            command = replace(command, body=body)
        opened.view.catalog.check(command)
        if isinstance(command, _TAKEN_WHEN_FULL):
            self._room.make_room(_COMMAND_BYTES)
        else:
            self._check_room("*")
        return (await opened.commits.submit(command, _COMMAND_BYTES).outcome).get()

    async def write(self, writes: Sequence[DocumentWrite], refresh: str = "false") -> list[WriteResult]:
        """Write documents, each wholly or not at all; refresh: false, true, wait_for.

        On a full disk deletions are taken, and each of the others fails by itself.
        Raises SearchError (where all would fail so), UnavailableError.
        """
        if not writes:
            return []
        opened = self._opened()
        deletions = writes
        if not self._has_room():
            deletions = [write for write in writes if write.operation.action is Action.DELETE]
            if not deletions:
                raise _full(writes[0].index)
            self._room.make_room(_DELETION_BYTES * len(deletions))
        at_once = refresh == "true" and fits_one_entry(deletions)
        results = await opened.documents.write(deletions, at_once)
        await self._make_findable(opened, results, "false" if at_once else refresh)
        return results if deletions is writes else _with_refused(writes, results)

    def begin_write(self, write: DocumentWrite, told: ToldWrite) -> bool:
        """See `SearchBackend.begin_write`."""
        return self._has_room() and self._opened().documents.begin(write, told)

    async def _make_findable(self, opened: OpenSearch, results: Sequence[WriteResult], refresh: str) -> None:
        if refresh == "false":
            return
        names = {one.index for one in results if one.result.error is None}
        if refresh == "wait_for":
            await opened.upkeep.refreshed(sorted(names))
        else:
            found = [opened.view.catalog.find(name) for name in sorted(names)]
            await self.refresh([index for index in found if index is not None])

    async def prepared(self, writes: Sequence[DocumentWrite]) -> Sequence[DocumentWrite]:
        """See `Catalog.prepare`."""
        return await asyncio.to_thread(self._opened().view.catalog.prepare, writes)

    def following(self, index: Index) -> Mapping[str, Any] | None:
        """How an index follows the graph, as its statistics show it; None for one that does not."""
        return None if self._graph_follower is None else self._graph_follower.status(index)

    async def refresh(self, indexes: Sequence[Index]) -> None:
        """On every node, what was written is found from now on."""
        if self._cluster is None:
            await self._opened().upkeep.refresh(indexes)
        elif indexes:
            await self.perform(RefreshIndices(tuple(index.uuid for index in indexes)))

    async def reach(self, name: str, log_index: int) -> None:
        """Return once what this node finds in an index (or in several: a pattern, an alias) is of a log index
        or later; of one that follows the graph, on the node that leads.

        Raises UnavailableError.
        """
        opened = self._opened()
        while opened.view.applied_index < log_index:
            await asyncio.sleep(_REACH_S)
            opened = self._opened()
        found = opened.view.catalog.find(name)
        indexes = [found] if found is not None else list(opened.view.catalog.indexes())
        for index in indexes:
            await self._until_followed(index, log_index)
        await opened.upkeep.refresh(indexes)

    async def _until_followed(self, index: Index, log_index: int) -> None:
        while self._graph_follower is not None:
            position = self._graph_follower.position(index)
            if position is None or position >= log_index:
                break
            await asyncio.sleep(_REACH_S)

    async def flush(self, indexes: Sequence[Index] = ()) -> None:
        """Put all that was applied here on disk, of all indexes."""
        await self._opened().upkeep.flush(is_asked=True)

    async def force_merge(
        self, indexes: Sequence[Index], segments_max: int | None, *, only_deletions: bool = False
    ) -> None:
        """Merge here until no shard has more segments, or, without a number, what is worth it; or only what
        has many deleted documents.

        Of what an index that follows the graph has deleted, nothing is kept: the node that leads sees to it.
        """
        upkeep = self._opened().upkeep
        followers = tuple(index.uuid for index in indexes if index.follows_graph)
        if followers and self._leads():
            await self.perform(ForgetDeletions(followers))
        await upkeep.refresh(indexes)
        for index in indexes:
            await upkeep.force_merge(index, segments_max, only_deletions=only_deletions)

    def writing(self) -> PoolUse:
        """How busy is what takes changes into the log; nothing before the indexes are open."""
        return PoolUse(0) if self._open is None else self._open.commits.use()

    def now_ms(self) -> int:
        """The clock, Unix epoch."""
        return now_ms()

    # what the search ports of a cluster ask each other

    def serve_others(self, perform: Callable[[bytes], Awaitable[bytes]]) -> None:
        """Have requests of other nodes' search ports performed, from `start` on."""
        self._perform_for_others = perform

    def run_snapshots(self, run: Callable[[CatalogState, int], Awaitable[None]]) -> None:
        """Have what is due of snapshot policies done; run gets the state and the time, and never raises."""
        self._run_snapshots = run

    async def ask_other(self, node_id: int, request: bytes, timeout_s: float) -> bytes:
        """What another node's search port answers. Raises UnavailableError."""
        if not isinstance(self._log, RaftLogClient):
            raise LogUnavailable("this node stands alone")
        return await self._log.forward(node_id, ForwardedRequest(0, SEARCH_REQUEST, "", request), timeout_s)

    async def _answer_other(self, request: ForwardedRequest) -> bytes:
        if self._perform_for_others is None:
            raise LogUnavailable("this node answers no other one")
        return await self._perform_for_others(request.body)

    # how the node is

    def status(self) -> NodeStatus:
        """Never blocks, never raises. index_loaded: the indexes are open."""
        cluster = self._settings.cluster
        alone = NodeStatus(
            status=self._status_word(),
            role="standalone",
            node_id=cluster.node_id,
            snapshot_index=self._open.view.applied_index if self._open else 0,
            current_term=0,
            cluster_members=(ClusterMember(cluster.node_id, cluster.address, "standalone", True),),
            replication_lag=None,
            index_loaded=self._open is not None,
            uptime_seconds=int(time.monotonic() - self._started_at),
        )
        return alone if self._cluster is None else node_status(alone, self._cluster.view)

    @property
    def is_opening(self) -> bool:
        """Whether the indexes are on their way to being open, and wait for no other node."""
        return self._open is None and self._failure is None and self._recovery.waits_for is None

    def view_status(self) -> ViewStatus:
        """How well the indexes follow the log."""
        if self._failure is not None:
            return ViewStatus(SEARCH, "failed", error=fault_text(self._failure), failures=1)
        return ViewStatus(SEARCH, "starting") if self._open is None else self._open.runner.status()

    def _status_word(self) -> str:
        word = health([self.view_status()])
        return "degraded" if word == "healthy" and not self._has_room() else word

    def _has_room(self) -> bool:
        return self._room.admits(self._config.room_bytes - MARGIN_BYTES)

    def _check_room(self, index: str) -> None:
        if not self._has_room():
            raise _full(index)

    def _opened(self) -> OpenSearch:
        if self._failure is not None:
            reason = f"the search indexes of this node cannot be used: {public_text(self._failure)}"
            raise SearchError("no_shard_available_action_exception", reason, 503)
        if self._open is None:
            waits_for = self._recovery.waits_for
            raise LogUnavailable(waits_for or "the search indexes are being opened, or the node is stopping")
        return self._open


def _full(index: str) -> SearchError:
    """As Elasticsearch says it at its flood-stage watermark."""
    return SearchError(
        "cluster_block_exception",
        f"index [{index}] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage "
        "watermark, index has read-only-allow-delete block];",
        429,
    )


def _with_refused(writes: Sequence[DocumentWrite], deleted: Sequence[WriteResult]) -> list[WriteResult]:
    """The results of all writes, of which only the deletions were taken."""
    results, done = list[WriteResult](), iter(deleted)
    for write in writes:
        operation = write.operation
        if operation.action is Action.DELETE:
            results.append(next(done))
        else:
            refused = OperationResult(operation.action, operation.doc_id).failed(_full(write.index))
            results.append(WriteResult(write.index, refused))
    return results
