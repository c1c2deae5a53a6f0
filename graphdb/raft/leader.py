"""The role of a peer that leads: it orders entries, feeds them to the others, and says what is committed."""

from collections import deque
from collections.abc import Sequence

from graphdb.errors import MembershipRefused, NotLeader, Overloaded, UnavailableError
from graphdb.log.codec import entries_bytes
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.admission import Admission
from graphdb.raft.feeding import Feeder
from graphdb.raft.membership import Member, Members, PeerId, encode_members
from graphdb.raft.messages import (
    AppendAnswer,
    Envelope,
    Hello,
    ReadAnswer,
    ReadRequest,
    SnapshotAnswer,
    TimeoutNow,
)
from graphdb.raft.progress import Feed, Progress
from graphdb.raft.reads import ReadQueue
from graphdb.raft.replica import Next, ReadOutcome, Replica

__all__ = ["Leader"]

NO_REQUEST = bytes(16)


class Leader:
    """The one peer that may add entries in its term."""

    name = "leader"

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._reads = ReadQueue()
        self._early_reads: list[tuple[int, PeerId]] = []  # before an entry of this term is committed
        self._feeder = Feeder(replica)
        self._admission = Admission(replica)
        self._heartbeat_at = replica.clock()
        self._successor: PeerId | None = None
        self._successor_asked = False  # since the last heartbeat
        self._transfer_until = 0.0
        self._uncommitted: deque[tuple[int, int]] = deque()  # (last index, bytes) of each proposal
        self._uncommitted_bytes = 0
        replica.note_leader(replica.peer)
        # Only entries of this term are committed by counting; so there has to be one at once.
        self._append_own(EntryKind.NOTHING, b"")

    @property
    def progress(self) -> dict[PeerId, Progress]:
        """What is known of every other member."""
        return self._feeder.progress

    # events

    def tick(self) -> Next:
        """Send heartbeats when due; step down without a majority."""
        now = self._replica.clock()
        timeout = self._replica.config.election_timeout_s
        heard = [peer for peer, progress in self.progress.items() if progress.heard_at + timeout > now]
        if not self._replica.journal.members.is_majority([*heard, self._replica.peer]):
            return Next.FOLLOW
        self._replica.leader_heard_at = now
        if now >= self._heartbeat_at:
            self._heartbeat_at = now + self._replica.config.heartbeat_s
            self._feeder.beat()
            self._successor_asked = False
            self._hand_over()
        if self._successor is not None and now >= self._transfer_until:
            self._successor = None
        return Next.STAY

    def receive(self, envelope: Envelope) -> Next:
        """A message of this term, or a Hello."""
        body, source = envelope.body, envelope.source
        if isinstance(body, Hello):
            self._admission.answer(envelope, self._try_change)
        elif isinstance(body, ReadRequest):
            self.read(body.ticket, source)
        elif source in self.progress:
            self.progress[source].heard_at = self._replica.clock()
            if isinstance(body, AppendAnswer):
                self._feeder.take_answer(source, body)
                return self._advance()
            if isinstance(body, SnapshotAnswer):
                self._feeder.take_snapshot_answer(source, body)
        return Next.STAY

    def flush(self) -> None:
        """Send to each peer what it may have now."""
        if self._reads.take_news():
            self._feeder.send_to_all()
        self._feeder.feed(self._reads.read_round)
        self._confirm_reads()

    def synced(self) -> Next:
        """The own log is on disk, as far as it goes: that counts too."""
        return self._advance()

    def leave(self) -> None:
        """Tell the reads that wait that they will not be answered here."""
        for ticket, asked_by in self._early_reads:
            self._answer_read(ticket, asked_by, None)
        for read in self._reads.take_all():
            self._answer_read(read.ticket, read.asked_by, None)

    # requests

    def propose(self, entries: Sequence[LogEntry]) -> int:
        """Append entries, whose log_index and raft_term do not count; the index of the first.

        Raises NotLeader, Overloaded.
        """
        journal = self._replica.journal
        if self._successor is not None:
            raise NotLeader("leadership is being handed over", 1, self._successor.node_id)
        size = entries_bytes(entries)
        if self._uncommitted and self._uncommitted_bytes + size > self._replica.config.uncommitted_bytes_max:
            raise Overloaded("too many entries wait for a majority")
        first = journal.last_index + 1
        term = journal.term
        journal.append(
            [
                LogEntry(first + i, term, entry.kind, entry.request_id, entry.timestamp_ms, entry.payload)
                for i, entry in enumerate(entries)
            ]
        )
        self._uncommitted.append((journal.last_index, size))
        self._uncommitted_bytes += size
        return first

    def read(self, ticket: int, asked_by: PeerId) -> None:
        """Answer with a read index, when it is sure."""
        if self._commits_own_term():
            self._reads.add(ticket, asked_by, self._replica.commit_index)
        else:
            self._early_reads.append((ticket, asked_by))

    def transfer(self, successor: PeerId) -> None:
        """Hand leadership to a voter as soon as it has all entries; no proposals until then.

        Given up after an election timeout. Raises MembershipRefused.
        """
        if successor not in self.progress or successor not in self._replica.journal.members.voters:
            raise MembershipRefused(f"node {successor.node_id} has no vote")
        self._successor, self._successor_asked = successor, False
        self._transfer_until = self._replica.clock() + self._replica.config.election_timeout_s
        self._hand_over()

    def change(self, members: Members) -> None:
        """Append a configuration that differs in one voter at most; it holds at once.

        One at a time, and not before an entry of this term is committed (Ongaro's correction of 2015 to
        single server changes). Raises UnavailableError.
        """
        journal = self._replica.journal
        assert len(members.voters ^ journal.members.voters) <= 1
        if not self._commits_own_term() or journal.members_index > self._replica.commit_index:
            raise UnavailableError("another change of members is under way")
        self._append_own(EntryKind.MEMBERS, encode_members(members))
        self._feeder.refresh()

    # inside

    def _append_own(self, kind: EntryKind, payload: bytes) -> None:
        journal = self._replica.journal
        journal.append([LogEntry(journal.last_index + 1, journal.term, kind, NO_REQUEST, 0, payload)])

    def _try_change(self, members: Members) -> bool:
        try:
            self.change(members)
        except UnavailableError:
            return False
        return True

    def _commits_own_term(self) -> bool:
        return self._replica.journal.term_at(self._replica.commit_index) == self._replica.journal.term

    def _advance(self) -> Next:
        """Commit what a majority has on disk, and do what waited for that."""
        replica, journal = self._replica, self._replica.journal
        index = journal.members.reached_by_majority(self._on_disk())
        if index > replica.commit_index and self._counts(index):
            replica.commit(index)
            self._feeder.send_to_all()
            self._forget_committed()
            if not replica.is_voter and journal.members_index <= index:
                return self._resign()
        self._begin_early_reads()
        self._promote()
        self._hand_over()
        self._confirm_reads()
        return Next.STAY

    def _counts(self, index: int) -> bool:
        """Whether an entry on a majority's disks is thereby committed (paper, 5.4.2)."""
        return self._replica.journal.term_at(index) == self._replica.journal.term

    def _on_disk(self) -> list[tuple[PeerId, int]]:
        reached = [(peer, progress.match_index) for peer, progress in self.progress.items()]
        return [*reached, (self._replica.peer, self._replica.journal.synced_index)]

    def _forget_committed(self) -> None:
        while self._uncommitted and self._uncommitted[0][0] <= self._replica.commit_index:
            self._uncommitted_bytes -= self._uncommitted.popleft()[1]

    def _begin_early_reads(self) -> None:
        if self._early_reads and self._commits_own_term():
            for ticket, asked_by in self._early_reads:
                self._reads.add(ticket, asked_by, self._replica.commit_index)
            self._early_reads.clear()

    def _confirm_reads(self) -> None:
        answered = [(peer, progress.read_round) for peer, progress in self.progress.items()]
        answered.append((self._replica.peer, self._reads.read_round))
        for read in self._reads.take_confirmed(self._replica.journal.members, answered):
            self._answer_read(read.ticket, read.asked_by, read.read_index)

    def _answer_read(self, ticket: int, asked_by: PeerId, read_index: int | None) -> None:
        if asked_by == self._replica.peer:
            self._replica.reads.append(ReadOutcome(ticket, read_index))
        elif read_index is not None:
            self._replica.send(asked_by, ReadAnswer(ticket, read_index))

    def _promote(self) -> None:
        """Give a vote to a member that has caught up."""
        replica = self._replica
        for member in replica.journal.members.members:
            progress = self.progress.get(member.peer)
            if member.voting or progress is None or progress.feed is not Feed.PIPELINE:
                continue
            lately = progress.heard_at + replica.config.election_timeout_s > replica.clock()
            if lately and progress.match_index >= replica.commit_index:
                promoted = Member(member.peer, member.address, voting=True)
                self._try_change(replica.journal.members.with_member(promoted))
                return

    def _hand_over(self) -> None:
        """Ask the successor to stand, once it has all entries."""
        if self._successor is None or self._successor_asked:
            return
        progress = self.progress.get(self._successor)
        if progress is None:
            self._successor = None  # it was removed meanwhile
        elif progress.match_index == self._replica.journal.last_index:
            self._replica.send(self._successor, TimeoutNow())
            self._successor_asked = True

    def _resign(self) -> Next:
        """This peer is no member any more: let the one with the most entries stand, and step down."""
        voters = self._replica.journal.members.voters
        matches = {p: progress.match_index for p, progress in self.progress.items() if p in voters}
        if matches:
            self._feeder.feed(self._reads.read_round)  # that the change is committed
            self._replica.send(max(matches, key=lambda peer: matches[peer]), TimeoutNow())
        return Next.FOLLOW
