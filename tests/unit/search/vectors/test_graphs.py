"""Graphs: as good as promised under filters and deletions, kept on disk, and never needed."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray

from graphdb.log.file_system import RealFileSystem
from graphdb.search.analysis import Analyzers
from graphdb.search.errors import SearchError
from graphdb.search.leaf_reader import Bools, Floats, Ints
from graphdb.search.mapping import Mapping
from graphdb.search.query import QueryContext, Searcher, parse_query
from graphdb.search.query.knn import KnnQuery
from graphdb.search.query.ranked import Ranking
from graphdb.search.segments.index_files import IndexFiles
from graphdb.search.segments.index_shard import IndexShard
from graphdb.search.segments.operations import Action, Operation
from graphdb.search.vectors import (
    GraphFiles,
    GraphShape,
    Metric,
    RowSet,
    Sought,
    VectorRows,
    build_graph,
    keep_graphs,
    missing_graphs,
    nearest_in,
    remove_stale,
    vector_sizes,
)
from graphdb.search.vectors.nearest import graph_of
from tests.simulation.lossy_file_system import Crash, LossyFileSystem

ROWS, DIMS = 6_000, 16
ANALYZERS = Analyzers.of({})


def mapping_of(similarity: str = "cosine") -> Mapping:
    vector = {"type": "dense_vector", "dims": DIMS, "similarity": similarity}
    return Mapping.of({"properties": {"v": vector, "n": {"type": "integer"}}}, ANALYZERS)


def vectors_of(rows: int, seed: int = 0) -> Floats:
    random = np.random.default_rng(seed)
    centres = random.standard_normal((20, DIMS))
    rows_ = centres[random.integers(0, 20, rows)] + 0.5 * random.standard_normal((rows, DIMS))
    return rows_.astype(np.float32)


def queries_of(vectors: Floats) -> Floats:
    """Some of the vectors, moved a little."""
    random = np.random.default_rng(5)
    moved = vectors[:: len(vectors) // 50] + 0.2 * random.standard_normal((50, DIMS))
    return moved.astype(np.float32)


def write(shard: "IndexShard[Mapping]", vectors: NDArray[Any], first: int = 0) -> None:
    shard.apply(
        [
            Operation(Action.INDEX, str(first + i), orjson.dumps({"v": row.tolist(), "n": first + i}))
            for i, row in enumerate(vectors)
        ]
    )
    shard.refresh()


@pytest.fixture(scope="module")
def filled() -> tuple["IndexShard[Mapping]", Floats]:
    shard, vectors = IndexShard("i", mapping_of(), {}), vectors_of(ROWS)
    write(shard, vectors)
    assert keep_graphs(shard.leaves(), shard.mapping, None) == 1
    return shard, vectors


def scores_of(shard: "IndexShard[Mapping]", knn: dict[str, Any]) -> list[float]:
    """Best first."""
    searcher = Searcher(shard.leaves(), shard.mapping, ANALYZERS)
    scores: list[float] = _ranking(shard, searcher, knn).scores.tolist()
    return scores


def _ranking(shard: "IndexShard[Mapping]", searcher: Searcher, knn: dict[str, Any]) -> Ranking:
    parsed = parse_query({"knn": knn}, QueryContext(shard.mapping, ANALYZERS))
    assert isinstance(parsed, KnnQuery)
    return parsed.ranking(searcher)


def nearest(shard: "IndexShard[Mapping]", query: Floats, **members: Any) -> list[int]:
    searcher = Searcher(shard.leaves(), shard.mapping, ANALYZERS)
    knn = {"field": "v", "query_vector": query.tolist(), "k": 10, **members}
    docs = _ranking(shard, searcher, knn).docs
    return [int(leaf.segment.doc_id(doc)) for leaf, doc in map(searcher.locate, docs.tolist())]


def exact(vectors: Floats, query: Floats, allowed: Bools) -> list[int]:
    similar = vectors @ query / np.linalg.norm(vectors, axis=1)
    order: list[int] = np.argsort(np.where(allowed, -similar, np.inf), kind="stable").tolist()
    return order[:10]


@pytest.mark.parametrize("below", [ROWS, ROWS // 2, ROWS // 4, ROWS // 10, ROWS // 20, 60])
def test_recall_under_filters(filled: tuple["IndexShard[Mapping]", Floats], below: int) -> None:
    shard, vectors = filled
    allowed = np.arange(ROWS) < below
    queries = queries_of(vectors)
    hits = 0
    for query in queries:
        found = nearest(shard, query, filter={"range": {"n": {"lt": below}}})
        assert all(allowed[found])
        hits += len(set(found) & set(exact(vectors, query, allowed)))
    assert hits >= 0.95 * 10 * len(queries)


def test_more_candidates_find_more(filled: tuple["IndexShard[Mapping]", Floats]) -> None:
    """Of queries that are like none of the documents."""
    shard, vectors = filled
    queries, every = vectors_of(50, seed=1), np.ones(ROWS, np.bool_)
    hits = sum(
        len(set(nearest(shard, query, num_candidates=300)) & set(exact(vectors, query, every)))
        for query in queries
    )
    assert hits >= 0.95 * 10 * len(queries)


def test_recall_of_what_deletes_and_updates_leave() -> None:
    shard, vectors = IndexShard("i", mapping_of(), {}), vectors_of(ROWS)
    write(shard, vectors)
    keep_graphs(shard.leaves(), shard.mapping, None)
    live = np.ones(ROWS, np.bool_)
    live[1::4] = False
    shard.apply([Operation(Action.DELETE, str(i)) for i in np.flatnonzero(~live)])
    vectors[::40] = vectors_of(ROWS // 40, seed=2)
    shard.apply(
        [
            Operation(Action.INDEX, str(i), orjson.dumps({"v": vectors[i].tolist(), "n": i}))
            for i in range(0, ROWS, 40)
        ]
    )
    shard.refresh()
    queries = queries_of(vectors)
    for merged in (False, True):
        if merged:
            while shard.maybe_merge():
                keep_graphs(shard.leaves(), shard.mapping, None)
        hits = sum(len(set(nearest(shard, query)) & set(exact(vectors, query, live))) for query in queries)
        assert hits >= 0.95 * 10 * len(queries)


@pytest.mark.parametrize("similarity", ["cosine", "dot_product", "l2_norm", "max_inner_product"])
def test_a_graph_and_all_rows_give_the_same_scores(similarity: str) -> None:
    rows = vectors_of(3_000)
    if similarity == "dot_product":
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    shape = GraphShape(similarity)
    graph = build_graph(rows, shape)
    assert graph is not None
    metric, every = Metric(similarity, DIMS), np.arange(len(rows), dtype=np.int32)
    hits = 0
    for query in rows[::60]:
        scores = metric.scores(rows, every, query)
        found = np.sort(graph.walk(query, graph.effort(1.0), None, graph.size))
        assert metric.scores(rows, found, query).tolist() == scores[found].tolist()
        best = found[np.argsort(-scores[found], kind="stable")[:10]]
        hits += len(set(best.tolist()) & set(np.argsort(-scores, kind="stable")[:10].tolist()))
    assert hits >= 0.95 * 10 * 50


@pytest.mark.parametrize("similarity", ["cosine", "dot_product", "l2_norm", "max_inner_product"])
@pytest.mark.parametrize("kind", ["float", "byte"])
def test_every_kind_of_vectors_is_found(similarity: str, kind: str) -> None:
    vectors = vectors_of(2_500)
    if kind == "byte":
        vectors = np.rint(vectors * 20).clip(-128, 127)
    elif similarity == "dot_product":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    field = {"type": "dense_vector", "dims": DIMS, "similarity": similarity, "element_type": kind}
    fields = {"v": field, "n": {"type": "integer"}}
    shard = IndexShard("i", Mapping.of({"properties": fields}, ANALYZERS), {})
    write(shard, vectors)
    (job,) = missing_graphs(shard.leaves(), shard.mapping, rows_min=0)
    assert job.run(None)
    metric, every = Metric(similarity, DIMS, kind == "byte"), np.arange(len(vectors), dtype=np.int32)
    for below in (2_500, 1_200):
        hits = 0
        for query in vectors[::50]:
            truth = np.argsort(-metric.scores(vectors, every[:below], query), kind="stable")[:10]
            found = nearest(shard, query, filter={"range": {"n": {"lt": below}}})
            hits += len(set(found) & set(truth.tolist()))
        assert hits >= 0.95 * 10 * 50


def _bits(rows: int, dims: int, seed: int = 0) -> NDArray[np.uint8]:
    """Packed; around some centres."""
    random = np.random.default_rng(seed)
    centres = random.integers(0, 2, (20, dims), np.uint8)
    own = centres[np.arange(rows) % 20] ^ (random.random((rows, dims)) < 0.1)
    return np.packbits(own, axis=1)


@pytest.mark.parametrize("dims", [8, 72, 1_024])
def test_vectors_of_bits_are_found_by_how_many_of_them_differ(dims: int) -> None:
    vectors = _bits(2_500, dims)
    field = {"type": "dense_vector", "dims": dims, "element_type": "bit"}
    fields = {"v": field, "n": {"type": "integer"}}
    shard = IndexShard("i", Mapping.of({"properties": fields}, ANALYZERS), {})
    write(shard, vectors.view(np.int8))
    (job,) = missing_graphs(shard.leaves(), shard.mapping, rows_min=0)
    assert job.run(None)
    graph = graph_of(shard.leaves()[0].segment, "v")
    assert graph is not None
    assert graph.codes.codes.nbytes == len(vectors) * -(-dims // 64) * 8
    flipped = np.packbits(np.random.default_rng(1).random((50, dims)) < 0.05, axis=1)
    queries = vectors[::50] ^ flipped
    for below in (2_500, 1_200, 900):
        missed = 0
        for query in queries.view(np.int8):
            differ = np.unpackbits(vectors[:below] ^ query.view(np.uint8), axis=1).sum(axis=1, dtype=np.int64)
            truth = np.sort(1 - differ / dims)[::-1][:10]
            asked = {"field": "v", "query_vector": query.tolist(), "k": 10, "num_candidates": 10}
            scores = scores_of(shard, asked | {"filter": {"range": {"n": {"lt": below}}}})
            assert scores[0] <= np.float32(truth[0])
            missed += 10 - int(np.count_nonzero(np.array(scores) >= np.float32(truth[-1])))
        assert missed <= 0.05 * 10 * 50
    every = {"field": "v", "query_vector": vectors[7].tobytes().hex(), "k": 2_500, "num_candidates": 2_500}
    near = scores_of(shard, every | {"similarity": dims // 4})
    differ = np.bitwise_count(vectors ^ vectors[7]).sum(axis=1, dtype=np.int64)
    assert near == np.sort(1 - differ[differ <= dims // 4] / dims).astype(np.float32)[::-1].tolist()


@pytest.mark.parametrize("share", [1.0, 0.7, 0.5, 0.3, 0.1])
def test_the_effort_for_a_share_is_enough(filled: tuple["IndexShard[Mapping]", Floats], share: float) -> None:
    shard, vectors = filled
    graph = graph_of(shard.leaves()[0].segment, "v")
    assert graph is not None
    allowed = np.random.default_rng(3).random(ROWS) < share
    rows = RowSet.of(allowed)
    walked = scanned = 0
    for query in queries_of(vectors):
        expected = set(exact(vectors, query, allowed))
        walked += len(expected & _best(vectors, query, graph.walk(query, graph.effort(share), rows, ROWS)))
        scanned += len(expected & _best(vectors, query, graph.scan(query, 32, rows)))
    assert walked >= 0.95 * 10 * 50
    assert scanned >= 0.99 * 10 * 50


def _best(vectors: Floats, query: Floats, found: Ints) -> set[int]:
    similar = vectors[found] @ query / np.linalg.norm(vectors[found], axis=1)
    return set(found[np.argsort(-similar)[:10]].tolist())


def test_what_is_near_to_none_of_the_rows_is_found_as_well() -> None:
    random = np.random.default_rng(8)
    centres = 0.7 * random.standard_normal((40, 48))[random.integers(0, 40, 4_100)]
    rows = (centres + 0.5 * random.standard_normal((4_100, 48))).astype(np.float32)
    graph, queries = build_graph(rows[:4_000], GraphShape("cosine")), rows[4_000:]
    assert graph is not None
    hits = 0
    for query in queries:
        expected = exact(rows[:4_000], query, np.ones(4_000, np.bool_))
        hits += len(set(expected) & _best(rows, query, graph.walk(query, graph.effort(1.0), None, 4_000)))
    assert hits >= 0.95 * 10 * len(queries)


def test_a_walk_ends_where_it_has_met_enough(filled: tuple["IndexShard[Mapping]", Floats]) -> None:
    shard, vectors = filled
    graph = graph_of(shard.leaves()[0].segment, "v")
    assert graph is not None
    assert graph.links is not None
    assert len(graph.walk(vectors[0], 1_000, None, ROWS)) == 1_000
    assert len(graph.walk(vectors[0], 1_000, None, 100)) < 100 + graph.links.width


def test_codes_are_whole_where_eight_bits_do_not_tell_rows_apart() -> None:
    near = vectors_of(1_000)
    far = near + np.float32(1_000)
    graph = build_graph(np.concatenate([near, far]), GraphShape("l2_norm"))
    assert graph is not None
    assert graph.codes.codes.dtype == np.float32
    graph = build_graph(near, GraphShape("l2_norm"))
    assert graph is not None
    assert graph.codes.codes.dtype == np.int8


def test_rows_that_are_alike_take_no_more_effort() -> None:
    one = vectors_of(100)
    graph = build_graph(np.repeat(one, 20, axis=0), GraphShape("cosine"))
    assert graph is not None
    assert graph.codes.codes.dtype == np.int8
    assert max(graph.efforts) <= 64


@pytest.mark.parametrize("size", [1e-15, 1e15])
def test_rows_of_any_size_are_told_apart(size: float) -> None:
    rows = vectors_of(1_000)
    large = rows / np.abs(rows).max() * np.float32(size)
    graph = build_graph(large, GraphShape("l2_norm"))
    assert graph is not None
    assert graph.codes.codes.dtype == np.int8
    assert all(i in graph.scan(large[i], 10, None) for i in range(0, 1_000, 50))


@pytest.mark.parametrize("scale", [1e-38, 1e-20, 1e20, 1e38])
def test_queries_of_any_length_find_the_same(
    filled: tuple["IndexShard[Mapping]", Floats], scale: float
) -> None:
    """Of cosines."""
    shard, vectors = filled
    query = vectors[17] / np.abs(vectors[17]).max()
    assert nearest(shard, query * np.float32(scale))[0] == nearest(shard, query)[0] == 17


def test_a_walk_that_meets_too_few_is_done_again_over_all_rows() -> None:
    """Only rows far from the query are allowed: the walk would never reach them."""
    shard, vectors = IndexShard("i", mapping_of("l2_norm"), {}), vectors_of(ROWS)
    vectors[: ROWS // 2] += 1_000
    write(shard, vectors)
    keep_graphs(shard.leaves(), shard.mapping, None)
    query = vectors[-1]
    expected = np.argsort(np.square(vectors[: ROWS // 2] - query).sum(axis=1), kind="stable")[:10]
    found = nearest(shard, query, filter={"range": {"n": {"lt": ROWS // 2}}})
    assert len(set(found) & set(expected.tolist())) >= 9


def test_the_same_rows_give_the_same_graph() -> None:
    one, two = (build_graph(vectors_of(1_000), GraphShape("cosine")) for _ in range(2))
    assert one is not None
    assert two is not None
    assert one.to_bytes() == two.to_bytes()


def test_graphs_are_read_from_disk(tmp_path: Path) -> None:
    files = IndexFiles(RealFileSystem(), str(tmp_path))
    graphs = GraphFiles(RealFileSystem(), str(tmp_path))
    shard = IndexShard("i", mapping_of(), {})
    write(shard, vectors_of(ROWS))
    shard.flush(files, 1)
    assert keep_graphs(shard.leaves(), shard.mapping, graphs) == 1
    built = graph_of(shard.leaves()[0].segment, "v")
    assert built is not None
    opened = IndexShard.open("i", files, lambda mapping, _: Mapping.of(mapping, ANALYZERS))
    assert opened is not None
    assert graph_of(opened.leaves()[0].segment, "v") is None
    (job,) = missing_graphs(opened.leaves(), opened.mapping)
    assert job.run(graphs, stopped=lambda: True)  # building would have been stopped
    read = graph_of(opened.leaves()[0].segment, "v")
    assert read is not None
    assert read.to_bytes() == built.to_bytes()
    query = vectors_of(1, seed=3)[0]
    assert nearest(opened, query) == nearest(shard, query)


def test_a_flush_keeps_graphs(tmp_path: Path) -> None:
    shard = IndexShard("i", mapping_of(), {})
    write(shard, vectors_of(ROWS))
    keep_graphs(shard.leaves(), shard.mapping, None)
    shard.flush(IndexFiles(RealFileSystem(), str(tmp_path)), 1)
    assert missing_graphs(shard.leaves(), shard.mapping) == []


@pytest.mark.parametrize("where", [0, 5, 10, 40, -1])
def test_damaged_graphs_are_none(tmp_path: Path, where: int) -> None:
    rows, shape = vectors_of(500), GraphShape("l2_norm")
    graph = build_graph(rows, shape)
    assert graph is not None
    files = GraphFiles(RealFileSystem(), str(tmp_path))
    assert files.save("_1_1", "v/ü", graph, rows).file is not None
    assert files.load("_1_1", "v/ü", rows, shape) is not None
    assert files.load("_1_1", "other", rows, shape) is None
    assert files.load("_1_1", "v/ü", rows + 1, shape) is None
    assert files.load("_1_1", "v/ü", rows, GraphShape("l2_norm", m=8)) is None
    (path,) = tmp_path.iterdir()
    data = bytearray(path.read_bytes())
    data[where] ^= 1
    path.write_bytes(data)
    assert files.load("_1_1", "v/ü", rows, shape) is None
    path.write_bytes(data[:20])
    assert files.load("_1_1", "v/ü", rows, shape) is None
    path.write_bytes(b"")
    assert files.load("_1_1", "v/ü", rows, shape) is None


def test_files_of_segments_that_are_gone_are_removed() -> None:
    system = LossyFileSystem(Random(0))
    system.make_directory("index")
    files, rows = GraphFiles(system, "index"), vectors_of(200)
    graph = build_graph(rows, GraphShape("cosine"))
    assert graph is not None
    for segment in ("_1_1", "_1_2"):
        files.save(segment, "v", graph, rows)
    assert len(system.list("index")) == 2
    shard = IndexShard("i", mapping_of(), {})
    write(shard, rows[:2])
    remove_stale(shard.leaves(), files)
    assert [name.split(".")[0] for name in system.list("index")] == [shard.leaves()[0].segment.name]


def test_what_no_graph_is_made_for() -> None:
    flat = {"type": "dense_vector", "dims": 2, "similarity": "l2_norm", "index_options": {"type": "flat"}}
    plain = {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"}
    unindexed = {"type": "dense_vector", "dims": 2, "index": False}
    fields = {"flat": flat, "not_indexed": unindexed, "huge": plain, "few": plain}
    shard = IndexShard("i", Mapping.of({"properties": fields}, ANALYZERS), {})
    body = {"flat": [1, 2], "not_indexed": [1, 2], "huge": [1e20, 2], "few": [1, 2]}
    shard.apply([Operation(Action.INDEX, "1", orjson.dumps(body))])
    shard.refresh()
    assert [job.path for job in missing_graphs(shard.leaves(), shard.mapping, rows_min=1)] == ["few"]
    assert missing_graphs(shard.leaves(), shard.mapping) == []


def test_a_graph_can_be_given_up() -> None:
    assert build_graph(vectors_of(100), GraphShape("cosine"), stopped=lambda: True) is None


@pytest.mark.parametrize(
    ("similarity", "row", "query", "score"),
    [
        ("cosine", [3.0, 4.0], [4.0, 3.0], 0.98),
        ("cosine", [1e-30, 0.0], [1e30, 0.0], 1.0),
        ("cosine", [1e38, 1e38], [1e38, -1e38], 0.5),
        ("dot_product", [0.6, 0.8], [0.8, 0.6], 0.98),
        ("l2_norm", [1.0, 2.0], [4.0, 6.0], 1 / 26),
        ("l2_norm", [3e38, 0.0], [-3e38, 0.0], 0.0),
        ("max_inner_product", [1.0, 2.0], [3.0, 4.0], 12.0),
        ("max_inner_product", [1.0, 2.0], [-3.0, 0.0], 0.25),
        ("max_inner_product", [1e38, 0.0], [1e38, 0.0], 1e30),
    ],
)
def test_scores(similarity: str, row: list[float], query: list[float], score: float) -> None:
    rows = np.array([row], np.float32)
    metric = Metric(similarity, 2)
    found = metric.scores(rows, np.zeros(1, np.int32), np.array(query, np.float32))
    assert found[0] == pytest.approx(score, rel=1e-6, abs=1e-7)


def test_scores_of_bytes() -> None:
    rows = np.array([[100, -50]], np.float32)
    metric = Metric("dot_product", 2, is_byte=True)
    assert metric.scores(rows, np.zeros(1, np.int32), rows[0])[0] == pytest.approx(0.5 + 12_500 / 65_536)


def test_the_threshold_of_l2_norm_is_a_distance() -> None:
    assert Metric("l2_norm", 2).threshold(3.0) == pytest.approx(0.1)
    assert Metric("cosine", 2).threshold(0.5) == 0.75


def test_where_all_are_deleted_nothing_is_near() -> None:
    shard = IndexShard("i", mapping_of(), {})
    write(shard, vectors_of(10))
    segment = shard.leaves()[0].segment
    rows = VectorRows.of(segment, "v")
    assert rows is not None
    sought = Sought("v", vectors_of(1)[0], Metric("cosine", DIMS), 3, 3)
    docs, scores = nearest_in(segment, rows, sought, RowSet.of(np.zeros(segment.size, np.bool_)))
    assert (len(docs), len(scores)) == (0, 0)


QUANTIZED = ["int4_hnsw", "bbq_hnsw", "int8_flat", "int4_flat", "bbq_flat"]
CODE_BYTES = {"int8": 64, "int4": 32 + 16, "bbq": 8 + 16}


def _wide(rows: int, seed: int = 0) -> Floats:
    """Of 64 dimensions, each of which differs less than the one before; around the same centres."""
    spread = np.arange(1, 65) ** -0.5
    centres = np.random.default_rng(7).standard_normal((20, 64)) * spread
    random = np.random.default_rng(seed)
    made = centres[random.integers(0, 20, rows)] + random.standard_normal((rows, 64)) * spread
    return (made + 0.05).astype(np.float32)


def _index_of(kind: str, similarity: str, vectors: Floats) -> "IndexShard[Mapping]":
    field = {"type": "dense_vector", "dims": 64, "similarity": similarity, "index_options": {"type": kind}}
    shard = IndexShard("i", Mapping.of({"properties": {"v": field, "n": {"type": "integer"}}}, ANALYZERS), {})
    write(shard, vectors)
    return shard


@pytest.mark.parametrize("similarity", ["cosine", "l2_norm", "max_inner_product"])
@pytest.mark.parametrize("kind", QUANTIZED)
def test_each_type_of_an_index_takes_what_it_says_and_finds_the_nearest(kind: str, similarity: str) -> None:
    vectors = _wide(4_100)
    vectors, queries = vectors[:4_000], vectors[4_000:]
    shard = _index_of(kind, similarity, vectors)
    (job,) = missing_graphs(shard.leaves(), shard.mapping, rows_min=0)
    assert job.run(None)
    graph = graph_of(shard.leaves()[0].segment, "v")
    assert graph is not None
    assert graph.codes.row_bytes == CODE_BYTES[kind.split("_")[0]]
    assert (graph.links is None) == kind.endswith("flat")
    assert graph.size_bytes == 4_000 * graph.codes.row_bytes + graph.link_bytes
    sizes = vector_sizes(shard.leaves(), shard.mapping)
    codes = (0, graph.codes.codes.nbytes)
    assert (sizes.quantized, sizes.bits) == (codes if kind.startswith("bbq") else codes[::-1])
    assert (sizes.count, sizes.rows, sizes.links) == (4_000, vectors.nbytes, graph.link_bytes)
    metric, every = Metric(similarity, 64), np.arange(4_000, dtype=np.int32)
    for below in (4_000, 1_500):
        hits = 0
        for query in queries:
            scores = metric.scores(vectors, every[:below], query)
            members = {"filter": {"range": {"n": {"lt": below}}}}
            found = nearest(shard, query, **members)
            hits += len(set(found) & set(np.argsort(-scores, kind="stable")[:10].tolist()))
            asked = {"field": "v", "query_vector": query.tolist(), "k": 10, **members}
            np.testing.assert_allclose(scores_of(shard, asked), scores[found], rtol=1e-5)
        assert hits >= 0.95 * 10 * len(queries)


@pytest.mark.parametrize("kind", ["bbq_hnsw", "int4_flat"])
def test_codes_are_larger_where_few_bits_do_not_tell_rows_apart(kind: str) -> None:
    """Clusters that are far from each other, and small: a common centre is near to none of them."""
    random = np.random.default_rng(1)
    far = 100 * random.standard_normal((4, 64))
    vectors = (far[np.arange(2_000) % 4] + random.standard_normal((2_000, 64))).astype(np.float32)
    shard = _index_of(kind, "l2_norm", vectors)
    (job,) = missing_graphs(shard.leaves(), shard.mapping, rows_min=0)
    assert job.run(None)
    graph = graph_of(shard.leaves()[0].segment, "v")
    assert graph is not None
    assert graph.codes.bits >= 8


@pytest.mark.parametrize("kind", ["int4_hnsw", "bbq_hnsw", "bbq_flat"])
def test_small_codes_are_read_from_disk_and_made_anew_with_merges(kind: str, tmp_path: Path) -> None:
    files = IndexFiles(RealFileSystem(), str(tmp_path))
    graphs = GraphFiles(RealFileSystem(), str(tmp_path))
    vectors = _wide(6_000)
    shard = _index_of(kind, "cosine", vectors[:3_000])
    write(shard, vectors[3_000:], 3_000)
    for job in missing_graphs(shard.leaves(), shard.mapping, rows_min=0):
        assert job.run(graphs)
    shard.apply([Operation(Action.DELETE, str(i)) for i in range(0, 6_000, 3)])
    vectors[1::30] = _wide(200, seed=4)
    for i in range(1, 6_000, 30):
        body = orjson.dumps({"v": vectors[i].tolist(), "n": i})
        shard.apply([Operation(Action.INDEX, str(i), body)])
    shard.refresh()
    live = np.arange(6_000) % 3 > 0
    queries = _wide(50, seed=9)
    for merged in (False, True):
        if merged:
            while shard.maybe_merge():
                pass
            shard.flush(files, 1)
            for job in missing_graphs(shard.leaves(), shard.mapping, rows_min=0):
                assert job.run(graphs)
            remove_stale(shard.leaves(), graphs)
        hits = sum(len(set(nearest(shard, query)) & set(exact(vectors, query, live))) for query in queries)
        assert hits >= 0.95 * 10 * len(queries)
    opened = IndexShard.open("i", files, lambda mapping, _: Mapping.of(mapping, ANALYZERS))
    assert opened is not None
    for job in missing_graphs(opened.leaves(), opened.mapping, rows_min=0):
        assert job.run(graphs, stopped=lambda: True)  # building would have been stopped
    for one, two in zip(shard.leaves(), opened.leaves(), strict=True):
        built, read = graph_of(one.segment, "v"), graph_of(two.segment, "v")
        assert built is not None
        assert read is not None
        assert read.to_bytes() == built.to_bytes()
    assert [nearest(opened, query) for query in queries] == [nearest(shard, query) for query in queries]


def test_more_is_scored_where_more_is_asked_for() -> None:
    """`rescore_vector`: of the field, and of a request."""

    def candidates(kind: str, options: dict[str, Any], **members: Any) -> int:
        index_options = {"type": kind, **options}
        field = {"type": "dense_vector", "dims": 2, "index_options": index_options}
        mapping = Mapping.of({"properties": {"v": field}}, ANALYZERS)
        body = {"knn": {"field": "v", "query_vector": [1, 2], "k": 10, "num_candidates": 12, **members}}
        parsed = parse_query(body, QueryContext(mapping, ANALYZERS))
        assert isinstance(parsed, KnnQuery)
        return parsed.sought.candidates

    assert candidates("int4_hnsw", {}) == 12
    assert candidates("bbq_hnsw", {}) == 30
    assert candidates("bbq_hnsw", {}, rescore_vector={"oversample": 0}) == 12
    assert candidates("bbq_flat", {}, rescore_vector={"oversample": 4.55}) == 46
    assert candidates("int4_flat", {"rescore_vector": {"oversample": 2}}) == 20
    assert candidates("int4_flat", {"rescore_vector": {"oversample": "?"}}) == 12
    assert candidates("hnsw", {}, rescore_vector={"oversample": 1e300}) == 10_000


@pytest.mark.parametrize(
    "wrong",
    [
        *(3, [], {}, {"oversample": "3"}, {"oversample": True}, {"oversample": 0.5}, {"oversample": -1}),
        *({"oversample": float("nan")}, {"oversample": 2, "more": 1}),
    ],
)
def test_what_is_no_factor_is_refused(wrong: Any) -> None:
    context = QueryContext(mapping_of(), ANALYZERS)
    body = {"knn": {"field": "v", "query_vector": [1.0] * DIMS, "rescore_vector": wrong}}
    with pytest.raises(SearchError, match=r"oversample"):
        parse_query(body, context)


def _crash_after(operations: int) -> Callable[[str], None]:
    left = iter(range(operations))

    def fault(operation: str) -> None:
        if next(left, None) is None:
            raise Crash

    return fault


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_what_a_crash_leaves_of_a_graph_is_whole_or_is_none(bits: int) -> None:
    """Wherever the saving of codes and links ends, with what was not synced lost or torn."""
    rows, shape = _wide(300), GraphShape("cosine", bits=bits)
    graph = build_graph(rows, shape)
    assert graph is not None
    ends = {True: 0, False: 0}
    for seed in range(200):
        system = LossyFileSystem(Random(seed))
        system.make_directory("index")
        system.fault = _crash_after(seed % 10)
        with contextlib.suppress(Crash):
            GraphFiles(system, "index").save("_1_1", "v", graph, rows)
        system.fault = _crash_after(1_000)
        system.crash()
        found = GraphFiles(system, "index").load("_1_1", "v", rows, shape)
        assert found is None or found.to_bytes() == graph.to_bytes()
        ends[found is None] += 1
    assert min(ends.values()) > 0
