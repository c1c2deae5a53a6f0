"""How a leader keeps the others' logs like its own: entries in a pipeline, a step back where they do not fit,
snapshots where entries are gone.
"""

from collections.abc import Sequence

from graphdb.errors import UnavailableError
from graphdb.model import LogEntry
from graphdb.raft.membership import ANY_LIFE, PeerId
from graphdb.raft.messages import Append, AppendAnswer, SnapshotAnswer, SnapshotChunk
from graphdb.raft.progress import Feed, Progress
from graphdb.raft.replica import Replica

__all__ = ["Feeder"]


class Feeder:
    """Owned by a `Leader`; progress has every other member that has reported its life."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self.progress: dict[PeerId, Progress] = {}
        self.refresh()

    def refresh(self) -> None:
        """The members have changed: begin to feed new ones, and stop where one is gone."""
        journal = self._replica.journal
        peers = {member.peer for member in journal.members.members if member.peer.life != ANY_LIFE}
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
        """There is news that every peer should have at once."""
        for progress in self.progress.values():
            progress.due = True

    def feed(self, read_round: int) -> None:
        """Send to each what it may have now.

        Where the disk refuses what one lacks, the others have theirs all the same.
        """
        for peer, progress in self.progress.items():
            try:
                self._feed(peer, progress, read_round)
            except UnavailableError as error:
                self._replica.trouble = error
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
        elif progress.is_news(answer):
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
        if self._is_heard(progress):  # nobody makes or keeps a snapshot for a peer that is away
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
        progress.due = False
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
