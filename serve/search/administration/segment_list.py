"""The segments of an index, as `_segments` and `_cat/segments` show them."""

from dataclasses import dataclass

import numpy as np

from graphdb.search.catalog.index import Index
from graphdb.search.catalog.seen import SeenIndex
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
    for number, leaf in enumerate(index.shard.leaves()):
        segment, live = array_segment(leaf), int(np.count_nonzero(leaf.live))
        # whoever may not see all is not told how many segments there have been
        name = f"_0_{number}" if isinstance(index, SeenIndex) else segment.name
        found.append(
            SegmentInfo(
                name=name,
                generation=int(name.rpartition("_")[2]),
                documents=live,
                deleted=leaf.count - live,
                size_bytes=segment.size_bytes,
                on_disk=index.shard.log_index > 0,
                version=LUCENE_VERSION,
            )
        )
    return found
