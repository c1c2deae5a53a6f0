"""Messages between peers, and their encoding."""

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from graphdb.errors import CorruptionError
from graphdb.log.codec import decode_entries, encode_entry
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.membership import (
    ADDRESS_BYTES_MAX,
    ANY_INCARNATION,
    Members,
    PeerId,
    decode_members,
    encode_members,
    take_members,
)
from graphdb.raft.wire import Malformed, WireReader, pack_bytes

__all__ = [
    "MESSAGE_BYTES_MAX",
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
    "decode_envelope",
    "encode_envelope",
    "encode_envelopes",
]

# What peers say to each other. Values only; `message_codec.py` has the bytes.
#
# The term of an `Envelope` is always the term that its sender is in and has on disk. Names and fields
# follow Ongaro and Ousterhout, "In search of an understandable consensus algorithm" (2014), and Ongaro's
# dissertation (2014) where it adds: pre-vote (9.6), read index (6.4), leadership transfer (3.10).


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
    """Asks who has said hello to say it again with this nonce: a message from an incarnation long gone
    cannot."""

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


# The bytes of messages. Whatever bytes arrive, decoding gives a message or raises `Malformed`.
#
#     magic "GDBR" (4), version (1), code of the body (1), cluster_id (8), term (8),
#     source node_id (4) and incarnation (8), target node_id (4) and incarnation (8), then the body:
#
#     VoteRequest     last_index (8), last_term (8), pre (1), transfer (1)
#     VoteAnswer      granted (1), pre (1)
#     Append          prev_index (8), prev_term (8), commit_index (8), read_round (8), count (4), entries
#     AppendAnswer    accepted (1), log_index (8), hint_index (8), hint_term (8), read_round (8)
#     SnapshotChunk   log_index (8), raft_term (8), offset (8), last (1), members, data
#     SnapshotAnswer  log_index (8), offset (8)
#     TimeoutNow      nothing
#     ReadRequest     ticket (8)
#     ReadAnswer      ticket (8), read_index (8)
#     Hello           echo (8), address (text)
#     Welcome         nonce (8)
#
# Integers are little-endian. Entries are encoded as in the log, each with its checksum.

MESSAGE_BYTES_MAX = 160 << 20  # the largest request body, 100 MiB, is one entry at most, with room to spare
_MAGIC = int.from_bytes(b"GDBR", "little")
_VERSION = 1
_HEAD = struct.Struct("<IBBQQIQIQ")
_VOTE_REQUEST = struct.Struct("<QQBB")
_TWO_FLAGS = struct.Struct("<BB")
_APPEND = struct.Struct("<QQQQI")
_APPEND_ANSWER = struct.Struct("<BQQQQ")
_CHUNK = struct.Struct("<QQQB")
_ONE = struct.Struct("<Q")
_TWO = struct.Struct("<QQ")

_Encode: TypeAlias = Callable[[Body], bytes]
_Decode: TypeAlias = Callable[[WireReader], Body]


def encode_envelope(envelope: Envelope) -> bytes:
    """A message as bytes."""
    [encoded] = encode_envelopes((envelope,))
    return encoded


def encode_envelopes(envelopes: Iterable[Envelope]) -> Iterator[bytes]:
    """Messages as bytes. What a leader sends to several peers alike is encoded once."""
    body: Body | None = None
    encoded = b""
    for envelope in envelopes:
        code = _CODES[type(envelope.body)]
        if envelope.body != body:
            body = envelope.body
            encoded = _ENCODERS[code](body)
        head = _HEAD.pack(
            _MAGIC, _VERSION, code, envelope.cluster_id, envelope.term, *envelope.source, *envelope.target
        )
        yield head + encoded


def decode_envelope(data: bytes) -> Envelope:
    """The message in bytes from outside. Raises Malformed."""
    if len(data) > MESSAGE_BYTES_MAX:
        raise Malformed(f"a message of {len(data)} bytes")
    reader = WireReader(data)
    magic, version, code, cluster_id, term, source_id, source_incarnation, target_id, target_incarnation = (
        reader.unpack(_HEAD)
    )
    if (
        (magic, version) != (_MAGIC, _VERSION)
        or code not in _DECODERS
        or source_incarnation == ANY_INCARNATION
    ):
        raise Malformed("not a message of this version")
    body = _DECODERS[code](reader)
    reader.finish()
    if isinstance(body, Append) and max([body.prev_term, *(e.raft_term for e in body.entries[-1:])]) > term:
        raise Malformed("entries of a later term than their leader's")
    source, target = PeerId(source_id, source_incarnation), PeerId(target_id, target_incarnation)
    return Envelope(cluster_id, term, source, target, body)


def _encode_vote_request(body: Body) -> bytes:
    assert isinstance(body, VoteRequest)
    return _VOTE_REQUEST.pack(body.last_index, body.last_term, body.pre, body.transfer)


def _decode_vote_request(reader: WireReader) -> Body:
    last_index, last_term, pre, transfer = reader.unpack(_VOTE_REQUEST)
    return VoteRequest(last_index, last_term, reader.take_flag(pre), reader.take_flag(transfer))


def _encode_vote_answer(body: Body) -> bytes:
    assert isinstance(body, VoteAnswer)
    return _TWO_FLAGS.pack(body.granted, body.pre)


def _decode_vote_answer(reader: WireReader) -> Body:
    granted, pre = reader.unpack(_TWO_FLAGS)
    return VoteAnswer(reader.take_flag(granted), reader.take_flag(pre))


def _encode_append(body: Body) -> bytes:
    assert isinstance(body, Append)
    entries = b"".join(map(encode_entry, body.entries))
    head = _APPEND.pack(
        body.prev_index, body.prev_term, body.commit_index, body.read_round, len(body.entries)
    )
    return b"".join((head, pack_bytes(entries)))


def _decode_append(reader: WireReader) -> Body:
    prev_index, prev_term, commit_index, read_round, count = reader.unpack(_APPEND)
    entries = _decode_entries(reader.take_bytes(MESSAGE_BYTES_MAX), prev_index, prev_term)
    if len(entries) != count:
        raise Malformed(f"{len(entries)} entries, {count} announced")
    return Append(prev_index, prev_term, commit_index, read_round, entries)


def _decode_entries(data: bytes, prev_index: int, prev_term: int) -> tuple[LogEntry, ...]:
    """Entries that follow each other without gaps, their terms never falling."""
    try:
        entries = decode_entries(data)
    except CorruptionError as error:
        raise Malformed(str(error)) from error
    if entries is None:
        raise Malformed("an entry was damaged on its way")
    for entry in entries:
        if entry.log_index != prev_index + 1 or entry.raft_term < prev_term:
            raise Malformed(f"entry {entry.log_index} follows {prev_index}")
        if entry.kind is EntryKind.MEMBERS:
            decode_members(entry.payload)  # raises here, so that no peer receives one that cannot be read
        prev_index, prev_term = entry.log_index, entry.raft_term
    return tuple(entries)


def _encode_append_answer(body: Body) -> bytes:
    assert isinstance(body, AppendAnswer)
    return _APPEND_ANSWER.pack(
        body.accepted, body.log_index, body.hint_index, body.hint_term, body.read_round
    )


def _decode_append_answer(reader: WireReader) -> Body:
    accepted, log_index, hint_index, hint_term, read_round = reader.unpack(_APPEND_ANSWER)
    return AppendAnswer(reader.take_flag(accepted), log_index, hint_index, hint_term, read_round)


def _encode_chunk(body: Body) -> bytes:
    assert isinstance(body, SnapshotChunk)
    head = _CHUNK.pack(body.mark.log_index, body.mark.raft_term, body.offset, body.last)
    return b"".join((head, encode_members(body.mark.members), pack_bytes(body.data)))


def _decode_chunk(reader: WireReader) -> Body:
    log_index, raft_term, offset, last = reader.unpack(_CHUNK)
    mark = SnapshotMark(log_index, raft_term, take_members(reader))
    return SnapshotChunk(mark, offset, reader.take_bytes(MESSAGE_BYTES_MAX), reader.take_flag(last))


def _encode_snapshot_answer(body: Body) -> bytes:
    assert isinstance(body, SnapshotAnswer)
    return _TWO.pack(body.log_index, body.offset)


def _decode_snapshot_answer(reader: WireReader) -> Body:
    return SnapshotAnswer(*reader.unpack(_TWO))


def _encode_timeout_now(body: Body) -> bytes:
    return b""


def _decode_timeout_now(reader: WireReader) -> Body:
    return TimeoutNow()


def _encode_read_request(body: Body) -> bytes:
    assert isinstance(body, ReadRequest)
    return _ONE.pack(body.ticket)


def _decode_read_request(reader: WireReader) -> Body:
    return ReadRequest(*reader.unpack(_ONE))


def _encode_read_answer(body: Body) -> bytes:
    assert isinstance(body, ReadAnswer)
    return _TWO.pack(body.ticket, body.read_index)


def _decode_read_answer(reader: WireReader) -> Body:
    return ReadAnswer(*reader.unpack(_TWO))


def _encode_hello(body: Body) -> bytes:
    assert isinstance(body, Hello)
    return _ONE.pack(body.echo) + pack_bytes(body.address.encode())


def _decode_hello(reader: WireReader) -> Body:
    (echo,) = reader.unpack(_ONE)
    return Hello(reader.take_text(ADDRESS_BYTES_MAX), echo)


def _encode_welcome(body: Body) -> bytes:
    assert isinstance(body, Welcome)
    return _ONE.pack(body.nonce)


def _decode_welcome(reader: WireReader) -> Body:
    return Welcome(*reader.unpack(_ONE))


# The codes are on the wire between versions: they never change meaning.
_KINDS: dict[int, tuple[type[Body], _Encode, _Decode]] = {
    1: (VoteRequest, _encode_vote_request, _decode_vote_request),
    2: (VoteAnswer, _encode_vote_answer, _decode_vote_answer),
    3: (Append, _encode_append, _decode_append),
    4: (AppendAnswer, _encode_append_answer, _decode_append_answer),
    5: (SnapshotChunk, _encode_chunk, _decode_chunk),
    6: (SnapshotAnswer, _encode_snapshot_answer, _decode_snapshot_answer),
    7: (TimeoutNow, _encode_timeout_now, _decode_timeout_now),
    8: (ReadRequest, _encode_read_request, _decode_read_request),
    9: (ReadAnswer, _encode_read_answer, _decode_read_answer),
    10: (Hello, _encode_hello, _decode_hello),
    11: (Welcome, _encode_welcome, _decode_welcome),
}
_CODES = {kind: code for code, (kind, _, _) in _KINDS.items()}
_ENCODERS = {code: encode for code, (_, encode, _) in _KINDS.items()}
_DECODERS = {code: decode for code, (_, _, decode) in _KINDS.items()}
