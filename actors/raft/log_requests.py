"""What a node's port asks of its `RaftLog` beside `actors.log.protocol`, over the same socket.

request                     answer
    Watch                       ClusterView; once it is another
    ReadIndex                   Index
    Forward                     Piece: what the other node answered
    Take                        Requests, once there are any; none after Leave
    Leave                       Done; the port takes nothing more
    Finish                      Done
    MemberChange                Done; once it is committed
    Offer                       Done
    Adopted                     Done
    AskLastEffect               Index
    Confirm                     Index; the same: no quads behind it
    AppendUnconditionally       Index of the first, once committed

Some of it also goes to other nodes, which may be of another version, in the bodies of forwarded requests.
There a member change is JSON. Requests follow each other: each is a number of 8 bytes, the lengths of a head
and a body, 4 bytes each, the head, as JSON (operation, request_id), and the body. Integers are little-endian.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

import orjson

from actors.log.protocol import LOG_MESSAGES

__all__ = [
    "RAFT_LOG_MESSAGES",
    "Adopted",
    "AppendUnconditionally",
    "AskLastEffect",
    "ClusterView",
    "Confirm",
    "Finish",
    "Forward",
    "ForwardedRequest",
    "Leave",
    "MemberChange",
    "Offer",
    "ReadIndex",
    "ReceivedSnapshot",
    "RequestQueue",
    "Requests",
    "Take",
    "ViewedMember",
    "Watch",
    "decode_change",
    "decode_requests",
    "encode_change",
    "encode_requests",
]

_REQUEST = struct.Struct("<QII")  # number, length of the head, length of the body


class RequestQueue(Enum):
    """Where requests of other nodes wait for one of this node's ports."""

    GRAPH = "graph"
    SEARCH = "search"


@dataclass(frozen=True, slots=True)
class ViewedMember:
    """A member as this node's log knows it; see `graphdb.node.PeerReport`."""

    node_id: int
    address: str
    voting: bool
    reachable: bool
    matched_index: int | None


@dataclass(frozen=True, slots=True)
class ReceivedSnapshot:
    """A snapshot that stands for the log up to index and waits for the store to become it."""

    index: int
    path: str  # of its tree


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What this node's log knows of the cluster: by default, nothing.

    version grows with every change but those of indices.
    """

    version: int = 0
    role: str = "follower"  # leader, follower, candidate, newcomer
    term: int = 0
    leader_id: int | None = None
    committed_index: int = 0  # may be read here
    last_index: int = 0
    elections: int = 0
    messages_dropped: int = 0
    snapshot_wanted: bool = False  # some peer needs one that is newer than any there is
    search_flush_index: int = 0  # the log index as of which some peer needs the search indexes on disk
    awaits_snapshot: bool = False  # this node lacks entries that the leader has dropped
    received: ReceivedSnapshot | None = None  # a snapshot that the store is to become
    failure: str | None = None  # why this node takes no part any more
    members: tuple[ViewedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class ForwardedRequest:
    """A request of another node's client, for this node to perform. number is this node's own."""

    number: int
    operation: str
    request_id: str  # hexadecimal; see `graphdb.log.request_ids`
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class MemberChange:
    """What an operator asks for: "add" (with its address), "remove", "lead", "hand over" (to whoever can)."""

    kind: str
    node_id: int = 0
    address: str = ""


@dataclass(frozen=True, slots=True)
class Watch:
    """The version and the index that whoever asks knows."""

    version: int
    committed_index: int


@dataclass(frozen=True, slots=True)
class ReadIndex:
    """See `RaftLogClient.read_index`."""

    timeout_s: float


@dataclass(frozen=True, slots=True)
class Confirm:
    """See `RaftLogClient.confirm`."""

    index: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class AppendUnconditionally:
    """See `RaftLogClient.append_unconditionally`. The entries are encoded as those of `Append`."""

    entries: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AskLastEffect:
    """See `RaftLogClient.last_effect_index`."""


@dataclass(frozen=True, slots=True)
class Forward:
    """See `RaftLogClient.forward`."""

    node_id: int
    request: ForwardedRequest
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Take:
    """See `RaftLogClient.take`. port tells this port from one before it."""

    queue: RequestQueue
    port: int


@dataclass(frozen=True, slots=True)
class Requests:
    """What was taken."""

    requests: list[ForwardedRequest]


@dataclass(frozen=True, slots=True)
class Leave:
    """See `RaftLogClient.leave`."""

    queue: RequestQueue
    port: int


@dataclass(frozen=True, slots=True)
class Finish:
    """See `RaftLogClient.finish`. outcome: the answer, or the error (`actors.wire.messages`)."""

    queue: RequestQueue
    number: int
    succeeded: bool
    outcome: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Offer:
    """See `RaftLogClient.offer`. path is that of a tree."""

    index: int
    path: str


@dataclass(frozen=True, slots=True)
class Adopted:
    """See `RaftLogClient.adopted`."""

    index: int


RAFT_LOG_MESSAGES = LOG_MESSAGES.extended(
    Watch,
    ClusterView,
    ReadIndex,
    Confirm,
    AppendUnconditionally,
    AskLastEffect,
    Forward,
    Take,
    Requests,
    Leave,
    Finish,
    MemberChange,
    Offer,
    Adopted,
)


def encode_requests(requests: Iterable[ForwardedRequest]) -> bytes:
    parts: list[bytes] = []
    for request in requests:
        head = orjson.dumps({"operation": request.operation, "request_id": request.request_id})
        parts += (_REQUEST.pack(request.number, len(head), len(request.body)), head, request.body)
    return b"".join(parts)


def decode_requests(body: bytes, offset: int = 0) -> list[ForwardedRequest]:
    """The requests from offset to the end."""
    requests = []
    while offset < len(body):
        number, head_length, length = _REQUEST.unpack_from(body, offset)
        offset += _REQUEST.size
        head = orjson.loads(body[offset : offset + head_length])
        offset += head_length
        requests.append(ForwardedRequest(number, body=body[offset : offset + length], **head))
        offset += length
    return requests


def encode_change(change: MemberChange) -> bytes:
    return orjson.dumps(change)


def decode_change(body: bytes) -> MemberChange:
    return MemberChange(**orjson.loads(body))
