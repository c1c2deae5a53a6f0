"""What a search sees of a shard: the live documents of its segments as of one moment."""

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from graphdb.search.index_order import IndexOrder
from graphdb.search.leaf_reader import Bools, Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.buffer import Buffer
from graphdb.search.segments.merging import merge
from graphdb.search.segments.operations import Current
from graphdb.search.segments.sections import Hashes, encode, hash_ids

__all__ = ["Sealed", "ShardView", "array_segment", "locate", "numbered", "replaced", "stored", "without"]

# The leaves of a shard as of one point in time: finding documents in them, deleting, merging, counting.

_TOGETHER_MIN = 8  # ids; fewer are looked for one by one, in a tenth of the time


def array_segment(leaf: Leaf) -> ArraySegment:
    """The segment of a leaf of a shard: it has no others."""
    assert isinstance(leaf.segment, ArraySegment)
    return leaf.segment


def numbered(pairs: Iterable[tuple[ArraySegment, Bools]]) -> tuple[Leaf, ...]:
    """Leaves of segments and which documents are live in them, without leaves that have none."""
    leaves: list[Leaf] = []
    base = 0
    for segment, live in pairs:
        if live.any():
            live.setflags(write=False)
            leaves.append(Leaf(segment, live, base))
            base += segment.size
    return tuple(leaves)


def locate(
    leaves: Sequence[Leaf],
    doc_ids: Sequence[str],
    raws: Sequence[bytes] | None = None,
    hashes: Hashes | None = None,
) -> dict[str, tuple[int, int]]:
    """Where those documents are that are live: number of the leaf, document in it. raws and hashes: of the
    ids, of callers that know them.
    """
    raws = [encode(doc_id) for doc_id in doc_ids] if raws is None else raws
    hashes = hash_ids(raws) if hashes is None else hashes
    places = {}
    few = hashes.tolist() if len(raws) < _TOGETHER_MIN else None
    for number, leaf in enumerate(leaves):
        segment = array_segment(leaf)
        if few is None:
            found = segment.find_all(raws, hashes)
        else:
            docs = map(segment.find_hashed, raws, few)
            found = [(which, doc) for which, doc in enumerate(docs) if doc >= 0]
        for which, doc in found:
            if leaf.live[doc]:
                places[doc_ids[which]] = (number, doc)
    return places


def stored(leaves: Sequence[Leaf], place: tuple[int, int]) -> Current:
    """The document at a place in the leaves, see `locate`."""
    segment, doc = array_segment(leaves[place[0]]), place[1]
    version, seq_no = int(segment.versions[doc]), int(segment.seq_nos[doc])
    return Current(True, version, seq_no, segment.source(doc), segment.routing(doc))


def without(leaves: Sequence[Leaf], doc_ids: Sequence[str]) -> list[tuple[ArraySegment, Bools]]:
    """The same where those documents, with what is nested in them, are deleted."""
    masks: dict[int, Bools] = {}
    for number, doc in locate(leaves, doc_ids).values():
        if number not in masks:
            masks[number] = leaves[number].live.copy()
        masks[number][array_segment(leaves[number]).block(doc)] = False
    return [(array_segment(leaf), masks.get(number, leaf.live)) for number, leaf in enumerate(leaves)]


def replaced(
    leaves: Sequence[Leaf], inputs: Sequence[Leaf], merged: ArraySegment
) -> list[tuple[ArraySegment, Bools]] | None:
    """Put a merged segment in the place of its inputs, of which documents may have been deleted since.

    None where none of the inputs is there any more.
    """
    names = {leaf.segment.name for leaf in inputs}
    now: Mapping[str, Bools] = {leaf.segment.name: leaf.live for leaf in leaves if leaf.segment.name in names}
    if not now:
        return None
    # of inputs that are gone all documents are dead
    lives = [now.get(leaf.segment.name, np.zeros(leaf.segment.size, np.bool_)) for leaf in inputs]
    live = _still_found(inputs, lives, merged) if merged.order else _still_there(inputs, lives)
    pairs = [(array_segment(leaf), leaf.live) for leaf in leaves]
    first = next(place for place, (segment, _) in enumerate(pairs) if segment.name in names)
    pairs[first : first + 1] = [(merged, live), pairs[first]]
    return [pair for pair in pairs if pair[0].name not in names]


def _still_there(inputs: Sequence[Leaf], lives: Sequence[Bools]) -> Bools:
    """Which documents of a merged segment are live: each was live in an input, and they are in that order."""
    return np.concatenate([live[leaf.live] for leaf, live in zip(inputs, lives, strict=True)])


def _still_found(inputs: Sequence[Leaf], lives: Sequence[Bools], merged: ArraySegment) -> Bools:
    """The same of one in another order. At most one input had each `_id` live."""
    still = np.ones(merged.size, np.bool_)
    for leaf, live in zip(inputs, lives, strict=True):
        for doc in np.flatnonzero(leaf.roots & ~live).tolist():
            still[merged.block(merged.find(leaf.segment.doc_id(doc)))] = False
    return still


# `ShardView`: all that a shard holds at one moment, and how what was written becomes leaves.
#
# buffer ──seal──► sealed, being built ──adopted──► leaves


class Sealed:
    """A buffer that nothing is written to any more. Any thread may build its segment, it is built once."""

    def __init__(self, buffer: Buffer, name: str, order: IndexOrder) -> None:
        self.buffer, self._name, self._order = buffer, name, order
        self.is_built = False
        self._building = threading.Lock()
        self._built: tuple[ArraySegment, Bools] | None = None

    def leaf(self) -> tuple[ArraySegment, Bools] | None:
        """The segment, and what of it is live; None where nothing is. A second caller waits."""
        with self._building:
            if not self.is_built and self.buffer.builder.size:
                self._built = self._build()
            self.is_built = True
            return self._built

    def _build(self) -> tuple[ArraySegment, Bools] | None:
        segment = self.buffer.builder.build(self._name)
        live = np.ones(segment.size, np.bool_)
        for doc in self.buffer.dead:
            live[segment.block(doc)] = False
        if not self._order:
            return segment, live
        if not live.any():
            return None
        # without what is dead: of two copies of a document only their numbers tell which is the later one
        ordered = merge([Leaf(segment, live, 0)], self._name, self._order)
        return ordered, np.ones(ordered.size, np.bool_)


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

    def has_any_unfound(self, doc_ids: Collection[str]) -> bool:
        """Whether anything was done to one of these that is not in the leaves yet."""
        return any(one.has_any(doc_ids) for one in self._buffers())

    def written(self) -> Mapping[str, Current]:
        """What was done to documents that is not in the leaves yet."""
        ids = {doc_id: None for one in self._buffers() for doc_id in one.ids()}
        found = {doc_id: self.find(doc_id) for doc_id in ids}
        return {doc_id: current for doc_id, current in found.items() if current is not None}

    @property
    def buffered(self) -> int:
        """How many documents that are."""
        return sum(map(len, self._buffers()))

    def with_sealed(self, name: str, order: IndexOrder = ()) -> "ShardView":
        """With an empty buffer; name is that of the segment to be, order that of its documents."""
        return ShardView(self.leaves, (*self.sealed, Sealed(self.buffer, name, order)), Buffer())

    def adopted(self) -> "ShardView":
        """With the oldest sealed buffer as a leaf, built if need be; what it replaces is dead in others."""
        oldest, *sealed = self.sealed
        pairs = without(self.leaves, oldest.buffer.replaced)
        made = oldest.leaf()
        if made is not None:
            pairs.append(made)
        return ShardView(numbered(pairs), tuple(sealed), self.buffer)

    def with_leaves(self, leaves: tuple[Leaf, ...]) -> "ShardView":
        return ShardView(leaves, self.sealed, self.buffer)

    def _buffers(self) -> list[Buffer]:
        return [*(one.buffer for one in self.sealed), self.buffer]
