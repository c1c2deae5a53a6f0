"""The ten nearest of many vectors, under filters that leave more or fewer, against hnswlib without a filter.

In process: a parsed query on one segment, its filter included. Both at a recall of 0.95 at least; the
floor with as little effort as that takes. The same over HTTP, from 16 connections, informs only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.knn_service import Rate, served
from benchmarks.report import Line
from benchmarks.service import BenchmarkError
from graphdb.search.analysis import Analyzers
from graphdb.search.fields import ParsedDocument
from graphdb.search.leaf_reader import Bools, Floats, Leaf, Longs
from graphdb.search.mapping import Mapping as IndexMapping
from graphdb.search.query import QueryContext, Searcher, collect, parse_query
from graphdb.search.segments.builder import SegmentBuilder
from graphdb.search.vectors import missing_graphs

__all__ = ["run"]

ROWS, DIMS, QUERIES, K = 100_000, 128, 200, 10
PER_MILLE = (1, 10, 50, 70, 100, 150, 200, 250, 300, 500, 1000)
SECONDS = 2.0  # over HTTP, for each of these
RECALL, TARGET = 0.95, 0.3
EFFORTS = (10, 14, 20, 28, 36, 44, 56, 72, 96, 128, 192, 256)
MAPPING = {
    "properties": {
        "vector": {
            "type": "dense_vector",
            "dims": DIMS,
            "similarity": "cosine",
            "index_options": {"type": "hnsw", "m": 16, "ef_construction": 100},
        },
        "part": {"type": "integer"},
    }
}


@dataclass(frozen=True, slots=True)
class KnnRow:
    """Queries per second, as medians over the queries, and recall@10; allowed is a share of the rows.

    over_http: requests per second.
    """

    allowed: float
    floor: float
    ours: float
    recall: float
    over_http: float

    @property
    def ratio(self) -> float:
        return self.ours / self.floor

    @property
    def passes(self) -> bool:
        return self.ratio >= TARGET and self.recall >= RECALL

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "target": TARGET, "passes": self.passes}

    def cells(self) -> Mapping[str, str]:
        return {
            "allowed": f"{self.allowed:.1%}",
            "floor, 1/s": f"{self.floor:,.0f}",
            "ours, 1/s": f"{self.ours:,.0f}",
            "ratio": f"{self.ratio:.2f}",
            "target": f"at least {TARGET}",
            "recall@10": f"{self.recall:.3f}",
            "over HTTP, 1/s": f"{self.over_http:,.0f}",
            "": "met" if self.passes else "MISSED",
        }

    def notes(self) -> Sequence[str]:
        return ()


def run(rounds: int, scale: float) -> Sequence[Line]:
    """rounds: how often each query is asked; scale: part of the rows."""
    vectors, queries = _vectors(max(2_000, int(ROWS * scale)))
    parts = np.random.default_rng(7).permutation(len(vectors)) * 1000 // len(vectors)
    try:
        import hnswlib  # compiled when it is installed, so not among what the tests need
    except ImportError as error:
        raise BenchmarkError("hnswlib is missing: .venv/bin/pip install -e '.[benchmarks]'") from error
    floor = hnswlib.Index("cosine", DIMS)
    floor.init_index(len(vectors), M=16, ef_construction=100)
    floor.add_items(vectors)
    floor.set_num_threads(1)
    _set_effort(floor, queries, _nearest(vectors, queries, np.ones(len(vectors), np.bool_)))
    index = _index(vectors, parts)
    with served(MAPPING, vectors, parts) as rate:
        return [
            _measure(floor, index, queries, _nearest(vectors, queries, parts < below), below, rounds, rate)
            for below in PER_MILLE
        ]


def _measure(
    floor: Any,
    index: tuple[Searcher, QueryContext],
    queries: Floats,
    truth: Longs,
    below: int,
    rounds: int,
    rate: Rate,
) -> KnnRow:
    searcher, context = index
    bodies = [_body(query, below) for query in queries]
    floor_s, our_s, hits = [], [], 0
    for _ in range(rounds):
        for query, body, nearest in zip(queries, bodies, truth, strict=True):
            started = perf_counter()
            floor.knn_query(query, k=K)
            floor_s.append(perf_counter() - started)
            wanted = parse_query({"knn": body}, context)
            started = perf_counter()
            found = collect(wanted, searcher, K)
            our_s.append(perf_counter() - started)
            hits += len(np.intersect1d(found.docs, nearest))
    recall = hits / (K * len(our_s))
    over_http = rate(bodies, SECONDS)
    return KnnRow(below / 1000, 1 / median(floor_s), 1 / median(our_s), recall, over_http)


def _body(query: Floats, below: int) -> dict[str, Any]:
    filtered = {} if below == 1000 else {"filter": {"range": {"part": {"lt": below}}}}
    return {"field": "vector", "query_vector": query.tolist(), "k": K, **filtered}


def _vectors(rows: int) -> tuple[Floats, Floats]:
    """Clusters, a few common directions, noise; of unit length. Queries are rows, moved a little."""
    random = np.random.default_rng(11)
    centres, axes = random.standard_normal((500, DIMS)), random.standard_normal((24, DIMS))
    vectors = 0.7 * centres[random.integers(0, 500, rows)] + 0.3 * random.standard_normal((rows, DIMS))
    vectors += 0.25 * random.standard_normal((rows, 24)) @ axes
    moved = vectors[random.integers(0, rows, QUERIES)] + 0.3 * random.standard_normal((QUERIES, DIMS))
    return _unit(vectors), _unit(moved)


def _unit(vectors: Any) -> Floats:
    unit: Floats = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _nearest(vectors: Floats, queries: Floats, allowed: Bools) -> Longs:
    """Their ten nearest of the allowed rows."""
    rows = np.flatnonzero(allowed)
    order = np.argsort(-(queries @ vectors[rows].T), axis=1)[:, :K]
    return rows[order]


def _set_effort(floor: Any, queries: Floats, truth: Longs) -> None:
    """The least at which the floor reaches the recall."""
    for effort in EFFORTS:
        floor.set_ef(effort)
        found = floor.knn_query(queries, k=K)[0]
        hits = sum(len(np.intersect1d(*pair)) for pair in zip(found, truth, strict=True))
        if hits >= RECALL * truth.size:
            return
    raise BenchmarkError(f"hnswlib does not reach a recall of {RECALL}")


def _index(vectors: Floats, parts: Longs) -> tuple[Searcher, QueryContext]:
    """One segment with its graph."""
    analyzers = Analyzers.of({})
    mapping = IndexMapping.of(MAPPING, analyzers)
    builder = SegmentBuilder()
    for number, (vector, part) in enumerate(zip(vectors, parts.tolist(), strict=True)):
        parsed = ParsedDocument(vectors={"vector": vector}, ints={"part": [part]})
        builder.add(str(number), b"{}", number, 1, parsed)
    segment = builder.build("_1_1")
    leaf = Leaf(segment, np.ones(segment.size, np.bool_), 0)
    for job in missing_graphs([leaf], mapping, rows_min=0):
        job.run(None)
    return Searcher([leaf], mapping, analyzers), QueryContext(mapping, analyzers)
