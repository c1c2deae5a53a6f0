"""The types of an index of vectors: what mappings, searches and `_stats` say of them."""

import json
from typing import Any

import httpx
import numpy as np
import pytest

from graphdb.search.vectors import Graph, graphs_of, missing_graphs
from tests.support.memory_search import MemorySearch

_TYPES = ("hnsw", "int8_hnsw", "int4_hnsw", "bbq_hnsw", "flat", "int8_flat", "int4_flat", "bbq_flat")
_DIMS, _ROWS = 64, 40
_CODE_BYTES = {
    **dict.fromkeys(("hnsw", "int8_hnsw", "int8_flat"), _DIMS),
    **dict.fromkeys(("int4_hnsw", "int4_flat"), _DIMS // 2 + 16),
    **dict.fromkeys(("bbq_hnsw", "bbq_flat"), _DIMS // 8 + 16),
    "flat": 0,
}


def _vectors() -> list[list[float]]:
    rows: list[list[float]] = np.random.default_rng(0).standard_normal((_ROWS, _DIMS)).round(3).tolist()
    return rows


def _fill(http: httpx.Client, kind: str, **options: Any) -> None:
    field = {"type": "dense_vector", "dims": _DIMS, "index_options": {"type": kind, **options}}
    http.put("/i", json={"mappings": {"properties": {"v": field}}}).raise_for_status()
    lines = [line for n, v in enumerate(_vectors()) for line in ({"index": {"_id": str(n)}}, {"v": v})]
    body = "".join(f"{json.dumps(line)}\n" for line in lines)
    headers = {"Content-Type": "application/x-ndjson"}
    http.post("/i/_bulk?refresh=true", content=body, headers=headers).raise_for_status()


def _knn(http: httpx.Client, path: str = "/i/_search", **members: Any) -> httpx.Response:
    knn = {"field": "v", "query_vector": _vectors()[3], "k": 5, **members}
    return http.post(path, json={"knn": knn})


@pytest.mark.parametrize("kind", _TYPES)
def test_rescore_vector_is_taken_wherever_knn_is(http: httpx.Client, kind: str) -> None:
    _fill(http, kind)
    plain = _knn(http).json()["hits"]["hits"]
    rescored = {"rescore_vector": {"oversample": 2.5}}
    knn = {"field": "v", "query_vector": _vectors()[3], "k": 5, "num_candidates": 8, **rescored}
    bodies = ({"knn": knn}, {"retriever": {"knn": knn}}, {"query": {"knn": knn}, "size": 5})
    for body in bodies:
        found = http.post("/i/_search", json=body).raise_for_status().json()["hits"]["hits"]
        assert found == plain
    old = _knn(http, "/i/_knn_search", num_candidates=8, **rescored).raise_for_status()
    assert old.json()["hits"]["hits"] == plain
    refused = _knn(http, rescore_vector={"oversample": 0.9})
    assert refused.status_code == 400
    assert refused.json()["error"]["root_cause"][0]["reason"] == (
        "[oversample] must be >= 1.0, or 0, but was [0.9]"
    )


@pytest.mark.parametrize("kind", _TYPES)
def test_mappings_say_what_they_were_told(http: httpx.Client, kind: str) -> None:
    if kind in ("hnsw", "flat"):  # they keep no codes that could be scored anew
        with pytest.raises(httpx.HTTPStatusError):
            _fill(http, kind, rescore_vector={"oversample": 2.0})
        return
    _fill(http, kind, rescore_vector={"oversample": 2.0})
    shown = http.get("/i/_mapping").json()["i"]["mappings"]["properties"]["v"]["index_options"]
    assert shown["type"] == kind
    assert shown["rescore_vector"] == {"oversample": 2.0}
    caps = http.get("/i/_field_caps?fields=v").json()["fields"]["v"]["dense_vector"]
    assert (caps["type"], caps["searchable"], caps["aggregatable"]) == ("dense_vector", True, False)


@pytest.mark.parametrize("kind", _TYPES)
def test_stats_say_what_vectors_take(http: httpx.Client, node: MemorySearch, kind: str) -> None:
    _fill(http, kind)
    rows = _ROWS * _DIMS * 4
    sizes = _stats(http)
    assert (sizes["total_size_bytes"], sizes["total_vec_size_bytes"]) == (rows, rows)
    index = node.catalog.find("i")
    assert index is not None
    for job in missing_graphs(index.shards.leaves(), index.mapping, rows_min=1):
        assert job.run(None)
    graphs = [graph for leaf in index.shards.leaves() for graph in graphs_of(leaf.segment).values()]
    assert bool(graphs) == (kind != "flat")
    codes, links = (sum(sizes) for sizes in zip((0, 0), *map(_bytes_of, graphs), strict=True))
    assert _stats(http) == {
        "total_size_bytes": rows + codes + links,
        "total_vec_size_bytes": rows,
        "total_veb_size_bytes": codes if kind.startswith("bbq") else 0,
        "total_veq_size_bytes": 0 if kind.startswith("bbq") else codes,
        "total_vex_size_bytes": links,
    }
    assert codes == _ROWS * _CODE_BYTES[kind]
    assert bool(links) == kind.endswith("hnsw")
    http.delete("/i/_doc/7?refresh=true").raise_for_status()
    assert _stats(http, _ROWS - 1)["total_vec_size_bytes"] == rows


def _stats(http: httpx.Client, count: int = _ROWS) -> dict[str, int]:
    shown = http.get("/i/_stats/dense_vector").json()["_all"]["total"]
    assert shown.keys() == {"dense_vector"}
    assert shown["dense_vector"]["value_count"] == count
    of_all = http.get("/_cluster/stats").json()["indices"]["dense_vector"]
    assert of_all == shown["dense_vector"]
    sizes: dict[str, int] = shown["dense_vector"]["off_heap"]
    return sizes


def _bytes_of(graph: Graph) -> tuple[int, int]:
    return graph.codes.codes.nbytes, graph.link_bytes
