"""Pieces of messages, proofs of identity, and the failures of peers."""

import hmac
import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from actors.raft.raft_pb2 import Failure, Frame, Piece
from actors.wire.messages import decode_error, encode_error
from graphdb.errors import CorruptionError, GraphDBError, OutcomeUnknown

__all__ = [
    "FRAME_BYTES_MAX",
    "NONCE_BYTES",
    "PROTOCOL_VERSION",
    "Handshake",
    "PieceMarker",
    "PieceReader",
    "Refused",
    "decode_failure",
    "encode_failure",
    "error_of_peer",
    "frames_of",
    "fresh_nonce",
    "is_equal",
]

# Errors on their way between nodes.


def encode_failure(error: GraphDBError) -> Failure:
    """Damage on the node that was asked is none on the node that asks: there the outcome is not known."""
    if isinstance(error, CorruptionError):
        error = OutcomeUnknown("the node that was asked has failed")
    return Failure(error=encode_error(error, OutcomeUnknown))


def decode_failure(failure: Failure) -> GraphDBError:
    """As `error_of_peer`."""
    return error_of_peer(failure.error)


def error_of_peer(data: bytes) -> GraphDBError:
    """What an error (`actors.wire.messages`) of another node means here: damage there is an outcome
    unknown here, and so is what another version sent and this one does not know.
    """
    try:
        error = decode_error(data)
    except ValueError:
        return OutcomeUnknown(f"an answer that cannot be understood: {data[:100]!r}")
    return OutcomeUnknown(str(error)) if isinstance(error, CorruptionError) else error


# How two nodes prove to each other that they know the cluster's key, and mark what they say with it.
#
# It knows nothing of gRPC. The key itself is never sent: each side sends a nonce, and a MAC over both
# nonces and who speaks to whom. A session has a key of its own, so nothing of one session counts in
# another.

PROTOCOL_VERSION = 1
NONCE_BYTES = 32
_PARTIES = struct.Struct("<III")
_PLACE = struct.Struct("<Q?")
_NUMBER = struct.Struct("<Q")


class Refused(Exception):
    """What the other side sends is not what a node of this cluster sends; str() says why, without secrets."""


def fresh_nonce() -> bytes:
    """Random bytes that were never sent before."""
    return secrets.token_bytes(NONCE_BYTES)


def is_equal(given: bytes, expected: bytes) -> bool:
    """Compare in a time that does not tell where they differ."""
    return hmac.compare_digest(given, expected)


def _mac(key: bytes | None, *parts: bytes) -> bytes:
    return hmac.digest(key, b"".join(parts), "sha256") if key is not None else b""


@dataclass(frozen=True, slots=True)
class Handshake:
    """What both sides have said. Without a key, proofs and keys are empty or None and prove nothing."""

    key: bytes | None = field(repr=False)
    source: int  # node id of the caller
    target: int
    caller_nonce: bytes
    called_nonce: bytes

    @property
    def _said(self) -> bytes:
        parties = _PARTIES.pack(PROTOCOL_VERSION, self.source, self.target)
        return parties + self.caller_nonce + self.called_nonce

    def caller_proof(self) -> bytes:
        """What only a caller with the key can send."""
        return _mac(self.key, b"caller", self._said)

    def called_proof(self) -> bytes:
        """What only a called node with the key can send."""
        return _mac(self.key, b"called", self._said)

    def message_marker(self) -> "PieceMarker":
        """For the messages that the caller sends."""
        return self._marker(b"messages", 0)

    def request_marker(self, number: int) -> "PieceMarker":
        """For the request with this number."""
        return self._marker(b"request", number)

    def answer_marker(self, number: int) -> "PieceMarker":
        """For the answer to it."""
        return self._marker(b"answer", number)

    def _marker(self, purpose: bytes, number: int) -> "PieceMarker":
        key = _mac(self.key, purpose, _NUMBER.pack(number), self._said)
        return PieceMarker(key if self.key is not None else None)


class PieceMarker:
    """Marks the pieces of one stream in their order; each side has one and they go in step.

    So a piece that is changed, left out, repeated or moved does not pass.
    """

    def __init__(self, key: bytes | None) -> None:
        self._key = key
        self._count = 0

    def mark(self, data: bytes, last: bool) -> bytes:
        """The MAC of the next piece; empty without a key."""
        place = _PLACE.pack(self._count, last)
        self._count += 1
        return _mac(self._key, place, data)

    def check(self, data: bytes, last: bool, mac: bytes) -> None:
        """Raises Refused where the next piece is not what was sent."""
        if not is_equal(mac, self.mark(data, last)):
            raise Refused("a piece whose MAC does not hold")


# Messages in pieces: so that nobody, least of all a stranger, can make a node hold more than one piece at
# once that it has not agreed to hold.

_PIECE_BYTES = 1 << 20
FRAME_BYTES_MAX = _PIECE_BYTES + 1024


def frames_of(message: bytes, marker: PieceMarker) -> Iterator[Frame]:
    """The frames that carry a message, at least one."""
    if len(message) <= _PIECE_BYTES:  # nearly every message: no copy
        yield Frame(piece=Piece(data=message, last=True, mac=marker.mark(message, True)))
        return
    for start in range(0, len(message), _PIECE_BYTES):
        data = message[start : start + _PIECE_BYTES]
        last = start + _PIECE_BYTES >= len(message)
        yield Frame(piece=Piece(data=data, last=last, mac=marker.mark(data, last)))


class PieceReader:
    """Puts messages together again."""

    def __init__(self, marker: PieceMarker, message_bytes_max: int) -> None:
        self._marker = marker
        self._message_bytes_max = message_bytes_max
        self._parts: list[bytes] = []
        self.held_bytes = 0  # of the message that is not complete yet

    def add(self, frame: Frame) -> bytes | None:
        """Take a frame; the message, where it is complete now. Raises Refused."""
        if frame.WhichOneof("kind") != "piece":
            raise Refused("a frame that is not a piece of a message")
        piece = frame.piece
        self._marker.check(piece.data, piece.last, piece.mac)
        self.held_bytes += len(piece.data)
        if self.held_bytes > self._message_bytes_max:
            raise Refused(f"a message of more than {self._message_bytes_max} bytes")
        if piece.last and not self._parts:
            self.held_bytes = 0
            return bytes(piece.data)
        self._parts.append(piece.data)
        if not piece.last:
            if not piece.data:
                raise Refused("an empty piece")  # any number of them would fit the size
            return None
        message = b"".join(self._parts)
        self._parts, self.held_bytes = [], 0
        return message
