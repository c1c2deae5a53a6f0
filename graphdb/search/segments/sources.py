"""The stored JSON of a segment's roots, compressed in blocks of neighbours.

    sources_blob     zstd frames, one after another
    sources_blocks   where each frame begins, and where the last one ends
    sources_roots    the first root of each frame, and the number of roots
    sources_lengths  bytes of each root's JSON, in as few bytes as the longest needs

One document costs the expansion of its block, so blocks are small: of 50,000 documents of 1.2 KB an index
with blocks of 3 KB takes 3.4 % more than one with blocks of 6 KB, and ten hits from all over it take 60 µs
less. A merge keeps the longer blocks of older files. Files of format 1 have the JSON as it is, as `Strings`.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, pairwise
from threading import Lock, local
from typing import Any, Final, TypeAlias

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
    "keep_documents",
    "merged_sources",
    "ordered_sources",
    "source_lengths",
    "source_sections",
    "sources_of",
]

PARTS = ("sources_blob", "sources_blocks", "sources_roots", "sources_lengths")
_BLOCK_BYTES = 3 << 10
_KEPT_BYTES_MAX = 12 << 10  # of a document; a longer one would take the place of many
_KEPT_BYTES = 32 << 20  # of a process that says nothing else; a hit that is not kept costs 10 µs more
_ENTRY_BYTES = 250  # that keeping a document takes beside its text
_ROOT_BYTES = 4  # that a root counts at least, so that a block of empty ones ends too
_OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.checksum_flag: 1,
}
_WHOLE: Final = zstd.ZstdCompressor.FLUSH_FRAME


class _Kept:
    """The documents that were read last, of all segments of the process: the first hits of many searches are
    the same. Any thread may use it.

    There are two generations, each with half of the bytes: what is read goes to the younger one, and when
    that is full the older one is forgotten. So a document that is there costs one look-up without a lock.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._bytes = 0  # of the younger generation
        self._young: dict[tuple[int, int], bytes] = {}
        self._old: dict[tuple[int, int], bytes] = {}
        self._lock = Lock()

    def find(self, key: tuple[int, int]) -> bytes | None:
        """key: of the segment and the root."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def newest(self) -> Callable[[tuple[int, int]], bytes | None]:
        """As `find` now, of a part of them; sooner."""
        return self._young.get

    def put(self, key: tuple[int, int], raw: bytes) -> None:
        with self._lock:
            if key in self._young:  # another thread was sooner
                return
            size = len(raw) + _ENTRY_BYTES
            half = self.bytes_max // 2
            if self._bytes + size > half:
                self._young, self._old, self._bytes = {}, self._young, 0
            if size <= half:
                self._young[key] = raw
                self._bytes += size


class _Expanding(local):
    """A decompressor for each thread: making one takes twice as long as expanding a block (14 µs in place of
    5), and `backports.zstd` makes one for each frame. And the block that it has expanded last: neighbours are
    asked for in turn.
    """

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor()
        self._last: tuple[tuple[int, int], bytes] = (-1, -1), b""

    def last(self, key: tuple[int, int]) -> bytes | None:
        """key: of the segment and the block."""
        return self._last[1] if self._last[0] == key else None

    def expanded(self, key: tuple[int, int], frame: bytes) -> bytes:
        """Raises ZstdError."""
        self._last = key, self._frame.decompress(frame)
        return self._last[1]


_EXPANDING = _Expanding()
_numbers = count()  # of the segments that were opened
_KEPT = _Kept(_KEPT_BYTES)


def keep_documents(bytes_max: int) -> None:
    """From now on keep so many bytes of the documents that this process has read last."""
    _KEPT.bytes_max = bytes_max


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
        key = self._number, number
        known = _KEPT.find(key)
        if known is None:
            known = self._read(number)
            if len(known) <= _KEPT_BYTES_MAX:
                _KEPT.put(key, known)
        return known

    def some(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """`raw` of each, in turn."""
        own, find = self._number, _KEPT.newest()
        return (find((own, number)) or self.raw(number) for number in numbers)

    def place(self, number: int) -> tuple[int, int, int]:
        """(block, start, stop): where the JSON of a root is in its block."""
        block = bisect_right(self._roots, number) - 1
        start = sum(self._lengths[self._roots[block] : number])
        return block, start, start + self._lengths[number]

    def _read(self, number: int) -> bytes:
        block, start, stop = self.place(number)
        return self.expanded(block)[start:stop]

    def raws(self, start: int, stop: int) -> Iterator[bytes]:
        """Those with numbers in [start, stop), none of which is kept. Raises CorruptionError."""
        return map(self._read, range(start, stop))

    def frame(self, block: int) -> bytes:
        return bytes(self._bytes[self._blocks[block] : self._blocks[block + 1]])

    def expanded(self, block: int) -> bytes:
        """The JSON of all roots of a block. Raises CorruptionError."""
        key = self._number, block
        known = _EXPANDING.last(key)
        if known is not None:
            return known
        try:
            return _EXPANDING.expanded(key, self.frame(block))
        except zstandard.ZstdError as error:
            what = f"block {block} of the stored documents is damaged ({error})"
            raise CorruptionError(what, self._where) from error


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
        self._compress = zstd.ZstdCompressor(options=_OPTIONS).compress
        self._frames: list[bytes] = []
        self._roots = [0]
        self._lengths = array("q")
        self._open: list[bytes] = []  # of the block to come
        self._open_bytes = 0

    def add(self, raws: Iterable[bytes]) -> None:
        """These, in turn."""
        opened, size = self._open, self._open_bytes
        for raw in raws:
            added = len(raw)
            if added >= _BLOCK_BYTES:
                self.close()  # a long one stands alone, so that its neighbours do not pay for it
                size = 0
            opened.append(raw)
            size += added + _ROOT_BYTES
            if size >= _BLOCK_BYTES:
                self.close()
                size = 0
        self._open_bytes = size

    def close(self) -> None:
        """End the block that is open."""
        opened = self._open
        if opened:
            self._frames.append(self._compress(b"".join(opened), _WHOLE))
            self._roots.append(self._roots[-1] + len(opened))
            self._lengths.extend(map(len, opened))
            opened.clear()
        self._open_bytes = 0

    def add_block(self, frame: bytes, lengths: NDArray[Any]) -> None:
        """A whole block, where none is open."""
        self._frames.append(frame)
        self._roots.append(self._roots[-1] + len(lengths))
        self._lengths.extend(lengths.tolist())

    def sections(self) -> dict[Key, NDArray[Any]]:
        self.close()
        blocks = np.zeros(len(self._frames) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, self._frames), np.int64, len(self._frames)), out=blocks[1:])
        return {
            ("", "", "sources_blob"): np.frombuffer(b"".join(self._frames), np.uint8),
            ("", "", "sources_blocks"): blocks,
            ("", "", "sources_roots"): np.array(self._roots, np.int32),
            ("", "", "sources_lengths"): narrowest(np.array(self._lengths, np.int64)),
        }


def source_sections(raws: Iterable[bytes]) -> dict[Key, NDArray[Any]]:
    """The sections of the JSON of each root."""
    writer = _Writer()
    writer.add(raws)
    return writer.sections()


def merged_sources(parts: Sequence[tuple[Sources, Ints]]) -> dict[Key, NDArray[Any]]:
    """Those of some roots, ascending, of several segments in turn.

    Blocks that are full and all of whose roots stay are taken over as they are. So blocks end elsewhere than
    in a segment that a builder makes of the same documents. Raises CorruptionError.
    """
    writer = _Writer()
    for sources, kept in parts:
        if isinstance(sources, Strings):
            writer.add(map(sources.raw, kept.tolist()))
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
                writer.add(map(sources.raw, kept[start:end].tolist()))
    return writer.sections()


_ORDERED_BYTES = 64 << 20  # of expanded blocks, while roots are read in another order


class _Reread:
    """Reads roots in any order, and keeps the blocks that it has expanded last."""

    def __init__(self, parts: Sequence[Sources]) -> None:
        self._parts = parts
        self._blocks: dict[tuple[int, int], bytes] = {}
        self._bytes = 0

    def raw(self, part: int, number: int) -> bytes:
        sources = self._parts[part]
        if isinstance(sources, Strings):
            return sources.raw(number)
        block, start, stop = sources.place(number)
        known = self._blocks.pop((part, block), None)
        if known is None:
            known = sources.expanded(block)
            self._bytes += len(known)
        self._blocks[part, block] = known  # the last one used stands last
        while self._bytes > _ORDERED_BYTES and len(self._blocks) > 1:
            self._bytes -= len(self._blocks.pop(next(iter(self._blocks))))
        return known[start:stop]


def ordered_sources(parts: Sequence[tuple[Sources, Ints]], ranks: Ints) -> dict[Key, NDArray[Any]]:
    """As `merged_sources`, in another order: ranks are the places of the roots in that of the parts.

    Parts that are in that order themselves are each read from end to end, so no block is expanded twice.
    """
    numbers = np.concatenate([kept for _, kept in parts])[ranks]
    owners = np.repeat(np.arange(len(parts)), [len(kept) for _, kept in parts])[ranks]
    reread = _Reread([sources for sources, _ in parts])
    return source_sections(map(reread.raw, owners.tolist(), numbers.tolist()))
