"""Single peers and small clusters, message by message; `tests/simulation/test_raft.py` has the storms."""

import errno
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

import pytest

from actors.log.protocol import decode_entries
from graphdb.errors import (
    ConfigError,
    LogUnavailable,
    MembershipRefused,
    NotLeader,
    Overloaded,
    StorageFull,
    UnavailableError,
)
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.journal import Journal
from graphdb.raft.membership import Members, PeerId
from graphdb.raft.messages import (
    Append,
    AppendAnswer,
    Body,
    Envelope,
    Hello,
    SnapshotMark,
    VoteAnswer,
    VoteRequest,
)
from graphdb.raft.raft_node import Outcome, Proposal, RaftNode
from graphdb.raft.replica import RaftConfig
from tests.support.raft_nodes import Cluster, entry, is_append_behind


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes with a leader."""
    cluster = Cluster(3)
    cluster.run(1.0)
    return cluster


def _committed(node: RaftNode, from_index: int) -> list[LogEntry]:
    return decode_entries(node.read_committed(from_index))


def kinds(node: RaftNode) -> list[EntryKind]:
    return [each.kind for each in _committed(node, 1)]


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


def depose(cluster: Cluster, reaching: int) -> tuple[RaftNode, Proposal, RaftNode]:
    """Have a leader propose five entries of which the others get only so many; the next leader, with all
    nodes back, has committed nothing but those and its own first.
    """
    old_id, old = cluster.leader()
    cluster.keep = lambda envelope: not is_append_behind(envelope, 2 + reaching)
    proposal = old.propose([entry()] * 5)
    assert proposal is not None
    cluster.settle()
    cluster.cut_off = {old_id}
    cluster.keep = lambda envelope: True
    cluster.run(3)
    assert old.outcome(proposal) is Outcome.UNKNOWN
    cluster.cut_off = set()
    cluster.run(1)
    new_id, new = cluster.leader()
    assert new_id != old_id
    assert new.committed_index == 3 + reaching < proposal.last_index
    return old, proposal, new


def test_a_proposal_is_lost_as_soon_as_one_of_its_places_is_taken(cluster: Cluster) -> None:
    old, proposal, new = depose(cluster, reaching=0)
    assert old.outcome(proposal) is Outcome.LOST
    assert old.outcome(replace(proposal, first_index=5)) is Outcome.LOST  # terms never fall along a log
    assert new.outcome(proposal) is Outcome.LOST


def test_a_proposal_may_be_kept_in_part() -> None:
    cluster = Cluster(3, RaftConfig(append_bytes_max=1))  # each entry goes alone
    cluster.run(1)
    old, proposal, new = depose(cluster, reaching=2)
    for node in (old, new):
        assert node.outcome(proposal) is Outcome.PARTLY
        assert node.outcome(replace(proposal, last_index=4)) is Outcome.COMMITTED
        assert node.outcome(replace(proposal, first_index=5)) is Outcome.LOST
    new.propose([entry()] * 9)
    cluster.run(1)
    assert old.outcome(proposal) is Outcome.PARTLY


def test_a_member_may_have_a_new_address(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()
    moved = leader_id % 3 + 1
    leader.add_member(moved, "elsewhere:7002")
    cluster.run(1)
    for node in cluster.nodes.values():
        members = {member.peer.node_id: member for member in node.status().members}
        assert (members[moved].address, members[moved].voting) == ("elsewhere:7002", True)
    before = leader.status().last_index
    leader.add_member(moved, "elsewhere:7002")
    assert leader.status().last_index == before


# a founder with data


def with_data(cluster: Cluster, node_id: int, index: int) -> None:
    """Have a node begin as one that stood alone until now."""
    cluster.nodes[node_id] = cluster.open(node_id, SnapshotMark(index, 0, Members()))


def test_a_cluster_may_be_founded_on_data() -> None:
    cluster = Cluster(3)
    with_data(cluster, 1, 40)
    cluster.run(1)
    assert [node.status().commit_index for node in cluster.nodes.values()] == [40, 0, 0]  # no snapshot yet
    cluster.snapshots[1].offer(SnapshotMark(40, 0, Members()), b"the store")
    cluster.run(2)
    leader_id, leader = cluster.leader()
    assert leader_id == 1
    assert [each.kind for each in _committed(leader, 41)] == [EntryKind.MEMBERS, EntryKind.NOTHING]
    assert [node.committed_index for node in cluster.nodes.values()] == [42, 42, 42]
    assert cluster.snapshots[3].received == b"the store"
    assert all(node.status().is_voter for node in cluster.nodes.values())


def test_a_single_node_goes_on_with_its_data() -> None:
    cluster = Cluster(1)
    with_data(cluster, 1, 40)
    cluster.run(1)
    assert cluster.nodes[1].status().last_index == cluster.nodes[1].committed_index == 42


def test_only_the_founding_node_may_begin_with_data() -> None:
    cluster = Cluster(3)
    with pytest.raises(ConfigError, match="node 2 has data of its own, but node 1"):
        with_data(cluster, 2, 40)
    assert cluster.open(2).status().last_index == 0  # nothing was noted


def test_a_node_with_data_is_not_let_into_a_cluster(cluster: Cluster) -> None:
    if cluster.leader()[0] == 1:
        cluster.leader()[1].transfer_leadership(2)
        cluster.run(1)
    before = cluster.leader()[1].status().members
    cluster.begin_anew(1)
    with_data(cluster, 1, 40)
    with pytest.raises(ConfigError, match="begins with an empty data directory"):
        cluster.run(1)
    assert cluster.leader()[1].status().members == before


def test_leaders_that_come_are_counted_once(cluster: Cluster) -> None:
    assert [node.status().elections for node in cluster.nodes.values()] == [1, 1, 1]
    old_id, _ = cluster.leader()
    cluster.cut_off = {old_id}
    cluster.run(3)
    cluster.cut_off = set()
    cluster.run(1)
    assert [node.status().elections for node in cluster.nodes.values()] == [2, 2, 2]
    statuses = {node_id: node.status() for node_id, node in cluster.nodes.items()}
    assert {node_id: status.peer.node_id for node_id, status in statuses.items()} == {1: 1, 2: 2, 3: 3}
    assert all(status.is_voter for status in statuses.values())


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
    cluster.begin_anew(4)
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
    with pytest.raises(MembershipRefused, match="last voter"):
        cluster.nodes[1].remove_member(1)


def test_only_a_voter_can_be_given_the_lead(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()
    with pytest.raises(MembershipRefused, match="node 4 is no member"):
        leader.transfer_leadership(4)
    leader.add_member(4, "host4:7002")
    with pytest.raises(MembershipRefused, match="node 4 has no vote"):
        leader.transfer_leadership(4)
    leader.transfer_leadership(leader_id)  # it has the lead
    assert leader.propose([entry()]) is not None


def test_a_wiped_node_comes_back_as_another_peer(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()
    wiped = leader_id % 3 + 1
    before = {member.peer for member in leader.status().members}
    cluster.begin_anew(wiped)
    cluster.run(1)
    after = {member.peer for member in leader.status().members}
    assert before - after != after - before == {cluster.nodes[wiped].status().peer}
    assert all(member.voting for member in cluster.nodes[wiped].status().members)


def test_a_node_whose_admission_is_lost_asks_again() -> None:
    cluster = Cluster(5)
    cluster.run(1)
    old_id, old = cluster.leader()
    wiped = old_id % 5 + 1
    cluster.begin_anew(wiped)
    cluster.keep = lambda envelope: envelope.target.node_id == wiped or not is_append_behind(envelope, 2)
    cluster.run(0.4)
    incarnation = cluster.nodes[wiped].status().peer
    assert incarnation in [member.peer for member in old.status().members]  # but not for ever
    assert cluster.nodes[wiped].status().role == "follower"  # it is no newcomer any more
    cluster.cut_off = {old_id, wiped}
    cluster.keep = lambda envelope: True
    cluster.run(3)
    assert incarnation not in [member.peer for member in cluster.leader()[1].status().members]
    cluster.cut_off = set()
    cluster.run(3)
    assert incarnation in {member.peer for member in cluster.leader()[1].status().members if member.voting}
    assert cluster.nodes[wiped].committed_index == cluster.leader()[1].committed_index


def test_a_cluster_is_not_founded_with_those_of_another(cluster: Cluster) -> None:
    cluster.begin_anew(1)
    newcomer = cluster.nodes[1].status().peer
    for node_id in (2, 3):
        peer = cluster.nodes[node_id].status().peer
        hello = Hello(cluster.founders[node_id], newcomer.incarnation)
        cluster.nodes[1].receive(Envelope(77, 1, peer, newcomer, hello))
    cluster.nodes[1].tick()
    assert cluster.nodes[1].status().role == "newcomer"


def test_too_much_that_is_uncommitted_is_refused() -> None:
    cluster = Cluster(3, replace(RaftConfig(), uncommitted_bytes_max=1000))
    cluster.run(1)
    _, leader = cluster.leader()
    leader.propose([entry(bytes(2000))])
    with pytest.raises(Overloaded):
        leader.propose([entry()])
    cluster.settle()
    assert leader.propose([entry()]) is not None


def failing(operation: str, times: int = 1) -> Callable[[str], None]:
    """A fault: the next so many operations of that kind find the disk full."""
    left = times

    def fault(found: str) -> None:
        nonlocal left
        if found == operation and left > 0:
            left -= 1
            raise OSError(errno.ENOSPC, "full")

    return fault


def unreadable(*_: object) -> NoReturn:
    raise LogUnavailable("unreadable")


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


def test_a_journal_that_cannot_be_read_again_is_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then the node says nothing, and the others go on."""
    leader_id, leader = cluster.leader()
    disk = cluster.disks[leader_id]
    disk.fault = failing("write")
    proposal = leader.propose([entry()])
    assert proposal is not None
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_read_entry", unreadable)
        with pytest.raises(StorageFull):
            leader.persist()
        for _ in range(2):
            with pytest.raises(LogUnavailable, match="unreadable"):
                leader.tick()
        leader.persist()
        assert leader.take_messages() == []
        with pytest.raises(NotLeader):
            leader.propose([entry()])
        with pytest.raises(LogUnavailable):
            leader.compact(1)
        assert (leader.status().role, leader.leads_term) == ("follower", None)
        del cluster.nodes[leader_id]
        cluster.run(3)
    cluster.nodes[leader_id] = leader
    cluster.run(1)
    new = cluster.leader()[1]
    assert new is not leader
    assert leader.committed_index == new.committed_index == 3
    assert leader.outcome(proposal) is Outcome.LOST


def test_a_snapshot_is_noted_as_soon_as_the_disk_takes_it() -> None:
    cluster = Cluster(3)
    with_data(cluster, 1, 40)
    cluster.snapshots[1].offer(SnapshotMark(40, 0, Members()), b"the store")
    cluster.on_install = lambda node_id: setattr(cluster.disks[node_id], "fault", failing("create", 30))
    cluster.run(3)
    assert cluster.refusals[3] > 5
    assert cluster.snapshots[3].received == b"the store"
    assert cluster.nodes[3].committed_index == cluster.leader()[1].committed_index >= 42
    assert cluster.snapshots[3].installations == 1


def test_a_peer_knows_whether_it_waits_for_a_snapshot(cluster: Cluster) -> None:
    leader_id, leader = cluster.leader()
    behind = leader_id % 3 + 1
    cluster.cut_off = {behind}
    for _ in range(3):
        leader.propose([entry()])
        cluster.settle()
    cluster.cut_off = set()
    leader.compact(leader.committed_index)
    cluster.run(1)
    assert [node_id for node_id, node in cluster.nodes.items() if node.status().awaits_snapshot] == [behind]
    mark = SnapshotMark(leader.committed_index, leader.status().term, Members(leader.status().members))
    cluster.snapshots[leader_id].offer(mark, b"the store")
    cluster.run(3)
    assert cluster.nodes[behind].committed_index == leader.committed_index
    assert not any(node.status().awaits_snapshot for node in cluster.nodes.values())


def test_where_one_peers_entries_cannot_be_read_the_others_are_fed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader_id, leader = cluster.leader()
    behind = leader_id % 3 + 1
    cluster.cut_off = {behind}
    for _ in range(3):
        leader.propose([entry()])
        cluster.settle()
    read = Journal.read
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "read", lambda *args: unreadable() if args[1] <= 4 else read(*args))
        cluster.cut_off = set()
        cluster.run(1)
        assert str(leader.take_fault()) == "unreadable"
        assert leader.take_fault() is None
        proposal = leader.propose([entry()])
        assert proposal is not None
        cluster.run(1)
        assert leader.outcome(proposal) is Outcome.COMMITTED
        assert leader.status().reachable == {1, 2, 3} - {leader_id}
        assert cluster.nodes[behind].committed_index < 4
    cluster.run(1)
    assert cluster.nodes[behind].committed_index == leader.committed_index


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
        self.cluster_id = self.peers[1].incarnation  # it was founded by node 1
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
    prev_term = _committed(lone.node, 2)[0].raft_term
    first, second = (entry().at(index, lone.term + 1) for index in (3, 4))
    assert lone.hears(1, 1, Append(2, prev_term, 2, 0, (first, second))) == [AppendAnswer(True, 4, 0, 0, 0)]
    assert lone.hears(1, 1, Append(2, prev_term, 2, 0, (first,))) == [AppendAnswer(True, 3, 0, 0, 0)]
    assert lone.node.status().last_index == 4


def test_only_what_was_compared_is_committed(cluster: Cluster) -> None:
    lone = Lone(cluster)
    prev_term = _committed(lone.node, 2)[0].raft_term
    lone.hears(1, 1, Append(2, prev_term, 2, 0, (entry().at(3, lone.term + 1),)))
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


def waiting_cluster() -> tuple[Cluster, RaftNode, list[RaftNode]]:
    """Three nodes whose leader says with further entries what is committed; the leader, the others."""
    cluster = Cluster(3, RaftConfig(commit_notice_s=0.05))
    cluster.run(1.0)
    leader_id, leader = cluster.leader()
    return cluster, leader, [node for node_id, node in cluster.nodes.items() if node_id != leader_id]


def committed(nodes: list[RaftNode]) -> set[int]:
    return {node.committed_index for node in nodes}


def propose_and_settle(cluster: Cluster, leader: RaftNode) -> int:
    proposal = leader.propose([entry()])
    assert proposal is not None
    cluster.settle()
    assert leader.committed_index == proposal.last_index
    return proposal.last_index


def test_entries_that_follow_each_other_fast_say_what_is_committed_before_them() -> None:
    cluster, leader, others = waiting_cluster()
    first = propose_and_settle(cluster, leader)
    assert committed(others) == {first}  # nothing was proposed lately: it is said at once
    second = propose_and_settle(cluster, leader)
    assert committed(others) == {first}
    third = propose_and_settle(cluster, leader)
    assert committed(others) == {second}
    assert 0 < leader.tick_due_s < 0.06
    cluster.run(0.02)
    assert committed(others) == {second}
    cluster.run(0.04)
    assert committed(others) == {third}
    assert leader.tick_due_s == float("inf")


def test_a_linearizable_read_hears_at_once_what_is_committed() -> None:
    cluster, leader, others = waiting_cluster()
    propose_and_settle(cluster, leader)
    newest = propose_and_settle(cluster, leader)
    cluster.keep = lambda envelope: not isinstance(envelope.body, Append) or envelope.body.read_round > 0
    others[0].read_index(1)
    cluster.settle()
    assert others[0].take_reads()[0].read_index == newest
    assert others[0].committed_index == newest


def test_what_is_heard_of_a_commit_counts_for_the_same_term_and_entries_that_were_compared() -> None:
    cluster, leader, (one, other) = waiting_cluster()
    before = propose_and_settle(cluster, leader)
    newest = propose_and_settle(cluster, leader)
    term = leader.status().term
    for wrong in (term - 1, term + 1):
        one.hear_commit(wrong, newest)
    leader.hear_commit(term, newest + 5)
    assert (one.committed_index, leader.committed_index) == (before, newest)
    one.hear_commit(term, newest + 5)
    assert one.committed_index == newest
    cluster.cut_off = {other.status().peer.node_id}
    further = propose_and_settle(cluster, leader)
    other.hear_commit(term, further)
    assert other.committed_index == newest  # as far as it has the entries


def test_a_follower_that_was_restarted_believes_nothing_before_it_has_compared() -> None:
    cluster, leader, (one, _) = waiting_cluster()
    newest = propose_and_settle(cluster, leader)
    node_id = one.status().peer.node_id
    cluster.nodes[node_id] = restarted = cluster.open(node_id)
    restarted.hear_commit(leader.status().term, newest)
    assert restarted.committed_index == 0
    cluster.run(0.2)
    assert restarted.committed_index == newest
