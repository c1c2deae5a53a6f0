"""`RaftNode`: one peer of the cluster as a state machine. Events go in; mail, entries and answers come out.

It has no thread, no clock, no socket and no dice. Its owner, in this order, as often as there is something to
do:

    node.receive(envelope), node.propose(entries), node.read_index(ticket), node.tick()     any number of each
    send(node.take_messages())        what need not wait for the disk: a leader's entries, above all
    node.persist()                    one sync for all that came
    send(node.take_messages())        what had to wait: acknowledgements, votes
    apply(node.read_committed(...)), answer(node.take_reads()), install(node.snapshot_to_install())
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from graphdb.errors import NotLeader, UnavailableError
from graphdb.model import LogEntry
from graphdb.raft.candidate import Candidate, answer_vote_request
from graphdb.raft.follower import Follower
from graphdb.raft.journal import Journal
from graphdb.raft.leader import Leader
from graphdb.raft.membership import ANY_LIFE, Member, PeerId
from graphdb.raft.messages import (
    Append,
    AppendAnswer,
    Body,
    Envelope,
    Hello,
    ReadRequest,
    SnapshotChunk,
    SnapshotMark,
    VoteAnswer,
    VoteRequest,
    Welcome,
)
from graphdb.raft.newcomer import Newcomer
from graphdb.raft.replica import Next, RaftConfig, ReadOutcome, Replica, Role, SnapshotStore

__all__ = ["Outcome", "Proposal", "RaftNode", "RaftStatus"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Where proposed entries stand in the leader's log; `RaftNode.outcome` tells what became of them."""

    first_index: int
    last_index: int
    raft_term: int


class Outcome(Enum):
    """What became of a proposal."""

    COMMITTED = "committed"  # for ever
    LOST = "lost"  # never to be
    UNKNOWN = "unknown"  # it may still be either


@dataclass(frozen=True, slots=True)
class RaftStatus:
    """What a peer knows of itself and the cluster."""

    role: str  # leader, follower, candidate, newcomer
    term: int
    leader: PeerId | None
    commit_index: int
    last_index: int
    members: tuple[Member, ...]
    matched: Mapping[int, int]  # on the leader: by node_id of the others, how far their logs are known to go
    reachable: frozenset[int]  # node_ids heard lately: by the leader all, by others the leader


class RaftNode:
    """Owned by one thread. After an error from `persist` it goes on as a restarted peer would."""

    replica_class: type[Replica] = Replica
    leader_class: type[Leader] = Leader
    follower_class: type[Follower] = Follower
    candidate_class: type[Candidate] = Candidate

    def __init__(
        self,
        journal: Journal,
        config: RaftConfig,
        founders: Mapping[int, str],
        *,
        clock: Callable[[], float],
        dice: Callable[[], float],
        snapshots: SnapshotStore,
        applied: SnapshotMark | None = None,
    ) -> None:
        """founders: the addresses by node_id of all nodes that found the cluster when all are new; this one's
        own in any case.

        applied: the state machine's durable state; where a crash came between the installation of a snapshot
        and the journal's note of it, the journal catches up here. Raises LogUnavailable, StorageFull.
        """
        commit_index = journal.base.log_index
        if applied is not None and applied.log_index > commit_index:
            if journal.term_at(applied.log_index) != applied.raft_term:
                journal.install(applied)
            commit_index = applied.log_index
        self._journal = journal
        self._founders = founders
        self._replica = self.replica_class(
            journal,
            config,
            founders[journal.peer.node_id],
            clock=clock,
            dice=dice,
            snapshots=snapshots,
            commit_index=commit_index,
        )
        self._role: Role = self._first_role()

    def _first_role(self) -> Role:
        if self._journal.cluster_id == 0:
            return Newcomer(self._replica, self._founders)
        return self.follower_class(self._replica)

    # time and mail

    def tick(self) -> None:
        """Time has passed: to be called several times a heartbeat."""
        self._go(self._role.tick())

    def receive(self, envelope: Envelope) -> None:
        """A message has come; late, twice, out of order or for somebody else, as it may be."""
        if not self._is_for_us(envelope) or self._is_disruptive(envelope):
            return
        if isinstance(envelope.body, Hello | Welcome):
            self._go(self._role.receive(envelope))  # outside of all terms: one of the two is in no cluster
            return
        if envelope.term > self._journal.term:
            self._replica.enter_term(envelope.term)
            self._go(Next.FOLLOW)
        if envelope.term < self._journal.term:
            self._answer_stale(envelope)
        else:
            self._dispatch(envelope)

    def take_messages(self) -> list[Envelope]:
        """What may go out now. Messages may be lost, doubled and reordered on their way."""
        self._role.flush()
        sent, self._replica.sent = self._replica.sent, []
        return sent

    def persist(self) -> None:
        """Put on disk what has changed; what waited for that can be taken afterwards.

        Raises StorageFull, LogUnavailable, OutcomeUnknown. Then all that was not on disk is forgotten here;
        entries that a leader has sent already may come to be all the same. Any other error, and
        CorruptionError: the journal has to be opened anew.
        """
        try:
            self._journal.sync()
        except UnavailableError:
            self._role.leave()
            self._journal.roll_back()
            self._replica.forget_unsynced()
            self._role = self._first_role()
            raise
        self._replica.release_held()
        self._go(self._role.synced())

    # requests

    def propose(self, entries: Sequence[LogEntry], expected_index: int = 0) -> Proposal | None:
        """Append entries; their own log_index and raft_term do not count.

        None where expected_index is given and is not the next index: somebody else has written meanwhile.
        Raises NotLeader, Overloaded: nothing was appended.
        """
        leader = self._require_leader()
        if expected_index not in (0, self._journal.last_index + 1):
            return None
        first = leader.propose(entries)
        return Proposal(first, self._journal.last_index, self._journal.term)

    def outcome(self, proposal: Proposal) -> Outcome:
        """What became of a proposal, as far as this peer knows."""
        term = self._journal.term_at(proposal.last_index)
        if proposal.last_index > self._replica.commit_index or term is None:
            return Outcome.UNKNOWN
        return Outcome.COMMITTED if term == proposal.raft_term else Outcome.LOST

    def read_index(self, ticket: int) -> None:
        """Ask for the index that a linearizable read must see; the answer comes with `take_reads`, or never.

        A ticket is used once, by earlier processes of this peer too. Raises NotLeader where none is known.
        """
        if isinstance(self._role, Leader):
            self._role.read(ticket, self._replica.peer)
        elif self._replica.leader is not None:
            self._replica.send(self._replica.leader, ReadRequest(ticket))
        else:
            raise NotLeader("no node leads the cluster")

    def transfer_leadership(self, node_id: int) -> None:
        """Hand leadership to another node, if it can take it soon. Raises NotLeader, UnavailableError."""
        leader = self._require_leader()
        member = self._journal.members.find(node_id)
        if member is None:
            raise UnavailableError(f"node {node_id} is no member")
        leader.transfer(member.peer)

    def add_member(self, node_id: int, address: str) -> None:
        """Expect a new node; it gets a vote when it has reported and caught up.

        Raises NotLeader, UnavailableError.
        """
        leader = self._require_leader()
        if self._journal.members.find(node_id) is None:
            member = Member(PeerId(node_id, ANY_LIFE), address, voting=False)
            leader.change(self._journal.members.with_member(member))

    def remove_member(self, node_id: int) -> None:
        """Remove a node; a leader that removes itself steps down then. Raises NotLeader, UnavailableError."""
        leader = self._require_leader()
        remaining = self._journal.members.without(node_id)
        if not remaining.voters:
            raise UnavailableError("the last voter stays")
        if remaining != self._journal.members:
            leader.change(remaining)

    def _require_leader(self) -> Leader:
        if isinstance(self._role, Leader):
            return self._role
        leader = self._replica.leader
        raise NotLeader("this node does not lead the cluster", 1, leader.node_id if leader else None)

    # what comes out

    @property
    def committed_index(self) -> int:
        """The last entry that is committed and on this disk: what may be applied."""
        return min(self._replica.commit_index, self._journal.synced_index)

    def read_committed(self, from_index: int, bytes_max: int = 4 << 20) -> list[LogEntry]:
        """Entries that may be applied, from from_index on; none where there are none yet.

        Raises CorruptionError where from_index is in the snapshot, LogUnavailable.
        """
        count = self.committed_index - from_index + 1
        return self._journal.read(from_index, bytes_max)[:count] if count > 0 else []

    def take_reads(self) -> list[ReadOutcome]:
        """The reads that have been answered."""
        reads, self._replica.reads = self._replica.reads, []
        return reads

    def snapshot_to_install(self) -> SnapshotMark | None:
        """A snapshot that has arrived whole: make it the durable state, then call `snapshot_installed`."""
        received = self._replica.received_snapshot
        return received[0] if received is not None and self._journal.is_synced else None

    def snapshot_installed(self) -> None:
        """The state machine's durable state is that of the snapshot. To be called when all is persisted.

        Raises LogUnavailable, StorageFull; then the journal has to be opened anew.
        """
        assert self._replica.received_snapshot is not None
        mark, sender = self._replica.received_snapshot
        self._journal.install(mark)
        self._replica.received_snapshot = None
        self._replica.commit(mark.log_index)
        self._replica.release_held()
        self._replica.send_synced(sender, AppendAnswer(True, self._replica.commit_index, 0, 0, 0))

    def discard_snapshot(self) -> None:
        """The snapshot that has arrived cannot be used; it will be sent again."""
        self._replica.received_snapshot = None

    def compact(self, index: int) -> None:
        """Forget entries up to index: the state machine's durable state, which `latest` can send, has them.

        Raises LogUnavailable, StorageFull.
        """
        assert index <= self.committed_index
        self._journal.compact(index)

    def status(self) -> RaftStatus:
        """What this peer knows of itself and the cluster."""
        replica, journal = self._replica, self._journal
        matched: dict[int, int] = {}
        reachable = {replica.leader.node_id} if replica.leader and replica.hears_leader() else set()
        if isinstance(self._role, Leader):
            lately = replica.clock() - replica.config.election_timeout_s
            matched = {p.node_id: each.match_index for p, each in self._role.progress.items()}
            reachable = {p.node_id for p, each in self._role.progress.items() if each.heard_at > lately}
        return RaftStatus(
            self._role.name,
            journal.term,
            replica.leader,
            replica.commit_index,
            journal.last_index,
            journal.members.members,
            matched,
            frozenset(reachable),
        )

    # inside

    def _is_for_us(self, envelope: Envelope) -> bool:
        """Whether a message is from this peer's cluster and meant for this very life of its node."""
        journal, body = self._journal, envelope.body
        if isinstance(body, Hello):
            return envelope.target in (journal.peer, PeerId(journal.peer.node_id, ANY_LIFE))
        if envelope.target != journal.peer:
            return False
        if isinstance(body, Welcome):
            return journal.cluster_id == 0
        if journal.cluster_id == 0 and envelope.cluster_id != 0:
            journal.join_cluster(envelope.cluster_id)  # they know this life: it was founded with, or admitted
            self._go(Next.FOLLOW)
        return envelope.cluster_id == journal.cluster_id != 0

    def _is_disruptive(self, envelope: Envelope) -> bool:
        """Whether somebody stands for election while a leader is well (dissertation 4.2.3)."""
        body = envelope.body
        return isinstance(body, VoteRequest) and not body.transfer and self._replica.hears_leader()

    def _answer_stale(self, envelope: Envelope) -> None:
        """Tell the sender of an earlier term that there is a later one."""
        answer: Body
        match envelope.body:
            case VoteRequest(pre=pre):
                answer = VoteAnswer(False, pre)
            case Append() | SnapshotChunk():
                answer = AppendAnswer(False, 0, 0, 0, 0)
            case _:
                return
        self._replica.send(envelope.source, answer)

    def _dispatch(self, envelope: Envelope) -> None:
        body = envelope.body
        if isinstance(body, VoteRequest):
            answer_vote_request(self._replica, envelope.source, body)
            return
        if isinstance(body, Append | SnapshotChunk) and isinstance(self._role, Candidate):
            self._go(Next.FOLLOW)  # somebody has won this term
        self._go(self._role.receive(envelope))

    def _go(self, step: Next) -> None:
        """The one place where roles change."""
        if step is Next.STAY:
            return
        self._role.leave()
        if step is Next.FOLLOW:
            self._follow()
        elif step is Next.LEAD:
            self._role = self.leader_class(self._replica)
        else:
            transfer = step is Next.STAND_FOR_LEADER
            self._role = self.candidate_class(self._replica, pre=step is Next.CAMPAIGN, transfer=transfer)

    def _follow(self) -> None:
        if self._replica.leader == self._replica.peer:
            self._replica.leader = None
        self._replica.reset_deadline()
        self._role = self.follower_class(self._replica)
