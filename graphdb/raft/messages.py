"""What peers say to each other. Values only; `message_codec.py` has the bytes.

The term of an `Envelope` is always the term that its sender is in and has on disk. Names and fields follow
Ongaro and Ousterhout, "In search of an understandable consensus algorithm" (2014), and Ongaro's dissertation
(2014) where it adds: pre-vote (9.6), read index (6.4), leadership transfer (3.10).
"""

from dataclasses import dataclass
from typing import TypeAlias

from graphdb.model import LogEntry
from graphdb.raft.membership import Members, PeerId

__all__ = [
    "Append",
    "AppendAnswer",
    "Body",
    "Envelope",
    "Hello",
    "ReadAnswer",
    "ReadRequest",
    "SnapshotAnswer",
    "SnapshotChunk",
    "SnapshotMark",
    "TimeoutNow",
    "VoteAnswer",
    "VoteRequest",
    "Welcome",
]


@dataclass(frozen=True, slots=True)
class SnapshotMark:
    """Where in the log a snapshot stands: the last entry in it, that entry's term, the members at it."""

    log_index: int
    raft_term: int
    members: Members


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """A candidate asks for a vote; pre: whether it would get one. last_*: the last entry of its log.

    transfer: the leader has asked it to, so having heard of a leader is no reason to refuse.
    """

    last_index: int
    last_term: int
    pre: bool
    transfer: bool


@dataclass(frozen=True, slots=True)
class VoteAnswer:
    """The answer to a VoteRequest with the same pre."""

    granted: bool
    pre: bool


@dataclass(frozen=True, slots=True)
class Append:
    """Entries that follow (prev_index, prev_term), or none; it proves that its sender leads this term.

    read_round counts the leader's heartbeats for reads; the answer carries it back.
    """

    prev_index: int
    prev_term: int
    commit_index: int
    read_round: int
    entries: tuple[LogEntry, ...]


@dataclass(frozen=True, slots=True)
class AppendAnswer:
    """The answer to an Append.

    Where accepted, the sender has on disk what the leader has, up to log_index. Where not, log_index is the
    prev_index that did not fit, and (hint_index, hint_term) the last entry of the sender's log that may.
    """

    accepted: bool
    log_index: int
    hint_index: int
    hint_term: int
    read_round: int


@dataclass(frozen=True, slots=True)
class SnapshotChunk:
    """A piece of the snapshot at mark, from offset on; last: nothing follows it."""

    mark: SnapshotMark
    offset: int
    data: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class SnapshotAnswer:
    """How many bytes of the snapshot at log_index the receiver holds: the offset it wants next."""

    log_index: int
    offset: int


@dataclass(frozen=True, slots=True)
class TimeoutNow:
    """The leader asks its successor to campaign at once."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A follower asks the leader for the index that a linearizable read has to wait for."""

    ticket: int


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """A read that began with the ticket and sees read_index is linearizable."""

    ticket: int
    read_index: int


@dataclass(frozen=True, slots=True)
class Hello:
    """A peer without a cluster says that it is there; echo: the nonce of the Welcome it answers, else 0."""

    address: str
    echo: int


@dataclass(frozen=True, slots=True)
class Welcome:
    """Asks who has said hello to say it again with this nonce: a message from a life long gone cannot."""

    nonce: int


Body: TypeAlias = (
    VoteRequest
    | VoteAnswer
    | Append
    | AppendAnswer
    | SnapshotChunk
    | SnapshotAnswer
    | TimeoutNow
    | ReadRequest
    | ReadAnswer
    | Hello
    | Welcome
)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message on its way. cluster_id is drawn when a cluster is founded; 0: its sender has none yet."""

    cluster_id: int
    term: int
    source: PeerId
    target: PeerId
    body: Body
