"""The vectors of indexes, as `_stats` shows them under `dense_vector`."""

from collections.abc import Sequence
from typing import Any

from graphdb.search.catalog.state import Index
from graphdb.search.vectors import VectorSizes, vector_sizes

__all__ = ["dense_vector_json"]


def dense_vector_json(indexes: Sequence[Index], copies: int = 1) -> dict[str, Any]:
    """`off_heap` has bytes by the endings of Lucene's files: vectors (vec), codes of them (veq), of one
    bit an element (veb), and the graph (vex). Here they are in the cache of the file system, too.
    """
    sizes = sum((vector_sizes(index.shards.leaves(), index.mapping) for index in indexes), VectorSizes())
    total = sizes.rows + sizes.quantized + sizes.bits + sizes.links
    return {
        "value_count": sizes.count * copies,
        "off_heap": {
            "total_size_bytes": total * copies,
            "total_veb_size_bytes": sizes.bits * copies,
            "total_vec_size_bytes": sizes.rows * copies,
            "total_veq_size_bytes": sizes.quantized * copies,
            "total_vex_size_bytes": sizes.links * copies,
        },
    }
