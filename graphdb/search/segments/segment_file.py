"""A segment in one file, that can be mapped into memory as it is.

    magic 8 bytes | format version u32 | length of the table u32 | CRC-32 of the table u32
    table: JSON, {"name", "file_bytes", "sections": [...]}, of each section
        [storage, path, part, dtype, shape, offset, length, CRC-32]
    the sections, each at a multiple of 64 bytes

A file of format 1 has uncompressed sources, one of 1 or 2 frequencies and positions of 32 bits; they are
read as they are, and a merge writes the format of now.
All numbers are little-endian, those in the arrays too. The table is checked on opening, and that the file has
its full length; the sections only on demand, for that means to read all of them.
"""

import json
import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.errors import CorruptionError
from graphdb.log.file_system import File, FileSystem, RealFileSystem
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.sections import Key, freeze

__all__ = ["map_file", "map_pages", "read_segment", "segment_pieces", "verify_segment", "write_segment"]

MAGIC = b"GDBSEGM\n"
VERSION = 3
_HEADER = struct.Struct("<8sIII")
_ALIGNMENT = 64
_PIECE_BYTES = 16 << 20


def write_segment(file: File, segment: ArraySegment) -> int:
    """Write all of it into an empty file and sync; returns the file's bytes. Raises OSError."""
    for offset, piece in segment_pieces(segment):
        file.write(piece, offset)
    file.sync()
    return file.size()


def segment_pieces(segment: ArraySegment) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of what the file of a segment has, at most 16 MB each but for the table."""
    arrays = [(key, _little_endian(array)) for key, array in segment.sections.items()]
    rows: list[list[Any]] = [
        [*key, array.dtype.str, array.shape, 0, array.nbytes, zlib.crc32(memoryview(_raw(array)))]
        for key, array in arrays
    ]
    table = _placed(segment.name, rows)
    yield 0, _HEADER.pack(MAGIC, VERSION, len(table), zlib.crc32(table)) + table
    for (_, array), row in zip(arrays, rows, strict=True):
        for start, piece in _pieces(array):
            yield row[5] + start, piece


def _placed(name: str, rows: list[list[Any]]) -> bytes:
    """Give each section its offset; the table, which has to be as long as it was thought to be."""
    room = len(json.dumps(rows)) + 24 * len(rows) + len(json.dumps(name)) + 128
    offset = end = _HEADER.size + room
    for row in rows:
        row[5] = offset = -(-offset // _ALIGNMENT) * _ALIGNMENT
        offset += row[6]
        end = offset if row[6] else end
    return json.dumps({"name": name, "file_bytes": end, "sections": rows}).encode().ljust(room)


def _pieces(array: NDArray[Any]) -> Iterator[tuple[int, bytes]]:
    raw = _raw(array)
    for start in range(0, len(raw), _PIECE_BYTES):
        yield start, raw[start : start + _PIECE_BYTES].tobytes()


def _raw(array: NDArray[Any]) -> Any:
    return array.reshape(-1).view(np.uint8)


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def map_file(file_system: FileSystem, path: str) -> memoryview:
    """The bytes of a file: of a real one its pages, of one that a test keeps in memory a copy."""
    if not isinstance(file_system, RealFileSystem):
        file = file_system.open(path)
        try:
            return memoryview(file.read(file.size(), 0))
        finally:
            file.close()
    return map_pages(path)[0]


def map_pages(path: str) -> tuple[memoryview, int]:
    """The pages of a real file, which stay there when it is removed, and its inode. Raises OSError."""
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if found.st_size else b""
        return memoryview(pages), found.st_ino


def read_segment(data: memoryview, where: str) -> ArraySegment:
    """The segment in a file's bytes, which stay where they are. Raises CorruptionError."""
    table = _table(data, where)
    sections: dict[Key, NDArray[Any]] = {}
    for storage, path, part, kind, shape, offset, length, _ in table["sections"]:
        array = np.frombuffer(data[offset : offset + length], np.dtype(kind))
        sections[storage, path, part] = array.reshape(shape)
    return ArraySegment(table["name"], freeze(sections))


def verify_segment(data: memoryview, where: str) -> None:
    """Read everything and compare the checksums. Raises CorruptionError."""
    for storage, path, part, _, _, offset, length, checksum in _table(data, where)["sections"]:
        if zlib.crc32(data[offset : offset + length]) != checksum:
            name = "/".join(filter(None, (storage, path, part)))
            raise CorruptionError(f"the checksum of section {name} does not fit", where)


def _table(data: memoryview, where: str) -> dict[str, Any]:
    if len(data) < _HEADER.size:
        raise CorruptionError("too short for a segment", where)
    magic, version, length, checksum = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise CorruptionError("this is no segment", where)
    if not 1 <= version <= VERSION:
        raise CorruptionError(f"a segment of format {version}, not of 1 to {VERSION}", where)
    raw = data[_HEADER.size : _HEADER.size + length]
    if len(raw) < length or zlib.crc32(raw) != checksum:
        raise CorruptionError("the checksum of the table of sections does not fit", where)
    table: dict[str, Any] = json.loads(bytes(raw))
    if len(data) != table["file_bytes"]:
        raise CorruptionError(f"{len(data)} bytes instead of {table['file_bytes']}", where)
    return table
