"""Statistics of buckets against their definitions."""

import math
from itertools import pairwise
from random import Random
from statistics import correlation, covariance, fmean, variance
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from tests.unit.search.results.index import Index

NUMBERS = {name: {"type": "double"} for name in ("x", "y", "z")} | {"k": {"type": "keyword"}}


def indexed(*documents: dict[str, Any]) -> Index:
    return Index(NUMBERS, documents)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # With one degree of freedom it is Cauchy's distribution, with two there is a closed form too.
        ([(3.0, 1.0), (5.0, 2.0)], lambda t: 1 - 2 / math.pi * math.atan(t)),
        ([(3.0, 1.0), (5.0, 2.0), (4.0, 4.5)], lambda t: 1 - t / math.sqrt(2 + t * t)),
    ],
)
def test_paired_t_test(pairs: list[tuple[float, float]], expected: Any) -> None:
    index = indexed(*({"x": x, "y": y} for x, y in pairs), {"x": 9})
    body = {"t_test": {"a": {"field": "x"}, "b": {"field": "y"}, "type": "paired"}}
    apart = [x - y for x, y in pairs]
    t = abs(fmean(apart)) / math.sqrt(variance(apart) / len(apart))
    assert index.aggregations({"t": body})["t"]["value"] == pytest.approx(expected(t), rel=1e-12)


def test_t_tests_of_two_samples() -> None:
    """Two samples of two values: with equal variances both tests have two degrees of freedom."""
    index = indexed({"x": 1, "k": "a"}, {"x": 3, "k": "a"}, {"x": 6, "k": "b"}, {"x": 8, "k": "b"})
    samples = {side: {"field": "x", "filter": {"term": {"k": side}}} for side in "ab"}
    t = 5 / math.sqrt(2)
    for kind in ("homoscedastic", "heteroscedastic"):
        value = index.aggregations({"t": {"t_test": {**samples, "type": kind}}})["t"]["value"]
        assert value == pytest.approx(1 - t / math.sqrt(2 + t * t), rel=1e-12)
    assert index.aggregations({"t": {"t_test": {"a": {"field": "x"}, "b": {"field": "y"}}}})["t"] == {
        "value": None
    }


def test_matrix_stats() -> None:
    # numbers whose sums are exact, in whichever order shards add them up
    random = Random(1)
    rows = [(random.randrange(100), random.randrange(10) ** 2) for _ in range(32)]
    index = indexed(*({"x": x, "y": [y, y]} for x, y in rows), {"x": 5})
    found = index.aggregations({"m": {"matrix_stats": {"fields": ["x", "y"]}}})["m"]
    assert found["doc_count"] == 32
    xs, ys = zip(*rows, strict=True)
    for field, own, other in ((found["fields"][0], xs, ys), (found["fields"][1], ys, xs)):
        name = field["name"]
        mean = fmean(own)
        moments = [sum((value - mean) ** power for value in own) for power in (2, 3, 4)]
        assert field["count"] == 32
        assert field["mean"] == pytest.approx(mean)
        assert field["variance"] == pytest.approx(variance(own))
        assert field["skewness"] == pytest.approx(math.sqrt(32) * moments[1] / moments[0] ** 1.5)
        assert field["kurtosis"] == pytest.approx(32 * moments[2] / moments[0] ** 2)
        beside = "y" if name == "x" else "x"
        assert field["covariance"][beside] == pytest.approx(covariance(own, other))
        assert field["correlation"] == {name: 1.0, beside: pytest.approx(correlation(own, other))}
    assert index.aggregations({"m": {"matrix_stats": {"fields": ["x", "nope"]}}})["m"] == {"doc_count": 0}


def test_boxplots_end_at_values_near_the_quartiles() -> None:
    index = indexed(*({"x": value} for value in (0, 10, 11, 12, 13, 14, 40)))
    found = index.aggregations({"b": {"boxplot": {"field": "x"}}})["b"]
    assert (found["q1"], found["q2"], found["q3"]) == (10.5, 12.0, 13.5)
    assert (found["lower"], found["upper"], found["min"], found["max"]) == (10.0, 14.0, 0.0, 40.0)


@pytest.mark.parametrize(
    ("heuristic", "score"),
    [
        ({}, (2 / 3 - 2 / 8) * (2 / 3) / (2 / 8)),
        ({"percentage": {}}, 1.0),
        ({"chi_square": {}}, 8 * (2 * 5 - 1 * 0) ** 2 / (3 * 2 * 6 * 5)),
        ({"gnd": {}}, math.exp(-(math.log(3) - math.log(2)) / (math.log(8) - math.log(2)))),
        (
            {"mutual_information": {}},
            sum(n / 8 * math.log2(8 * n / (a * b)) for n, a, b in ((2, 3, 2), (1, 3, 6), (5, 5, 6))),
        ),
    ],
)
def test_significant_terms(heuristic: dict[str, Any], score: float) -> None:
    """Three of eight documents are in the bucket; two of them, and no others, have the term."""
    documents: list[dict[str, Any]] = [
        {"x": 1, "k": "t"},
        {"x": 1, "k": ["t", "often"]},
        {"x": 1},
        *[{"k": "often"}] * 5,
    ]
    aggs = {"s": {"significant_terms": {"field": "k", "min_doc_count": 2, **heuristic}}}
    found = indexed(*documents).aggregations(aggs, query={"term": {"x": 1}})["s"]
    assert (found["doc_count"], found["bg_count"]) == (3, 8)
    (bucket,) = found["buckets"]
    assert (bucket["key"], bucket["doc_count"], bucket["bg_count"]) == ("t", 2, 2)
    assert bucket["score"] == pytest.approx(score, rel=1e-12)


def test_significant_terms_before_another_background() -> None:
    documents = [{"x": 1, "k": "t"}, {"x": 1, "k": "t"}, {"y": 1, "k": "t"}, {"y": 1, "k": "u"}]
    body = {"field": "k", "min_doc_count": 1, "background_filter": {"exists": {"field": "y"}}}
    found = indexed(*documents).aggregations({"s": {"significant_terms": body}}, query={"term": {"x": 1}})[
        "s"
    ]
    assert (found["bg_count"], [bucket["bg_count"] for bucket in found["buckets"]]) == (2, [1])


def moved(script: str, window: int, shift: int = 0) -> list[Any]:
    index = indexed(*({"x": place, "y": value} for place, value in enumerate((1, 4, 2, 8))))
    below = {
        "s": {"sum": {"field": "y"}},
        "m": {"moving_fn": {"buckets_path": "s", "window": window, "shift": shift, "script": script}},
    }
    buckets = index.aggregations({"h": {"histogram": {"field": "x", "interval": 1}, "aggs": below}})["h"][
        "buckets"
    ]
    return [bucket["m"]["value"] for bucket in buckets]


def test_moving_functions() -> None:
    assert moved("MovingFunctions.max(values)", 2) == [None, 1.0, 4.0, 4.0]
    assert moved("return MovingFunctions.sum(values);", 2, 1) == [1.0, 5.0, 6.0, 10.0]
    assert moved("MovingFunctions.linearWeightedAvg(values)", 3)[3] == pytest.approx((1 + 8 + 6) / 6)
    deviation = "MovingFunctions.stdDev(values, MovingFunctions.unweightedAvg(values))"
    assert moved(deviation, 2, 1)[3] == pytest.approx(3.0)
    assert moved("MovingFunctions.ewma(values, 0.5)", 3)[3] == pytest.approx(
        (1 * 0.5 + 4 * 0.5) * 0.5 + 2 * 0.5
    )
    assert moved("MovingFunctions.holt(values, 0.5, 0.5)", 2)[2] == pytest.approx(2.5)
    for script in ("values[0]", "MovingFunctions.none(values)", "MovingFunctions.ewma(values)", "1" * 2_000):
        with pytest.raises(SearchError, match="MovingFunctions"):
            moved(script, 2)


def test_values_of_buckets_beside_each_other() -> None:
    index = indexed(*({"x": place, "y": value} for place, value in enumerate((1, 4, 2, 9))))
    paths = {"buckets_path": "s"}
    methods = ("rescale_0_1", "rescale_0_100", "percent_of_sum", "mean", "z-score", "softmax")
    below = {"s": {"sum": {"field": "y"}}} | {
        name: {"normalize": {**paths, "method": name}} for name in methods
    }
    aggs = {
        "h": {"histogram": {"field": "x", "interval": 1}, "aggs": below},
        "e": {"extended_stats_bucket": {"buckets_path": "h>s"}},
        "p": {"percentiles_bucket": {"buckets_path": "h>s", "percents": [0, 50, 100]}},
        "l": {"percentiles_bucket": {"buckets_path": "h>s", "percents": [25], "keyed": False}},
    }
    found = index.aggregations(aggs)
    scaled = {name: [bucket[name]["value"] for bucket in found["h"]["buckets"]] for name in methods}
    assert scaled["rescale_0_1"] == [0, 3 / 8, 1 / 8, 1]
    assert scaled["rescale_0_100"] == [0, 37.5, 12.5, 100]
    assert scaled["percent_of_sum"] == [1 / 16, 4 / 16, 2 / 16, 9 / 16]
    assert scaled["mean"] == [-3 / 8, 0, -2 / 8, 5 / 8]
    assert scaled["z-score"] == pytest.approx([each / math.sqrt(38 / 4) for each in (-3, 0, -2, 5)])
    assert scaled["softmax"] == pytest.approx(
        [math.exp(each) / sum(map(math.exp, (1, 4, 2, 9))) for each in (1, 4, 2, 9)]
    )
    assert found["e"]["variance_sampling"] == pytest.approx(38 / 3)
    assert found["e"]["std_deviation_bounds"]["upper"] == pytest.approx(4 + 2 * math.sqrt(38 / 4))
    assert found["p"] == {"values": {"0.0": 1.0, "50.0": 4.0, "100.0": 9.0}}
    assert found["l"] == {"values": [{"key": 25.0, "value": 2.0}]}
    nothing = index.aggregations(aggs, query={"match_none": {}})
    assert nothing["e"]["sum_of_squares"] is None
    assert nothing["p"]["values"]["50.0"] is None


@pytest.mark.parametrize(
    ("aggs", "reason"),
    [
        ({"significant_terms": {"field": "x"}}, "No support for examining floating point numerics"),
        ({"significant_terms": {"field": "k", "p_value": {}}}, r"\[p_value\] is not supported"),
        ({"significant_terms": {"field": "k", "jlh": {}, "gnd": {}}}, "Only one significance heuristic"),
        ({"multi_terms": {"terms": [{"field": "k"}]}}, "at least 2 fields"),
        ({"rare_terms": {"field": "k", "max_doc_count": 200}}, "must be smaller than"),
        ({"top_metrics": {"metrics": {"field": "x"}, "sort": "x", "size": 11}}, "must not be more than"),
        ({"t_test": {"a": {"field": "x"}, "b": {"field": "y"}, "type": "z"}}, "Unknown t-test type"),
        ({"random_sampler": {"probability": 0.7}}, "must be between 0.0 and 0.5"),
        ({"geo_distance": {"field": "k", "origin": "0,0", "ranges": [{"to": 1}]}}, "is not supported"),
        ({"ip_prefix": {"field": "k", "prefix_length": 3}}, "is not supported for aggregation"),
        (
            {
                "terms": {"field": "x"},
                "aggs": {"n": {"normalize": {"buckets_path": "x", "method": "none"}}},
            },
            "invalid method",
        ),
        ({"adjacency_matrix": {"filters": {str(n): {"match_all": {}} for n in range(101)}}}, "too large"),
    ],
)
def test_refused(aggs: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        indexed({"x": 1, "k": "a"}).aggregations({"a": aggs})


def test_documents_that_stand_for_several() -> None:
    counted = [
        {"tag": "a", "_doc_count": 10, "n": 1},
        {"tag": "b", "_doc_count": 5, "n": 1},
        {"tag": "a", "n": 2},
    ]
    index = Index({"tag": {"type": "keyword"}, "n": {"type": "integer"}}, counted)
    aggs = {
        "tags": {"terms": {"field": "tag"}, "aggs": {"n": {"sum": {"field": "n"}}}},
        "pages": {"composite": {"sources": [{"tag": {"terms": {"field": "tag"}}}]}},
        "steps": {"histogram": {"field": "n", "interval": 1}},
        "one": {"filter": {"term": {"n": 1}}},
    }
    found = index.aggregations(aggs)
    assert [(one["key"], one["doc_count"], one["n"]["value"]) for one in found["tags"]["buckets"]] == [
        ("a", 11, 3.0),
        ("b", 5, 1.0),
    ]
    assert [one["doc_count"] for one in found["pages"]["buckets"]] == [11, 5]
    assert [one["doc_count"] for one in found["steps"]["buckets"]] == [15, 1]
    assert found["one"]["doc_count"] == 15
    wrong: list[Any] = [0, -1, 1.5, "2", True, 2**31]
    for value in wrong:
        with pytest.raises(SearchError, match="_doc_count"):
            Index({}, [{"_doc_count": value}])


def test_a_histogram_of_neighbours() -> None:
    numbers: list[Any] = [-3, -2, 1, 4, 5, []]
    index = Index({"n": {"type": "integer"}}, [{"n": value} for value in numbers])
    found = index.aggregations({"h": {"variable_width_histogram": {"field": "n", "buckets": 3}}})["h"]
    assert found["buckets"] == [
        {"min": -3.0, "key": -2.5, "max": -2.0, "doc_count": 2},
        {"min": 1.0, "key": 1.0, "max": 1.0, "doc_count": 1},
        {"min": 4.0, "key": 4.5, "max": 5.0, "doc_count": 2},
    ]
    for bad in ({"buckets": 1}, {"buckets": 50_001}, {"shard_size": 1}):
        with pytest.raises(SearchError):
            index.aggregations({"h": {"variable_width_histogram": {"field": "n", **bad}}})


@settings(deadline=None)
@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=60), st.integers(2, 8))
def test_neighbours_are_merged_as_if_one_by_one(values: list[int], wanted: int) -> None:
    clusters = [[value] for value in sorted(set(values))]
    sizes = {value: values.count(value) for value in values}

    def mean(cluster: list[int]) -> float:
        return sum(value * sizes[value] for value in cluster) / sum(sizes[value] for value in cluster)

    while len(clusters) > wanted:
        gaps = [mean(two) - mean(one) for one, two in pairwise(clusters)]
        at = gaps.index(min(gaps))
        clusters[at : at + 2] = [clusters[at] + clusters[at + 1]]
    index = Index({"n": {"type": "integer"}}, [{"n": value} for value in values])
    body = {"variable_width_histogram": {"field": "n", "buckets": wanted}}
    buckets = index.aggregations({"h": body})["h"]["buckets"]
    assert [bucket["doc_count"] for bucket in buckets] == [
        sum(sizes[value] for value in cluster) for cluster in clusters
    ]
    assert [bucket["key"] for bucket in buckets] == pytest.approx([mean(cluster) for cluster in clusters])


def test_matrix_stats_shows_fields_in_the_order_of_a_hash_table() -> None:
    """Java has the hash codes 120 of x, 121 of y, and 2_112 of Aa and of BB, which stay as they came."""
    index = indexed({"x": 1, "y": 2, "Aa": 3, "BB": 4}, {"x": 2, "y": 2, "Aa": 1, "BB": 4})
    for names in (["y", "x", "BB", "Aa"], ["x", "BB", "y", "Aa"]):
        found = index.aggregations({"m": {"matrix_stats": {"fields": names}}})["m"]["fields"]
        assert [field["name"] for field in found] == ["BB", "Aa", "x", "y"]
    with pytest.raises(SearchError, match=r"Unexpected token START_OBJECT \[script\] in \[m\]"):
        index.aggregations({"m": {"matrix_stats": {"fields": ["x"], "script": {"source": "1"}}}})
