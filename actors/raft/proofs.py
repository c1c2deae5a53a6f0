"""How two nodes prove to each other that they know the cluster's key, and mark what they say with it.

It knows nothing of gRPC. The key itself is never sent: each side sends a nonce, and a MAC over both nonces
and who speaks to whom. A session has a key of its own, so nothing of one session counts in another.
"""

import hmac
import secrets
import struct
from dataclasses import dataclass, field

__all__ = [
    "NONCE_BYTES",
    "PROTOCOL_VERSION",
    "Handshake",
    "PieceMarker",
    "Refused",
    "fresh_nonce",
    "is_equal",
]

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
