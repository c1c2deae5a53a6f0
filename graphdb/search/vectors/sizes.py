"""What the vectors of fields take."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Leaf
from graphdb.search.mapping import Mapping
from graphdb.search.mapping.vectors import HAMMING
from graphdb.search.vectors.nearest import graph_of

__all__ = ["VectorSizes", "vector_sizes"]


@dataclass(frozen=True, slots=True)
class VectorSizes:
    """count: vectors of live documents. In bytes: the vectors themselves; their codes of 4 bits an
    element and more; their codes of 1 bit; the links between them.
    """

    count: int = 0
    rows: int = 0
    quantized: int = 0
    bits: int = 0
    links: int = 0

    def __add__(self, other: "VectorSizes") -> "VectorSizes":
        return VectorSizes(
            self.count + other.count,
            self.rows + other.rows,
            self.quantized + other.quantized,
            self.bits + other.bits,
            self.links + other.links,
        )


def vector_sizes(leaves: Iterable[Leaf], mapping: Mapping) -> VectorSizes:
    """Of all fields of the leaves of a shard. What is hidden or deleted in a leaf that shows only live
    documents does not count.
    """
    paths = [spec.path for spec in mapping.match("*") if spec.storage is Storage.VECTORS]
    return sum((_of_field(leaf, path) for leaf in leaves for path in paths), VectorSizes())


def _of_field(leaf: Leaf, path: str) -> VectorSizes:
    column = leaf.segment.vectors(path)
    if column is None:
        return VectorSizes()
    live, every = int(np.count_nonzero(leaf.live[column.docs])), len(column.docs)

    def shown(size: int) -> int:
        return size * live // every if leaf.segment.live_only and every else size

    graph = graph_of(leaf.segment, path)
    if graph is None:
        return VectorSizes(live, shown(column.rows.nbytes))
    codes, links = graph.codes, shown(graph.link_bytes)
    size = shown(codes.codes.nbytes)
    is_bits = codes.bits == 1 and codes.similarity != HAMMING
    return VectorSizes(live, shown(column.rows.nbytes), 0 if is_bits else size, size if is_bits else 0, links)
