"""Peers of a Raft cluster in one process: real journals on disk, real gRPC on the loopback."""

import json
import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import uvloop

from actors.log.protocol import decode_entries
from actors.loop_thread import LoopThread
from actors.raft.credentials import ClusterCredentials
from actors.raft.incoming_links import Forwarded
from actors.raft.peer_transport import PeerTransport
from actors.raft.raft_driver import RaftDriver
from benchmarks.service import free_port
from graphdb.errors import UnavailableError
from graphdb.log.file_system import RealFileSystem
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.journal import Journal
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.raft_node import RaftNode
from graphdb.raft.replica import RaftConfig
from tests.support.timing import HANG_S

__all__ = [
    "ClusterPeer",
    "ListMachine",
    "RaftCluster",
    "data_entry",
    "eventually",
    "network_loop",
    "raft_cluster",
]


@cache
def network_loop() -> LoopThread:
    """The one loop in the process that gRPC uses; never closed, for gRPC may still call it."""
    return LoopThread("network", uvloop.new_event_loop)


def data_entry(payload: bytes) -> LogEntry:
    """An entry to propose."""
    return LogEntry(0, 0, EntryKind.CHANGES, bytes(16), 0, payload)


def eventually(condition: Callable[[], bool], what: str, timeout_s: float = HANG_S) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not in {timeout_s} s: {what}"
        time.sleep(0.01)


class ListMachine:
    """A state machine that is the list of payloads in order, and its own store of snapshots."""

    node: RaftNode  # whose log it follows

    def __init__(self) -> None:
        self.applied_index = 0
        self.payloads: list[str] = []
        self._snapshot: tuple[SnapshotMark, bytes] | None = None
        self._incoming = b""

    def advance(self, committed_index: int) -> None:
        while entries := decode_entries(self.node.read_committed(self.applied_index + 1)):
            self._apply(entries)
        assert self.applied_index == committed_index

    def _apply(self, entries: Sequence[LogEntry]) -> None:
        for entry in entries:
            assert entry.log_index == self.applied_index + 1
            self.applied_index += 1
            if entry.kind is EntryKind.CHANGES:
                self.payloads.append(entry.payload.decode())

    def install(self, mark: SnapshotMark) -> bool:
        self.payloads = json.loads(self._incoming)
        self.applied_index = mark.log_index
        self._snapshot = (mark, self._incoming)
        return True

    def keep_snapshot(self, mark: SnapshotMark) -> None:
        """Make a snapshot of what is applied now."""
        assert mark.log_index == self.applied_index
        self._snapshot = (mark, json.dumps(self.payloads).encode())

    def latest(self) -> SnapshotMark | None:
        return self._snapshot[0] if self._snapshot is not None else None

    def read(self, mark: SnapshotMark, offset: int, bytes_max: int) -> tuple[bytes, bool] | None:
        if self._snapshot is None or self._snapshot[0] != mark:
            return None
        data = self._snapshot[1]
        return data[offset : offset + bytes_max], offset + bytes_max >= len(data)

    def write(self, mark: SnapshotMark, offset: int, data: bytes) -> None:
        self._incoming = self._incoming[:offset] + data


class ClusterPeer:
    """One node's part: journal, driver, transport. Open from its making until close."""

    snapshot_chunk_bytes = 1000
    election_timeout_s = RaftConfig().election_timeout_s

    def __init__(
        self,
        directory: Path,
        node_id: int,
        founders: Mapping[int, str],
        loop_thread: LoopThread,
        credentials: ClusterCredentials,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        random_source = random.Random()
        files = RealFileSystem()
        log = str(directory / "log")
        self.machine = self.make_machine(directory)
        self.journal = Journal(files, str(directory), log, node_id, lambda: 1 + random_source.getrandbits(60))
        node = RaftNode(
            self.journal,
            RaftConfig(
                election_timeout_s=self.election_timeout_s, snapshot_chunk_bytes=self.snapshot_chunk_bytes
            ),
            founders,
            clock=time.monotonic,
            random_source=random_source.random,
            snapshots=self.machine,
        )
        self.machine.node = node
        address = founders[node_id]
        self.transport = PeerTransport(
            loop_thread, node_id, address, credentials, lambda envelope: self.driver.receive(envelope), refuse
        )
        self.driver = RaftDriver(loop_thread, node, self.transport, self.machine, founders)
        self.transport.start()
        self.driver.start()

    def make_machine(self, directory: Path) -> ListMachine:
        """What follows the log; called before there is one."""
        return ListMachine()

    def leads(self) -> bool:
        return self.driver.status().role == "leader"

    def propose(self, payload: str, timeout_s: float = 5) -> "Future[int]":
        return self.driver.propose([data_entry(payload.encode())], timeout_s=timeout_s)

    def compact(self) -> None:
        """Have a snapshot stand for all that is applied."""

        def perform(node: RaftNode) -> None:
            index = self.machine.applied_index
            term = self.journal.term_at(index)
            assert term is not None
            self.machine.keep_snapshot(SnapshotMark(index, term, self.journal.members_at(index)))
            node.compact(index)

        self.driver.call(perform).result(HANG_S)

    def close(self) -> None:
        self.driver.close()
        self.transport.close()
        self.journal.close()


async def refuse(request: Forwarded) -> bytes:
    """No test forwards to these peers."""
    raise AssertionError(request)


class RaftCluster:
    """Peers by node id; each can be stopped and started again."""

    def __init__(
        self,
        directory: Path,
        loop_thread: LoopThread,
        size: int = 3,
        credentials: ClusterCredentials | None = None,
        peer_class: type[ClusterPeer] = ClusterPeer,
    ) -> None:
        self._directory = directory
        self._peer_class = peer_class
        self._loop_thread = loop_thread
        self._credentials = credentials or ClusterCredentials()
        self.founders = {node_id: f"127.0.0.1:{free_port()}" for node_id in range(1, size + 1)}
        self.peers: dict[int, ClusterPeer] = {}
        for node_id in self.founders:
            self.start(node_id)

    def start(self, node_id: int, founders: Mapping[int, str] | None = None) -> ClusterPeer:
        """founders: what this node is told of the cluster, its own address too."""
        directory, told = self._directory / str(node_id), founders or self.founders
        peer = self._peer_class(directory, node_id, told, self._loop_thread, self._credentials)
        self.peers[node_id] = peer
        return peer

    def stop(self, node_id: int) -> None:
        self.peers.pop(node_id).close()

    def wipe(self, node_id: int) -> None:
        """Lose what a stopped peer has on disk."""
        shutil.rmtree(self._directory / str(node_id))

    def add(self, node_id: int) -> None:
        """Start a new peer and make it a member."""
        address = f"127.0.0.1:{free_port()}"
        self.founders[node_id] = address
        self.change(lambda node: node.add_member(node_id, address))
        self.start(node_id)

    def change(self, change: Callable[[RaftNode], None]) -> None:
        """Change the members; waits while another change is under way."""

        def is_done() -> bool:
            try:
                self.leader().driver.call(change).result(HANG_S)
            except UnavailableError:
                return False
            return True

        eventually(is_done, "the members change")

    def leader(self) -> ClusterPeer:
        """The peer that leads; waits until one does and a majority follows it."""
        found: list[ClusterPeer] = []

        def search() -> bool:
            found[:] = [peer for peer in self.peers.values() if peer.leads()]
            # one that has committed nothing may be all that knows who is in the cluster
            return len(found) == 1 and found[0].driver.status().commit_index > 0

        eventually(search, "one leader")
        return found[0]

    def follower_ids(self) -> list[int]:
        leader = self.leader()
        return [node_id for node_id, peer in self.peers.items() if peer is not leader]

    def close(self) -> None:
        for node_id in [*self.peers]:
            self.stop(node_id)


@contextmanager
def raft_cluster(
    directory: Path,
    credentials: ClusterCredentials | None = None,
    peer_class: type[ClusterPeer] = ClusterPeer,
) -> Iterator[RaftCluster]:
    """Three new peers, and an end of them."""
    cluster = RaftCluster(directory, network_loop(), credentials=credentials, peer_class=peer_class)
    try:
        yield cluster
    finally:
        cluster.close()
