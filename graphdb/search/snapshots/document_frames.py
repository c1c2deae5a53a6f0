"""The documents of an index in a file of a snapshot.

    magic | frame, frame, ...
    frame     compressed bytes u32 | bytes u32 | CRC-32 of these eight bytes and of what follows u32 | zstd
    inside    for each document: bytes of _id u32 | bytes of routing i32, -1: none | version u64 |
              bytes of the JSON u32 | _id | routing | JSON

All numbers are little-endian. A frame has the documents of about a megabyte. What a file has to have in all,
and its SHA-256, is in the snapshot's manifest.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from backports import zstd

from graphdb.errors import CorruptionError

__all__ = [
    "FRAME_BYTES",
    "MAGIC",
    "SnapshotDocument",
    "check_file",
    "encode_frame",
    "read_file",
    "read_frames",
]

MAGIC = b"GDBSNAP1"
FRAME_BYTES = 1 << 20
_FRAME_BYTES_MAX = 256 << 20  # a document of a request's largest size, and what stands beside it
_HEAD = struct.Struct("<III")
_ROW = struct.Struct("<IiQI")
_READ_BYTES = 1 << 20
_LEVEL = 3
_STORED_LEVEL = -1  # of a repository without `compress`: hardly any work


@dataclass(frozen=True, slots=True)
class SnapshotDocument:
    """A document as it was: its id, version, routing and the bytes of its JSON."""

    doc_id: str
    version: int
    routing: str | None
    source: bytes


def encode_frame(documents: Sequence[SnapshotDocument], compress: bool = True) -> bytes:
    """One frame."""
    parts: list[bytes] = []
    for one in documents:
        doc_id = one.doc_id.encode("utf-8", "surrogatepass")
        routing = None if one.routing is None else one.routing.encode("utf-8", "surrogatepass")
        length = -1 if routing is None else len(routing)
        parts += (_ROW.pack(len(doc_id), length, one.version, len(one.source)), doc_id, routing or b"")
        parts.append(one.source)
    raw = b"".join(parts)
    packed = zstd.compress(raw, _LEVEL if compress else _STORED_LEVEL)
    sizes = struct.pack("<II", len(packed), len(raw))
    return sizes + struct.pack("<I", zlib.crc32(packed, zlib.crc32(sizes))) + packed


def read_file(path: str) -> int:
    """A descriptor to read from; the caller closes it. A link is not followed. Raises OSError."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def check_file(path: str, size: int, sha256: str) -> None:
    """Read it all. Raises CorruptionError unless it is what was written, OSError."""
    digest, found = hashlib.sha256(), 0
    descriptor = read_file(path)
    try:
        while data := os.read(descriptor, _READ_BYTES):
            digest.update(data)
            found += len(data)
            if found > size:
                break
    finally:
        os.close(descriptor)
    if found != size or digest.hexdigest() != sha256:
        raise CorruptionError("its checksum does not fit", path)


def read_frames(path: str) -> Generator[list[SnapshotDocument], None, None]:
    """The documents, frame by frame. Raises CorruptionError, OSError."""
    descriptor = read_file(path)
    try:
        if os.read(descriptor, len(MAGIC)) != MAGIC:
            raise CorruptionError("not the documents of a snapshot", path)
        while head := os.read(descriptor, _HEAD.size):
            yield _frame(descriptor, head, path)
    finally:
        os.close(descriptor)


def _frame(descriptor: int, head: bytes, path: str) -> list[SnapshotDocument]:
    if len(head) != _HEAD.size:
        raise CorruptionError("it ends too early", path)
    packed_size, size, checksum = _HEAD.unpack(head)
    if packed_size > _FRAME_BYTES_MAX or size > _FRAME_BYTES_MAX:
        raise CorruptionError("a frame says that it is too large", path)
    parts, left = list[bytes](), packed_size
    while left and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    packed = b"".join(parts)
    if left or zlib.crc32(packed, zlib.crc32(head[:8])) != checksum:
        raise CorruptionError("the checksum of a frame does not fit", path)
    try:
        raw = zstd.ZstdDecompressor().decompress(packed, max_length=size + 1)
    except zstd.ZstdError as error:
        raise CorruptionError(f"a frame cannot be expanded: {error}", path) from error
    if len(raw) != size:
        raise CorruptionError("a frame is not as long as it says", path)
    return list(_documents(raw, path))


def _documents(raw: bytes, path: str) -> Iterator[SnapshotDocument]:
    at = 0
    while at < len(raw):
        try:
            id_size, routing_size, version, source_size = _ROW.unpack_from(raw, at)
            at += _ROW.size
            doc_id = raw[at : at + id_size].decode("utf-8", "surrogatepass")
            at += id_size
            routing = None
            if routing_size >= 0:
                routing = raw[at : at + routing_size].decode("utf-8", "surrogatepass")
                at += routing_size
            at += source_size
        except (struct.error, UnicodeDecodeError) as error:
            raise CorruptionError("a document cannot be read", path) from error
        if at > len(raw):
            raise CorruptionError("a document is cut off", path)
        yield SnapshotDocument(doc_id, version, routing, raw[at - source_size : at])
