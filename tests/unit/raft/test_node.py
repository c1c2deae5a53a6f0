"""Single peers and small clusters, message by message; `tests/simulation/test_raft.py` has the storms."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from graphdb.errors import NotLeader, Overloaded, StorageFull, UnavailableError
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.journal import Journal
from graphdb.raft.membership import PeerId
from graphdb.raft.messages import (
    Append,
    AppendAnswer,
    Body,
    Envelope,
    SnapshotMark,
    VoteAnswer,
    VoteRequest,
)
from graphdb.raft.node import Outcome, RaftNode
from graphdb.raft.replica import RaftConfig
from tests.simulation.lossy_file_system import LossyFileSystem


class NoSnapshots:
    def latest(self) -> SnapshotMark | None:
        return None

    def read(self, mark: SnapshotMark, offset: int, bytes_max: int) -> tuple[bytes, bool] | None:
        return None

    def write(self, mark: SnapshotMark, offset: int, data: bytes) -> None:
        raise AssertionError("no snapshot is sent here")


class Cluster:
    """Nodes whose mail is delivered at once, unless they are cut off."""

    def __init__(self, size: int, config: RaftConfig | None = None) -> None:
        self.now = 0.0
        self.cut_off: set[int] = set()
        self.keep: Callable[[Envelope], bool] = lambda envelope: True
        self.disks = {node_id: LossyFileSystem(Random(node_id)) for node_id in range(1, size + 1)}
        self.config = config or RaftConfig()
        self.founders = {node_id: f"host{node_id}:7002" for node_id in self.disks}
        self.nodes = {node_id: self.open(node_id) for node_id in self.disks}

    def open(self, node_id: int) -> RaftNode:
        random = Random(node_id)
        journal = Journal(self.disks[node_id], "state", "log", node_id, lambda: random.getrandbits(60))
        return RaftNode(
            journal,
            self.config,
            self.founders,
            clock=lambda: self.now,
            dice=random.random,
            snapshots=NoSnapshots(),
        )

    def settle(self) -> None:
        """Deliver mail until there is none."""
        busy = True
        while busy:
            busy = False
            for node_id, node in self.nodes.items():
                mail = node.take_messages()
                node.persist()
                for envelope in mail + node.take_messages():
                    busy = True
                    reachable = not {node_id, envelope.target.node_id} & self.cut_off
                    if reachable and self.keep(envelope) and envelope.target.node_id in self.nodes:
                        self.nodes[envelope.target.node_id].receive(envelope)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 0.02
            for node in self.nodes.values():
                node.tick()
            self.settle()

    def leader(self) -> tuple[int, RaftNode]:
        leading = {i: n for i, n in self.nodes.items() if n.status().role == "leader"}
        newest = max(leading, key=lambda node_id: leading[node_id].status().term)
        return newest, self.nodes[newest]


def entry(payload: bytes = b"x") -> LogEntry:
    return LogEntry(0, 0, EntryKind.CHANGES, bytes(16), 0, payload)


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes with a leader."""
    cluster = Cluster(3)
    cluster.run(1.0)
    return cluster


def kinds(node: RaftNode) -> list[EntryKind]:
    return [each.kind for each in node.read_committed(1)]


def test_a_cluster_founds_itself_when_all_are_there() -> None:
    cluster = Cluster(3)
    cluster.cut_off = {3}
    cluster.run(5)
    assert {node.status().role for node in cluster.nodes.values()} == {"newcomer"}
    cluster.cut_off = set()
    cluster.run(1)
    assert kinds(cluster.leader()[1]) == [EntryKind.MEMBERS, EntryKind.NOTHING]
    assert [m.address for m in cluster.nodes[3].status().members] == [*cluster.founders.values()]
    assert all(member.voting for member in cluster.nodes[3].status().members)


def test_a_single_node_is_a_cluster() -> None:
    cluster = Cluster(1)
    cluster.run(1)
    proposal = cluster.nodes[1].propose([entry()])
    assert proposal is not None
    assert cluster.nodes[1].outcome(proposal) is Outcome.UNKNOWN
    cluster.settle()
    assert cluster.nodes[1].outcome(proposal) is Outcome.COMMITTED
    cluster.nodes[1].read_index(5)
    cluster.settle()
    assert [read.read_index for read in cluster.nodes[1].take_reads()] == [3]


def test_a_proposal_says_which_index_it_expects(cluster: Cluster) -> None:
    _, leader = cluster.leader()
    assert leader.propose([entry(), entry()], expected_index=4) is None
    proposal = leader.propose([entry(), entry()], expected_index=3)
    assert proposal is not None
    assert (proposal.first_index, proposal.last_index) == (3, 4)
    cluster.settle()
    assert all(node.committed_index == 4 for node in cluster.nodes.values())


def test_followers_refuse_proposals_and_name_the_leader(cluster: Cluster) -> None:
    leader_id, _ = cluster.leader()
    follower = cluster.nodes[leader_id % 3 + 1]
    with pytest.raises(NotLeader) as caught:
        follower.propose([entry()])
    assert caught.value.leader_hint == leader_id


def test_a_follower_reads_through_the_leader(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()
    leader.propose([entry()])
    cluster.settle()
    follower = cluster.nodes[leader_id % 3 + 1]
    follower.read_index(9)
    cluster.settle()
    assert [(read.ticket, read.read_index) for read in follower.take_reads()] == [(9, 3)]


def test_a_leader_without_a_majority_steps_down_and_answers_no_read(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()
    cluster.cut_off = {leader_id}
    leader.read_index(1)
    proposal = leader.propose([entry(b"never")])
    assert proposal is not None
    cluster.run(0.5)
    assert leader.take_reads() == []
    cluster.run(2.5)
    assert leader.status().role in ("follower", "candidate")
    assert [read.read_index for read in leader.take_reads()] == [None]
    new_id, new = cluster.leader()
    assert new_id != leader_id
    new.propose([entry(b"instead")])
    cluster.cut_off = set()
    cluster.run(1)
    assert leader.outcome(proposal) is Outcome.LOST


def test_a_node_that_was_cut_off_unseats_nobody(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()
    term = leader.status().term
    cluster.cut_off = {leader_id % 3 + 1}
    cluster.run(10)
    cluster.cut_off = set()
    cluster.run(2)
    assert (cluster.leader()[0], leader.status().term) == (leader_id, term)


def test_leadership_is_handed_over_without_a_timeout(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()
    successor = leader_id % 3 + 1
    leader.propose([entry()])
    leader.transfer_leadership(successor)
    with pytest.raises(NotLeader, match="handed over") as caught:
        leader.propose([entry()])
    assert caught.value.leader_hint == successor
    cluster.settle()
    assert cluster.leader()[0] == successor
    assert cluster.nodes[successor].committed_index == 4


def test_a_transfer_to_a_dead_node_is_given_up(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()
    cluster.cut_off = {leader_id % 3 + 1}
    leader.transfer_leadership(leader_id % 3 + 1)
    cluster.run(1)
    assert leader.propose([entry()]) is not None


def test_members_come_and_go_one_at_a_time(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()
    cluster.disks[4] = LossyFileSystem(Random(4))
    cluster.founders = {**cluster.founders, 4: "host4:7002"}
    cluster.nodes[4] = cluster.open(4)
    leader.add_member(4, "host4:7002")
    with pytest.raises(UnavailableError, match="under way"):
        leader.remove_member(leader_id % 3 + 1)
    cluster.run(1)
    assert [m.voting for m in cluster.nodes[4].status().members] == [True] * 4
    leader.remove_member(leader_id)
    cluster.run(2)
    assert leader.status().role == "follower"
    new_id, new = cluster.leader()
    assert new_id != leader_id
    assert leader_id not in [member.peer.node_id for member in new.status().members]
    assert new.propose([entry()]) is not None


def test_the_last_voter_stays() -> None:
    cluster = Cluster(1)
    cluster.run(1)
    with pytest.raises(UnavailableError, match="last voter"):
        cluster.nodes[1].remove_member(1)


def test_a_wiped_node_comes_back_as_another_peer(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()
    wiped = leader_id % 3 + 1
    before = {member.peer for member in leader.status().members}
    cluster.disks[wiped] = LossyFileSystem(Random(99))
    random = Random(99)
    journal = Journal(cluster.disks[wiped], "state", "log", wiped, lambda: random.getrandbits(60))
    cluster.nodes[wiped] = RaftNode(
        journal,
        cluster.config,
        cluster.founders,
        clock=lambda: cluster.now,
        dice=random.random,
        snapshots=NoSnapshots(),
    )
    cluster.run(1)
    after = {member.peer for member in leader.status().members}
    assert before - after != after - before == {journal.peer}
    assert all(member.voting for member in cluster.nodes[wiped].status().members)


def test_too_much_that_is_uncommitted_is_refused() -> None:
    cluster = Cluster(3, replace(RaftConfig(), uncommitted_bytes_max=1000))
    cluster.run(1)
    _, leader = cluster.leader()
    leader.propose([entry(bytes(2000))])
    with pytest.raises(Overloaded):
        leader.propose([entry()])
    cluster.settle()
    assert leader.propose([entry()]) is not None


def test_a_disk_that_fails_takes_back_what_was_not_acknowledged(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()

    def full(operation: str) -> None:
        if operation in ("write", "allocate"):
            raise OSError(28, "full")

    proposal = leader.propose([entry()])
    assert proposal is not None
    cluster.disks[leader_id].fault = full
    with pytest.raises(StorageFull):
        leader.persist()
    cluster.disks[leader_id].fault = lambda operation: None
    assert (leader.status().role, leader.status().last_index) == ("follower", 2)
    cluster.run(2)
    assert cluster.leader()[1].propose([entry()]) is not None


def test_nothing_is_acknowledged_or_voted_before_it_is_on_disk(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()
    follower = cluster.nodes[leader_id % 3 + 1]
    proposal = leader.propose([entry()])
    assert proposal is not None
    for envelope in leader.take_messages():
        if envelope.target.node_id == leader_id % 3 + 1:
            follower.receive(envelope)
    assert follower.take_messages() == []
    follower.persist()
    assert [type(envelope.body) for envelope in follower.take_messages()] == [AppendAnswer]


def answers(node: RaftNode, source: PeerId, cluster_id: int, term: int, body: Body) -> list[Body]:
    """What a node answers to one message."""
    target = next(m.peer for m in node.status().members if m.peer.node_id == 2)
    node.receive(Envelope(cluster_id, term, source, target, body))
    node.persist()
    return [envelope.body for envelope in node.take_messages()]


class Lone:
    """Node 2 of three, which hears nothing but what the test says."""

    def __init__(self, cluster: Cluster) -> None:
        cluster.now += 10
        self.node = cluster.nodes[2]
        self.peers = {member.peer.node_id: member.peer for member in self.node.status().members}
        self.cluster_id = self.peers[1].life  # it was founded by node 1
        self.term = self.node.status().term

    def hears(self, source: int, term: int, body: Body) -> list[Body]:
        return answers(self.node, self.peers[source], self.cluster_id, self.term + term, body)


def test_there_is_one_vote_a_term(cluster: Cluster) -> None:
    lone = Lone(cluster)
    request = VoteRequest(9, 9, pre=False, transfer=False)
    assert lone.hears(1, 1, request) == [VoteAnswer(True, False)]
    assert lone.hears(1, 1, request) == [VoteAnswer(True, False)]
    assert lone.hears(3, 1, request) == [VoteAnswer(False, False)]
    assert lone.hears(3, 2, request) == [VoteAnswer(True, False)]


def test_a_log_that_is_behind_gets_no_vote(cluster: Cluster) -> None:
    lone = Lone(cluster)
    for last_index, last_term in [(1, lone.term), (9, lone.term - 1)]:
        request = VoteRequest(last_index, last_term, pre=False, transfer=False)
        assert lone.hears(1, 1, request) == [VoteAnswer(False, False)]


def test_a_late_append_takes_nothing_back(cluster: Cluster) -> None:
    lone = Lone(cluster)
    prev_term = lone.node.read_committed(2)[0].raft_term
    first, second = (replace(entry(), log_index=index, raft_term=lone.term + 1) for index in (3, 4))
    assert lone.hears(1, 1, Append(2, prev_term, 2, 0, (first, second))) == [AppendAnswer(True, 4, 0, 0, 0)]
    assert lone.hears(1, 1, Append(2, prev_term, 2, 0, (first,))) == [AppendAnswer(True, 3, 0, 0, 0)]
    assert lone.node.status().last_index == 4


def test_only_what_was_compared_is_committed(cluster: Cluster) -> None:
    lone = Lone(cluster)
    prev_term = lone.node.read_committed(2)[0].raft_term
    lone.hears(1, 1, Append(2, prev_term, 2, 0, (replace(entry(), log_index=3, raft_term=lone.term + 1),)))
    lone.hears(3, 2, Append(2, prev_term, 3, 0, ()))
    assert lone.node.status().commit_index == 2


def test_a_message_to_another_life_or_cluster_is_nobodys(cluster: Cluster) -> None:
    lone = Lone(cluster)
    request = VoteRequest(9, 9, pre=False, transfer=False)
    strange = PeerId(2, 12345)
    lone.node.receive(Envelope(lone.cluster_id, lone.term + 1, lone.peers[1], strange, request))
    lone.node.receive(Envelope(4711, lone.term + 1, lone.peers[1], lone.peers[2], request))
    assert lone.node.status().term == lone.term


def test_a_heartbeat_longer_than_half_a_timeout_is_refused() -> None:
    with pytest.raises(ValueError, match="heartbeat_s"):
        RaftConfig(election_timeout_s=0.1, heartbeat_s=0.06)
