"""The catalogue in one small file, which is replaced as a whole: what there is, and as of which log index.

A line with the format and a CRC-32, then JSON. The documents and the mapping of an index are in its own
directory, in the commit whose number stands here.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from graphdb.log.file_system import FileSystem, replace_file
from graphdb.search.segments.checked_json import decode_checked, encode_checked
from graphdb.search.segments.segment_file import map_file

__all__ = ["CatalogFile", "IndexRow", "read_catalog_file", "write_catalog_file"]

_NAME = "catalog"
_MARK = "graphdb-search-catalog-1"  # the last number is the format's version


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One index; generation is of its commit."""

    name: str
    uuid: str
    created_ms: int
    settings: Mapping[str, Any]
    aliases: Mapping[str, Any]
    mapping_version: int
    cursor: int
    generation: int


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """log_index: every entry up to there is in. opening counts the times that a process has opened it.

    nodes: name and address by node id, as text.
    """

    log_index: int
    opening: int
    indexes: Sequence[IndexRow] = ()
    templates: Mapping[str, Any] = field(default_factory=dict)
    components: Mapping[str, Any] = field(default_factory=dict)
    cluster_uuid: str | None = None
    nodes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    cluster_settings: Mapping[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        return encode_checked(_MARK, asdict(self))

    @classmethod
    def decode(cls, data: bytes, where: str) -> "CatalogFile":
        """Raises CorruptionError."""
        values = decode_checked(_MARK, data, "catalogue of search indexes", where)
        values["indexes"] = tuple(IndexRow(**row) for row in values["indexes"])
        return cls(**values)


def read_catalog_file(file_system: FileSystem, directory: str) -> CatalogFile | None:
    """None where there never was one. Raises CorruptionError, OSError."""
    path = os.path.join(directory, _NAME)
    try:
        data = bytes(map_file(file_system, path))
    except FileNotFoundError:
        return None
    return CatalogFile.decode(data, path)


def write_catalog_file(file_system: FileSystem, directory: str, content: CatalogFile) -> None:
    """Durably. Raises OSError; then the next reader may find the one before, or this one."""
    replace_file(file_system, directory, _NAME, content.encode())
