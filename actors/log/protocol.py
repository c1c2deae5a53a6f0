"""The bytes between `LogClient` and `UpdateLog` on their Unix domain socket. It knows nothing of sockets.

Requests are frames (`actors.frames`) with a `Request` code and a number of the client's choice; the answer
carries the number again and a `Status` code. Answers may come in another order than their requests. Integers
are little-endian.

    request            body                                answer's body
    APPEND             expected_index (8), then entries    first log_index (8); 0: expected_index is not next
    READ               from_index (8), max_bytes (4)       entries
    STATUS             none                                first_index (8), last_index (8)
    TRUNCATE_BEFORE    index (8)                           none

Entries are encoded as in the log (`graphdb.log.codec`), those of APPEND with log_index 0. The body of an
answer that is not OK is the error (`actors.error_codec`).
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from graphdb.errors import CorruptionError
from graphdb.log.codec import decode_entry, encode_entry
from graphdb.model import LogEntry

__all__ = [
    "LogStatus",
    "Request",
    "Status",
    "decode_append",
    "decode_entries",
    "decode_index",
    "decode_read",
    "decode_status",
    "encode_append",
    "encode_entries",
    "encode_index",
    "encode_read",
    "encode_status",
]

_INDEX = struct.Struct("<Q")
_READ = struct.Struct("<QI")
_STATUS = struct.Struct("<QQ")


class Request(IntEnum):
    """What a client asks for: the code of its frame."""

    APPEND = 1
    READ = 2
    STATUS = 3
    TRUNCATE_BEFORE = 4


class Status(IntEnum):
    """How a request has ended: the code of the answer's frame."""

    OK = 0
    ERROR = 1


@dataclass(frozen=True, slots=True)
class LogStatus:
    """What the log holds: entries first_index to last_index; none where last_index is first_index - 1."""

    first_index: int
    last_index: int


def encode_entries(entries: Iterable[LogEntry]) -> bytes:
    return b"".join(map(encode_entry, entries))


def decode_entries(body: bytes, offset: int = 0) -> list[LogEntry]:
    """The entries from offset to the end. Raises CorruptionError."""
    entries = []
    while offset < len(body):
        record = decode_entry(body, offset)
        if record is None:
            raise CorruptionError("an entry was damaged on its way", "log socket")
        entries.append(record.entry)
        offset = record.end
    return entries


def encode_append(entries: Iterable[LogEntry], expected_index: int) -> bytes:
    return _INDEX.pack(expected_index) + encode_entries(entries)


def decode_append(body: bytes) -> tuple[list[LogEntry], int]:
    return decode_entries(body, _INDEX.size), decode_index(body)


def encode_index(index: int) -> bytes:
    return _INDEX.pack(index)


def decode_index(body: bytes) -> int:
    index: int = _INDEX.unpack_from(body)[0]
    return index


def encode_read(from_index: int, max_bytes: int) -> bytes:
    return _READ.pack(from_index, max_bytes)


def decode_read(body: bytes) -> tuple[int, int]:
    from_index, max_bytes = _READ.unpack(body)
    return from_index, max_bytes


def encode_status(status: LogStatus) -> bytes:
    return _STATUS.pack(status.first_index, status.last_index)


def decode_status(body: bytes) -> LogStatus:
    return LogStatus(*_STATUS.unpack(body))
