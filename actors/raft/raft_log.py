"""`RaftLog`: a node's update log in a cluster, in place of `UpdateLog`: its journal, its part in Raft, its
port 7002.

What is asked of it comes over the same socket (`RaftLogClient`). Everything happens on one thread, that of
the socket, of gRPC and of the `RaftDriver`.
"""

import asyncio
import logging
import random
import time
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from actors.log.index_watch import IndexWatch
from actors.log.protocol import Append, Index, LogStatus, decode_entries
from actors.log.server import Handler, at_once, done, done_after, in_time, log_handlers, log_server, unchanged
from actors.loop_thread import LoopThread
from actors.raft import forwarding, member_changes
from actors.raft.cluster_watch import ClusterFacts, ClusterWatch
from actors.raft.credentials import ClusterCredentials
from actors.raft.forwarding import ForwardedAppends, ForwardQueue
from actors.raft.incoming_links import Forwarded
from actors.raft.log_requests import (
    RAFT_LOG_MESSAGES,
    Adopted,
    AppendUnconditionally,
    AskLastEffect,
    Confirm,
    Finish,
    Forward,
    ForwardedRequest,
    Leave,
    MemberChange,
    Offer,
    ReadIndex,
    ReceivedSnapshot,
    RequestQueue,
    Requests,
    Take,
    Watch,
)
from actors.raft.member_changes import MemberChanges
from actors.raft.peer_transport import PeerTransport
from actors.raft.raft_directory import fresh_incarnation, raft_directory
from actors.raft.raft_driver import RaftDriver
from actors.raft.search_requests import SEARCH_REQUEST, SEARCH_STATE, SearchFlushRequests, decode_needed
from actors.raft.snapshots import Snapshots
from actors.wire.messages import Piece
from graphdb.config import Settings
from graphdb.config.service import Cluster
from graphdb.errors import LogCompacted, UnavailableError
from graphdb.history.places import history_directory
from graphdb.log.file_log import FileLogConfig
from graphdb.log.file_system import RealFileSystem
from graphdb.log.views import LogViews, views_of
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.journal import Journal, JournalConfig
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.raft_node import RaftNode
from graphdb.raft.replica import RaftConfig
from graphdb.raft.wire import Malformed

__all__ = ["ELECTION_TIMEOUT_S", "RaftLog"]

T = TypeVar("T")
logger = logging.getLogger(__name__)
# a node that takes 50 MB from a client, on a busy machine, may be silent for half a second
ELECTION_TIMEOUT_S = 1.0
_COMMIT_NOTICE_S = 0.04  # a round of 64 clients takes 10 to 25 ms where three nodes share two cores
_APPEND_S = 10.0  # until an append that no majority has answered is given up
_DROP_EVERY_S = 10.0


class RaftLog:
    """This node's part in its cluster. Its methods are for the loop's thread, but for `endpoint` and `close`.

    What `append` has returned for is on the disks of a majority. Reads see committed entries only.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        config: RaftConfig | None = None,
        socket_directory: str | None = None,
        loop_thread: LoopThread | None = None,
    ) -> None:
        """Open the journal and begin to take part.

        The last two are for tests: nodes in one process share its only loop that gRPC can use.
        Raises ConfigError, LogUnavailable where another process has the log open, CorruptionError.
        """
        cluster, data_dir = settings.cluster, settings.server.data_dir
        self._thread = loop_thread or LoopThread("raft", uvloop.new_event_loop)
        self._journal = _open_journal(settings)
        snapshots = raft_directory(data_dir) / "snapshots"
        self._snapshots = Snapshots(snapshots, lambda: self._journal.base.log_index)
        self._completing: tuple[SnapshotMark, Future[Path]] | None = None
        self._disk = ThreadPoolExecutor(1, "snapshots")
        founders = _founders_of(cluster)
        self._node = RaftNode(
            self._journal,
            config or RaftConfig(election_timeout_s=ELECTION_TIMEOUT_S, commit_notice_s=_COMMIT_NOTICE_S),
            founders,
            clock=time.monotonic,
            random_source=random.SystemRandom().random,
            snapshots=self._snapshots,
        )
        self._queues = {queue: ForwardQueue() for queue in RequestQueue}
        self._search_flush_requests = SearchFlushRequests(time.monotonic)
        self._transport = PeerTransport(
            self._thread,
            cluster.node_id,
            cluster.address,
            ClusterCredentials.from_settings(cluster),
            lambda envelope: self._driver.receive(envelope),
            self._serve,
            lambda: self._driver.committed(),
            lambda term, index: self._driver.hear_commit(term, index),
        )
        self._driver = RaftDriver(self._thread, self._node, self._transport, self, founders)
        self._watch = ClusterWatch(cluster.node_id, self._facts())
        self._index_watch = IndexWatch(0)
        self._views = LogViews(views_of(search_enabled=settings.search.enabled))
        self._forwarded_appends = ForwardedAppends(
            lambda entries: self.append(entries, 0), self._transport, lambda: self._watch.view
        )
        self._changes = MemberChanges(
            cluster.node_id, self._driver, self._transport, lambda: self._watch.view
        )
        self._server = log_server(
            self._handlers(), str(data_dir / "log"), socket_directory, RAFT_LOG_MESSAGES
        )
        self._transport.start()
        self._driver.start()
        self._thread.run(self._server.start())
        self._background = [self._begin(self._watch.run()), self._begin(self._drop_snapshots())]

    def endpoint(self) -> str:
        """The path of the socket, for `RaftLogClient`."""
        return self._server.path

    def close(self) -> None:
        """Take no further part, stop listening, let go of the directory."""
        for task in self._background:
            task.cancel()
        self._thread.run(self._server.close())
        self._driver.close()
        self._transport.close()
        self._disk.shutdown()
        self._snapshots.close()
        self._journal.close()

    def _facts(self) -> ClusterFacts:
        return ClusterFacts(
            status=self._driver.status,
            open_links=self._transport.reachable,
            dropped=self._transport.dropped,
            snapshot_wanted=lambda: self._snapshots.wanted,
            search_flush_index=self._search_flush_requests.index,
            received=self._received,
            failure=lambda: None if self._driver.failure is None else str(self._driver.failure),
        )

    def _handlers(self) -> dict[type[Any], Handler]:
        """See `actors.raft.log_requests`."""
        queues = self._queues
        return {
            **log_handlers(self, self._index_watch),
            Append: in_time(
                lambda asked: (self.append(decode_entries(asked.entries), asked.expected_index), Index)
            ),
            Watch: in_time(
                lambda asked: (self._watch.watch(asked.version, asked.committed_index), unchanged)
            ),
            AskLastEffect: at_once(lambda _: Index(self._last_effect_index())),
            ReadIndex: in_time(lambda asked: (self._driver.read_index(timeout_s=asked.timeout_s), Index)),
            Confirm: in_time(lambda asked: (self._begin(self._confirm(asked.index, asked.timeout_s)), Index)),
            AppendUnconditionally: in_time(
                lambda asked: (
                    self._begin(self._forwarded_appends.append(decode_entries(asked.entries))),
                    Index,
                )
            ),
            Forward: in_time(
                lambda asked: (self._forward(asked.node_id, asked.request, asked.timeout_s), Piece)
            ),
            Take: in_time(lambda asked: (queues[asked.queue].take(asked.port), Requests)),
            Leave: at_once(done_after(lambda asked: queues[asked.queue].leave(asked.port))),
            Finish: at_once(
                done_after(
                    lambda asked: queues[asked.queue].finish(asked.number, asked.succeeded, asked.outcome)
                )
            ),
            MemberChange: in_time(lambda change: (self._begin(self._changes.perform(change)), done)),
            Offer: at_once(done_after(lambda asked: self._offer(asked.index, asked.path))),
            Adopted: at_once(done_after(lambda asked: self._snapshots.forget_received(asked.index))),
        }

    # what every log answers; on the loop

    def append(self, entries: list[LogEntry], expected_index: int) -> "Future[int]":
        """See `UpdateLog.append`. Raises NotLeader, Overloaded (nothing was stored), OutcomeUnknown."""
        return self._driver.propose(entries, expected_index, timeout_s=_APPEND_S)

    def read_now(self, from_index: int, max_bytes: int, omits_search: bool) -> bytes:
        """Committed entries, encoded as they travel, whole: most are in memory. Raises LogCompacted where a
        snapshot stands for them.
        """
        if from_index <= self._journal.base.log_index:
            raise LogCompacted(f"entry {from_index} is in the snapshot at {self._journal.base.log_index}")
        return self._node.read_committed(from_index, max_bytes)

    def status_now(self) -> LogStatus:
        """What the journal holds; the last entries may not be committed yet, or never be."""
        journal = self._journal
        return LogStatus(journal.base.log_index + 1, journal.last_index, journal.held_bytes)

    def truncate_before_now(self, index: int, view: str) -> None:
        """See `UpdateLog.truncate_before`; entries that a peer that lags a little may need stay."""
        self._compact(self._views.release(view, index) - 1)

    def drop_before_now(self, index: int) -> int:
        """See `UpdateLog.drop_before`. Peers that lag behind get a snapshot. Those that can be sent go too:
        others are made of the present store when they are wanted.
        """
        self._snapshots.drop_sendable()
        end = self._journal.end_segment(index)
        needed_from = self._views.needed_from
        bound = end if needed_from is None else min(end, needed_from)
        self._node.compact(min(bound - 1, self._node.committed_index))
        return self._journal.drop_compacted()

    async def _confirm(self, index: int, timeout_s: float) -> int:
        """index, where nothing that concerns quads was committed behind it; else an index that is newer."""
        read_index = await asyncio.wrap_future(self._driver.read_index(timeout_s=timeout_s))
        is_newest = read_index <= index or self._node.is_newest(index)
        return index if is_newest else read_index

    def _last_effect_index(self) -> int:
        index = self._journal.last_index
        while index > self._journal.base.log_index:
            if self._journal.read(index, 1)[0].kind not in (EntryKind.NOTHING, EntryKind.MEMBERS):
                break
            index -= 1
        return index

    def _compact(self, index: int) -> None:
        sent = self._snapshots.oldest_in_use  # whoever has it goes on with the entries behind it
        bounds = [index, self._node.committed_index, *([] if sent is None else [sent])]
        self._node.compact(self._journal.compactable_index(min(bounds)))

    # what the driver feeds

    @property
    def applied_index(self) -> int:
        """Reads that wait for an index may be answered when the port can read the log so far."""
        return self._watch.view.committed_index

    def advance(self, committed_index: int) -> None:
        """See `StateMachine.advance`."""
        self._watch.advance(committed_index)
        self._index_watch.advance(committed_index)

    # what a port asks

    def _forward(self, node_id: int, request: ForwardedRequest, timeout_s: float) -> "Future[bytes]":
        return self._transport.forward(
            node_id, request.operation, request.body, idempotency_key=request.request_id, timeout_s=timeout_s
        )

    async def _serve(self, request: Forwarded) -> bytes:
        if request.operation == member_changes.OPERATION:
            return await self._changes.serve(request)
        if request.operation == forwarding.OPERATION:
            return await self._forwarded_appends.serve(request)
        if request.operation == SEARCH_REQUEST:
            return await self._queues[RequestQueue.SEARCH].serve(request)
        if request.operation == SEARCH_STATE:
            self._search_flush_requests.note(decode_needed(request.body))
        return await self._queues[RequestQueue.GRAPH].serve(request)

    def _offer(self, index: int, tree: str) -> None:
        """A snapshot of the store at index, which is applied, so its entry is in the journal or the last
        before it.
        """
        term = self._journal.term_at(index)
        if term is None:
            raise LogCompacted(f"entry {index} is gone meanwhile")
        self._snapshots.offer(Path(tree), SnapshotMark(index, term, self._journal.members_at(index)))

    def install(self, mark: SnapshotMark) -> bool | None:
        """See `StateMachine.install`: what has arrived is put on disk; the port then makes it the store."""
        if self._completing is None or self._completing[0] != mark:
            self._completing = (mark, self._disk.submit(self._snapshots.complete, mark))
        completing = self._completing[1]
        if not completing.done():
            return None
        self._completing = None
        try:
            completing.result()
        except (Malformed, UnavailableError) as error:
            logger.warning("the snapshot at %d cannot be used: %s", mark.log_index, error)
            return False
        return True

    async def _drop_snapshots(self) -> None:
        while True:
            await asyncio.sleep(_DROP_EVERY_S)
            try:
                self._snapshots.drop_unused()
            except (UnavailableError, OSError) as error:
                logger.warning("snapshots that nobody needs stay for now: %s", error)

    def _received(self) -> ReceivedSnapshot | None:
        """Once the journal goes on behind it: before that, the store and the log would not meet."""
        received = self._snapshots.received()
        if received is None or received.mark.log_index > self._journal.base.log_index:
            return None
        return ReceivedSnapshot(received.mark.log_index, str(received.tree))

    def _begin(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(coroutine, self._thread.loop)


def _open_journal(settings: Settings) -> Journal:
    data_dir, node_id = settings.server.data_dir, settings.cluster.node_id
    place = str(raft_directory(data_dir))
    files = RealFileSystem()
    files.make_directory(place)
    history = history_directory(data_dir, settings.history)
    config = JournalConfig(FileLogConfig(history=history))
    keep_bytes = settings.live.keep_changes_mb << 20
    config = replace(config, keep_bytes=max(config.keep_bytes, keep_bytes))
    return Journal(files, place, str(data_dir / "log"), node_id, fresh_incarnation, config)


def _founders_of(cluster: Cluster) -> dict[int, str]:
    """Addresses by node id, this node's too."""
    others = (peer.partition("@") for peer in cluster.peers)
    return {cluster.node_id: cluster.address} | {int(number): address for number, _, address in others}
