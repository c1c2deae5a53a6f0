"""Request ids: the 16 bytes that name a write in all of its log entries (`LogEntry.request_id`).

They have the layout of a UUID (RFC 9562), whose version says how one was made:

    version 4    at random, for a request whose client has given no key
    version 8    from a client's `Idempotency-Key`: the first half from the key, who sends it, the method
                 and the target, the second from the request itself. So the same key with another request
                 can be told, and no client learns what has become of another's.

Entries that were written before there were keys have 16 random bytes; they pass for either.
"""

import hashlib
from collections.abc import Callable, Iterable

__all__ = ["FreshIds", "fresh", "is_keyed", "key_part", "keyed"]

_HALF_BYTES = 8
_RANDOM, _KEYED = 0x40, 0x80  # the version, in the upper half of byte 6
_VARIANT = 0x80  # in the upper two bits of byte 8
_ID_BYTES = 16
_MADE_AT_ONCE = 256
_WITH_VERSION = bytes([byte & 0x0F | _RANDOM for byte in range(256)])
_WITH_VARIANT = bytes([byte & 0x3F | _VARIANT for byte in range(256)])


def fresh(random: bytes) -> bytes:
    """An id of its own, from 16 random bytes."""
    return _as_uuid(random, _RANDOM)


class FreshIds:
    """Gives fresh ids. The random bytes of many are taken at once: asking for them costs more than an id."""

    def __init__(self, random: Callable[[int], bytes]) -> None:
        """random gives so many bytes that nobody can guess."""
        self._random = random
        self._made: list[bytes] = []

    def __call__(self) -> bytes:
        """An id of its own."""
        if not self._made:
            made = bytearray(self._random(_ID_BYTES * _MADE_AT_ONCE))
            made[6::_ID_BYTES] = made[6::_ID_BYTES].translate(_WITH_VERSION)
            made[8::_ID_BYTES] = made[8::_ID_BYTES].translate(_WITH_VARIANT)
            self._made = [bytes(made[start : start + _ID_BYTES]) for start in range(0, len(made), _ID_BYTES)]
        return self._made.pop()


def keyed(
    key: str, method: str, target: bytes, request: Iterable[bytes], sender: tuple[str, ...] = ()
) -> bytes:
    """The id of every request that a client sends to target (path and query) under this key.

    request is what distinguishes this request from others: texts, parameters, types; in order. sender is the
    principal that sent it, where it is known.
    """
    sent_to = _digest((key.encode(), method.encode(), target, *map(str.encode, sender)), b"key")
    return _as_uuid(sent_to + _digest(request, b"request"), _KEYED)


def is_keyed(request_id: bytes) -> bool:
    """Whether it was made of a client's key."""
    return request_id[6] & 0xF0 == _KEYED


def key_part(request_id: bytes) -> bytes:
    """What no two requests share that may both take effect: of a keyed id its first half, else all of it."""
    return request_id[:_HALF_BYTES] if request_id[6] & 0xF0 == _KEYED else request_id


def _digest(pieces: Iterable[bytes], purpose: bytes) -> bytes:
    """8 bytes. Lengths are hashed with the pieces, so that where one ends makes a difference."""
    digest = hashlib.blake2b(digest_size=_HALF_BYTES, person=purpose)
    for piece in pieces:
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return digest.digest()


def _as_uuid(sixteen: bytes, version: int) -> bytes:
    made = bytearray(sixteen)
    made[6] = made[6] & 0x0F | version
    made[8] = made[8] & 0x3F | _VARIANT
    return bytes(made)
