"""Three drivers on real journals and real gRPC: elect, replicate, lose and regain a peer."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest

from benchmarks.service import free_port
from graphdb.errors import CorruptionError, LogUnavailable, NotLeader, OutcomeUnknown, StorageFull
from graphdb.raft.raft_node import RaftNode
from tests.support.raft_cluster import ClusterPeer, RaftCluster, data_entry, eventually, raft_cluster
from tests.support.timing import HANG_S


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RaftCluster]:
    with raft_cluster(tmp_path) as cluster:
        yield cluster


def assert_all_have(cluster: RaftCluster, payloads: list[str]) -> None:
    for node_id, peer in cluster.peers.items():
        eventually(lambda: peer.machine.payloads == payloads, f"node {node_id} has all")  # noqa: B023


def test_what_is_proposed_is_applied_by_all_in_order(cluster: RaftCluster) -> None:
    leader = cluster.leader()
    futures = [leader.propose(f"entry {number}") for number in range(200)]
    indexes = [future.result(HANG_S) for future in futures]
    assert indexes == list(range(indexes[0], indexes[0] + 200))
    assert_all_have(cluster, [f"entry {number}" for number in range(200)])


def test_an_unexpected_index_stores_nothing(cluster: RaftCluster) -> None:
    leader = cluster.leader()
    first = leader.propose("a").result(HANG_S)
    assert leader.driver.propose([data_entry(b"b")], first, timeout_s=HANG_S).result(HANG_S) == 0
    assert leader.driver.propose([data_entry(b"c")], first + 1, timeout_s=HANG_S).result(HANG_S) == first + 1
    assert_all_have(cluster, ["a", "c"])


def test_a_follower_refuses_proposals_and_names_the_leader(cluster: RaftCluster) -> None:
    follower = cluster.peers[cluster.follower_ids()[0]]
    leader_id = next(node_id for node_id, peer in cluster.peers.items() if peer is cluster.leader())
    eventually(lambda: follower.driver.status().leader is not None, "the follower knows the leader")
    with pytest.raises(NotLeader) as caught:
        follower.propose("a").result(HANG_S)
    assert caught.value.leader_hint == leader_id


def test_a_linearizable_read_sees_what_was_acknowledged_on_every_peer(cluster: RaftCluster) -> None:
    for number in range(20):
        index = cluster.leader().propose(str(number)).result(HANG_S)
        for peer in cluster.peers.values():
            assert peer.driver.read_index(timeout_s=HANG_S).result(HANG_S) >= index
            assert peer.machine.payloads[-1] == str(number)


def test_a_majority_goes_on_and_the_third_catches_up(cluster: RaftCluster) -> None:
    away = cluster.follower_ids()[0]
    cluster.stop(away)
    payloads = [f"entry {number}" for number in range(50)]
    for payload in payloads:
        cluster.leader().propose(payload).result(HANG_S)
    cluster.start(away)
    assert_all_have(cluster, payloads)


def test_another_leads_when_the_leader_is_gone(cluster: RaftCluster) -> None:
    leader = cluster.leader()
    leader.propose("before").result(HANG_S)
    cluster.stop(next(node_id for node_id, peer in cluster.peers.items() if peer is leader))
    cluster.leader().propose("after").result(HANG_S)
    assert_all_have(cluster, ["before", "after"])


def test_a_minority_answers_neither_writes_nor_reads(cluster: RaftCluster) -> None:
    leader = cluster.leader()
    for node_id in cluster.follower_ids():
        cluster.stop(node_id)
    with pytest.raises((OutcomeUnknown, NotLeader)):
        leader.propose("lost", timeout_s=1.5).result(HANG_S)
    with pytest.raises(NotLeader):
        leader.driver.propose([data_entry(b"never")], 1, timeout_s=0.5).result(HANG_S)
    with pytest.raises(NotLeader):
        leader.driver.read_index(timeout_s=0.5).result(HANG_S)
    assert leader.machine.payloads == []


def test_all_stop_and_start_again(cluster: RaftCluster) -> None:
    cluster.leader().propose("kept").result(HANG_S)
    for node_id in [1, 2, 3]:
        cluster.stop(node_id)
    for node_id in [1, 2, 3]:
        cluster.start(node_id)
    cluster.leader().propose("new").result(HANG_S)
    assert_all_have(cluster, ["kept", "new"])


def test_a_peer_that_is_far_behind_is_given_a_snapshot(cluster: RaftCluster) -> None:
    away = cluster.follower_ids()[0]
    cluster.stop(away)
    payloads = [f"a rather long entry {number}" for number in range(300)]
    futures = [cluster.leader().propose(payload) for payload in payloads]
    for future in futures:
        future.result(HANG_S)
    for peer in cluster.peers.values():
        eventually(lambda: len(peer.machine.payloads) == 300, "applied")  # noqa: B023
        peer.compact()
    peer = cluster.start(away)
    cluster.leader().propose("after").result(HANG_S)
    assert_all_have(cluster, [*payloads, "after"])
    assert peer.journal.base.log_index > 300


def is_voter(cluster: RaftCluster, node_id: int) -> bool:
    members = cluster.leader().driver.status().members
    return any(member.voting for member in members if member.peer.node_id == node_id)


def test_a_wiped_peer_is_taken_in_again(cluster: RaftCluster) -> None:
    wiped = cluster.follower_ids()[0]
    cluster.leader().propose("a").result(HANG_S)
    cluster.stop(wiped)
    cluster.wipe(wiped)
    cluster.start(wiped)
    cluster.leader().propose("b").result(HANG_S)
    assert_all_have(cluster, ["a", "b"])
    eventually(lambda: is_voter(cluster, wiped), "it has a vote again")


def elsewhere() -> str:
    return f"127.0.0.1:{free_port()}"


def member_address(cluster: RaftCluster, node_id: int) -> str | None:
    members = cluster.leader().driver.status().members
    return next((member.address for member in members if member.peer.node_id == node_id), None)


def test_a_wiped_peer_may_come_back_at_another_address(cluster: RaftCluster) -> None:
    wiped, address = cluster.follower_ids()[0], elsewhere()
    cluster.leader().propose("a").result(HANG_S)
    cluster.stop(wiped)
    cluster.wipe(wiped)
    cluster.start(wiped, {**cluster.founders, wiped: address})
    eventually(lambda: is_voter(cluster, wiped) and member_address(cluster, wiped) == address, "it is in")
    cluster.leader().propose("b").result(HANG_S)
    assert_all_have(cluster, ["a", "b"])


def test_a_peer_may_move(cluster: RaftCluster) -> None:
    moved, other = cluster.follower_ids()
    cluster.leader().propose("a").result(HANG_S)
    cluster.stop(moved)
    cluster.start(moved, {**cluster.founders, moved: elsewhere()})
    cluster.leader().propose("b").result(HANG_S)
    assert_all_have(cluster, ["a", "b"])
    cluster.stop(other)  # so nothing goes without the one that has moved
    cluster.leader().propose("c", timeout_s=HANG_S).result(HANG_S)
    assert_all_have(cluster, ["a", "b", "c"])


def test_an_added_peer_may_run_elsewhere_and_know_only_a_follower(cluster: RaftCluster) -> None:
    cluster.leader().propose("a").result(HANG_S)
    known, address = cluster.follower_ids()[0], elsewhere()
    cluster.change(lambda node: node.add_member(4, elsewhere()))
    cluster.start(4, {known: cluster.founders[known], 4: address})
    eventually(lambda: is_voter(cluster, 4) and member_address(cluster, 4) == address, "it is in")
    assert_all_have(cluster, ["a"])


def test_a_node_is_added_and_another_removed(cluster: RaftCluster) -> None:
    cluster.leader().propose("a").result(HANG_S)
    cluster.add(4)
    eventually(lambda: is_voter(cluster, 4), "it has a vote")
    removed = cluster.follower_ids()[0]
    cluster.change(lambda node: node.remove_member(removed))
    eventually(lambda: len(cluster.leader().driver.status().members) == 3, "it is no member")
    cluster.stop(removed)
    cluster.leader().propose("b").result(HANG_S)
    assert_all_have(cluster, ["a", "b"])
    leader = cluster.leader()
    others = {peer.journal.peer.node_id for peer in cluster.peers.values() if peer is not leader}
    eventually(lambda: leader.transport.reachable() == others, "peers follow the members")


def test_leadership_is_handed_over(cluster: RaftCluster) -> None:
    successor = cluster.follower_ids()[0]
    cluster.leader().propose("a").result(HANG_S)
    cluster.leader().driver.call(lambda node: node.transfer_leadership(successor)).result(HANG_S)
    eventually(lambda: cluster.peers[successor].leads(), "the successor leads", 3)


def test_a_disk_that_refuses_is_no_end(cluster: RaftCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    leader = cluster.leader()
    leader.propose("a").result(HANG_S)

    def refuse() -> None:
        raise StorageFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr(leader.journal, "sync", refuse)
        leader.propose("b", timeout_s=0.1)  # the others may have it all the same
        eventually(lambda: not leader.leads() and cluster.leader() is not leader, "another leads")
        cluster.leader().propose("c").result(HANG_S)
    eventually(lambda: leader.machine.payloads[-1:] == ["c"], "it catches up")
    assert_all_have(cluster, leader.machine.payloads)
    assert leader.driver.failure is None


def test_damage_ends_the_driver_and_says_so(
    cluster: RaftCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    leader = cluster.leader()

    def fail() -> None:
        if not leader.journal.is_synced:  # there is something to write: the proposal
            raise CorruptionError("not what was written", "the log")

    monkeypatch.setattr(leader.journal, "sync", fail)
    with pytest.raises(OutcomeUnknown):
        leader.propose("a").result(HANG_S)
    assert type(leader.driver.failure) is CorruptionError
    with pytest.raises(LogUnavailable):
        leader.propose("b").result(HANG_S)
    assert "not what was written" in caplog.text
    cluster.stop(next(node_id for node_id, peer in cluster.peers.items() if peer is leader))
    cluster.leader().propose("c").result(HANG_S)


def test_what_waits_at_the_end_is_told(cluster: RaftCluster) -> None:
    leader = cluster.leader()
    for node_id in cluster.follower_ids():
        cluster.stop(node_id)
    proposal = leader.propose("waiting", timeout_s=60)
    read = leader.driver.read_index(timeout_s=60)
    leader.driver.call(lambda node: None).result(HANG_S)  # so that both have been taken
    leader.driver.close()
    assert proposal.exception(0) is not None
    assert read.exception(0) is not None
    assert leader.driver.call(lambda node: None).exception(0) is not None


class PatientPeer(ClusterPeer):
    """One that goes on though other processes keep the three peers in this one from the processor."""

    election_timeout_s = 4.0


def test_a_leader_that_is_flooded_goes_on_leading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with raft_cluster(tmp_path, peer_class=PatientPeer) as cluster:
        leader = cluster.leader()
        term = leader.driver.status().term
        steps: list[
            int
        ] = []  # where the log was whenever the leader turned to its disk, and then to its peers
        sync, release = leader.journal.sync, Event()

        def noted() -> None:
            steps.append(leader.journal.last_index)
            sync()

        def hold(node: RaftNode) -> bool:
            steps.append(leader.journal.last_index)
            return release.wait(HANG_S)

        monkeypatch.setattr(leader.journal, "sync", noted)
        holding = leader.driver.call(hold)
        futures = [leader.propose(str(number), timeout_s=60) for number in range(10_000)]
        release.set()
        assert holding.result(HANG_S)
        for future in futures:
            future.result(HANG_S)
        assert max(after - before for before, after in pairwise(steps)) <= 500
        assert leader.leads()
        assert leader.driver.status().term == term
