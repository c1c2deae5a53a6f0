"""`ShardView`: all that a shard holds at one moment, and how what was written becomes leaves.

buffer ──seal──► sealed, being built ──adopted──► leaves
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from graphdb.search.segment import Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.buffer import Buffer
from graphdb.search.segments.live_view import numbered, without
from graphdb.search.segments.versioning import Current

__all__ = ["Sealed", "ShardView"]


class Sealed:
    """A buffer that nothing is written to any more. Any thread may build its segment, it is built once."""

    def __init__(self, buffer: Buffer, name: str) -> None:
        self.buffer, self._name = buffer, name
        self.is_built = False
        self._building = threading.Lock()
        self._segment: ArraySegment | None = None

    def segment(self) -> ArraySegment | None:
        """None where nothing but deletions was written. Whoever comes second waits."""
        with self._building:
            if not self.is_built and self.buffer.builder.size:
                self._segment = self.buffer.builder.build(self._name)
            self.is_built = True
            return self._segment


@dataclass(frozen=True, slots=True)
class ShardView:
    """Never changed, but that the buffer is written to. sealed: the oldest first."""

    leaves: tuple[Leaf, ...] = ()
    sealed: tuple[Sealed, ...] = ()
    buffer: Buffer = field(default_factory=Buffer)

    def find(self, doc_id: str) -> Current | None:
        """What was done to a document that is not in the leaves yet; None: nothing, ask them."""
        current = self.buffer.find(doc_id)
        for one in reversed(self.sealed) if current is None else ():
            current = one.buffer.find(doc_id)
            if current is not None:
                break
        return current

    def written(self) -> Mapping[str, Current]:
        """What was done to documents that is not in the leaves yet."""
        ids = {doc_id: None for one in self._buffers() for doc_id in one.ids()}
        found = {doc_id: self.find(doc_id) for doc_id in ids}
        return {doc_id: current for doc_id, current in found.items() if current is not None}

    @property
    def buffered(self) -> int:
        """How many documents that are."""
        return sum(map(len, self._buffers()))

    def with_sealed(self, name: str) -> "ShardView":
        """With an empty buffer; name is that of the segment to be."""
        return ShardView(self.leaves, (*self.sealed, Sealed(self.buffer, name)), Buffer())

    def adopted(self) -> "ShardView":
        """With the oldest sealed buffer as a leaf, built if need be; what it replaces is dead in others."""
        oldest, *sealed = self.sealed
        pairs = without(self.leaves, oldest.buffer.replaced)
        segment = oldest.segment()
        if segment is not None:
            live = np.ones(segment.size, np.bool_)
            for doc in oldest.buffer.dead:
                live[segment.block(doc)] = False
            pairs.append((segment, live))
        return ShardView(numbered(pairs), tuple(sealed), self.buffer)

    def with_leaves(self, leaves: tuple[Leaf, ...]) -> "ShardView":
        return ShardView(leaves, self.sealed, self.buffer)

    def _buffers(self) -> list[Buffer]:
        return [*(one.buffer for one in self.sealed), self.buffer]
