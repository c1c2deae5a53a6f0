"""`dense_vector` of bits. What is expected is what Elasticsearch 8.19.21 says to the same requests."""

from typing import Any

import httpx
import pytest

_VALUES: dict[str, Any] = {"0": "0000", "1": "ffff", "2": "0f0f", "3": "0001", "4": [1, 1], "x": [-1, 127]}


def _create(http: httpx.Client, **more: Any) -> httpx.Response:
    vector = {"type": "dense_vector", "element_type": "bit", **more}
    return http.put("/i", json={"mappings": {"properties": {"v": vector}}})


@pytest.fixture
def filled(http: httpx.Client) -> httpx.Client:
    _create(http, dims=16).raise_for_status()
    for doc_id, value in _VALUES.items():
        http.put(f"/i/_doc/{doc_id}?refresh=true", json={"v": value}).raise_for_status()
    return http


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"dims": 12}, "should be a multiple of 8 but was [12]"),
        ({"dims": 32_832}, "should be in the range [8, 32768] but was [32832]"),
        (
            {"dims": 16, "similarity": "cosine"},
            "[l2_norm] similarity is the only supported similarity for bit",
        ),
        (
            {"dims": 16, "index_options": {"type": "int8_hnsw"}},
            "[element_type] cannot be [bit] when using index type [int8_hnsw]",
        ),
        (
            {"dims": 16, "index_options": {"type": "bbq_flat"}},
            "[element_type] cannot be [bit] when using index type [bbq_flat]",
        ),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(
    http: httpx.Client, more: dict[str, Any], reason: str
) -> None:
    answer = _create(http, **more)
    assert answer.status_code == 400
    assert reason in answer.json()["error"]["reason"]


def test_dims_come_with_the_first_document(http: httpx.Client) -> None:
    _create(http).raise_for_status()
    http.put("/i/_doc/1", json={"v": "0102ff"}).raise_for_status()
    shown = http.get("/i/_mapping").json()["i"]["mappings"]["properties"]["v"]
    assert (shown["dims"], shown["similarity"]) == (24, "l2_norm")


@pytest.mark.parametrize("value", [[1, 2, 3], "01", "zz00", [300, 1], [-129, 1], [1.5, 1], [True, False], 7])
def test_what_are_no_such_bits_is_refused(filled: httpx.Client, value: Any) -> None:
    assert filled.put("/i/_doc/y", json={"v": value}).status_code == 400


def test_the_nearest_differ_in_the_fewest_bits(filled: httpx.Client) -> None:
    for query in ("0001", [0, 1]):
        knn = {"field": "v", "query_vector": query, "k": 3, "num_candidates": 10}
        for asked in (knn, knn | {"k": 6, "similarity": 4}):
            hits = filled.post("/i/_search", json={"knn": asked}).json()["hits"]["hits"]
            assert [(hit["_id"], hit["_score"]) for hit in hits] == [("3", 1.0), ("0", 0.9375), ("4", 0.9375)]
    wrong = {"field": "v", "query_vector": [1, 2, 3], "k": 3, "num_candidates": 10}
    assert "dimensions [24]" in filled.post("/i/_search", json={"knn": wrong}).text


def test_they_are_shown_as_signed_bytes(filled: httpx.Client) -> None:
    body = {"docvalue_fields": ["v"], "query": {"ids": {"values": ["x"]}}}
    (hit,) = filled.post("/i/_search", json=body).json()["hits"]["hits"]
    assert hit["fields"] == {"v": [[-1, 127]]}


@pytest.mark.parametrize(
    ("source", "query", "scores"),
    [
        ("hamming(params.q, 'v')", "0001", {"0": 1, "1": 15, "2": 7, "3": 0, "4": 1, "x": 14}),
        ("l1norm(params.q, 'v')", [0, 1], {"0": 1, "1": 15, "2": 7, "3": 0, "4": 1, "x": 14}),
        ("Math.pow(l2norm(params.q, 'v'), 2)", [0, 1], {"0": 1, "1": 15, "2": 7, "3": 0, "4": 1, "x": 14}),
        ("dotProduct(params.q, 'v')", "0003", {"0": 0, "1": 2, "2": 2, "3": 1, "4": 1, "x": 2}),
        ("dotProduct(params.q, 'v')", [0.5] * 16, {"0": 0, "1": 8, "2": 4, "3": 0.5, "4": 1, "x": 7.5}),
    ],
)
def test_scripts_compare_them(
    filled: httpx.Client, source: str, query: Any, scores: dict[str, float]
) -> None:
    script = {"source": source, "params": {"q": query}}
    body = {"query": {"script_score": {"query": {"exists": {"field": "v"}}, "script": script}}}
    hits = filled.post("/i/_search", json=body).json()["hits"]["hits"]
    assert {hit["_id"]: round(hit["_score"], 4) for hit in hits} == scores


@pytest.mark.parametrize("source", ["cosineSimilarity(params.q, 'v') + 1", "hamming(params.q, 'f')"])
def test_what_scripts_cannot_compare_is_said(filled: httpx.Client, source: str) -> None:
    floats = {"f": {"type": "dense_vector", "dims": 2}}
    filled.put("/i/_mapping", json={"properties": floats}).raise_for_status()
    filled.put("/i/_doc/0?refresh=true", json={"v": "0000", "f": [1, 2]}).raise_for_status()
    script = {"source": source, "params": {"q": [0, 1]}}
    body = {"query": {"script_score": {"query": {"ids": {"values": ["0"]}}, "script": script}}}
    answer = filled.post("/i/_search", json=body)
    assert answer.status_code == 400
    assert "bit vectors" in answer.text
