"""`RaftNode`: one peer of the cluster as a state machine. Events go in; mail, entries and answers come out.

It has no thread, no clock, no socket and no source of randomness. Its owner, in this order, as often as there
is something to do:

    node.receive(envelope), node.propose(entries), node.read_index(ticket), node.tick()     any number of each
    send(node.take_messages())        what need not wait for the disk: a leader's entries, above all
    node.persist()                    one sync for all that came
    send(node.take_messages())        what had to wait: acknowledgements, votes
    apply(node.read_committed(...)), answer(node.take_reads()), install(node.snapshot_to_install())
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from graphdb.errors import LogUnavailable, MembershipRefused, NotLeader, UnavailableError
from graphdb.model import LogEntry
from graphdb.raft.candidate import Candidate, Newcomer, answer_vote_request, check_beginning
from graphdb.raft.follower import Follower
from graphdb.raft.journal import Journal
from graphdb.raft.leader import Leader
from graphdb.raft.membership import ANY_INCARNATION, Member, PeerId
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
from graphdb.raft.replica import Next, RaftConfig, ReadOutcome, Replica, Role, SnapshotStore
from graphdb.raft.status import Outcome, Proposal, RaftStatus, outcome_of, status_of

__all__ = ["Outcome", "Proposal", "RaftNode", "RaftStatus"]


class RaftNode:
    """Owned by one thread.

    When the disk refuses what `persist` or `snapshot_installed` have to write, it goes on from what is on
    disk, as a restarted peer would; where that cannot be read, it hears nothing and says nothing until a
    later `tick` can.
    """

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
        random_source: Callable[[], float],
        snapshots: SnapshotStore,
        applied: SnapshotMark | None = None,
    ) -> None:
        """founders: the addresses by node_id of all nodes that found the cluster when all are new; this one's
        own in any case.

        applied: the state machine's durable state; where a crash came between the installation of a snapshot
        and the journal's note of it, the journal catches up here. The node that founds the cluster may begin
        with data of its own so, at a mark without members; the others are given a snapshot of it.

        Raises LogUnavailable, StorageFull, ConfigError where another node than that begins with data.
        """
        check_beginning(journal, applied, founders)
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
            frozenset(founders),
            clock=clock,
            random_source=random_source,
            snapshots=snapshots,
            commit_index=commit_index,
        )
        self._role: Role = self._first_role()
        self._halted = False  # the journal is to be read again before anything else happens
        self._offered = False  # the received snapshot is being installed: its bytes must stay
        self._installed: SnapshotMark | None = None  # durable, but for the journal's note of it

    def _first_role(self) -> Role:
        if self._journal.cluster_id == 0:
            return Newcomer(self._replica, self._founders)
        return self.follower_class(self._replica)

    # time and mail

    def tick(self) -> None:
        """Time has passed: to be called several times a heartbeat.

        Raises LogUnavailable, StorageFull: the disk refuses still.
        """
        if self._halted:
            self._go_on_from_disk()
        self._go(self._role.tick())

    def receive(self, envelope: Envelope) -> None:
        """Take a message; it may be late, repeated, out of order or for another node.

        Raises LogUnavailable, StorageFull: a piece of a snapshot could not be kept; it is sent again.
        """
        if self._halted or not self._is_for_us(envelope) or self._is_disruptive(envelope):
            return
        if isinstance(envelope.body, Hello | Welcome):
            self._go(self._role.receive(envelope))  # outside of all terms: one of the two is no member
            return
        if envelope.term > self._journal.term:
            self._replica.enter_term(envelope.term)
            self._go(Next.FOLLOW)
        if envelope.term < self._journal.term:
            self._answer_stale(envelope)
        else:
            self._dispatch(envelope)

    def hear_commit(self, term: int, index: int) -> None:
        """The leader of that term has said, in other ways than by messages of Raft, that entries up to index
        are committed; it may be late, or about entries that are not here.
        """
        if term == self._journal.term and isinstance(self._role, Follower):
            self._role.hear_commit(index)

    @property
    def tick_due_s(self) -> float:
        """So soon the next `tick` should come: seconds from now, 0 or less: at once; mostly infinite."""
        return (
            self._role.next_notice_at - self._replica.clock()
            if isinstance(self._role, Leader)
            else float("inf")
        )

    def take_messages(self) -> list[Envelope]:
        """What may go out now. Messages may be lost, doubled and reordered on their way.

        `take_fault` reports a peer that could not be given what it lacks.
        """
        self._role.flush()
        sent, self._replica.sent = self._replica.sent, []
        return sent

    def take_fault(self) -> UnavailableError | None:
        """Why the disk did not give what a peer lacks, if that has happened; it is tried again."""
        fault, self._replica.fault = self._replica.fault, None
        return fault

    def persist(self) -> None:
        """Put on disk what has changed; what waited for that can be taken afterwards.

        Raises StorageFull, LogUnavailable, OutcomeUnknown. Then all that was not on disk is forgotten here;
        entries that a leader has sent already may come to be all the same. Any other error, and
        CorruptionError: the journal has to be opened again.
        """
        if self._halted:
            return
        try:
            self._journal.sync()
        except UnavailableError:
            self._restart()
            raise
        self._replica.release_held()
        self._go(self._role.synced())

    # requests

    def propose(self, entries: Sequence[LogEntry], expected_index: int = 0) -> Proposal | None:
        """Append entries; their own log_index and raft_term do not count.

        None where expected_index is given and not admitted: another writer has written meanwhile (`LogEnd`).
        Raises NotLeader, Overloaded: nothing was appended.
        """
        leader = self._require_leader()
        if not self._journal.end.admits(expected_index):
            return None
        first = leader.propose(entries)
        return Proposal(first, self._journal.last_index, self._journal.term)

    def is_newest(self, index: int) -> bool:
        """Whether no entry of the journal after index, committed or not, concerns quads."""
        return self._journal.end.quads_index <= index

    def outcome(self, proposal: Proposal) -> Outcome:
        """What became of a proposal, as far as this peer knows."""
        return outcome_of(proposal, self._journal, self._replica.commit_index)

    def last_entry(self) -> Proposal:
        """The last entry of the journal, as if it had been proposed alone."""
        journal = self._journal
        return Proposal(journal.last_index, journal.last_index, journal.last_term)

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
        """Hand leadership to another node, if it can take it soon; to this one: it leads already.

        Raises NotLeader, MembershipRefused.
        """
        leader = self._require_leader()
        member = self._journal.members.find(node_id)
        if member is None:
            raise MembershipRefused(f"node {node_id} is no member")
        if member.peer != self._journal.peer:
            leader.transfer(member.peer)

    def add_member(self, node_id: int, address: str) -> None:
        """Expect a new node; it gets a vote when it has reported and caught up. Or know a member's new
        address.

        Raises NotLeader, UnavailableError.
        """
        leader = self._require_leader()
        known = self._journal.members.find(node_id)
        member = known or Member(PeerId(node_id, ANY_INCARNATION), address, voting=False)
        if known is None or known.address != address:
            leader.change(self._journal.members.with_member(replace(member, address=address)))

    def remove_member(self, node_id: int) -> None:
        """Remove a node; a leader that removes itself steps down then.

        Raises NotLeader, MembershipRefused, UnavailableError.
        """
        leader = self._require_leader()
        remaining = self._journal.members.without(node_id)
        if not remaining.voters:
            raise MembershipRefused("the last voter stays")
        if remaining != self._journal.members:
            leader.change(remaining)

    def _require_leader(self) -> Leader:
        if isinstance(self._role, Leader):
            return self._role
        leader = self._replica.leader
        raise NotLeader("this node does not lead the cluster", 1, leader.node_id if leader else None)

    # what comes out

    @property
    def leads_term(self) -> int | None:
        """The term that this peer leads, None where it does not lead."""
        return self._journal.term if isinstance(self._role, Leader) else None

    @property
    def committed_term(self) -> int | None:
        """The term of the last entry that is known to be committed; None where this log does not have it."""
        return self._journal.term_at(self._replica.commit_index)

    @property
    def committed_index(self) -> int:
        """The last entry that is committed and on this disk: what may be applied."""
        return min(self._replica.commit_index, self._journal.synced_index)

    def read_committed(self, from_index: int, bytes_max: int = 4 << 20) -> bytes:
        """Entries that may be applied, from from_index on, encoded (`graphdb.log.codec`); empty where there
        are none yet.

        Raises CorruptionError where from_index is in the snapshot, LogUnavailable.
        """
        last_index = self.committed_index
        return (
            self._journal.read_encoded(from_index, last_index, bytes_max) if from_index <= last_index else b""
        )

    def take_reads(self) -> list[ReadOutcome]:
        """The reads that have been answered."""
        reads, self._replica.reads = self._replica.reads, []
        return reads

    def snapshot_to_install(self) -> SnapshotMark | None:
        """A snapshot that has arrived whole: make it the durable state, then call `snapshot_installed`, or
        `discard_snapshot`. That may take long; entries up to it may come meanwhile.
        """
        received = self._replica.received_snapshot
        if received is None or self._halted or not self._journal.is_synced:
            return None
        if received[0].log_index <= self._replica.commit_index and not self._offered:
            self.discard_snapshot()  # the entries have come already
            return None
        self._offered = True
        return received[0]

    def snapshot_installed(self) -> None:
        """The state machine's durable state is that of the snapshot. To be called when all is persisted.

        Raises LogUnavailable, StorageFull; the journal will follow.
        """
        assert self._replica.received_snapshot is not None
        mark, sender = self._replica.received_snapshot
        self.discard_snapshot()
        self._installed = mark
        try:
            self._journal.install(mark)
        except UnavailableError:
            self._restart()
            raise
        self._installed = None
        self._replica.commit(mark.log_index)
        self._replica.release_held()
        self._replica.send_synced(sender, AppendAnswer(True, self._replica.commit_index, 0, 0, 0))

    def discard_snapshot(self) -> None:
        """The snapshot that has arrived cannot be used; it will be sent again."""
        self._replica.received_snapshot, self._offered = None, False

    def compact(self, index: int) -> None:
        """Forget entries up to index: the state machine's durable state, which `latest` can send, has them.

        Raises LogUnavailable, StorageFull; then it may be done or not.
        """
        if self._halted:
            raise LogUnavailable("the disk does not give the journal back")
        assert index <= self.committed_index
        self._journal.compact(index)

    def status(self) -> RaftStatus:
        """What this peer knows of itself and the cluster."""
        return status_of(self._replica, self._role)

    # inside

    def _restart(self) -> None:
        """The disk has refused: go on from what is there, at once or as soon as it can be read."""
        self._role.leave()
        self._replica.forget_unsynced()
        self._halted = True
        self._role = self.follower_class(self._replica)
        with suppress(UnavailableError):
            self._go_on_from_disk()

    def _go_on_from_disk(self) -> None:
        self._journal.roll_back()
        if self._installed is not None:
            self._journal.install(self._installed)
            self._installed = None
        if self._journal.cluster_id == 0:
            self.discard_snapshot()  # it came from a cluster that this peer does not belong to any more
        self._replica.commit(self._journal.base.log_index)
        self._role = self._first_role()
        self._halted = False

    def _is_for_us(self, envelope: Envelope) -> bool:
        """Whether a message is from this peer's cluster and meant for this very incarnation of its node."""
        journal, body = self._journal, envelope.body
        if isinstance(body, Hello):
            return envelope.target in (journal.peer, PeerId(journal.peer.node_id, ANY_INCARNATION))
        if envelope.target != journal.peer:
            return False
        if isinstance(body, Welcome):
            return journal.cluster_id in (0, envelope.cluster_id)
        if journal.cluster_id == 0 and envelope.cluster_id != 0:
            if journal.base.log_index:
                return False  # its data are not that cluster's
            journal.join_cluster(
                envelope.cluster_id
            )  # they know this incarnation: it was founded with, or admitted
            self._go(Next.FOLLOW)
        return envelope.cluster_id == journal.cluster_id != 0

    def _is_disruptive(self, envelope: Envelope) -> bool:
        """Whether a peer stands for election while a leader is well (dissertation 4.2.3)."""
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
            self._go(Next.FOLLOW)  # a peer has won this term
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
