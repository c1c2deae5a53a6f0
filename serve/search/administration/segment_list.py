"""The segments of an index, as `_segments` and `_cat/segments` show them."""

from dataclasses import dataclass

import numpy as np

from graphdb.search.catalog.index import Index
from graphdb.search.segments.live_view import array_segment
from serve.search.frame.identity import LUCENE_VERSION

__all__ = ["SegmentInfo", "list_segments"]


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """documents and deleted count nested ones, too."""

    name: str
    generation: int
    documents: int
    deleted: int
    size_bytes: int
    on_disk: bool
    version: str


def list_segments(index: Index) -> list[SegmentInfo]:
    """What a search may see now."""
    found = []
    for leaf in index.shard.leaves():
        segment, live = array_segment(leaf), int(np.count_nonzero(leaf.live))
        found.append(
            SegmentInfo(
                name=segment.name,
                generation=int(segment.name.rpartition("_")[2]),
                documents=live,
                deleted=segment.size - live,
                size_bytes=segment.size_bytes,
                on_disk=index.shard.log_index > 0,
                version=LUCENE_VERSION,
            )
        )
    return found
