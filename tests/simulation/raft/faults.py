"""Known faults, each as a variant of the real classes: the simulation has to find every one of them.

Those of PySyncObj 0.3.17, and those that Raft's papers and its other implementations warn of.
"""

from collections.abc import Sequence
from dataclasses import replace

from graphdb.log.file_system import File
from graphdb.model import LogEntry
from graphdb.raft.candidate import Candidate
from graphdb.raft.follower import Follower
from graphdb.raft.leader import Leader
from graphdb.raft.membership import Members, PeerId
from graphdb.raft.messages import Append, AppendAnswer, Body, Envelope
from graphdb.raft.raft_node import RaftNode
from graphdb.raft.replica import Next, Replica
from tests.simulation.lossy_file_system import LossyFileSystem
from tests.simulation.raft.peer import Variant, WatchedJournal

__all__ = ["FAULTS"]


class _NoSync:
    """A file that says that it is synced."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.size, self.read, self.write = file.size, file.read, file.write
        self.allocate, self.truncate, self.close = file.allocate, file.truncate, file.close

    def sync(self) -> None:
        return None


class NeverSyncsEntries(LossyFileSystem):
    """PySyncObj: the journal is written and never fsynced."""

    def create(self, path: str) -> File:
        return super().create(path) if "state" in path else _NoSync(super().create(path))

    def open(self, path: str) -> File:
        return super().open(path) if "state" in path else _NoSync(super().open(path))


class NeverSyncsTheVote(LossyFileSystem):
    """PySyncObj: term and vote are written to a file that is renamed and never fsynced."""

    def create(self, path: str) -> File:
        return _NoSync(super().create(path)) if "state" in path else super().create(path)


class ForgetsTheVote(WatchedJournal):
    """Term and vote are written at some later time."""

    @property
    def state_is_synced(self) -> bool:
        return self._state.changes == self._saved.changes and self._state.cluster_id == self._saved.cluster_id


class TruncatingFollower(Follower):
    """PySyncObj: an append that arrives late takes back what came after it."""

    def _take_entries(self, entries: list[LogEntry]) -> None:
        journal = self._replica.journal
        if entries and entries[0].log_index <= journal.last_index:
            journal.truncate_after(entries[0].log_index - 1)
        journal.append(entries)


class TrustingFollower(Follower):
    """PySyncObj: a message without entries, sent while a snapshot is on its way, commits whatever the
    follower's log holds.
    """

    def _append(self, leader: PeerId, body: Append) -> None:
        super()._append(leader, body)
        self._replica.commit(min(body.commit_index, self._replica.journal.last_index))


class CredulousFollower(Follower):
    """A follower takes it that its log is the leader's as far as the leader has committed."""

    def hear_commit(self, index: int) -> None:
        self._replica.commit(min(index, self._replica.journal.last_index))


class HearsAnyTerm(RaftNode):
    """What an earlier or later leader has committed is taken for what this term's leader has."""

    def hear_commit(self, term: int, index: int) -> None:
        super().hear_commit(self._journal.term, index)


class CountingCandidate(Candidate):
    """PySyncObj: votes are counted, not voters, so one that arrives twice counts twice."""

    def count(self, voter: PeerId) -> Next:
        self._votes.add(voter)
        self._number = getattr(self, "_number", 0) + 1
        if 2 * self._number <= len(self._replica.journal.members.voters):
            return Next.STAY
        return Next.STAND if self._pre else Next.LEAD


class AnyTermAnswers(RaftNode):
    """PySyncObj: the answers to appends carry no term, so those to an earlier leadership count."""

    def receive(self, envelope: Envelope) -> None:
        if isinstance(envelope.body, AppendAnswer) and envelope.term < self._journal.term:
            envelope = replace(envelope, term=self._journal.term)
        super().receive(envelope)


class OldTermLeader(Leader):
    """Entries of earlier terms are committed by counting (Raft paper, figure 8)."""

    def _counts(self, index: int) -> bool:
        return True


class LeaderReads(Leader):
    """PySyncObj: a leader answers reads without asking whether it still leads."""

    def read(self, ticket: int, asked_by: PeerId) -> None:
        self._answer_read(ticket, asked_by, self._replica.commit_index)


class EarlyReads(Leader):
    """A leader answers reads before it knows what is committed."""

    def _commits_own_term(self) -> bool:
        return True


class ManyChanges(Leader):
    """Members change while the last change is not committed: majorities need not overlap."""

    def change(self, members: Members) -> None:
        self._replica.commit_index, kept = self._replica.journal.last_index, self._replica.commit_index
        try:
            super().change(members)
        finally:
            self._replica.commit_index = kept


class HastyReplica(Replica):
    """Entries are acknowledged before they are synced."""

    def send_synced(self, target: PeerId, body: Body) -> None:
        self.send(target, body)


def _node(**classes: object) -> Variant:
    return Variant(node=type("FaultyNode", (RaftNode,), classes))


class ForgetsQuads(WatchedJournal):
    """The newest entry that concerns quads is taken for one of the other writer's."""

    def append(self, entries: Sequence[LogEntry]) -> None:
        super().append(entries)
        self.end = replace(self.end, quads_index=self.end.quads_index - 1)


FAULTS: dict[str, Variant] = {
    "journal never synced": Variant(file_system=NeverSyncsEntries),
    "vote never synced": Variant(file_system=NeverSyncsTheVote),
    "vote written later": Variant(journal=ForgetsTheVote),
    "late append truncates": _node(follower_class=TruncatingFollower),
    "commits what was not compared": _node(follower_class=TrustingFollower),
    "commits what it has heard of": _node(follower_class=CredulousFollower),
    "doubled vote counts twice": _node(candidate_class=CountingCandidate),
    "answers without a term": Variant(node=AnyTermAnswers),
    "commits earlier terms by counting": _node(leader_class=OldTermLeader),
    "leader reads without asking": _node(leader_class=LeaderReads),
    "reads before the first commit": _node(leader_class=EarlyReads),
    "changes of members overlap": _node(leader_class=ManyChanges),
    "acknowledged before synced": _node(replica_class=HastyReplica),
    "plans are taken though quads have changed": Variant(journal=ForgetsQuads),
    "wiped node keeps its identity": Variant(lives_repeat=True),
}
