"""Sections of a segment's file: arrays and strings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Ints, Longs

__all__ = [
    "IGNORED",
    "ORDER",
    "ROUTING",
    "Hashes",
    "Key",
    "Sections",
    "SortedStrings",
    "Strings",
    "decode",
    "encode",
    "freeze",
    "hash_id",
    "hash_ids",
    "id_sections",
    "narrowest",
    "pack",
    "packed",
    "starts_of",
    "strings",
]

# Strings packed into two arrays: their UTF-8 bytes one after another, and where each begins.


def encode(text: str) -> bytes:
    """UTF-8; JSON can hold half a surrogate pair, which keeps its place in the order of code points."""
    return text.encode("utf-8", "surrogatepass")


def decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def pack(raws: Sequence[bytes]) -> tuple[NDArray[np.uint8], Longs]:
    """(blob, starts): string i is blob[starts[i]:starts[i + 1]]."""
    starts = np.zeros(len(raws) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, raws), np.int64, len(raws)), out=starts[1:])
    return np.frombuffer(b"".join(raws), np.uint8), starts


class Strings:
    """Packed strings, by number."""

    def __init__(self, blob: NDArray[np.uint8], starts: Longs) -> None:
        self.blob, self.starts = blob, starts
        # reading one item or a few of a view is several times as fast as of an array
        self._bytes, self._starts = memoryview(blob), memoryview(starts)  # type: ignore[arg-type]  # buffers

    def __len__(self) -> int:
        return len(self.starts) - 1

    def raw(self, number: int) -> bytes:
        return bytes(self._bytes[self._starts[number] : self._starts[number + 1]])

    def text(self, number: int) -> str:
        raw = self._bytes[self._starts[number] : self._starts[number + 1]]
        return str(raw, "utf-8", "surrogatepass")

    def some(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """`raw` of each, in turn."""
        return map(self.raw, numbers)

    def texts(self, numbers: Iterable[int]) -> Iterator[str]:
        """`text` of each, in turn."""
        view, starts = self._bytes, self._starts
        return (
            str(view[starts[number] : starts[number + 1]], "utf-8", "surrogatepass") for number in numbers
        )

    def raws(self, start: int, stop: int) -> Iterator[bytes]:
        """Those with numbers in [start, stop)."""
        bounds = self.starts[start : stop + 1].tolist() if stop > start else []
        view = self._bytes
        return (bytes(view[a:b]) for a, b in pairwise(bounds))


class SortedStrings(Strings):
    """Packed strings in the order of their bytes, none twice: a `TermDictionary`."""

    def lower_bound(self, term: str) -> int:
        return self._place(encode(term))

    def find(self, term: str) -> int:
        raw = encode(term)
        number = self._place(raw)
        return number if number < len(self) and self.raw(number) == raw else -1

    def term(self, number: int) -> str:
        return self.text(number)

    def terms(self, start: int, stop: int) -> Iterator[str]:
        return map(decode, self.raws(start, stop))

    def _place(self, raw: bytes) -> int:
        return int(_lower_bound(self.blob, self.starts, np.frombuffer(raw, np.uint8)))


# Keeps the interpreter's lock: it would wait for it again longer than it runs.
@compiled()
def _lower_bound(blob: Any, starts: Any, key: Any) -> Any:
    """The number of the first string that is not before key."""
    low, high = 0, len(starts) - 1
    while low < high:
        middle = (low + high) // 2
        start, length = starts[middle], starts[middle + 1] - starts[middle]
        place = 0
        while place < length and place < len(key) and blob[start + place] == key[place]:
            place += 1
        if place < len(key) and (place == length or blob[start + place] < key[place]):
            low = middle + 1
        else:
            high = middle
    return low


# The arrays that a segment consists of, by name; in memory and on disk the same ones.
#
# key: (storage, path, part); storage and path are empty for what is of the documents themselves
#
#     ids: blob starts             `_id` of each root
#     id_hashes, id_docs           the hashes of these, sorted, and the root number of each
#     sources                      the stored JSON of each root, see `sources.py`
#     seq_nos, versions            by document
#     parents, nested_path, nested_paths   where there are nested documents
#     order                        which order the documents are in, as JSON, where the index keeps one
#     text:                  dictionary, starts docs, norms, empty; freqs high_freqs tokens, position_starts
#                            positions, see `postings.py`
#     terms:                 dictionary, starts docs, ordinal_starts ordinals
#     ints, floats, exact:   values, starts; starts only where not every document has exactly one value
#     points:                latitudes longitudes starts
#     vectors:               docs rows

Key: TypeAlias = tuple[str, str, str]
Sections: TypeAlias = Mapping[Key, NDArray[Any]]
Hashes: TypeAlias = NDArray[np.uint64]

IGNORED = "_ignored"  # the metadata fields are fields of terms, by Elasticsearch's names
ROUTING = "_routing"
ORDER: Key = ("", "", "order")


def narrowest(numbers: Longs) -> NDArray[Any]:
    """Numbers of 0 and more as unsigned integers of as few bytes as the largest needs."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def packed(storage: str, path: str, part: str, raws: Sequence[bytes]) -> dict[Key, NDArray[Any]]:
    """The two sections of packed strings."""
    blob, starts = pack(raws)
    return {(storage, path, part + "_blob"): blob, (storage, path, part + "_starts"): starts}


def strings(sections: Sections, part: str) -> Strings:
    """The packed strings of the documents themselves with that name."""
    return Strings(sections["", "", part + "_blob"], sections["", "", part + "_starts"])


def hash_id(raw: bytes) -> int:
    """64 bits of an `_id`: so a client cannot choose ids that all collide."""
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "little")


def hash_ids(raws: Sequence[bytes]) -> Hashes:
    """`hash_id` of many."""
    digests = b"".join([blake2b(raw, digest_size=8).digest() for raw in raws])
    return np.frombuffer(digests, "<u8").astype(np.uint64, copy=False)


def id_sections(hashes: Hashes) -> dict[Key, NDArray[Any]]:
    """How an `_id` is found again: hashes are those of the roots, in their order."""
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    return {("", "", "id_hashes"): hashes[order], ("", "", "id_docs"): order}


def starts_of(docs: Ints | Longs, size: int) -> Ints:
    """Where the values of each of `size` documents begin; docs, ascending, says whose each value is."""
    starts = np.zeros(size + 1, np.int32)
    np.cumsum(np.bincount(docs, minlength=size), out=starts[1:])
    return starts


def freeze(sections: dict[Key, NDArray[Any]]) -> Sections:
    """The same arrays, none of which can be written to any more."""
    for array in sections.values():
        array.setflags(write=False)
    return sections
