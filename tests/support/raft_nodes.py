"""A small cluster of `RaftNode`s without a clock, network or disk of its own, message by message."""

from collections import Counter
from collections.abc import Callable
from random import Random

from graphdb.errors import UnavailableError
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.journal import Journal
from graphdb.raft.messages import Append, Envelope, SnapshotMark
from graphdb.raft.raft_node import RaftNode
from graphdb.raft.replica import RaftConfig
from tests.simulation.lossy_file_system import LossyFileSystem

__all__ = ["Cluster", "entry", "is_append_behind"]


class Snapshots:
    """A peer's store of snapshots, in memory."""

    def __init__(self) -> None:
        self._latest: tuple[SnapshotMark, bytes] | None = None
        self.received = b""
        self.installations = 0

    def offer(self, mark: SnapshotMark, data: bytes) -> None:
        """Have one that can be sent."""
        self._latest = (mark, data)

    def latest(self) -> SnapshotMark | None:
        return self._latest[0] if self._latest is not None else None

    def read(self, mark: SnapshotMark, offset: int, bytes_max: int) -> tuple[bytes, bool] | None:
        if self._latest is None or self._latest[0] != mark:
            return None
        data = self._latest[1]
        return data[offset : offset + bytes_max], offset + bytes_max >= len(data)

    def write(self, mark: SnapshotMark, offset: int, data: bytes) -> None:
        self.received = self.received[:offset] + data


class Cluster:
    """Nodes whose mail is delivered at once, unless they are cut off."""

    def __init__(self, size: int, config: RaftConfig | None = None) -> None:
        self.now = 0.0
        self.cut_off: set[int] = set()
        self.keep: Callable[[Envelope], bool] = lambda envelope: True
        self.on_install: Callable[[int], None] = lambda node_id: None
        self.refusals: Counter[int] = Counter()  # by the disk of each node
        self._seeds: dict[int, int] = {}  # for the random_source of each node
        self.disks = {node_id: LossyFileSystem(Random(node_id)) for node_id in range(1, size + 1)}
        self.snapshots = {node_id: Snapshots() for node_id in self.disks}
        self.config = config or RaftConfig()
        self.founders = {node_id: f"host{node_id}:7002" for node_id in self.disks}
        self.nodes = {node_id: self.open(node_id) for node_id in self.disks}

    def open(self, node_id: int, applied: SnapshotMark | None = None) -> RaftNode:
        """Begin with what is on the disk, as if nobody else had it open."""
        random = Random(self._seeds.setdefault(node_id, node_id))
        self.disks[node_id].kill()
        journal = Journal(self.disks[node_id], "state", "log", node_id, lambda: random.getrandbits(60))
        return RaftNode(
            journal,
            self.config,
            self.founders,
            clock=lambda: self.now,
            random_source=random.random,
            snapshots=self.snapshots[node_id],
            applied=applied,
        )

    def begin_anew(self, node_id: int) -> None:
        """Have a node there with an empty disk, whether it was there before or not."""
        self._seeds[node_id] = 99 + node_id
        self.disks[node_id] = LossyFileSystem(Random(node_id))
        self.snapshots[node_id] = Snapshots()
        self.founders = {**self.founders, node_id: f"host{node_id}:7002"}
        self.nodes[node_id] = self.open(node_id)

    def settle(self) -> None:
        """Deliver mail until there is none."""
        while mail := [envelope for node_id in [*self.nodes] for envelope in self._work(node_id)]:
            for envelope in mail:
                target, source = envelope.target.node_id, envelope.source.node_id
                reachable = target in self.nodes and not {source, target} & self.cut_off
                if reachable and self.keep(envelope):
                    self.nodes[target].receive(envelope)

    def _work(self, node_id: int) -> list[Envelope]:
        """Do what a node's owner does after events; the mail that goes out."""
        node = self.nodes[node_id]
        mail = node.take_messages()
        try:
            node.persist()
            if node.snapshot_to_install() is not None:
                self.snapshots[node_id].installations += 1
                self.on_install(node_id)
                node.snapshot_installed()
        except UnavailableError:
            self.refusals[node_id] += 1
        return mail + node.take_messages()

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 0.02
            for node_id, node in self.nodes.items():
                try:
                    node.tick()
                except UnavailableError:
                    self.refusals[node_id] += 1
            self.settle()

    def leader(self) -> tuple[int, RaftNode]:
        leading = {i: n for i, n in self.nodes.items() if n.status().role == "leader"}
        newest = max(leading, key=lambda node_id: leading[node_id].status().term)
        return newest, self.nodes[newest]


def entry(payload: bytes = b"x") -> LogEntry:
    """An entry to propose."""
    return LogEntry(0, 0, EntryKind.CHANGES, bytes(16), 0, payload)


def is_append_behind(envelope: Envelope, index: int) -> bool:
    """Whether the message carries entries behind index."""
    body = envelope.body
    return isinstance(body, Append) and any(each.log_index > index for each in body.entries)
