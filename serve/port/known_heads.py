"""`KnownHeads`: heads of requests that a port has parsed before, byte for byte.

A client sends the same head with each of its requests, but for the length of the body, or with another
target each time: then all but the first line is the same. The parser and its callbacks cost such a request a
fifth of its time.
"""

import re
from dataclasses import dataclass

from serve.port.application import Answering, Headers

__all__ = ["KnownFields", "KnownHead", "KnownHeads", "read_line"]

_HEADS_MAX = 1_024
_HEAD_BYTES_MAX = 1_024
# with a path that needs no second look
_LINE = re.compile(rb"(POST|PUT) (/[A-Za-z0-9_.~/-]*+) HTTP/1\.1\r\n")


def read_line(data: bytes) -> tuple[bytes, bytes, int] | None:
    """The method and the target in the first line of a request, and where its fields begin; None of a line
    that is for the parser.
    """
    found = _LINE.match(data)
    return None if found is None else (found[1], found[2], found.end())


@dataclass(frozen=True, slots=True)
class KnownHead:
    """What the parser has made of a head."""

    answering: Answering
    body_bytes: int


@dataclass(frozen=True, slots=True)
class KnownFields:
    """What the parser has made of a head without its first line, which is one for `read_line`."""

    headers: Headers
    body_bytes: int


class KnownHeads:
    """Owned by a port, whose limits hold for each of them."""

    def __init__(self) -> None:
        self._heads: dict[bytes, KnownHead] = {}
        self._fields: dict[bytes, KnownFields] = {}
        self.find, self.find_fields = self._heads.get, self._fields.get

    def add(self, head: bytes, known: KnownHead) -> None:
        """Remember a head, without the empty line at its end."""
        if len(head) <= _HEAD_BYTES_MAX:
            if len(self._heads) >= _HEADS_MAX:
                self._heads.clear()
            self._heads[head] = known

    def add_fields(self, fields: bytes, known: KnownFields) -> None:
        """Remember what follows the first line, without the empty line at its end."""
        if len(fields) <= _HEAD_BYTES_MAX:
            if len(self._fields) >= _HEADS_MAX:
                self._fields.clear()
            self._fields[fields] = known
