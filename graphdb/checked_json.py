"""A state of ours as bytes for a file: a mark of 4 bytes, the CRC-32 (zlib) of what follows (4 bytes,
little-endian), then JSON. And the commands that change it, as they stand in the log.
"""

import zlib
from functools import cached_property
from typing import Any, Generic, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from graphdb.errors import CorruptionError

__all__ = ["ExpectedJson", "from_checked_json", "read_command", "to_checked_json"]

_MARK_BYTES = 4
_CRC_END = _MARK_BYTES + 4

T = TypeVar("T")


class ExpectedJson(Generic[T]):
    """What JSON is to be: a type of dataclasses. Its validator is made when it is first needed, which takes
    milliseconds, and most processes never need it.
    """

    def __init__(self, expected: Any) -> None:
        self._expected = expected

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._expected)

    def read(self, data: bytes) -> T:
        """Raises pydantic's ValidationError."""
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
    except ValidationError as error:
        raise CorruptionError(f"{what} cannot be read: {error}", place) from error


def read_command(payload: bytes, commands: ExpectedJson[T], to: str) -> T:
    """A command in the payload of a log entry. to: what it changes, for an error.

    Raises CorruptionError: the checksum of the entry has held, so it was written wrong.
    """
    try:
        return commands.read(payload)
    except ValidationError as error:
        what = f"a command to {to} that cannot be read: {error}"
        raise CorruptionError(what, "update log entry") from error
