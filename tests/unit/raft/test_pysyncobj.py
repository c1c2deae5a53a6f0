"""Why the consensus is not PySyncObj's (`graphdb/raft/DESIGN.md`): what 0.3.17 does with messages that every
network delivers now and then. Should one of these fail with a later version, the decision can be looked at
again.
"""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

_inet_ntop = socket.inet_ntop
from pysyncobj import SyncObj, SyncObjConf  # type: ignore[import-untyped] # noqa: E402
from pysyncobj.node import Node  # type: ignore[import-untyped] # noqa: E402
from pysyncobj.transport import Transport  # type: ignore[import-untyped] # noqa: E402

socket.inet_ntop = _inet_ntop  # importing the library puts one in its place that works on Windows alone

NO_OP = b"\x01"


class Wire(Transport):  # type: ignore[misc]
    """Keeps what is sent."""

    def __init__(self) -> None:
        super().__init__(None, None, [])
        self.sent: list[tuple[Node, dict[str, Any]]] = []

    @property
    def ready(self) -> bool:
        return True

    def send(self, node: Node, message: dict[str, Any]) -> bool:
        self.sent.append((node, message))
        return True


class Peer:
    """A SyncObj in a cluster, whose clock and mail are in the test's hands."""

    def __init__(self, nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("pysyncobj.syncobj.monotonicTime", lambda: self.now)
        self.wire = Wire()
        self.others = [Node(str(number)) for number in range(1, nodes)]
        conf = SyncObjConf(autoTick=False, commandsWaitLeader=False)
        self.raft = SyncObj(Node("0"), self.others, conf, transport=self.wire)
        for other in self.others:
            self.wire._onNodeConnected(other)

    def receive(self, node: Node, **message: Any) -> None:
        self.wire._onMessageReceived(node, message)

    def campaign(self) -> int:
        self.now += 10
        self.raft.doTick()
        return int(self.raft.raftCurrentTerm)

    def log_length(self) -> int:
        return int(self.raft._getRaftLogSize())


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    peers: list[Peer] = []

    def make(nodes: int) -> Peer:
        peers.append(Peer(nodes, monkeypatch))
        return peers[-1]

    yield make
    for peer in peers:
        peer.raft.destroy()


def entries(*places: tuple[int, int]) -> list[tuple[bytes, int, int]]:
    return [(NO_OP, index, term) for index, term in places]


def append(peer: Peer, leader: Node, term: int, prev: tuple[int, int], *places: tuple[int, int]) -> None:
    peer.receive(
        leader,
        type="append_entries",
        term=term,
        commit_index=1,
        prevLogIdx=prev[0],
        prevLogTerm=prev[1],
        entries=entries(*places),
    )


def test_one_vote_that_arrives_twice_wins_an_election_of_five(cluster: Any) -> None:
    peer = cluster(5)
    term = peer.campaign()
    for _ in range(2):
        peer.receive(peer.others[0], type="response_vote", term=term)
    assert peer.raft._isLeader()


def test_an_append_that_arrives_late_takes_back_acknowledged_entries(cluster: Any) -> None:
    peer = cluster(3)
    leader = peer.others[0]
    append(peer, leader, 1, (1, 0), (2, 1))
    append(peer, leader, 1, (2, 1), (3, 1))
    assert peer.wire.sent[-1][1]["next_node_idx"] == 4
    append(peer, leader, 1, (1, 0), (2, 1))
    assert peer.log_length() == 2


def test_an_answer_to_an_earlier_leadership_commits(cluster: Any) -> None:
    peer = cluster(3)
    for _ in range(2):
        term = peer.campaign()
        peer.receive(peer.others[0], type="response_vote", term=term)
        peer.receive(peer.others[1], type="append_entries", term=term + 1, commit_index=1)
    term = peer.campaign()
    peer.receive(peer.others[0], type="response_vote", term=term)
    last = peer.log_length()
    before = peer.raft.raftCommitIndex
    # as sent in the first leadership; messages of this type carry no term that would tell
    peer.receive(peer.others[0], type="next_node_idx", next_node_idx=last + 1, reset=False, success=True)
    peer.raft.doTick()
    assert (before, peer.raft.raftCommitIndex) == (1, last)


def test_a_message_about_a_snapshot_commits_what_was_never_compared(cluster: Any) -> None:
    peer = cluster(3)
    append(peer, peer.others[0], 1, (1, 0), (2, 1), (3, 1))
    # another leader, whose log is another one, has no part of its snapshot at hand yet
    peer.receive(peer.others[1], type="append_entries", term=2, commit_index=3, serialized=None)
    assert peer.raft.raftCommitIndex == 3
