"""`HistoryFiles`: files of this node's history, for nodes that have begun with a snapshot; how it is asked.

    operation      body                               answer
    history_file   the last index wanted (8),         id (16), first and last index (8, 8), bytes in all (8),
                   id of a file (16), offset (8)      index of the last purge (8), bytes

A file with id 0 is one to be found; an answer with id 0 has none: the history here begins after that index.
A file is compressed (`graphdb.history.archive`) and ends at the index that is wanted. Integers are
little-endian.
"""

import asyncio
import os
import secrets
import struct
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from graphdb.errors import CorruptionError, LogUnavailable
from graphdb.history.archive import (
    COMPRESSED,
    ArchiveName,
    CompressedFile,
    RawFile,
    compress,
    parse_archive_name,
)
from graphdb.history.past_log import PastLog, Span
from graphdb.public_text import fault_text

__all__ = ["HISTORY_FILE", "NO_FILE", "FilePart", "HistoryFiles", "decode_part", "encode_request"]

HISTORY_FILE = "history_file"  # the operation of forwarded requests
NO_FILE = bytes(16)
_REQUEST = struct.Struct("<Q16sQ")
_PART = struct.Struct("<16sQQQQ")
_PART_BYTES = 1 << 20
_OPEN_MAX = 4  # files that are being read
_IDLE_S = 60.0  # one that nobody reads further for so long is closed
_ATTEMPTS = 5  # to find a file that compaction, or the end of its compression, puts elsewhere


@dataclass(frozen=True, slots=True)
class FilePart:
    """Bytes of a file from an offset on. purged_index: nothing is in it of this purge and those before."""

    file_id: bytes
    first_index: int
    last_index: int
    size: int
    purged_index: int
    data: bytes = field(repr=False)


def encode_request(last_index: int, file_id: bytes, offset: int) -> bytes:
    return _REQUEST.pack(last_index, file_id, offset)


def encode_part(part: FilePart) -> bytes:
    head = part.file_id, part.first_index, part.last_index, part.size, part.purged_index
    return _PART.pack(*head) + part.data


def decode_part(body: bytes) -> FilePart:
    """Raises LogUnavailable for what is none."""
    try:
        file_id, first_index, last_index, size, purged_index = _PART.unpack_from(body)
    except struct.error as error:
        raise LogUnavailable("no part of a file of the history") from error
    return FilePart(file_id, first_index, last_index, size, purged_index, body[_PART.size :])


_NONE = encode_part(FilePart(NO_FILE, 0, 0, 0, 0, b""))


@dataclass(slots=True)
class _Open:
    """A file that is being read. It stays as it is, whatever becomes of its name."""

    descriptor: int
    name: ArchiveName
    size: int
    purged_index: int
    used_at: float
    readers: int = 0
    is_gone: bool = False  # and to be closed by the last reader


class HistoryFiles:
    """For one event loop."""

    def __init__(
        self, data_dir: Path, applied_index: Callable[[], int], purged_index: Callable[[], int]
    ) -> None:
        """purged_index: of the last purge of which the files of the history have nothing. Both raise
        LogUnavailable while the store is closed.
        """
        self._data_dir, self._applied_index, self._purged_index = data_dir, applied_index, purged_index
        self._open: dict[bytes, _Open] = {}
        self._opening = asyncio.Lock()

    async def answer(self, body: bytes) -> bytes:
        """Raises UnavailableError; then the one who asks begins the file anew."""
        try:
            last_index, file_id, offset = _REQUEST.unpack(body)
        except struct.error as error:
            raise LogUnavailable("no request for a file of the history") from error
        if file_id == NO_FILE:
            found = await self._find(last_index)
            if found is None:
                return _NONE
            file_id = found
        file = self._open.get(file_id)
        if file is None:
            raise LogUnavailable("that file of the history is not being read any more")
        data = await self._read(file, offset)
        if offset + len(data) >= file.size:
            self._close(file_id)
        return encode_part(FilePart(file_id, *file.name[:2], file.size, file.purged_index, data))

    def close(self) -> None:
        """Let go of all files."""
        for file_id in [*self._open]:
            self._close(file_id)

    def _close(self, file_id: bytes) -> None:
        file = self._open.pop(file_id, None)
        if file is not None:
            file.is_gone = True
            _close_unread(file)

    async def _read(self, file: _Open, offset: int) -> bytes:
        file.used_at = time.monotonic()
        file.readers += 1
        try:
            return await asyncio.to_thread(os.pread, file.descriptor, _PART_BYTES, offset)
        except (OSError, OverflowError) as error:
            raise LogUnavailable(f"the history cannot be read: {fault_text(error)}") from error
        finally:
            file.readers -= 1
            _close_unread(file)

    async def _find(self, last_index: int) -> bytes | None:
        """The id of the file whose last entry is that one."""
        async with self._opening:
            purged_index = self._purged_index()  # before: a purge may be done while the file is looked for
            try:
                found = await asyncio.to_thread(self._file, last_index, self._applied_index())
            except (OSError, CorruptionError) as error:
                raise LogUnavailable(f"the history cannot be read: {fault_text(error)}") from error
            if found is None:
                return None
            now = time.monotonic()
            idle = [file_id for file_id, file in self._open.items() if now > file.used_at + _IDLE_S]
            for old in [*idle, *[*self._open][: max(0, len(self._open) - len(idle) - _OPEN_MAX + 1)]]:
                self._close(old)
            descriptor, name = found
            file_id = secrets.token_bytes(len(NO_FILE))
            size = os.fstat(descriptor).st_size
            self._open[file_id] = _Open(descriptor, name, size, purged_index, now)
            return file_id

    def _file(self, last_index: int, applied_index: int) -> tuple[int, ArchiveName] | None:
        """On a thread."""
        if last_index > applied_index:
            raise LogUnavailable("this node has not come so far")
        for _ in range(_ATTEMPTS):
            with closing(PastLog(self._data_dir)) as past:
                spans = past.spans(applied_index)
            span = next((one for one in spans if one.first_index <= last_index <= one.last_index), None)
            if span is None:
                return None
            try:
                return self._ending_at(span, last_index)
            except FileNotFoundError:
                continue
        raise LogUnavailable("the history is being put elsewhere")

    def _ending_at(self, span: Span, last_index: int) -> tuple[int, ArchiveName]:
        """A file of the history as it is, or what is wanted of it, or of a segment, compressed on the way."""
        name = parse_archive_name(span.path.name)
        if not span.is_raw and name is not None and name.last_index == last_index:
            return os.open(span.path, os.O_RDONLY | os.O_CLOEXEC), name
        name = ArchiveName(span.first_index, last_index, COMPRESSED)
        place = self._data_dir / "scratch" / f"history-{secrets.token_hex(8)}"
        place.parent.mkdir(exist_ok=True)
        try:
            source = RawFile(span.path) if span.is_raw else CompressedFile(span.path)
            with closing(source):
                compress(source, last_index, place, lambda: None)
            return os.open(place, os.O_RDONLY | os.O_CLOEXEC), name
        finally:
            place.unlink(missing_ok=True)


def _close_unread(file: _Open) -> None:
    """A descriptor that is closed while a thread reads may be that of another file by then."""
    if file.is_gone and not file.readers:
        os.close(file.descriptor)
