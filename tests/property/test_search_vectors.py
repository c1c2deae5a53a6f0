"""The nearest vectors against plain NumPy over the documents themselves, whatever happens to the index."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.analysis import Analyzers
from graphdb.search.errors import SearchError
from graphdb.search.mapping import Mapping
from graphdb.search.mapping.vectors import VECTOR_INDEX_TYPES
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.results import search
from graphdb.search.segments.index_files import IndexFiles
from graphdb.search.segments.index_shard import IndexShard
from graphdb.search.segments.operations import Action, Operation
from graphdb.search.vectors import GraphFiles, missing_graphs, nearest
from tests.simulation.lossy_file_system import LossyFileSystem

SIMILARITIES = ("cosine", "l2_norm", "max_inner_product")
ANALYZERS = Analyzers.of({})
Doc = dict[str, Any]

elements = st.integers(-8, 8).map(lambda number: number / 4)
vectors = st.lists(elements, min_size=3, max_size=3).filter(any)
documents = st.fixed_dictionaries(
    {"tag": st.sampled_from("ab")},
    optional={name: vectors for name in SIMILARITIES} | {"objects": st.lists(vectors, max_size=3)},
)
ids = st.integers(0, 11).map(str)
steps = st.one_of(
    st.tuples(st.just("index"), ids, documents),
    st.tuples(st.just("delete"), ids),
    st.tuples(st.sampled_from(["refresh", "flush", "merge", "reopen", "graphs"])),
)


@pytest.fixture(autouse=True)
def _codes_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs and codes are asked however few rows there are: all of them are scored then, found by codes."""
    monkeypatch.setattr(nearest, "_SCORED_MAX", 0)


def _mapping(kind: str = "hnsw") -> Mapping:
    vector = {"type": "dense_vector", "dims": 3, "index_options": {"type": kind}}
    fields: Doc = {name: {**vector, "similarity": name} for name in SIMILARITIES}
    inner = {"v": {**vector, "similarity": "l2_norm"}}
    fields |= {"tag": {"type": "keyword"}, "objects": {"type": "nested", "properties": inner}}
    return Mapping.of({"properties": fields}, ANALYZERS)


class _Twin:
    """A shard, and the documents that a search should see in it."""

    def __init__(self, kind: str = "hnsw") -> None:
        system = LossyFileSystem(Random(0))
        self.files, self.graphs = IndexFiles(system, "index"), GraphFiles(system, "index")
        self.shard = IndexShard("i", _mapping(kind), {})
        self.shard.flush(self.files, 0)
        self.written: dict[str, Doc] = {}
        self.visible: dict[str, Doc] = {}

    def do(self, step: Sequence[Any]) -> None:
        kind = step[0]
        if kind == "index":
            body = step[2] | {"objects": [{"v": vector} for vector in step[2].get("objects", [])]}
            result = self.shard.apply([Operation(Action.INDEX, step[1], orjson.dumps(body))])[0]
            assert result.error is None
            self.written[step[1]] = step[2]
        elif kind == "delete":
            self.shard.apply([Operation(Action.DELETE, step[1])])
            self.written.pop(step[1], None)
        elif kind == "graphs":
            for job in missing_graphs(self.shard.leaves(), self.shard.mapping, rows_min=1):
                assert job.run(self.graphs)
        elif kind == "merge":
            self.shard.maybe_merge()
        elif kind == "reopen":
            self.shard.flush(self.files, 1)
            opened = IndexShard.open("i", self.files, lambda mapping, _: Mapping.of(mapping, ANALYZERS))
            assert opened is not None
            self.shard = opened
        else:
            self.shard.flush(self.files, 1) if kind == "flush" else self.shard.refresh()
        if kind in ("refresh", "flush", "reopen"):
            self.visible = dict(self.written)

    def search(self, body: Doc) -> dict[str, float]:
        searcher = Searcher(self.shard.leaves(), self.shard.mapping, ANALYZERS)
        answer = search(body | {"size": 100}, searcher, QueryContext(self.shard.mapping, ANALYZERS))
        return {hit["_id"]: hit["_score"] for hit in answer["hits"]["hits"]}


def _score(similarity: str, one: Sequence[float], two: Sequence[float]) -> float:
    a, b = np.array(one), np.array(two)
    if similarity == "l2_norm":
        return float(1 / (1 + ((a - b) ** 2).sum()))
    if similarity == "cosine":
        return float((1 + a @ b / np.linalg.norm(a) / np.linalg.norm(b)) / 2)
    product = float(a @ b)
    return product + 1 if product >= 0 else 1 / (1 - product)


def _agree(found: dict[str, float], scores: dict[str, float], k: int) -> None:
    """The best k, where any may stand for others that score the same."""
    assert sorted(found.values(), reverse=True) == pytest.approx(
        sorted(scores.values(), reverse=True)[:k], rel=1e-4, abs=1e-5
    )
    for doc, score in found.items():
        assert score == pytest.approx(scores[doc], rel=1e-4, abs=1e-5)


@settings(deadline=None)
@given(
    st.lists(steps, max_size=30),
    vectors,
    st.integers(1, 8),
    st.sampled_from(SIMILARITIES),
    st.booleans(),
    st.sampled_from(VECTOR_INDEX_TYPES),
)
def test_the_nearest_are_those_of_the_documents(
    history: list[Sequence[Any]], query: list[float], k: int, similarity: str, filtered: bool, kind: str
) -> None:
    twin = _Twin(kind)
    knn: Doc = {"field": similarity, "query_vector": query, "k": k, "num_candidates": 100}
    if filtered:
        knn["filter"] = {"term": {"tag": "a"}}
    for step in [*history, ("refresh",)]:
        twin.do(step)
        scores = {
            doc: _score(similarity, query, body[similarity])
            for doc, body in twin.visible.items()
            if similarity in body and (not filtered or body["tag"] == "a")
        }
        _agree(twin.search({"knn": knn}), scores, k)  # each time, for filters are remembered
    _agree(twin.search({"query": {"knn": knn}}), scores, k)
    found = twin.search({"query": {"exists": {"field": similarity}}})
    assert set(found) == {doc for doc, body in twin.visible.items() if similarity in body}


@settings(deadline=None)
@given(st.lists(steps, max_size=30), vectors, st.integers(1, 8), st.sampled_from(VECTOR_INDEX_TYPES))
def test_of_nested_vectors_the_best_counts(
    history: list[Sequence[Any]], query: list[float], k: int, kind: str
) -> None:
    twin = _Twin(kind)
    for step in [*history, ("refresh",)]:
        twin.do(step)
    scores = {
        doc: max(_score("l2_norm", query, vector) for vector in body["objects"])
        for doc, body in twin.visible.items()
        if body.get("objects")
    }
    knn = {"field": "objects.v", "query_vector": query, "k": k, "num_candidates": 100}
    _agree(twin.search({"knn": knn}), scores, k)
    nested = {"nested": {"path": "objects", "query": {"knn": knn}, "score_mode": "max"}}
    _agree(twin.search({"query": nested}), scores, k)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
members = st.sampled_from(
    [
        "field",
        "query_vector",
        "k",
        "num_candidates",
        "filter",
        "similarity",
        "boost",
        "_name",
        "rescore_vector",
    ]
)


@settings(deadline=None)
@given(st.dictionaries(members, json_values, max_size=4), st.booleans())
def test_hostile_clauses_are_errors_of_search(changes: Doc, as_query: bool) -> None:
    twin = _Twin()
    twin.do(("index", "1", {"tag": "a", "cosine": [1, 2, 3]}))
    twin.do(("refresh",))
    knn = {"field": "cosine", "query_vector": [1, 1, 1], "k": 2, **changes}
    try:
        found = twin.search({"query": {"knn": knn}} if as_query else {"knn": knn})
    except SearchError:
        return
    assert set(found) <= {"1"}
