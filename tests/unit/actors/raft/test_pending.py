"""What waits for a node, on nodes whose mail, clock and disk the test has in its hand."""

from concurrent.futures import Future

import pytest

from actors.raft.pending import PendingProposals, PendingRefusals
from graphdb.errors import LogUnavailable, NotLeader, OutcomeUnknown
from graphdb.raft.raft_node import RaftNode
from graphdb.raft.replica import RaftConfig
from tests.support.raft_nodes import Cluster, entry, is_append_behind


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes with a leader; entries 1 and 2 are committed."""
    cluster = Cluster(3)
    cluster.run(1.0)
    return cluster


class Waiting:
    """A proposal that has been made, and one that was refused for its expected index."""

    def __init__(self, node: RaftNode, entries: int) -> None:
        self.node = node
        self.proposed: Future[int] = Future()
        self.refused: Future[int] = Future()
        self._proposals, self._refusals = PendingProposals(), PendingRefusals()
        proposal = node.propose([entry()] * entries)
        assert proposal is not None
        self._proposals.add(proposal, self.proposed, 100.0)
        assert node.propose([entry()], 3) is None
        self._refusals.add(node.last_entry(), self.refused, 100.0)

    def settle(self, now: float = 0.0) -> tuple[object, object]:
        """What has become of both: a result, an error's type, None while it is not known."""
        self._proposals.settle(self.node, now)
        self._refusals.settle(self.node, now)
        return _fate(self.proposed), _fate(self.refused)

    def abandon(self) -> None:
        self._proposals.abandon()
        self._refusals.abandon()


def _fate(future: "Future[int]") -> object:
    if not future.done():
        return None
    error = future.exception()
    return future.result() if error is None else type(error)


def test_a_refused_proposal_waits_until_what_stood_there_is_committed(cluster: Cluster) -> None:
    waiting = Waiting(cluster.leader()[1], entries=2)
    assert waiting.settle() == (None, None)
    cluster.settle()
    assert waiting.settle() == (3, 0)


def test_a_leader_that_steps_down_tells_the_refused_at_once(cluster: Cluster) -> None:
    old_id, old = cluster.leader()
    waiting = Waiting(old, entries=5)
    cluster.cut_off = {old_id}
    cluster.run(3)
    assert old.leads_term is None
    assert waiting.settle() == (None, NotLeader)  # the others may yet come to have the entries
    cluster.cut_off = set()
    cluster.run(1)  # and have one of their own, in the first place
    assert old.committed_index == 3
    assert waiting.settle() == (NotLeader, NotLeader)


def test_a_proposal_of_which_a_part_is_kept_is_not_called_lost() -> None:
    cluster = Cluster(3, RaftConfig(append_bytes_max=1))  # each entry goes alone
    cluster.run(1)
    old_id, old = cluster.leader()
    waiting = Waiting(old, entries=5)
    cluster.keep = lambda envelope: not is_append_behind(envelope, 4)
    cluster.settle()
    assert old.committed_index == 4
    assert waiting.settle() == (None, None)
    cluster.keep = lambda envelope: True
    cluster.cut_off = {old_id}
    cluster.run(3)
    assert waiting.settle() == (None, NotLeader)
    cluster.cut_off = set()
    cluster.run(1)
    assert old.committed_index == 5
    assert waiting.settle() == (OutcomeUnknown, NotLeader)


def test_time_is_up(cluster: Cluster) -> None:
    waiting = Waiting(cluster.leader()[1], entries=2)
    assert waiting.settle(99.0) == (None, None)
    assert waiting.settle(100.0) == (OutcomeUnknown, NotLeader)
    cluster.settle()
    assert waiting.settle(101.0) == (OutcomeUnknown, NotLeader)


def test_the_end(cluster: Cluster) -> None:
    waiting = Waiting(cluster.leader()[1], entries=2)
    waiting.abandon()
    assert waiting.settle() == (OutcomeUnknown, LogUnavailable)
