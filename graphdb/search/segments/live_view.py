"""The leaves of a shard as of one point in time: finding documents in them, deleting, merging, counting."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from graphdb.search.segment import Bools, Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.sections import Hashes, hash_ids
from graphdb.search.segments.strings import encode
from graphdb.search.segments.versioning import Current

__all__ = ["array_segment", "locate", "numbered", "replaced", "stored", "without"]


def array_segment(leaf: Leaf) -> ArraySegment:
    """The segment of a leaf of a shard: it has no others."""
    assert isinstance(leaf.segment, ArraySegment)
    return leaf.segment


def numbered(pairs: Iterable[tuple[ArraySegment, Bools]]) -> tuple[Leaf, ...]:
    """Leaves of segments and who is live in them, those left out where nobody is."""
    leaves: list[Leaf] = []
    base = 0
    for segment, live in pairs:
        if live.any():
            live.setflags(write=False)
            leaves.append(Leaf(segment, live, base))
            base += segment.size
    return tuple(leaves)


def locate(
    leaves: Sequence[Leaf], doc_ids: Sequence[str], hashes: Hashes | None = None
) -> dict[str, tuple[int, int]]:
    """Where those documents are that are live: number of the leaf, document in it. hashes: of the ids, of
    whoever knows them.
    """
    raws = [encode(doc_id) for doc_id in doc_ids]
    hashes = hash_ids(raws) if hashes is None else hashes
    places = {}
    for number, leaf in enumerate(leaves):
        for which, doc in array_segment(leaf).find_all(raws, hashes):
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
    # a document of the merged segment is one that was live in an input, in the same order
    lives = [
        now[leaf.segment.name][leaf.live]
        if leaf.segment.name in now
        else np.zeros(np.count_nonzero(leaf.live), np.bool_)
        for leaf in inputs
    ]
    pairs = [(array_segment(leaf), leaf.live) for leaf in leaves]
    first = next(place for place, (segment, _) in enumerate(pairs) if segment.name in names)
    pairs[first : first + 1] = [(merged, np.concatenate(lives)), pairs[first]]
    return [pair for pair in pairs if pair[0].name not in names]
