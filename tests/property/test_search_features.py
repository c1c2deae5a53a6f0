"""Queries that score by features, and others by their own formulas, against plain Python.

`distance_feature`, `rank_feature`, `sparse_vector`, `combined_fields`, `pinned`, `geo_polygon`, `wrapper`.
"""

import base64
import math
import struct
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from tests.unit.search.results.index import Index

FIELDS = {
    "d": {"type": "date"},
    "p": {"type": "geo_point"},
    "k": {"type": "keyword"},
    "r": {"type": "rank_feature"},
    "worse": {"type": "rank_feature", "positive_score_impact": False},
}
DAY = 86_400_000
documents = st.lists(
    st.fixed_dictionaries(
        {"k": st.sampled_from("ab")},
        optional={
            "d": st.integers(0, 20).map(lambda day: day * DAY),
            "r": st.floats(0.01, 1000),
            "p": st.tuples(st.integers(-9, 9), st.integers(-9, 9)).map(lambda p: {"lat": p[0], "lon": p[1]}),
        },
    ),
    max_size=9,
)


def scores(index: Index, query: dict[str, Any]) -> dict[int, float]:
    return {int(hit["_id"]): hit["_score"] for hit in index.hits(query=query, size=50, _source=False)}


def kept(value: float) -> float:
    """The nine significant bits that Lucene keeps."""
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    (short,) = struct.unpack("<f", struct.pack("<i", bits >> 15 << 15))
    return float(short)


@settings(max_examples=40, deadline=None)
@given(documents, st.integers(1, 9), st.floats(1, 3))
def test_scores_of_features(docs: list[dict[str, Any]], pivot: int, boost: float) -> None:
    index = Index(FIELDS, docs)
    body = {"field": "d", "origin": "1970-01-06", "pivot": f"{pivot}d", "boost": boost}
    end = 6 - 1 / DAY  # the last millisecond of that day, as in Elasticsearch
    expected = {
        number: pytest.approx(boost * pivot / (pivot + abs(doc["d"] / DAY - end)), rel=1e-5)
        for number, doc in enumerate(docs)
        if "d" in doc
    }
    assert scores(index, {"distance_feature": body}) == expected
    values = {number: kept(doc["r"]) for number, doc in enumerate(docs) if "r" in doc}
    mean = math.fsum(values.values()) / max(len(values), 1)
    functions: dict[str, tuple[dict[str, Any], Any]] = {
        "saturation": ({"pivot": pivot}, lambda s: s / (s + pivot)),
        "log": ({"scaling_factor": pivot}, lambda s: math.log(pivot + s)),
        "sigmoid": ({"pivot": pivot, "exponent": 0.6}, lambda s: s**0.6 / (s**0.6 + pivot**0.6)),
        "linear": ({}, lambda s: s),
    }
    for name, (parameters, function) in functions.items():
        found = scores(index, {"rank_feature": {"field": "r", name: parameters, "boost": boost}})
        wanted = {number: pytest.approx(boost * function(s), rel=1e-5) for number, s in values.items()}
        assert found == wanted, name
    found = scores(index, {"rank_feature": {"field": "r"}})
    assert found == {number: pytest.approx(s / (s + mean), rel=1e-5) for number, s in values.items()}


@settings(max_examples=40, deadline=None)
@given(documents, st.lists(st.integers(0, 9), max_size=4))
def test_pinned_documents_come_first(docs: list[dict[str, Any]], ids: list[int]) -> None:
    index, organic = Index(FIELDS, docs), {"term": {"k": "a"}}
    query = {"pinned": {"ids": ids, "organic": organic}}
    found = [int(one) for one in index.ids(query=query, size=50)]
    pinned = [one for one in dict.fromkeys(ids) if one < len(docs)]
    others = [int(one) for one in index.ids(query=organic, size=50) if int(one) not in pinned]
    assert found == pinned + others
    elsewhere = {"pinned": {"docs": [{"_index": "x", "_id": "0"}], "organic": organic}}
    assert index.ids(query=elsewhere, size=50) == index.ids(query=organic, size=50)


@settings(max_examples=40, deadline=None)
@given(documents)
def test_points_in_a_polygon(docs: list[dict[str, Any]]) -> None:
    """The inside of a triangle, by the side of each edge that a point is on."""
    corners = [(-8.5, -8.5), (8.5, -0.5), (-4.5, 8.5)]
    query = {"geo_polygon": {"p": {"points": [{"lat": lat, "lon": lon} for lat, lon in corners]}}}
    expected = []
    for number, doc in enumerate(docs):
        if "p" in doc:
            lat, lon = doc["p"]["lat"], doc["p"]["lon"]
            sides = [
                (b[0] - a[0]) * (lon - a[1]) - (b[1] - a[1]) * (lat - a[0]) > 0
                for a, b in zip(corners, corners[1:] + corners[:1], strict=True)
            ]
            if len(set(sides)) == 1:
                expected.append(number)
    assert sorted(scores(Index(FIELDS, docs), query)) == expected


def test_wrapped_queries_and_inverse_features() -> None:
    index = Index(FIELDS, [{"k": "a", "worse": 4}, {"k": "b", "worse": 2}])
    text = base64.b64encode(orjson.dumps({"term": {"k": "b"}})).decode()
    assert index.ids(query={"wrapper": {"query": text}}) == ["1"]
    assert index.ids(query={"rank_feature": {"field": "worse"}}) == ["1", "0"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"wrapper": {"query": "e30="}}, "empty clause"),
        ({"wrapper": {"query": "!"}}, "JSON in base64"),
        (
            {"distance_feature": {"field": "k", "origin": 1, "pivot": "1d"}},
            "Illegal data type",
        ),
        ({"distance_feature": {"field": "d", "origin": 1}}, "Required \\[field, origin, pivot\\]"),
        ({"rank_feature": {"field": "k"}}, "only works on \\[rank_feature\\]"),
        ({"rank_feature": {"field": "worse", "log": {"scaling_factor": 2}}}, "negative score impact"),
        ({"rank_feature": {"field": "r", "log": {}, "linear": {}}}, "Can only specify one"),
        ({"pinned": {"ids": []}}, "Required \\[organic\\]"),
        ({"pinned": {"organic": {"match_all": {}}}}, "one of \\[ids\\] and \\[docs\\]"),
        ({"geo_polygon": {"p": {"points": [[0, 0], [1, 1]]}}}, "too few points"),
    ],
)
def test_what_is_refused(query: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        Index(FIELDS, [{"k": "a"}]).ids(query=query)


def test_features_are_positive_numbers() -> None:
    for value in (0, -1, "x"):
        with pytest.raises(SearchError):
            Index(FIELDS, [{"r": value}])


# Features by name: `rank_features` and `sparse_vector`.

WEIGHTS = st.dictionaries(st.sampled_from("abcd"), st.floats(0.01, 100), max_size=3)
NAMED = {"v": {"type": "sparse_vector"}, "f": {"type": "rank_features"}}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.fixed_dictionaries({"v": WEIGHTS, "f": WEIGHTS}), max_size=9), WEIGHTS.filter(bool))
def test_products_of_sparse_vectors(docs: list[dict[str, Any]], vector: dict[str, float]) -> None:
    index = Index(NAMED, docs)
    expected = {}
    for number, doc in enumerate(docs):
        shared = set(doc["v"]) & set(vector)
        if shared:
            score = 2 * math.fsum(kept(doc["v"][name]) * vector[name] for name in shared)
            expected[number] = pytest.approx(score, rel=1e-5)
    body = {"field": "v", "query_vector": vector, "boost": 2}
    assert scores(index, {"sparse_vector": body}) == expected
    assert scores(index, {"weighted_tokens": {"v": {"tokens": vector}, "boost": 2}}) == expected
    for hit in index.hits(query={"sparse_vector": body}, explain=True, fields=["v"]):
        assert hit["_explanation"]["value"] == pytest.approx(hit["_score"])
        assert hit["fields"]["v"] == [docs[int(hit["_id"])]["v"]]
    having = {number: 1.0 for number, doc in enumerate(docs) if doc["v"]}
    assert scores(index, {"exists": {"field": "v"}}) == having
    features = {number: kept(doc["f"]["a"]) for number, doc in enumerate(docs) if "a" in doc["f"]}
    found = scores(index, {"rank_feature": {"field": "f.a", "linear": {}}})
    assert found == {number: pytest.approx(value, rel=1e-5) for number, value in features.items()}


@settings(max_examples=40, deadline=None)
@given(st.lists(WEIGHTS, min_size=1, max_size=9), WEIGHTS.filter(bool), st.integers(1, 3), st.floats(0, 1))
def test_pruned_vectors(
    docs: list[dict[str, float]], vector: dict[str, float], freq_ratio: int, weight_ratio: float
) -> None:
    """Kept are the tokens that are rare or heavy; distinct tokens count once in each of the two segments."""
    index = Index(NAMED, [{"v": doc} for doc in docs])
    half = (len(docs) + 1) // 2
    distinct = sum(len(set().union(*part)) for part in (docs[:half], docs[half:]))
    count = sum(map(bool, docs))
    mean = sum(map(len, docs)) / count / distinct if distinct else 0
    sides: tuple[list[str], list[str]] = [], []
    for token, weight in vector.items():
        frequency = sum(token in doc for doc in docs)
        is_rare = frequency and frequency / count < freq_ratio * mean
        sides[bool(is_rare or (frequency and weight > weight_ratio * max(vector.values())))].append(token)
    for others in (False, True):
        config = {"tokens_freq_ratio_threshold": freq_ratio, "tokens_weight_threshold": weight_ratio}
        config["only_score_pruned_tokens"] = others
        body = {"field": "v", "query_vector": vector, "prune": True, "pruning_config": config}
        tokens = sides[not others]
        expected = [number for number, doc in enumerate(docs) if set(tokens) & set(doc)]
        assert sorted(scores(index, {"sparse_vector": body})) == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"a.b": 1}, "do not support dots in feature names"),
        ({"a": 0}, "positive normal float"),
        ({"a": 1e-40}, "less than the minimum positive normal float"),
        ({"a": {}}, "strictly positive float"),
        (5, "strictly positive float"),
    ],
)
def test_features_that_are_refused(value: Any, reason: str) -> None:
    for name in NAMED:
        with pytest.raises(SearchError) as raised:
            Index(NAMED, [{name: value}])
        assert raised.value.cause is not None
        assert reason in raised.value.cause.reason


# `combined_fields`.

TEXTS = st.lists(st.sampled_from(["red", "fox", "dog"]), max_size=5).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.fixed_dictionaries({"t": TEXTS, "u": TEXTS}), max_size=9),
    st.lists(st.sampled_from(["red", "fox", "cow"]), min_size=1, max_size=2, unique=True),
    st.sampled_from([1, 2.5]),
    st.sampled_from(["or", "and"]),
)
def test_combined_fields(docs: list[dict[str, str]], words: list[str], weight: float, operator: str) -> None:
    """BM25 of one field that has the words of `t` so many times, and those of `u` once."""
    index = Index({"t": {"type": "text"}, "u": {"type": "text"}}, docs)
    weights = {"t": weight, "u": 1.0}
    count = max(sum(bool(doc[name]) for doc in docs) for name in weights) if docs else 0
    total = int(sum(weights[name] * len(doc[name].split()) for doc in docs for name in weights))
    expected = {}
    for number, doc in enumerate(docs):
        length = math.floor(sum(weights[name] * len(doc[name].split()) for name in weights) + 0.5)
        parts = []
        for word in words:
            frequency = sum(weights[name] * doc[name].split().count(word) for name in weights)
            n = max(sum(word in one[name].split() for one in docs) for name in weights)
            idf = math.log(1 + (count - n + 0.5) / (n + 0.5))
            if frequency:
                norm = 1.2 * (0.25 + 0.75 * length / (total / count))
                parts.append(2.2 * idf * frequency / (frequency + norm))
        if parts and (operator == "or" or len(parts) == len(words)):
            expected[number] = pytest.approx(math.fsum(parts), rel=1e-4)
    body = {"query": " ".join(words), "fields": [f"t^{weight}", "u", "absent"], "operator": operator}
    assert scores(index, {"combined_fields": body}) == expected
    for hit in index.hits(query={"combined_fields": body}, explain=True):
        assert hit["_explanation"]["value"] == pytest.approx(hit["_score"])


def test_combined_fields_that_are_refused() -> None:
    index = Index(FIELDS | {"t": {"type": "text"}, "w": {"type": "text", "analyzer": "whitespace"}}, [])
    cases = {
        "does not support \\[combined_fields\\] queries": ["t", "k"],
        "at least 1": ["t^0.5"],
        "must have the same search analyzer": ["t", "w"],
    }
    for reason, fields in cases.items():
        with pytest.raises(SearchError, match=reason):
            index.ids(query={"combined_fields": {"query": "x", "fields": fields}})
    for body in ({"fields": ["t"]}, {"query": "x"}, {"query": "x", "fields": ["t"], "type": "phrase"}):
        with pytest.raises(SearchError):
            index.ids(query={"combined_fields": body})
    assert index.ids(query={"combined_fields": {"query": "x", "fields": ["absent"]}}) == []
