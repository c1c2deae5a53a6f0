"""Segment files as earlier versions of the program have written them."""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.sections import Key, packed
from graphdb.search.segments.segment_file import segment_pieces
from graphdb.search.segments.sources import PARTS

__all__ = ["in_format"]


class _Sections:
    """What the writer of a file asks of a segment."""

    def __init__(self, name: str, sections: dict[Key, NDArray[Any]]) -> None:
        self.name, self.sections = name, sections


def in_format(version: int, segment: ArraySegment) -> bytes:
    """The bytes of its file in format 1, with the stored JSON not compressed, or 2, with frequencies and
    positions of 32 bits, as in format 1.
    """
    sections = dict(segment.sections)
    for storage, path, part in segment.sections:
        if (storage, part) == ("text", "tokens"):
            sections |= _wide(segment, path)
            del sections["text", path, "tokens"], sections["text", path, "high_freqs"]
    if version == 1:
        sections = {key: array for key, array in sections.items() if key[2] not in PARTS}
        sections |= packed("", "", "sources", [*segment.sources.raws(0, segment.root_count)])
    data = bytearray()
    old: Any = _Sections(segment.name, sections)
    for offset, piece in segment_pieces(old):
        data.extend(bytes(max(0, offset + len(piece) - len(data))))
        data[offset : offset + len(piece)] = piece
    struct.pack_into("<I", data, 8, version)
    return bytes(data)


def _wide(segment: ArraySegment, path: str) -> dict[Key, NDArray[Any]]:
    text = segment.text(path)
    assert text is not None
    terms = range(len(text.dictionary))
    positions = [np.zeros(0, np.int32), *(text.positions(number)[1] for number in terms)]
    starts = np.cumsum([0, *map(len, positions[1:])])
    return {
        ("text", path, "freqs"): np.concatenate(
            [positions[0], *(text.postings(number)[1] for number in terms)]
        ),
        ("text", path, "position_starts"): starts.astype(np.int64),
        ("text", path, "positions"): np.concatenate(positions),
    }
