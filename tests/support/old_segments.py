"""Segment files as earlier versions of the program have written them."""

import struct
from typing import Any

from numpy.typing import NDArray

from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.sections import Key, packed
from graphdb.search.segments.segment_file import segment_pieces
from graphdb.search.segments.sources import PARTS

__all__ = ["in_format_1"]


class _Sections:
    """What the writer of a file asks of a segment."""

    def __init__(self, name: str, sections: dict[Key, NDArray[Any]]) -> None:
        self.name, self.sections = name, sections


def in_format_1(segment: ArraySegment) -> bytes:
    """The bytes of its file in format 1: the stored JSON is not compressed."""
    sections = {key: array for key, array in segment.sections.items() if key[2] not in PARTS}
    sections |= packed("", "", "sources", [*segment.sources.raws(0, segment.root_count)])
    data = bytearray()
    old: Any = _Sections(segment.name, sections)
    for offset, piece in segment_pieces(old):
        data.extend(bytes(max(0, offset + len(piece) - len(data))))
        data[offset : offset + len(piece)] = piece
    struct.pack_into("<I", data, 8, 1)
    return bytes(data)
