"""The arrays that a segment consists of, by name; in memory and on disk the same ones.

key: (storage, path, part); storage and path are empty for what is of the documents themselves

ids blob starts, id_hashes, id_docs      `_id` of each root; the hashes sorted, and the root number of each
sources blob starts                      the stored JSON of each root
seq_nos, versions                        by document
parents, nested_path, nested_paths       where there are nested documents
text:   dictionary, starts docs freqs, position_starts positions, norms, empty
terms:  dictionary, starts docs, ordinal_starts ordinals
ints, floats, exact: values, starts             starts only where not every document has exactly one value
points: latitudes longitudes starts
vectors: docs rows
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.search.segment import Ints, Longs
from graphdb.search.segments.strings import Strings, pack

__all__ = [
    "IGNORED",
    "ROUTING",
    "Hashes",
    "Key",
    "Sections",
    "freeze",
    "hash_id",
    "hash_ids",
    "id_sections",
    "packed",
    "starts_of",
    "strings",
]

Key: TypeAlias = tuple[str, str, str]
Sections: TypeAlias = Mapping[Key, NDArray[Any]]
Hashes: TypeAlias = NDArray[np.uint64]

IGNORED = "_ignored"  # the metadata fields are fields of terms, by Elasticsearch's names
ROUTING = "_routing"


def packed(storage: str, path: str, part: str, raws: Sequence[bytes]) -> dict[Key, NDArray[Any]]:
    """The two sections of packed strings."""
    blob, starts = pack(raws)
    return {(storage, path, part + "_blob"): blob, (storage, path, part + "_starts"): starts}


def strings(sections: Sections, part: str) -> Strings:
    """The packed strings of the documents themselves with that name."""
    return Strings(sections["", "", part + "_blob"], sections["", "", part + "_starts"])


def hash_id(raw: bytes) -> int:
    """64 bits of an `_id`: nobody can choose ids that all fall together."""
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
