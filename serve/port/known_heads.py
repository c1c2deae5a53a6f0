"""`KnownHeads`: heads of requests that a port has parsed before, byte for byte.

A client sends the same head with each of its requests, but for the length of the body. The parser and its
callbacks cost such a request a fifth of its time.
"""

from dataclasses import dataclass

from serve.port.application import Answering

__all__ = ["KnownHead", "KnownHeads"]

_HEADS_MAX = 1_024
_HEAD_BYTES_MAX = 1_024


@dataclass(frozen=True, slots=True)
class KnownHead:
    """What the parser has made of a head."""

    answering: Answering
    body_bytes: int


class KnownHeads:
    """Owned by a port, whose limits hold for each of them."""

    def __init__(self) -> None:
        self._heads: dict[bytes, KnownHead] = {}
        self.find = self._heads.get

    def add(self, head: bytes, known: KnownHead) -> None:
        """Remember a head, without the empty line at its end."""
        if len(head) <= _HEAD_BYTES_MAX:
            if len(self._heads) >= _HEADS_MAX:
                self._heads.clear()
            self._heads[head] = known
