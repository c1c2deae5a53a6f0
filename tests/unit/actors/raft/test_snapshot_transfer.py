"""Peers on real journals and real gRPC bring a third one back with a snapshot of 50 MB, and go on."""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from actors.raft.snapshots import Snapshots
from graphdb.errors import LogUnavailable
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.raft_node import RaftNode
from graphdb.raft.wire import Malformed
from tests.support.raft_cluster import ClusterPeer, ListMachine, RaftCluster, eventually, raft_cluster
from tests.support.timing import HANG_S

FILES = {f"store/{number:06}.sst": (12 << 20) + number for number in range(4)}


class TreeMachine(ListMachine):
    """A list whose snapshots are directories: the list in one file, and ballast beside it."""

    def __init__(self, snapshots: Snapshots, ballast: Path) -> None:
        super().__init__()
        self.snapshots = snapshots
        self._ballast = ballast
        self._thread = ThreadPoolExecutor(1)
        self._completion: Future[Path] | None = None
        self.installed: list[SnapshotMark] = []

    def latest(self) -> SnapshotMark | None:
        return self.snapshots.latest()

    def read(self, mark: SnapshotMark, offset: int, bytes_max: int) -> tuple[bytes, bool] | None:
        return self.snapshots.read(mark, offset, bytes_max)

    def write(self, mark: SnapshotMark, offset: int, data: bytes) -> None:
        self.snapshots.write(mark, offset, data)

    def keep_snapshot(self, mark: SnapshotMark) -> None:
        tree = self._ballast.parent / f"checkpoint-{id(self)}"
        (tree / "store").mkdir(parents=True)
        for name in FILES:
            os.link(self._ballast / name, tree / name)
        (tree / "list").write_text(json.dumps(self.payloads))
        self.snapshots.offer(tree, mark)

    def install(self, mark: SnapshotMark) -> bool:
        if self._completion is None:
            self._completion = self._thread.submit(self.snapshots.complete, mark)
        if not self._completion.done():
            raise LogUnavailable("not yet")
        completion, self._completion = self._completion, None
        try:
            tree = completion.result() / "tree"
        except Malformed:
            return False
        for name in FILES:
            assert (tree / name).read_bytes() == (self._ballast / name).read_bytes()
        self.payloads = json.loads((tree / "list").read_text())
        self.applied_index = mark.log_index
        self.installed.append(mark)
        self.snapshots.forget_received(mark.log_index)
        return True

    def close(self) -> None:
        self._thread.shutdown()
        self.snapshots.close()


class TreePeer(ClusterPeer):
    snapshot_chunk_bytes = 1 << 20

    def make_machine(self, directory: Path) -> ListMachine:
        snapshots = Snapshots(directory / "snapshots", lambda: self.journal.base.log_index)
        return TreeMachine(snapshots, directory.parent / "ballast")

    @property
    def tree_machine(self) -> TreeMachine:
        return cast(TreeMachine, self.machine)

    def forget_log(self) -> None:
        """Have nothing but a snapshot that is made when it is wanted stand for what is applied."""
        index = self.machine.applied_index
        self.driver.call(lambda node: node.compact(index)).result(HANG_S)

    def snapshot_if_wanted(self) -> bool:
        def perform(node: RaftNode) -> bool:
            if not self.tree_machine.snapshots.wanted:
                return False
            index = self.machine.applied_index
            term = self.journal.term_at(index)
            assert term is not None
            self.machine.keep_snapshot(SnapshotMark(index, term, self.journal.members_at(index)))
            return True

        return self.driver.call(perform).result(HANG_S)

    def close(self) -> None:
        super().close()
        self.tree_machine.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RaftCluster]:
    (tmp_path / "ballast/store").mkdir(parents=True)
    for name, size in FILES.items():
        (tmp_path / "ballast" / name).write_bytes(os.urandom(size))
    with raft_cluster(tmp_path, peer_class=TreePeer) as cluster:
        yield cluster


class Writer:
    """Proposes one entry after another on the leader, until told to stop."""

    def __init__(self, leader: ClusterPeer) -> None:
        self._leader = leader
        self._enough = Event()
        self._thread = ThreadPoolExecutor(1)
        self._result = self._thread.submit(self._write)
        self.longest_s = 0.0

    def _write(self) -> list[str]:
        written: list[str] = []
        while not self._enough.is_set():
            written.append(f"meanwhile {len(written)}")
            begun = time.monotonic()
            self._leader.propose(written[-1]).result(HANG_S)
            self.longest_s = max(self.longest_s, time.monotonic() - begun)
        return written

    def stop(self) -> list[str]:
        self._enough.set()
        written = self._result.result(HANG_S)
        self._thread.shutdown()
        return written


@pytest.mark.parametrize("wiped", [False, True])
def test_a_peer_is_brought_back_while_the_others_go_on(cluster: RaftCluster, wiped: bool) -> None:
    leader = cast(TreePeer, cluster.leader())
    away = cluster.follower_ids()[0]
    cluster.stop(away)
    if wiped:
        cluster.wipe(away)
    before = [f"before {number}" for number in range(20)]
    for payload in before:
        leader.propose(payload).result(HANG_S)
    for peer in cluster.peers.values():
        eventually(lambda: len(peer.machine.payloads) == 20, "applied")  # noqa: B023
        cast(TreePeer, peer).forget_log()
    time.sleep(1)  # several heartbeats, and more than an election time-out
    eventually(lambda: not leader.tree_machine.snapshots.wanted, "nobody wants a snapshot for who is away")

    writer = Writer(leader)
    returned = cast(TreePeer, cluster.start(away))
    eventually(leader.snapshot_if_wanted, "a snapshot is wanted")
    begun = time.monotonic()
    eventually(lambda: len(returned.tree_machine.installed) == 1, "it is installed", 60)
    taken_s = time.monotonic() - begun
    written = writer.stop()
    print(f"{sum(FILES.values()) / 1e6 / taken_s:.0f} MB/s with {len(written)} commits of up to ", end="")
    print(f"{writer.longest_s:.3f} s")
    for peer in cluster.peers.values():
        eventually(lambda: peer.machine.payloads == [*before, *written], "all have all")  # noqa: B023
    assert len(written) > 20
    assert cluster.leader() is leader
    assert returned.tree_machine.installed[0].log_index <= returned.journal.base.log_index
