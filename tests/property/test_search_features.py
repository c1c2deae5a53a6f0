"""`distance_feature`, `rank_feature`, `pinned`, `geo_polygon` and `wrapper` against plain Python."""

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
    expected = {
        number: pytest.approx(boost * pivot / (pivot + abs(doc["d"] / DAY - 5)), rel=1e-5)
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
