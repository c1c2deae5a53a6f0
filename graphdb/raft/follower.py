"""The role of a peer that takes entries and snapshots from a leader, or waits for one."""

from graphdb.model import LogEntry
from graphdb.raft.membership import PeerId
from graphdb.raft.messages import (
    Append,
    AppendAnswer,
    Envelope,
    Hello,
    ReadAnswer,
    SnapshotAnswer,
    SnapshotChunk,
    SnapshotMark,
    TimeoutNow,
    Welcome,
)
from graphdb.raft.replica import Next, ReadOutcome, Replica
from graphdb.raft.wire import Malformed

__all__ = ["Follower"]


class Follower:
    """A peer that does not lead and does not wish to."""

    name = "follower"

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._incoming: tuple[SnapshotMark, PeerId] | None = None  # the snapshot that is arriving, and whose
        self._incoming_bytes = 0
        self._same_until = 0  # up to here this log is known to be as that of the term's leader
        self._lacks_what_is_gone = False  # entries that the leader itself no longer has

    @property
    def awaits_snapshot(self) -> bool:
        """Whether this peer goes on only with a snapshot, because the leader has dropped what comes next."""
        return self._lacks_what_is_gone or self._replica.received_snapshot is not None

    def tick(self) -> Next:
        """Where no leader has been heard for too long, campaign, or without a vote say hello: the entry that
        has let this peer in may be lost again.
        """
        replica = self._replica
        if replica.clock() < replica.deadline:
            return Next.STAY
        replica.reset_deadline()
        if replica.is_voter:
            return Next.CAMPAIGN
        replica.say_hello()
        return Next.STAY

    def receive(self, envelope: Envelope) -> Next:
        """A message of this term, a Hello or a Welcome."""
        body = envelope.body
        if isinstance(body, Append):
            self._replica.note_leader(envelope.source)
            self._append(envelope.source, body)
        elif isinstance(body, SnapshotChunk):
            self._replica.note_leader(envelope.source)
            self._take_chunk(envelope.source, body)
        elif isinstance(body, TimeoutNow):
            if envelope.source == self._replica.leader and self._replica.is_voter:
                return Next.STAND_FOR_LEADER
        elif isinstance(body, ReadAnswer):
            self.hear_commit(body.read_index)
            self._replica.reads.append(ReadOutcome(body.ticket, body.read_index))
        elif isinstance(body, Welcome) and not self._replica.is_voter:
            self._replica.say_hello(envelope.source, body.nonce)
        elif isinstance(body, Hello) and self._replica.leader is not None:
            self._replica.relay(envelope, self._replica.leader)
        return Next.STAY

    def flush(self) -> None:
        """A follower only answers."""

    def synced(self) -> Next:
        """Nothing but held answers waits for the disk."""
        return Next.STAY

    def leave(self) -> None:
        """A snapshot that was arriving is begun again by the next sender."""

    def hear_commit(self, index: int) -> None:
        """The leader of this term has committed entries up to index."""
        self._replica.commit(min(index, self._same_until))

    def _append(self, leader: PeerId, body: Append) -> None:
        """AppendEntries, receiver steps 2 to 5 (Raft paper, figure 2)."""
        replica, journal = self._replica, self._replica.journal
        is_bare = body.prev_index == 0 and not body.entries  # it says only who leads, and how far
        self._lacks_what_is_gone = is_bare and body.commit_index > replica.commit_index
        if body.prev_index > replica.commit_index and journal.term_at(body.prev_index) != body.prev_term:
            self._refuse(leader, body)
            return
        # What is committed here is in every leader's log (leader completeness): it cannot conflict.
        self._take_entries([entry for entry in body.entries if entry.log_index > replica.commit_index])
        same_until = max(body.prev_index + len(body.entries), replica.commit_index)
        self._same_until = max(self._same_until, same_until)
        replica.commit(min(body.commit_index, same_until))
        replica.send_synced(leader, AppendAnswer(True, same_until, 0, 0, body.read_round))

    def _take_entries(self, entries: list[LogEntry]) -> None:
        """Take what is not there, and take back what was there only where it conflicts."""
        journal = self._replica.journal
        for position, entry in enumerate(entries):
            if journal.term_at(entry.log_index) != entry.raft_term:
                if entry.log_index <= journal.last_index:
                    journal.truncate_after(entry.log_index - 1)
                journal.append(entries[position:])
                return

    def _refuse(self, leader: PeerId, body: Append) -> None:
        journal = self._replica.journal
        hint_index = journal.last_index_within(body.prev_index - 1, body.prev_term)
        hint_term = journal.term_at(hint_index)
        assert hint_term is not None
        answer = AppendAnswer(False, body.prev_index, hint_index, hint_term, body.read_round)
        self._replica.send_synced(leader, answer)

    def _take_chunk(self, leader: PeerId, chunk: SnapshotChunk) -> None:
        replica, mark = self._replica, chunk.mark
        if mark.log_index <= replica.commit_index:
            replica.send_synced(leader, AppendAnswer(True, replica.commit_index, 0, 0, 0))
            return
        if replica.received_snapshot is not None:
            return  # one is being installed; its bytes must stay as they are
        if self._incoming != (mark, leader):
            # the same mark from another peer may be other bytes: begin again
            self._incoming, self._incoming_bytes = (mark, leader), 0
        if chunk.offset == self._incoming_bytes:
            self._keep_chunk(chunk)
        replica.send(leader, SnapshotAnswer(mark.log_index, self._incoming_bytes))

    def _keep_chunk(self, chunk: SnapshotChunk) -> None:
        try:
            self._replica.snapshots.write(chunk.mark, chunk.offset, chunk.data)
        except Malformed:
            self._incoming, self._incoming_bytes = None, 0
            return
        self._incoming_bytes += len(chunk.data)
        if chunk.last:
            self._replica.received_snapshot, self._incoming = self._incoming, None
