"""What a peer is whatever its role: its journal, what it knows to be committed, its clock, its outgoing mail.

A message goes out only when what it promises is on disk: term, vote and members always, entries where it
acknowledges them. Until then it is held.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from graphdb.errors import UnavailableError
from graphdb.raft.journal import Journal
from graphdb.raft.membership import ANY_INCARNATION, PeerId
from graphdb.raft.messages import Body, Envelope, Hello, SnapshotMark

__all__ = ["Next", "RaftConfig", "ReadOutcome", "Replica", "Role", "SnapshotStore"]


@dataclass(frozen=True, slots=True)
class RaftConfig:
    """Times in seconds, sizes in bytes."""

    # without word from a leader for this long up to twice this long, drawn each time, a peer campaigns; a
    # leader that a majority has not answered for this long steps down
    election_timeout_s: float = 0.6
    heartbeat_s: float = 0.1  # how often an idle leader is heard; well below election_timeout_s
    # so long a leader waits at most for further entries, to say with them that earlier ones are committed,
    # where entries have followed each other as fast until now; 0: it says so at once
    commit_notice_s: float = 0.0
    append_bytes_max: int = 1 << 20  # entries in one message, unless a single one is larger
    inflight_messages_max: int = 64  # so many messages with entries to one peer wait for their answer
    uncommitted_bytes_max: int = 256 << 20  # proposals beyond this are refused as Overloaded
    snapshot_chunk_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        if not 0 < 2 * self.heartbeat_s <= self.election_timeout_s:
            raise ValueError("heartbeat_s must be positive and at most half of election_timeout_s")
        if not 0 <= self.commit_notice_s <= self.heartbeat_s:
            raise ValueError("commit_notice_s must be in [0, heartbeat_s]")


class SnapshotStore(Protocol):
    """Snapshots of the state machine, as bytes that only it understands. Methods may raise LogUnavailable,
    `write` also StorageFull; then it is called again with the same offset, or with 0.
    """

    def latest(self) -> SnapshotMark | None:
        """The newest snapshot that can be sent."""

    def read(self, mark: SnapshotMark, offset: int, bytes_max: int) -> tuple[bytes, bool] | None:
        """Bytes of a snapshot, and whether they are its last; None where it is gone."""

    def write(self, mark: SnapshotMark, offset: int, data: bytes) -> None:
        """Keep bytes of a snapshot from another peer; offset 0 begins again.

        Raises Malformed where they cannot belong to it: it is asked for again from its beginning.
        """


class Next(Enum):
    """What a peer does after an event."""

    STAY = "stay"  # keep its role
    FOLLOW = "follow"  # wait for a leader
    CAMPAIGN = "campaign"  # ask whether it would be elected, then stand
    STAND = "stand"  # stand for election in the next term
    STAND_FOR_LEADER = "stand for leader"  # the same, because the leader has asked it to
    LEAD = "lead"


class Role(Protocol):
    """How a peer meets events: as newcomer, follower, candidate or leader."""

    @property
    def name(self) -> str:
        """The role in one word."""

    def tick(self) -> Next:
        """Time has passed."""

    def receive(self, envelope: Envelope) -> Next:
        """A message of the current term, for this peer, or one that has none; no VoteRequest."""

    def flush(self) -> None:
        """Send what is due, before the mail is taken."""

    def synced(self) -> Next:
        """The journal is on disk."""

    def leave(self) -> None:
        """The role ends."""


@dataclass(frozen=True, slots=True)
class ReadOutcome:
    """The answer to a read: wait until read_index is applied, then read; None: ask again elsewhere."""

    ticket: int
    read_index: int | None


class Replica:
    """Owned by a `RaftNode`, shared with its role.

    commit_index is the last entry known to be on a majority's disks, though perhaps not yet on this one's.
    """

    def __init__(
        self,
        journal: Journal,
        config: RaftConfig,
        address: str,
        founder_ids: frozenset[int],
        *,
        clock: Callable[[], float],
        random_source: Callable[[], float],
        snapshots: SnapshotStore,
        commit_index: int,
    ) -> None:
        """clock gives seconds that never go back; random_source numbers in [0, 1)."""
        self.journal = journal
        self.config = config
        self.address = address
        self._founder_ids = founder_ids
        self.clock = clock
        self.random_source = random_source
        self.snapshots = snapshots
        self.commit_index = commit_index
        self._synced_commit_index = commit_index  # as of the last sync that went well
        self.leader: PeerId | None = None
        self.leader_heard_at = float("-inf")
        self.elections = 0  # leaders that were elected in the time of this process, itself included
        self._led_term = 0  # the last term of which a leader is known
        self.deadline = 0.0  # when to campaign, unless a leader is heard
        self.reads: list[ReadOutcome] = []
        self.received_snapshot: tuple[SnapshotMark, PeerId] | None = None  # complete, not yet installed
        self.fault: UnavailableError | None = None  # what has kept a peer from being fed
        self.sent: list[Envelope] = []
        self._held: list[Envelope] = []
        self.reset_deadline()

    @property
    def peer(self) -> PeerId:
        return self.journal.peer

    @property
    def is_voter(self) -> bool:
        return self.peer in self.journal.members.voters

    def reset_deadline(self) -> None:
        """Begin to wait again."""
        timeout = self.config.election_timeout_s
        self.deadline = self.clock() + timeout * (1 + self.random_source())

    def hears_leader(self) -> bool:
        """Whether a leader was heard so lately that no election is due."""
        return (
            self.leader is not None and self.clock() < self.leader_heard_at + self.config.election_timeout_s
        )

    def note_leader(self, leader: PeerId) -> None:
        """A leader of this term has been heard."""
        if self.journal.term > self._led_term:
            self._led_term = self.journal.term
            self.elections += 1
        self.leader = leader
        self.leader_heard_at = self.clock()
        self.reset_deadline()

    def enter_term(self, term: int, vote: PeerId | None = None) -> None:
        """Enter a later term.

        Held messages are of an earlier one. They must not go out: what they acknowledge may yet be replaced
        by this term's leader before it is synced.
        """
        self.journal.set_term(term, vote)
        self._held.clear()
        self.leader = None

    def commit(self, index: int) -> None:
        """Know that entries up to index are committed; a smaller index than before is outdated."""
        self.commit_index = max(self.commit_index, index)

    def send(self, target: PeerId, body: Body) -> None:
        """Send when term, vote and members are on disk."""
        self._post(target, body, self.journal.state_is_synced)

    def send_synced(self, target: PeerId, body: Body) -> None:
        """Send when the entries are on disk too."""
        self._post(target, body, self.journal.is_synced)

    def say_hello(self, asked_by: PeerId | None = None, nonce: int = 0) -> None:
        """Tell all known nodes that this one exists; the leader adds it.

        asked_by has asked for nonce; the others may reach it where this node does not.
        """
        members = {member.peer.node_id for member in self.journal.members.members}
        others = (self._founder_ids | members) - {self.peer.node_id}
        targets = {PeerId(node_id, ANY_INCARNATION) for node_id in others}
        if asked_by is not None:
            targets = targets - {PeerId(asked_by.node_id, ANY_INCARNATION)} | {asked_by}
        for target in sorted(targets):
            self.send(target, Hello(self.address, nonce))

    def relay(self, envelope: Envelope, target: PeerId) -> None:
        """Forward a message of another node."""
        self.sent.append(replace(envelope, target=target))

    def _post(self, target: PeerId, body: Body, ready: bool) -> None:
        journal = self.journal
        envelope = Envelope(journal.cluster_id, journal.term, journal.peer, target, body)
        (self.sent if ready else self._held).append(envelope)

    def release_held(self) -> None:
        """The journal is synced: what waited for it may go."""
        self.sent += self._held
        self._held.clear()
        self._synced_commit_index = self.commit_index

    def forget_unsynced(self) -> None:
        """The journal was rolled back: what relied on it must not go out."""
        self.sent.clear()
        self._held.clear()
        self.leader = None
        # what was learnt since may be about entries that took the place of others, which are back now
        self.commit_index = self._synced_commit_index
