"""What a `buckets_path` names, for bucket_script, cumulative_sum and bucket_sort; `derivative` by a unit."""

from typing import Any

import pytest

from graphdb.search.errors import SearchError
from tests.unit.search.results.index import Index

PROPERTIES = {"day": {"type": "date"}, "n": {"type": "double"}, "tag": {"type": "keyword"}}
DOCUMENTS = [
    {"day": "2024-01-01", "n": 1.0, "tag": "a"},
    {"day": "2024-01-01", "n": 3.0, "tag": "a"},
    {"day": "2024-01-01", "n": 8.0, "tag": "b"},
    {"day": "2024-01-02", "n": 5.0, "tag": "b"},
    {"day": "2024-01-04", "n": 9.0, "tag": "c"},
]
DAYS = {"field": "day", "fixed_interval": "1d"}
METRICS = {
    "m": {"max": {"field": "n"}},
    "with.dot": {"stats": {"field": "n"}},
    "e": {"extended_stats": {"field": "n", "sigma": 1}},
    "p": {"percentiles": {"field": "n", "percents": [0, 50, 99.9]}},
    "listed": {"percentiles": {"field": "n", "percents": [100], "keyed": False}},
    "ranks": {"percentile_ranks": {"field": "n", "values": [8]}},
    "top": {"top_metrics": {"metrics": {"field": "n"}, "sort": {"n": "asc"}}},
    "tags": {"terms": {"field": "tag"}, "aggs": {"m": {"max": {"field": "n"}}}},
    "f": {"filter": {"term": {"tag": "a"}}, "aggs": {"m": {"max": {"field": "n"}}}},
}
NAMED = {  # what the path names in the bucket of the first day
    "m": 8.0,
    "m.value": 8.0,
    "m[value]": 8.0,
    "_count": 3.0,
    "with.dot.avg": 4.0,
    "with.dot[avg]": 4.0,
    "e.sum_of_squares": 74.0,
    "e[std_deviation]": (74 / 3 - 16) ** 0.5,
    "e[std_upper]": 4 + (74 / 3 - 16) ** 0.5,
    "e.std_lower_sampling": 4 - 13**0.5,
    "p[50.0]": 3.0,
    "p[50]": 3.0,
    "p.50": 3.0,
    "p.50.0": 3.0,
    "listed[100.0]": 8.0,
    "ranks[8.0]": 250 / 3,
    "top[n]": 1.0,
    "top.n": 1.0,
    "tags._bucket_count": 2.0,
    "tags['b']>m": 8.0,
    'tags["b"]>m.value': 8.0,
    "tags['a']>_count": 2.0,
    "f>m": 3.0,
    "f>m[value]": 3.0,
    "f._count": 2.0,
    "f>_count": 2.0,
}


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(PROPERTIES, DOCUMENTS)


def buckets(index: Index, below: dict[str, Any], **histogram: Any) -> list[Any]:
    aggs = {"d": {"date_histogram": {**DAYS, **histogram}, "aggs": {**METRICS, **below}}}
    found: list[Any] = index.aggregations(aggs)["d"]["buckets"]
    return found


@pytest.mark.parametrize(("path", "value"), NAMED.items(), ids=NAMED)
def test_paths(index: Index, path: str, value: float) -> None:
    below = {
        "script": {"bucket_script": {"buckets_path": {"a": path}, "script": "params.a"}},
        "sum": {"cumulative_sum": {"buckets_path": path}},
    }
    first = buckets(index, below)[0]
    assert first["script"]["value"] == pytest.approx(value)
    assert first["sum"]["value"] == pytest.approx(value)


def test_buckets_are_sorted_and_summed_up_by_paths(index: Index) -> None:
    found = buckets(index, {"s": {"bucket_sort": {"sort": [{"p[0.0]": "desc"}], "size": 2}}})
    assert [bucket["m"]["value"] for bucket in found] == [9.0, 5.0]
    aggs = {
        "d": {"date_histogram": DAYS, "aggs": METRICS},
        "best": {"max_bucket": {"buckets_path": "d>e[sum]"}},
    }
    assert index.aggregations(aggs)["best"]["value"] == 12.0


@pytest.mark.parametrize(
    "path",
    ["none", "m.none", "m>n", "m.value>n", "p[51]", "p[x]", "e[none]", "m._bucket_count", "tags['z']>m"],
)
def test_what_is_not_there_is_a_gap(index: Index, path: str) -> None:
    below = {"script": {"bucket_script": {"buckets_path": {"a": path}, "script": "params.a"}}}
    assert all("script" not in bucket for bucket in buckets(index, below))


@pytest.mark.parametrize("path", ["p", "tags", "tags>m"])
def test_a_path_to_several_numbers_is_refused(index: Index, path: str) -> None:
    with pytest.raises(SearchError, match="buckets_path must reference"):
        buckets(index, {"script": {"bucket_script": {"buckets_path": {"a": path}, "script": "params.a"}}})


def test_derivatives_by_a_unit(index: Index) -> None:
    below = {
        "daily": {"derivative": {"buckets_path": "m", "unit": "day", "format": "0.00"}},
        "hourly": {"derivative": {"buckets_path": "m", "unit": "2h"}},
        "monthly": {"derivative": {"buckets_path": "m", "unit": "1M"}},
        "plain": {"derivative": {"buckets_path": "m"}},
        "of": {"bucket_script": {"buckets_path": {"a": "daily[normalized_value]"}, "script": "params.a"}},
    }
    first, second, empty, last = buckets(index, below)
    assert "daily" not in empty
    assert "daily" not in first
    assert second["plain"] == {"value": -3.0}
    assert second["daily"] == {
        "value": -3.0,
        "value_as_string": "-3.00",
        "normalized_value": -3.0,
        "normalized_value_as_string": "-3.00",
    }
    assert last["daily"]["normalized_value"] == 2.0  # two days after the bucket before the gap
    assert last["hourly"] == {"value": 4.0, "normalized_value": 4.0 / 24}
    assert last["monthly"]["normalized_value"] == pytest.approx(2.0 * 365.2425 / 12)
    assert second["of"]["value"] == -3.0


def test_no_normalized_value_without_distance(index: Index) -> None:
    """In descending order there is no positive distance, and Elasticsearch leaves it out."""
    below = {"d": {"derivative": {"buckets_path": "m", "unit": "day"}}}
    last = buckets(index, below, order={"_key": "desc"})[-1]
    assert last["d"] == {"value": 3.0}


@pytest.mark.parametrize("unit", ["nonsense", "0s", "-1h"])
def test_a_unit_that_is_none(index: Index, unit: str) -> None:
    with pytest.raises(SearchError):
        buckets(index, {"d": {"derivative": {"buckets_path": "m", "unit": unit}}})
