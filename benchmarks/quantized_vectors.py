"""The ten nearest of many vectors by each type of an index of vectors, against codes of 8 bits.

In process, on one segment. The data are clusters of different sizes whose dimensions differ less and less,
turned so that no element stands for one of them; queries are of the same distribution. A type passes with
smaller codes than `int8_hnsw` has and a recall of 0.95 at least.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from time import thread_time
from typing import Any

import numpy as np

from benchmarks.report import Line
from graphdb.search.analysis import Analyzers
from graphdb.search.fields import ParsedDocument
from graphdb.search.leaf_reader import Floats, Leaf, Longs
from graphdb.search.mapping import Mapping as IndexMapping
from graphdb.search.query import QueryContext, Searcher, collect, parse_query
from graphdb.search.segments.builder import SegmentBuilder
from graphdb.search.vectors import missing_graphs, vector_sizes

__all__ = ["run"]

ROWS, DIMS, QUERIES, K, CLUSTERS = 50_000, 768, 300, 10, 500
TYPES = ("int8_hnsw", "int4_hnsw", "bbq_hnsw", "flat", "int8_flat", "int4_flat", "bbq_flat")
WHOLE = ("int8_hnsw", "flat", "int8_flat")  # what the others are compared with
RECALL, RECALL_OF_BYTES = 0.95, 0.92  # the latter of `int8_hnsw`, whose graph aims at no more


@dataclass(frozen=True, slots=True)
class TypeRow:
    """Bytes a vector, without the vector itself; processor time of a query as the median, and of the
    building.
    """

    type: str
    code_bytes: float
    link_bytes: float
    query_us: float
    recall: float
    build_s: float

    @property
    def passes(self) -> bool:
        is_smaller = self.type in WHOLE or self.code_bytes < DIMS
        return is_smaller and self.recall >= (RECALL_OF_BYTES if self.type == "int8_hnsw" else RECALL)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"passes": self.passes}

    def cells(self) -> Mapping[str, str]:
        return {
            "type": self.type,
            "codes, B": f"{self.code_bytes:.0f}",
            "links, B": f"{self.link_bytes:.0f}",
            "query, µs": f"{self.query_us:,.0f}",
            "recall@10": f"{self.recall:.3f}",
            "build, s": f"{self.build_s:.1f}",
            "": "met" if self.passes else "MISSED",
        }

    def notes(self) -> Sequence[str]:
        return ()


def run(rounds: int, scale: float) -> Sequence[Line]:
    """rounds: how often each query is asked; scale: part of the rows."""
    rows, queries = _vectors(max(6_000, int(ROWS * scale)))
    nearest = np.argpartition(-(queries @ rows.T), K, axis=1)[:, :K]
    builder = SegmentBuilder()
    for number, vector in enumerate(rows):
        builder.add(str(number), b"{}", number, 1, ParsedDocument(vectors={"v": vector}))
    segment = builder.build("_1_1")
    leaf = Leaf(segment, np.ones(segment.size, np.bool_), 0)
    return [_measure(leaf, kind, queries, nearest, rounds) for kind in TYPES]


def _measure(leaf: Leaf, kind: str, queries: Floats, nearest: Longs, rounds: int) -> TypeRow:
    field = {"type": "dense_vector", "dims": DIMS, "index_options": {"type": kind}}
    analyzers = Analyzers.of({})
    mapping = IndexMapping.of({"properties": {"v": field}}, analyzers)
    leaf.segment.derived.clear()
    started = thread_time()
    for job in missing_graphs([leaf], mapping):
        job.run(None)
    build_s = thread_time() - started
    searcher, context = Searcher([leaf], mapping, analyzers), QueryContext(mapping, analyzers)
    seconds, hits = [], 0
    for _ in range(rounds):
        for query, wanted in zip(queries, nearest, strict=True):
            parsed = parse_query({"knn": {"field": "v", "query_vector": query.tolist(), "k": K}}, context)
            started = thread_time()
            found = collect(parsed, searcher, K)
            seconds.append(thread_time() - started)
            hits += len(np.intersect1d(found.docs, wanted))
    sizes, count = vector_sizes([leaf], mapping), leaf.segment.size
    return TypeRow(
        kind,
        (sizes.quantized + sizes.bits) / count,
        sizes.links / count,
        1e6 * median(seconds),
        hits / (K * len(seconds)),
        build_s,
    )


def _vectors(rows: int) -> tuple[Floats, Floats]:
    """Of unit length."""
    random = np.random.default_rng(1)
    spread = np.arange(1, DIMS + 1) ** -0.7
    centres = random.standard_normal((CLUSTERS, DIMS)) * spread
    cluster = random.zipf(1.5, rows + QUERIES) % CLUSTERS
    own = 0.8 * centres[cluster] + 0.7 * random.standard_normal((rows + QUERIES, DIMS)) * spread
    turn, _ = np.linalg.qr(random.standard_normal((DIMS, DIMS)))
    made = own @ turn + 0.05 * random.standard_normal(DIMS)
    unit = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    return unit[:rows], unit[rows:]
