"""A state of ours as bytes for a file: a mark of 4 bytes, the CRC-32 (zlib) of what follows (4 bytes,
little-endian), then JSON. And the commands that change it, as they stand in the log.
"""

import zlib
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import orjson

from graphdb.errors import CorruptionError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["ExpectedJson", "from_checked_json", "read_command", "to_checked_json"]

_MARK_BYTES = 4
_CRC_END = _MARK_BYTES + 4

T = TypeVar("T")


class ExpectedJson(Generic[T]):
    """What JSON is to be. Its validator is made, and pydantic imported, when something is read: together
    0.1 s, and most processes never read any.
    """

    def __init__(self, expected: Any, tag: str | None = None) -> None:
        """expected: a type of dataclasses, or a union of them, whose member `tag` tells which."""
        self._expected, self._tag = expected, tag

    @cached_property
    def _adapter(self) -> "TypeAdapter[T]":
        from pydantic import Field, TypeAdapter

        expected = self._expected
        if self._tag is not None:
            expected = Annotated[expected, Field(discriminator=self._tag)]
        return TypeAdapter(expected)

    def read(self, data: bytes) -> T:
        """Raises ValueError, which says what is wrong."""
        return self._adapter.validate_json(data)


def to_checked_json(mark: bytes, value: object) -> bytes:
    """value is of dataclasses, and of what JSON has."""
    assert len(mark) == _MARK_BYTES
    body = orjson.dumps(value)
    return b"".join((mark, zlib.crc32(body).to_bytes(4, "little"), body))


def from_checked_json(mark: bytes, data: bytes, expected: ExpectedJson[T], what: str, place: str) -> T:
    """What to_checked_json has written. Raises CorruptionError, which names what is damaged and its place."""
    body = data[_CRC_END:]
    if data[:_MARK_BYTES] != mark or zlib.crc32(body) != int.from_bytes(data[_MARK_BYTES:_CRC_END], "little"):
        raise CorruptionError(f"{what} is damaged", place)
    try:
        return expected.read(body)
    except ValueError as error:
        raise CorruptionError(f"{what} cannot be read: {error}", place) from error


def read_command(payload: bytes, commands: ExpectedJson[T], to: str) -> T:
    """A command in the payload of a log entry. to: what it changes, for an error.

    Raises CorruptionError: the checksum of the entry has held, so it was written wrong.
    """
    try:
        return commands.read(payload)
    except ValueError as error:
        what = f"a command to {to} that cannot be read: {error}"
        raise CorruptionError(what, "update log entry") from error
