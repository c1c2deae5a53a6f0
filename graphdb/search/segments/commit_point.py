"""The commit point: what an index consists of, in one small file that is replaced as a whole."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from graphdb.search.segments.buffer import TombstoneRow
from graphdb.search.segments.checked_json import decode_checked, encode_checked

__all__ = ["CommitPoint", "CommittedSegment"]

_MARK = "graphdb-search-commit-1"  # the last number is the format's version


@dataclass(frozen=True, slots=True)
class CommittedSegment:
    """A segment file and, unless all its documents are live, the file that says which are."""

    name: str
    file: str
    live_file: str | None


@dataclass(frozen=True, slots=True)
class CommitPoint:
    """All that is needed to open the index and to go on from the log."""

    generation: int  # counts commits
    incarnation: int  # counts openings; names of new segments begin with it
    log_index: int  # every entry of the log up to here is in
    next_seq_no: int
    next_segment: int
    mapping: Mapping[str, Any]
    settings: Mapping[str, Any]
    segments: tuple[CommittedSegment, ...]
    tombstones: tuple[TombstoneRow, ...]

    def encode(self) -> bytes:
        """A line with the format and a CRC-32, then JSON."""
        return encode_checked(_MARK, asdict(self))

    @classmethod
    def decode(cls, data: bytes, where: str) -> "CommitPoint":
        """Raises CorruptionError."""
        values = decode_checked(_MARK, data, "commit point", where)
        values["segments"] = tuple(CommittedSegment(**segment) for segment in values["segments"])
        values["tombstones"] = tuple(tuple(row) for row in values["tombstones"])
        return cls(**values)

    def files(self) -> set[str]:
        """The names of the files that it stands on."""
        names = {segment.file for segment in self.segments}
        return names | {segment.live_file for segment in self.segments if segment.live_file}
