"""The leader: elections won, entries fed to followers, members admitted, reads confirmed."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from graphdb.errors import MembershipRefused, NotLeader, Overloaded, UnavailableError
from graphdb.log.codec import entries_bytes
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.membership import ANY_INCARNATION, Member, Members, PeerId, encode_members
from graphdb.raft.messages import (
    Append,
    AppendAnswer,
    Envelope,
    Hello,
    ReadAnswer,
    ReadRequest,
    SnapshotAnswer,
    SnapshotChunk,
    SnapshotMark,
    TimeoutNow,
    Welcome,
)
from graphdb.raft.replica import Next, ReadOutcome, Replica

__all__ = ["Feed", "Leader", "Progress"]

# What a leader knows of one peer: how far its log goes, and what is on the way to it.


class Feed(Enum):
    """How a peer is fed."""

    PROBE = "probe"  # one message at a time, until its log is known to fit
    PIPELINE = "pipeline"  # entries go out without waiting for the answers to those before
    SNAPSHOT = "snapshot"  # it lacks entries that are gone


@dataclass(slots=True)
class Progress:
    """Entries up to match_index are on the peer's disk, acknowledged in this term; next_index goes out next.

    match_index never falls: a peer that forgot what it acknowledged is another peer (`PeerId`).
    """

    next_index: int
    heard_at: float
    match_index: int = 0
    feed: Feed = Feed.PROBE
    waiting: bool = False  # PROBE, SNAPSHOT: the answer to the last message is still to come
    due: bool = True  # something must be sent, entries or not
    read_round: int = 0  # the latest that it has answered
    told_index: int = 0  # the commit index that it was last sent
    inflight: deque[int] = field(default_factory=deque)  # PIPELINE: the last index of each message on its way
    snapshot: SnapshotMark | None = None
    snapshot_offset: int = 0

    def may_send(self, inflight_max: int) -> bool:
        """Whether entries may go out now."""
        if self.feed is Feed.PIPELINE:
            return len(self.inflight) < inflight_max
        return self.feed is Feed.PROBE and not self.waiting

    def note_sent(self, last_index: int) -> None:
        """Entries up to last_index have gone out."""
        if self.feed is Feed.PIPELINE:
            self.inflight.append(last_index)
            self.next_index = last_index + 1
        else:
            self.waiting = True

    def accept(self, answer: AppendAnswer) -> None:
        """The peer has what the leader has, up to the answer's log_index."""
        index = answer.log_index
        self.match_index = max(self.match_index, index)
        while self.inflight and self.inflight[0] <= self.match_index:
            self.inflight.popleft()
        fits = self.feed is Feed.PROBE and index >= self.next_index - 1
        arrived = self.snapshot is not None and index >= self.snapshot.log_index
        if fits or arrived:
            self._begin(Feed.PIPELINE)
        self.next_index = max(self.next_index, self.match_index + 1)

    def is_new(self, answer: AppendAnswer) -> bool:
        """Whether a refusal is about what is on the way now, and not about something that is settled."""
        if self.feed is Feed.PIPELINE:
            return answer.log_index > self.match_index
        return self.feed is Feed.PROBE and answer.log_index == self.next_index - 1

    def probe_from(self, next_index: int) -> None:
        """Begin again at next_index, one message at a time."""
        self._begin(Feed.PROBE)
        self.next_index = max(next_index, self.match_index + 1)

    def send_snapshot(self, mark: SnapshotMark) -> None:
        """Begin to send a snapshot."""
        self._begin(Feed.SNAPSHOT)
        self.snapshot = mark

    def _begin(self, feed: Feed) -> None:
        self.feed = feed
        self.waiting = False
        self.inflight.clear()
        self.snapshot, self.snapshot_offset = None, 0


# How a leader keeps the others' logs like its own: entries in a pipeline, a step back where they do not
# fit, snapshots where entries are gone.


class Feeder:
    """Owned by a `Leader`; progress has every other member that has reported its incarnation."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self.progress: dict[PeerId, Progress] = {}
        self.refresh()

    def refresh(self) -> None:
        """The members have changed: begin to feed new ones, and stop where one is gone."""
        journal = self._replica.journal
        peers = {
            member.peer for member in journal.members.members if member.peer.incarnation != ANY_INCARNATION
        }
        peers.discard(self._replica.peer)
        for peer in [*self.progress]:
            if peer not in peers:
                del self.progress[peer]
        for peer in sorted(peers - self.progress.keys()):
            self.progress[peer] = Progress(journal.last_index + 1, self._replica.clock())

    def beat(self) -> None:
        """A heartbeat: something goes to everyone, and what was not answered goes again."""
        for progress in self.progress.values():
            progress.due, progress.waiting = True, False

    def send_to_all(self) -> None:
        """Something has changed that every peer should learn at once."""
        for progress in self.progress.values():
            progress.due = True

    def tell_committed(self) -> None:
        """Peers that have not been sent the commit index since it has grown should learn it at once."""
        for progress in self.progress.values():
            progress.due = progress.due or progress.told_index < self._replica.commit_index

    def feed(self, read_round: int) -> None:
        """Send to each what it may have now.

        Where the disk refuses what one lacks, the others have theirs all the same.
        """
        for peer, progress in self.progress.items():
            try:
                self._feed(peer, progress, read_round)
            except UnavailableError as error:
                self._replica.fault = error
                progress.probe_from(progress.next_index)
                progress.waiting = True  # until the next heartbeat
                if progress.due:
                    self._send_append(peer, progress, read_round, [])

    def take_answer(self, peer: PeerId, answer: AppendAnswer) -> None:
        """An answer to an Append of this term."""
        progress = self.progress[peer]
        progress.read_round = max(progress.read_round, answer.read_round)
        if answer.accepted:
            if answer.log_index <= self._replica.journal.last_index:
                progress.accept(answer)
        elif progress.is_new(answer):
            progress.probe_from(self._step_back(answer) + 1)

    def take_snapshot_answer(self, peer: PeerId, answer: SnapshotAnswer) -> None:
        """The peer holds so many bytes of the snapshot."""
        progress = self.progress[peer]
        if progress.snapshot is not None and progress.snapshot.log_index == answer.log_index:
            if answer.offset != progress.snapshot_offset:
                progress.waiting = False
            progress.snapshot_offset = answer.offset

    def _step_back(self, answer: AppendAnswer) -> int:
        """The last index at which both logs may be the same, after a refusal."""
        journal = self._replica.journal
        if answer.hint_index < journal.base.log_index:
            return answer.hint_index
        return journal.last_index_within(min(answer.hint_index, answer.log_index - 1), answer.hint_term)

    def _feed(self, peer: PeerId, progress: Progress, read_round: int) -> None:
        journal, config = self._replica.journal, self._replica.config
        if self._is_heard(progress):  # no snapshot is made or kept for a peer that is away
            if progress.next_index <= journal.base.log_index and progress.feed is not Feed.SNAPSHOT:
                latest = self._replica.snapshots.latest()
                if latest is not None and latest.log_index >= journal.base.log_index:
                    progress.send_snapshot(latest)
            if progress.feed is Feed.SNAPSHOT and not progress.waiting:
                self._send_chunk(peer, progress)
        while (
            progress.may_send(config.inflight_messages_max)
            and journal.base.log_index < progress.next_index <= journal.last_index
        ):
            entries = journal.read(progress.next_index, config.append_bytes_max)
            self._send_append(peer, progress, read_round, entries)
        if progress.due:
            self._send_append(peer, progress, read_round, [])

    def _is_heard(self, progress: Progress) -> bool:
        return progress.heard_at + self._replica.config.election_timeout_s > self._replica.clock()

    def _send_append(
        self, peer: PeerId, progress: Progress, read_round: int, entries: Sequence[LogEntry]
    ) -> None:
        """Send these entries, which begin at next_index."""
        journal = self._replica.journal
        prev_index = progress.next_index - 1
        prev_term = journal.term_at(prev_index)
        if prev_term is None or progress.feed is Feed.SNAPSHOT:
            prev_index = prev_term = 0  # fits every log: it says only that this peer leads
        commit_index = self._replica.commit_index
        self._replica.send(peer, Append(prev_index, prev_term, commit_index, read_round, tuple(entries)))
        progress.due, progress.told_index = False, commit_index
        if entries:
            progress.note_sent(entries[-1].log_index)

    def _send_chunk(self, peer: PeerId, progress: Progress) -> None:
        mark, offset = progress.snapshot, progress.snapshot_offset
        assert mark is not None
        piece = self._replica.snapshots.read(mark, offset, self._replica.config.snapshot_chunk_bytes)
        if piece is None:
            progress.probe_from(progress.match_index + 1)  # it is gone: begin again with a newer one
            return
        self._replica.send(peer, SnapshotChunk(mark, offset, *piece))
        progress.waiting = True


# How a leader lets a new peer in: one that an operator has added, or a member whose disk was wiped.
#
# The peer says hello with its incarnation; the leader asks it, at that incarnation, to say it again with a
# nonce, for a hello may be an old one of an incarnation that is gone. Then the member's incarnation is
# changed and its vote taken, in one entry: to the voters that is the removal of one. It gets its vote back
# (`Leader`) when it has caught up.


class Admission:
    """Owned by a `Leader`."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._nonces: dict[PeerId, int] = {}

    def answer(self, envelope: Envelope, change: Callable[[Members], bool]) -> None:
        """Meet a Hello; change appends a configuration, or says that it cannot be now."""
        hello, peer = envelope.body, envelope.source
        assert isinstance(hello, Hello)
        members = self._replica.journal.members
        member = members.find(peer.node_id)
        if member is None or member.peer == peer:
            return
        if hello.echo == 0 or self._nonces.get(peer) != hello.echo:
            nonce = self._nonces.setdefault(peer, 1 + int(self._replica.random_source() * (1 << 53)))
            self._replica.send(peer, Welcome(nonce))
            return
        admitted = members.with_member(Member(peer, hello.address, voting=False))
        if admitted.voters and change(admitted):
            del self._nonces[peer]


# Linearizable reads without entries: the read index (dissertation 6.4).
#
# A leader notes its commit index, hears from a majority that it still leads, and answers; the reader waits
# until that index is applied. The leader must have committed an entry of its own term before, or its commit
# index may be older than another leader's.


@dataclass(frozen=True, slots=True)
class PendingRead:
    """A read that waits for a majority to answer read_round or a later one."""

    ticket: int
    asked_by: PeerId
    read_index: int
    read_round: int


class ReadQueue:
    """The reads that wait at a leader. Those that come between two flushes share a round."""

    def __init__(self) -> None:
        self.read_round = 0
        self._begun = False  # read_round has reads, and has not gone out yet
        self._waiting: list[PendingRead] = []

    def add(self, ticket: int, asked_by: PeerId, read_index: int) -> None:
        """Take a read."""
        if not self._begun:
            self._begun = True
            self.read_round += 1
        self._waiting.append(PendingRead(ticket, asked_by, read_index, self.read_round))

    def take_changed(self) -> bool:
        """Whether a round has begun since the last call: it must go out now."""
        begun, self._begun = self._begun, False
        return begun

    def take_confirmed(self, members: Members, answered: Iterable[tuple[PeerId, int]]) -> list[PendingRead]:
        """The reads whose round a majority has answered, by the latest round of each peer."""
        if not self._waiting:
            return []
        confirmed = members.reached_by_majority(answered)
        done = [read for read in self._waiting if read.read_round <= confirmed]
        self._waiting = self._waiting[len(done) :]
        return done

    def take_all(self) -> list[PendingRead]:
        """All that wait: the leader cannot answer them any more."""
        waiting, self._waiting = self._waiting, []
        return waiting


# The role of a peer that leads: it orders entries, feeds them to the others, and says what is committed.

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
        self._committed_at = float("-inf")
        self._pause_s = float("inf")  # between the last proposal and what was committed before it
        self._notice_at = float(
            "inf"
        )  # when peers are told what is committed, unless entries go to them before
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
        if now >= self._notice_at:
            self._notice_at = float("inf")
            self._feeder.tell_committed()
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
        if self._reads.take_changed():
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
        self._pause_s = self._replica.clock() - self._committed_at
        first = journal.last_index + 1
        term = journal.term
        journal.append([entry.at(index, term) for index, entry in enumerate(entries, first)])
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
            self._tell_soon()
            self._forget_committed()
            if not replica.is_voter and journal.members_index <= index:
                return self._resign()
        self._begin_early_reads()
        self._promote()
        self._hand_over()
        self._confirm_reads()
        return Next.STAY

    def _tell_soon(self) -> None:
        """Have peers learn what is committed: with the next entries, where these are likely to come soon. A
        notice of its own costs each peer two messages.
        """
        self._committed_at = now = self._replica.clock()
        notice_s = self._replica.config.commit_notice_s
        if self._pause_s > notice_s or not notice_s:
            self._feeder.send_to_all()
        else:
            self._notice_at = min(self._notice_at, now + notice_s)

    @property
    def next_notice_at(self) -> float:
        """When a `tick` is due, on the replica's clock, to tell peers what is committed."""
        return self._notice_at

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
            self._feeder.send_to_all()
            self._feeder.feed(self._reads.read_round)  # that the change is committed
            self._replica.send(max(matches, key=lambda peer: matches[peer]), TimeoutNow())
        return Next.FOLLOW
