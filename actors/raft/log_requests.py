"""What a node's port asks of its `RaftLog` beside `actors.log.protocol`: the bytes. It knows no sockets.

    request        body                                          answer's body
    WATCH          version (8), committed_index (8)              a ClusterView, as JSON; once it is another
    READ_INDEX     timeout in ms (4)                             index (8)
    FORWARD        timeout in ms (4), node_id (4), a request     what the other node answered
    TAKE           port (8)                                      requests once there are any; none after LEAVE
    LEAVE          port (8)                                      none; the port takes nothing more
    FINISH         number (8), 1 or 0 (1), answer or error       none
    TAKE_SEARCH, LEAVE_SEARCH, FINISH_SEARCH                     the same, of the search port
    CHANGE         a MemberChange, as JSON                       none; once it is committed
    OFFER          index (8), path of a tree                     none
    ADOPTED        index (8)                                     none
    LAST_EFFECT    none                                          index (8)
    CONFIRM        index (8), timeout in ms (4)                  index (8); the same: no quads behind it
    ANYWHERE       entries                                       index (8) of the first, once committed

A request is a head, as JSON (operation, request_id), and a body. Integers are little-endian; a length of 4
bytes stands before each part but the last.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, IntEnum

import orjson

__all__ = [
    "ClusterView",
    "Desk",
    "ForwardedRequest",
    "MemberChange",
    "RaftLogRequest",
    "ReceivedSnapshot",
    "ViewedMember",
    "decode_change",
    "decode_confirm",
    "decode_finish",
    "decode_forward",
    "decode_offer",
    "decode_requests",
    "decode_timeout",
    "decode_view",
    "decode_watch",
    "encode_change",
    "encode_confirm",
    "encode_finish",
    "encode_forward",
    "encode_offer",
    "encode_requests",
    "encode_timeout",
    "encode_view",
    "encode_watch",
]

_WATCH = struct.Struct("<QQ")
_CONFIRM = struct.Struct("<QI")
_MS = struct.Struct("<I")
_FORWARD = struct.Struct("<II")
_FINISH = struct.Struct("<Q?")
_OFFER = struct.Struct("<Q")
_REQUEST = struct.Struct("<QII")  # number, length of the head, length of the body


class RaftLogRequest(IntEnum):
    """What a port asks for: the code of its frame. Those below 16 are `actors.log.protocol.Request`."""

    WATCH = 16
    READ_INDEX = 17
    FORWARD = 18
    TAKE = 19
    FINISH = 20
    CHANGE = 21
    OFFER = 22
    ADOPTED = 23
    LAST_EFFECT = 24
    LEAVE = 25
    CONFIRM = 26
    ANYWHERE = 27
    TAKE_SEARCH = 28
    LEAVE_SEARCH = 29
    FINISH_SEARCH = 30


class Desk(Enum):
    """Where requests of other nodes wait for one of this node's ports: how that port takes requests, takes no
    more, and answers one.
    """

    GRAPH = RaftLogRequest.TAKE, RaftLogRequest.LEAVE, RaftLogRequest.FINISH
    SEARCH = RaftLogRequest.TAKE_SEARCH, RaftLogRequest.LEAVE_SEARCH, RaftLogRequest.FINISH_SEARCH

    def __init__(self, take: RaftLogRequest, leave: RaftLogRequest, finish: RaftLogRequest) -> None:
        self.take, self.leave, self.finish = take, leave, finish


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
    search_wanted: int = 0  # the log index as of which some peer needs the search indexes on disk
    received: ReceivedSnapshot | None = None
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


def encode_watch(version: int, committed_index: int) -> bytes:
    return _WATCH.pack(version, committed_index)


def decode_watch(body: bytes) -> tuple[int, int]:
    version, committed_index = _WATCH.unpack(body)
    return version, committed_index


def encode_view(view: ClusterView) -> bytes:
    return orjson.dumps(view)


def decode_view(body: bytes) -> ClusterView:
    fields = orjson.loads(body)
    fields["members"] = tuple(ViewedMember(**member) for member in fields["members"])
    if fields["received"] is not None:
        fields["received"] = ReceivedSnapshot(**fields["received"])
    return ClusterView(**fields)


def encode_timeout(timeout_s: float) -> bytes:
    return _MS.pack(round(timeout_s * 1000))


def decode_timeout(body: bytes) -> float:
    milliseconds: int = _MS.unpack(body)[0]
    return milliseconds / 1000


def encode_confirm(index: int, timeout_s: float) -> bytes:
    return _CONFIRM.pack(index, round(timeout_s * 1000))


def decode_confirm(body: bytes) -> tuple[int, float]:
    index, milliseconds = _CONFIRM.unpack(body)
    return index, milliseconds / 1000


def encode_forward(node_id: int, request: ForwardedRequest, timeout_s: float) -> bytes:
    return _FORWARD.pack(round(timeout_s * 1000), node_id) + encode_requests([request])


def decode_forward(body: bytes) -> tuple[int, ForwardedRequest, float]:
    milliseconds, node_id = _FORWARD.unpack_from(body)
    (request,) = decode_requests(body, _FORWARD.size)
    return node_id, request, milliseconds / 1000


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


def encode_finish(number: int, succeeded: bool, outcome: bytes) -> bytes:
    """outcome: the answer, or the error (`actors.error_codec`)."""
    return _FINISH.pack(number, succeeded) + outcome


def decode_finish(body: bytes) -> tuple[int, bool, bytes]:
    number, succeeded = _FINISH.unpack_from(body)
    return number, succeeded, body[_FINISH.size :]


def encode_change(change: MemberChange) -> bytes:
    return orjson.dumps(change)


def decode_change(body: bytes) -> MemberChange:
    return MemberChange(**orjson.loads(body))


def encode_offer(index: int, path: str) -> bytes:
    return _OFFER.pack(index) + path.encode()


def decode_offer(body: bytes) -> tuple[int, str]:
    index: int = _OFFER.unpack_from(body)[0]
    return index, body[_OFFER.size :].decode()
