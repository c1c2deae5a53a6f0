"""The stored JSON of a segment's roots, compressed in blocks of neighbours.

    sources_blob     zstd frames, one after another
    sources_blocks   where each frame begins, and where the last one ends
    sources_roots    the first root of each frame, and the number of roots
    sources_lengths  bytes of each root's JSON, in as few bytes as the longest needs

One document costs the expansion of its block, so blocks are small: of 50,000 documents of 1.2 KB an index
with blocks of 3 KB takes 3.4 % more than one with blocks of 6 KB, and ten hits from all over it take 60 µs
less. A merge keeps the longer blocks of older files. Files of format 1 have the JSON as it is, as `Strings`.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, pairwise
from threading import Lock, local
from typing import Any, TypeAlias

import numpy as np
import zstandard
from backports import zstd
from numpy.typing import NDArray

from graphdb.errors import CorruptionError
from graphdb.search.leaf_reader import Ints, Longs
from graphdb.search.segments.sections import Key, Sections, Strings, narrowest, strings

__all__ = [
    "PARTS",
    "SourceBlocks",
    "Sources",
    "merged_sources",
    "source_lengths",
    "source_sections",
    "sources_of",
]

PARTS = ("sources_blob", "sources_blocks", "sources_roots", "sources_lengths")
_BLOCK_BYTES = 3 << 10
_KEPT_BYTES_MAX = 12 << 10  # of a block; a longer one is one long text, which nobody asks for in parts
_EXPANDED_BYTES = 32 << 20  # of a process; six blocks of ten hits cost 50 µs where none is kept
_ROOT_BYTES = 4  # that a root counts at least, so that a block of empty ones ends too
_OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.checksum_flag: 1,
}


class _Expanded:
    """The blocks that were read last, of all segments of the process: neighbours are asked for in turn, and
    the first hits of many searches are the same. Any thread may use it.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max, self._bytes = bytes_max, 0
        self._kept: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._lock = Lock()

    def find(self, key: tuple[int, int]) -> bytes | None:
        """key: of the segment and the block."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: tuple[int, int], raw: bytes) -> None:
        with self._lock:
            self._bytes += len(raw) - len(self._kept.get(key, b""))
            self._kept[key] = raw
            while self._bytes > self._bytes_max:
                self._bytes -= len(self._kept.popitem(last=False)[1])


class _Expanding(local):
    """A decompressor for each thread: making one takes twice as long as expanding a block (14 µs in place of
    5), and `backports.zstd` makes one for each frame.
    """

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor()

    def expanded(self, frame: bytes) -> bytes:
        """Raises ZstdError."""
        return self._frame.decompress(frame)


_EXPANDING = _Expanding()
_numbers = count()  # of the segments that were opened
_EXPANDED = _Expanded(_EXPANDED_BYTES)


class SourceBlocks:
    """The JSON of each root, by number. Any thread may read it."""

    def __init__(self, sections: Sections, where: str) -> None:
        self._where = where
        blob, self.blocks, self.roots, self.lengths = (sections["", "", part] for part in PARTS)
        # reading one item or a few of a view is several times as fast as of an array
        self._bytes, self._blocks, self._roots, self._lengths = (
            memoryview(array)  # type: ignore[arg-type]  # an array is a buffer
            for array in (blob, self.blocks, self.roots, self.lengths)
        )
        self._number = next(_numbers)

    def __len__(self) -> int:
        return len(self.lengths)

    def raw(self, number: int) -> bytes:
        """Raises CorruptionError."""
        block = bisect_right(self._roots, number) - 1
        start = sum(self._lengths[self._roots[block] : number])
        return self.expanded(block)[start : start + self._lengths[number]]

    def raws(self, start: int, stop: int) -> Iterator[bytes]:
        """Those with numbers in [start, stop). Raises CorruptionError."""
        return map(self.raw, range(start, stop))

    def frame(self, block: int) -> bytes:
        return bytes(self._bytes[self._blocks[block] : self._blocks[block + 1]])

    def expanded(self, block: int) -> bytes:
        """The JSON of all roots of a block. Raises CorruptionError."""
        key = self._number, block
        known = _EXPANDED.find(key)
        if known is None:
            try:
                known = _EXPANDING.expanded(self.frame(block))
            except zstandard.ZstdError as error:
                what = f"block {block} of the stored documents is damaged ({error})"
                raise CorruptionError(what, self._where) from error
            if len(known) <= _KEPT_BYTES_MAX:
                _EXPANDED.put(key, known)
        return known


Sources: TypeAlias = SourceBlocks | Strings


def sources_of(sections: Sections, where: str) -> Sources:
    """Those of a segment, also of one from a file of format 1. where: the segment, for errors."""
    is_old = ("", "", "sources_starts") in sections
    return strings(sections, "sources") if is_old else SourceBlocks(sections, where)


def source_lengths(sources: Sources) -> Longs:
    """Bytes of the JSON of each root."""
    lengths = np.diff(sources.starts) if isinstance(sources, Strings) else sources.lengths
    return lengths.astype(np.int64)


class _Writer:
    """Cuts JSON texts into blocks."""

    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(options=_OPTIONS)
        self._frames: list[bytes] = []
        self._roots = [0]
        self._lengths: list[NDArray[Any]] = []
        self._open: list[bytes] = []  # of the block to come
        self._open_bytes = 0

    def add(self, raw: bytes) -> None:
        if len(raw) >= _BLOCK_BYTES:
            self.close()  # a long one stands alone, so that its neighbours do not pay for it
        self._open.append(raw)
        self._open_bytes += len(raw) + _ROOT_BYTES
        if self._open_bytes >= _BLOCK_BYTES:
            self.close()

    def close(self) -> None:
        """End the block that is open."""
        if self._open:
            lengths = np.fromiter(map(len, self._open), np.int64, len(self._open))
            frame = self._compressor.compress(b"".join(self._open), zstd.ZstdCompressor.FLUSH_FRAME)
            self.add_block(frame, lengths)
            self._open, self._open_bytes = [], 0

    def add_block(self, frame: bytes, lengths: NDArray[Any]) -> None:
        """A whole block, where none is open."""
        self._frames.append(frame)
        self._roots.append(self._roots[-1] + len(lengths))
        self._lengths.append(lengths)

    def sections(self) -> dict[Key, NDArray[Any]]:
        self.close()
        blocks = np.zeros(len(self._frames) + 1, np.int64)
        np.cumsum([len(frame) for frame in self._frames], out=blocks[1:])
        lengths = np.concatenate([np.zeros(0, np.int64), *self._lengths])
        return {
            ("", "", "sources_blob"): np.frombuffer(b"".join(self._frames), np.uint8),
            ("", "", "sources_blocks"): blocks,
            ("", "", "sources_roots"): np.array(self._roots, np.int32),
            ("", "", "sources_lengths"): narrowest(lengths),
        }


def source_sections(raws: Iterable[bytes]) -> dict[Key, NDArray[Any]]:
    """The sections of the JSON of each root."""
    writer = _Writer()
    for raw in raws:
        writer.add(raw)
    return writer.sections()


def merged_sources(parts: Sequence[tuple[Sources, Ints]]) -> dict[Key, NDArray[Any]]:
    """Those of some roots, ascending, of several segments in turn.

    Blocks that are full and all of whose roots stay are taken over as they are. So blocks end elsewhere than
    in a segment that a builder makes of the same documents. Raises CorruptionError.
    """
    writer = _Writer()
    for sources, kept in parts:
        if isinstance(sources, Strings):
            for number in kept.tolist():
                writer.add(sources.raw(number))
            continue
        places = kept.searchsorted(sources.roots).tolist()
        roots = sources.roots.tolist()
        for block, ((first, stop), (start, end)) in enumerate(
            zip(pairwise(roots), pairwise(places), strict=True)
        ):
            lengths = sources.lengths[first:stop]
            size = int(lengths.sum(dtype=np.int64)) + _ROOT_BYTES * len(lengths)
            if end - start == stop - first and size >= _BLOCK_BYTES:
                writer.close()
                writer.add_block(sources.frame(block), lengths)
            else:
                for number in kept[start:end].tolist():
                    writer.add(sources.raw(number))
    return writer.sections()
