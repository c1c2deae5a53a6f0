"""The bytes between `LogClient` and `UpdateLog` on their Unix domain socket. It knows nothing of sockets.

Requests are frames (`actors.frames`) with a `Request` code and a number of the client's choice; the answer
carries the number again and a `Status` code. Answers may come in another order than their requests. Integers
are little-endian.

    request            body                                answer's body
    APPEND             expected_index (8), then entries    first log_index (8); 0: not admitted (`LogEnd`)
    READ               from_index (8), max_bytes (4)       entries
    STATUS             none                                first_index, last_index, held_bytes (8 each)
    TRUNCATE_BEFORE    index (8), name of the view         none
    WATCH_INDEX        known_index (8), timeout in ms (4)  last index that can be read (8); once there is more

Entries are encoded as in the log (`graphdb.log.codec`), those of APPEND with log_index 0. The body of an
answer that is not OK is the error (`actors.error_codec`).
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
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
    "decode_truncation",
    "decode_watch_index",
    "encode_append",
    "encode_entries",
    "encode_index",
    "encode_read",
    "encode_status",
    "encode_truncation",
    "encode_watch_index",
]

_INDEX = struct.Struct("<Q")
_READ = struct.Struct("<QI")
_STATUS = struct.Struct("<QQQ")
_WATCH_INDEX = struct.Struct("<QI")


class Request(IntEnum):
    """What a client asks for: the code of its frame."""

    APPEND = 1
    READ = 2
    STATUS = 3
    TRUNCATE_BEFORE = 4
    WATCH_INDEX = 5


class Status(IntEnum):
    """How a request has ended: the code of the answer's frame."""

    OK = 0
    ERROR = 1


@dataclass(frozen=True, slots=True)
class LogStatus:
    """What the log holds: entries first_index to last_index; none where last_index is first_index - 1."""

    first_index: int
    last_index: int
    held_bytes: int = field(default=0, compare=False)  # on disk


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
    return _STATUS.pack(status.first_index, status.last_index, status.held_bytes)


def decode_status(body: bytes) -> LogStatus:
    return LogStatus(*_STATUS.unpack(body))


def encode_truncation(index: int, view: str) -> bytes:
    return _INDEX.pack(index) + view.encode()


def decode_truncation(body: bytes) -> tuple[int, str]:
    return decode_index(body), body[_INDEX.size :].decode()


def encode_watch_index(known_index: int, timeout_s: float) -> bytes:
    return _WATCH_INDEX.pack(known_index, round(timeout_s * 1000))


def decode_watch_index(body: bytes) -> tuple[int, float]:
    known_index, milliseconds = _WATCH_INDEX.unpack(body)
    return known_index, milliseconds / 1000
