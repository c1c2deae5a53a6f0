"""What a peer must never forget, beside its entries: one small file, replaced as a whole.

    magic "GDBRAFT" 0A (8), format version (4), CRC-32 (zlib) of all that follows (4),
    node_id (4), incarnation (8), cluster_id (8), term (8), vote: node_id (4) and incarnation (8), zeros for
    none, base: log_index (8), raft_term (8), members; count (2), then as often: log_index (8), members

Integers are little-endian. The file is replaced by a new one under its name, so a crash leaves the old
content or the new; a checksum that does not hold is damage.
"""

import os
import struct
import zlib
from dataclasses import dataclass, field

from graphdb.errors import CorruptionError
from graphdb.log.file_system import FileSystem, replace_file, storage_error
from graphdb.raft.membership import Members, PeerId, encode_members, take_members
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.wire import Malformed, WireReader

__all__ = ["STATE_FILE", "DurableState", "read_state", "write_state"]

STATE_FILE = "raft.state"
_MAGIC = b"GDBRAFT\n"
_VERSION = 1
_HEADER = struct.Struct("<8sII")
_FIXED = struct.Struct("<IQQQIQQQ")
_COUNT = struct.Struct("<H")
_INDEX = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class DurableState:
    """The content of the file.

    vote: whom this peer has voted for in term. base: the snapshot that the log follows, so the entries up to
    it may be gone. changes: the members as of each MEMBERS entry after base, ascending; some may be of
    entries that were never written or were taken back, which the log shows.
    """

    peer: PeerId
    cluster_id: int = 0  # 0: the peer belongs to no cluster yet
    term: int = 0
    vote: PeerId | None = None
    base: SnapshotMark = field(default_factory=lambda: SnapshotMark(0, 0, Members()))
    changes: tuple[tuple[int, Members], ...] = ()


def read_state(file_system: FileSystem, directory: str) -> DurableState | None:
    """The state in a directory; None where the file has never been. Raises CorruptionError, OSError."""
    path = os.path.join(directory, STATE_FILE)
    try:
        file = file_system.open(path)
    except FileNotFoundError:
        return None
    try:
        data = file.read(file.size(), 0)
    finally:
        file.close()
    try:
        return _decode(data)
    except Malformed as error:
        raise CorruptionError(str(error), path) from error


def write_state(file_system: FileSystem, directory: str, state: DurableState) -> None:
    """Replace the state; it is on disk when this returns.

    Raises StorageFull, LogUnavailable: then a crash may find the old content or the new.
    """
    body = _encode(state)
    data = _HEADER.pack(_MAGIC, _VERSION, zlib.crc32(body)) + body
    try:
        replace_file(file_system, directory, STATE_FILE, data)
    except OSError as error:
        raise storage_error(error, "writing the term and the vote") from error


def _encode(state: DurableState) -> bytes:
    vote = state.vote or (0, 0)
    base = state.base
    fixed = _FIXED.pack(*state.peer, state.cluster_id, state.term, *vote, base.log_index, base.raft_term)
    parts = [fixed, encode_members(base.members), _COUNT.pack(len(state.changes))]
    for index, members in state.changes:
        parts += (_INDEX.pack(index), encode_members(members))
    return b"".join(parts)


def _decode(data: bytes) -> DurableState:
    if len(data) < _HEADER.size:
        raise Malformed("cut short")
    magic, version, crc = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise Malformed("not a state file of this version")
    body = data[_HEADER.size :]
    if zlib.crc32(body) != crc:
        raise Malformed("the checksum does not hold")
    reader = WireReader(body)
    node_id, incarnation, cluster_id, term, vote_id, vote_incarnation, index, raft_term = reader.unpack(
        _FIXED
    )
    base = SnapshotMark(index, raft_term, take_members(reader))
    (count,) = reader.unpack(_COUNT)
    changes = tuple((reader.unpack(_INDEX)[0], take_members(reader)) for _ in range(count))
    reader.finish()
    vote = PeerId(vote_id, vote_incarnation) if vote_incarnation else None
    return DurableState(PeerId(node_id, incarnation), cluster_id, term, vote, base, changes)
