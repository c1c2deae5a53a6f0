"""What a leader knows of one peer: how far its log goes, and what is on the way to it."""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from graphdb.raft.messages import AppendAnswer, SnapshotMark

__all__ = ["Feed", "Progress"]


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

    def is_news(self, answer: AppendAnswer) -> bool:
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
