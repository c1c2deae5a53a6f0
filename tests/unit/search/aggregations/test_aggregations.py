from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.results import SearchOptions
from tests.unit.search.results.index import Index

PROPERTIES = {
    "text": {"type": "text"},
    "tag": {"type": "keyword"},
    "n": {"type": "integer"},
    "p": {"type": "double"},
    "day": {"type": "date"},
    "flag": {"type": "boolean"},
    "ip": {"type": "ip"},
    "c": {"type": "nested", "properties": {"u": {"type": "keyword"}, "s": {"type": "long"}}},
}
DOCUMENTS: list[dict[str, Any]] = [
    {
        "text": "x",
        "tag": ["a", "b"],
        "n": 1,
        "p": 1.5,
        "day": "2020-01-15",
        "flag": True,
        "ip": "10.0.0.1",
        "c": [{"u": "x", "s": 1}, {"u": "y", "s": 5}],
    },
    {"tag": "a", "n": 3, "p": 2.5, "day": "2020-03-29T12:00:00Z", "flag": False, "ip": "10.0.1.1"},
    {"tag": "c", "n": [2, 7], "day": "2020-04-10", "c": {"u": "x", "s": 9}},
    {},
]


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(PROPERTIES, DOCUMENTS)


def terms(*buckets: dict[str, Any], other: int = 0) -> dict[str, Any]:
    return {"doc_count_error_upper_bound": 0, "sum_other_doc_count": other, "buckets": list(buckets)}


def key(value: Any, count: int, **more: Any) -> dict[str, Any]:
    return {"key": value, "doc_count": count, **more}


TAGS = {"filters": {name: {"term": {"tag": name}} for name in "abc"}}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rare_terms": ({"rare_terms": {"field": "tag"}}, {"buckets": [key("b", 1), key("c", 1)]}),
    "rare_terms, rarest first": (
        {"rare_terms": {"field": "tag", "max_doc_count": 2, "exclude": "c"}},
        {"buckets": [key("b", 1), key("a", 2)]},
    ),
    "multi_terms": (
        {"multi_terms": {"terms": [{"field": "tag"}, {"field": "flag", "missing": True}], "size": 2}},
        terms(
            key(["a", False], 1, key_as_string="a|false"),
            key(["a", True], 1, key_as_string="a|true"),
            other=2,
        ),
    ),
    "multi_terms, dates": (
        {
            "multi_terms": {
                "terms": [{"field": "day", "format": "yyyy"}, {"field": "p"}],
                "order": {"_key": "desc"},
            }
        },
        terms(
            key(["2020", 2.5], 1, key_as_string="2020|2.5"), key(["2020", 1.5], 1, key_as_string="2020|1.5")
        ),
    ),
    "adjacency_matrix": (
        {"adjacency_matrix": {**TAGS, "separator": "+"}},
        {"buckets": [key("a", 2), key("a+b", 1), key("b", 1), key("c", 1)]},
    ),
    "ip_prefix": (
        {"ip_prefix": {"field": "ip", "prefix_length": 16}},
        {"buckets": [key("10.0.0.0", 2, is_ipv6=False, prefix_length=16, netmask="255.255.0.0")]},
    ),
    "ip_prefix, keyed": (
        {"ip_prefix": {"field": "ip", "prefix_length": 24, "keyed": True, "append_prefix_length": True}},
        {
            "buckets": {
                f"{network}/24": {
                    "doc_count": 1,
                    "is_ipv6": False,
                    "prefix_length": 24,
                    "netmask": "255.255.255.0",
                }
                for network in ("10.0.0.0", "10.0.1.0")
            }
        },
    ),
    "ip_prefix, of the other kind": (
        {"ip_prefix": {"field": "ip", "prefix_length": 8, "is_ipv6": True}},
        {"buckets": []},
    ),
    "sampler": (
        {"sampler": {"shard_size": 1}, "aggs": {"t": {"terms": {"field": "tag"}}}},
        {"doc_count": 1, "t": terms(key("a", 1), key("b", 1))},
    ),
    "diversified_sampler": (
        {"diversified_sampler": {"field": "flag"}, "aggs": {"n": {"sum": {"field": "n"}}}},
        {"doc_count": 3, "n": {"value": 13.0}},
    ),
    "random_sampler": (
        {"random_sampler": {"probability": 0.1, "seed": 7}, "aggs": {"n": {"sum": {"field": "n"}}}},
        {"seed": 7, "probability": 0.1, "doc_count": 4, "n": {"value": 13.0}},
    ),
    "boxplot": (
        {"boxplot": {"field": "n"}},
        {"min": 1.0, "max": 7.0, "q1": 1.75, "q2": 2.5, "q3": 4.0, "lower": 1.0, "upper": 7.0},
    ),
    "boxplot, of nothing": (
        {"boxplot": {"field": "nope"}},
        {"min": "Infinity", "max": "-Infinity", **dict.fromkeys(("q1", "q2", "q3", "lower", "upper"), "NaN")},
    ),
    "string_stats": (
        {"string_stats": {"field": "c.u"}},
        {"count": 0, "min_length": None, "max_length": None, "avg_length": None, "entropy": 0.0},
    ),
    "string_stats, of words": (
        {"string_stats": {"field": "tag", "show_distribution": True, "missing": "bc"}},
        {
            "count": 5,
            "min_length": 1,
            "max_length": 2,
            "avg_length": 1.2,
            "entropy": 1.584962500721156,
            "distribution": {"a": 2 / 6, "b": 2 / 6, "c": 2 / 6},
        },
    ),
    "top_metrics": (
        {
            "top_metrics": {
                "metrics": [{"field": "p"}, {"field": "day"}, {"field": "flag"}],
                "sort": {"n": "desc"},
                "size": 2,
            }
        },
        {
            "top": [
                {"sort": [7], "metrics": {"p": None, "day": "2020-04-10T00:00:00.000Z", "flag": None}},
                {"sort": [3], "metrics": {"p": 2.5, "day": "2020-03-29T12:00:00.000Z", "flag": False}},
            ]
        },
    ),
    "top_metrics, to order by": (
        {
            "terms": {"field": "tag", "order": {"m.n": "desc"}, "size": 1},
            "aggs": {"m": {"top_metrics": {"metrics": {"field": "n"}, "sort": "p"}}},
        },
        terms(key("a", 2, m={"top": [{"sort": [1.5], "metrics": {"n": 1}}]}), other=2),
    ),
    "terms": ({"terms": {"field": "tag"}}, terms(key("a", 2), key("b", 1), key("c", 1))),
    "terms, size": ({"terms": {"field": "tag", "size": 1}}, terms(key("a", 2), other=2)),
    "terms, regular expression": (
        {"terms": {"field": "tag", "include": "[ab]", "exclude": "b"}},
        terms(key("a", 2)),
    ),
    "terms, list": ({"terms": {"field": "n", "include": [1, 7]}}, terms(key(1, 1), key(7, 1))),
    "terms, missing between": (
        {"terms": {"field": "tag", "missing": "bb", "order": {"_key": "asc"}}},
        terms(key("a", 2), key("b", 1), key("bb", 1), key("c", 1)),
    ),
    "terms, boolean": (
        {"terms": {"field": "flag"}},
        terms(key(0, 1, key_as_string="false"), key(1, 1, key_as_string="true")),
    ),
    "terms, date": (
        {"terms": {"field": "day", "format": "yyyy-MM", "size": 1}},
        terms(key(1579046400000, 1, key_as_string="2020-01"), other=2),
    ),
    "terms, ip": ({"terms": {"field": "ip"}}, terms(key("10.0.0.1", 1), key("10.0.1.1", 1))),
    "terms, unmapped": ({"terms": {"field": "nope"}}, terms()),
    "terms, order by a path": (
        {
            "terms": {"field": "tag", "order": {"f>m": "desc"}, "size": 1},
            "aggs": {"f": {"filter": {"match_all": {}}, "aggs": {"m": {"max": {"field": "n"}}}}},
        },
        terms(key("c", 1, f={"doc_count": 1, "m": {"value": 7.0}}), other=3),
    ),
    "histogram": (
        {"histogram": {"field": "n", "interval": 2}},
        {"buckets": [key(0.0, 1), key(2.0, 2), key(4.0, 0), key(6.0, 1)]},
    ),
    "histogram, bounds": (
        {
            "histogram": {
                "field": "n",
                "interval": 5,
                "extended_bounds": {"min": -5, "max": 10},
                "keyed": True,
            }
        },
        {"buckets": {"-5.0": key(-5.0, 0), "0.0": key(0.0, 3), "5.0": key(5.0, 1), "10.0": key(10.0, 0)}},
    ),
    "histogram, hard bounds": (
        {"histogram": {"field": "n", "interval": 1, "hard_bounds": {"max": 2}}},
        {"buckets": [key(1.0, 1), key(2.0, 1)]},
    ),
    "date_histogram": (
        {"date_histogram": {"field": "day", "calendar_interval": "quarter", "format": "yyyy-'Q'Q"}},
        {
            "buckets": [
                key(1577836800000, 2, key_as_string="2020-Q1"),
                key(1585699200000, 1, key_as_string="2020-Q2"),
            ]
        },
    ),
    "date_histogram, day of 23 hours": (
        {
            "date_histogram": {
                "field": "day",
                "calendar_interval": "1d",
                "time_zone": "Europe/Paris",
                "min_doc_count": 1,
                "hard_bounds": {"min": "2020-03-29", "max": "2020-03-30"},
            }
        },
        {"buckets": [key(1585436400000, 1, key_as_string="2020-03-29T00:00:00.000+01:00")]},
    ),
    "date_histogram, offset": (
        {"date_histogram": {"field": "day", "fixed_interval": "30d", "offset": "+1d", "min_doc_count": 1}},
        {
            "buckets": [
                key(1578614400000, 1, key_as_string="2020-01-10T00:00:00.000Z"),
                key(1583798400000, 1, key_as_string="2020-03-10T00:00:00.000Z"),
                key(1586390400000, 1, key_as_string="2020-04-09T00:00:00.000Z"),
            ]
        },
    ),
    "range": (
        {"range": {"field": "n", "ranges": [{"from": 5}, {"to": 2}, {"key": "mid", "from": 2, "to": 5}]}},
        {
            "buckets": [
                key("*-2.0", 1, to=2.0),
                key("mid", 2, **{"from": 2.0, "to": 5.0}),
                key("5.0-*", 1, **{"from": 5.0}),
            ]
        },
    ),
    "date_range": (
        {
            "date_range": {
                "field": "day",
                "format": "yyyy-MM",
                "ranges": [{"to": "2020-02||+1M/M"}],
                "keyed": True,
            }
        },
        {"buckets": {"*-2020-03": {"to": 1583020800000.0, "to_as_string": "2020-03", "doc_count": 1}}},
    ),
    "ip_range": (
        {"ip_range": {"field": "ip", "ranges": [{"mask": "10.0.0.0/24"}, {"from": "10.0.1.0"}]}},
        {
            "buckets": [
                key("10.0.0.0/24", 1, **{"from": "10.0.0.0", "to": "10.0.1.0"}),
                key("10.0.1.0-*", 1, **{"from": "10.0.1.0"}),
            ]
        },
    ),
    "filters": (
        {
            "filters": {
                "filters": {"b": {"term": {"tag": "b"}}, "a": {"term": {"tag": "a"}}},
                "other_bucket": True,
            }
        },
        {"buckets": {"a": {"doc_count": 2}, "b": {"doc_count": 1}, "_other_": {"doc_count": 2}}},
    ),
    "filters, anonymous": (
        {"filters": {"filters": [{"term": {"tag": "c"}}, {"match_all": {}}]}},
        {"buckets": [{"doc_count": 1}, {"doc_count": 4}]},
    ),
    "missing": ({"missing": {"field": "p"}}, {"doc_count": 2}),
    "nested and back": (
        {
            "nested": {"path": "c"},
            "aggs": {
                "u": {
                    "terms": {"field": "c.u"},
                    "aggs": {"b": {"reverse_nested": {}}, "s": {"sum": {"field": "c.s"}}},
                }
            },
        },
        {
            "doc_count": 3,
            "u": terms(
                key("x", 2, b={"doc_count": 2}, s={"value": 10.0}),
                key("y", 1, b={"doc_count": 1}, s={"value": 5.0}),
            ),
        },
    ),
    "avg of none": ({"avg": {"field": "nope"}}, {"value": None}),
    "sum of none": ({"sum": {"field": "nope"}}, {"value": 0.0}),
    "avg with missing": ({"avg": {"field": "p", "missing": 0}}, {"value": 1.0}),
    "max of dates": (
        {"max": {"field": "day"}},
        {"value": 1586476800000.0, "value_as_string": "2020-04-10T00:00:00.000Z"},
    ),
    "avg, format": ({"avg": {"field": "p", "format": "0.00"}}, {"value": 2.0, "value_as_string": "2.00"}),
    "value_count": ({"value_count": {"field": "tag"}}, {"value": 4}),
    "stats": ({"stats": {"field": "p"}}, {"count": 2, "min": 1.5, "max": 2.5, "avg": 2.0, "sum": 4.0}),
    "cardinality": ({"cardinality": {"field": "tag", "missing": "z"}}, {"value": 4}),
    "percentiles": (
        {"percentiles": {"field": "n", "percents": [0, 50], "keyed": False}},
        {"values": [{"key": 0.0, "value": 1.0}, {"key": 50.0, "value": 2.5}]},
    ),
    "percentile_ranks": ({"percentile_ranks": {"field": "n", "values": [3]}}, {"values": {"3.0": 62.5}}),
    "percentiles, hdr": (
        {"percentiles": {"field": "n", "percents": [0, 25, 50, 95], "hdr": {}}},
        {"values": {"0.0": 1.0, "25.0": 1.0, "50.0": 2.0009765625, "95.0": 7.0029296875}},
    ),
    "percentiles, hdr of one digit": (
        {"percentiles": {"field": "n", "percents": [95], "hdr": {"number_of_significant_value_digits": 1}}},
        {"values": {"95.0": 7.1875}},
    ),
    "percentiles, hdr, with a zero": (
        {"percentiles": {"field": "n", "missing": 0, "percents": [0, 20, 50], "hdr": {}}},
        {"values": {"0.0": 0.0, "20.0": 0.0, "50.0": 2.0009765625}},
    ),
    "percentile_ranks, hdr": (
        {"percentile_ranks": {"field": "n", "values": [0, 2.999, 3], "hdr": {}}},
        {"values": {"0.0": 0.0, "2.999": 50.0, "3.0": 75.0}},
    ),
    "percentiles, hdr of nothing": (
        {"percentiles": {"field": "none", "percents": [50], "hdr": {}}},
        {"values": {"50.0": None}},
    ),
    "median_absolute_deviation": ({"median_absolute_deviation": {"field": "n"}}, {"value": 1.0}),
    "weighted_avg": ({"weighted_avg": {"value": {"field": "n"}, "weight": {"field": "p"}}}, {"value": 2.25}),
    "meta": ({"sum": {"field": "p"}, "meta": {"x": 1}}, {"meta": {"x": 1}, "value": 4.0}),
}


@pytest.mark.parametrize("name", CASES)
def test_answer(index: Index, name: str) -> None:
    body, expected = CASES[name]
    assert index.aggregations({"x": body}) == {"x": expected}


def test_extended_stats_of_one_value(index: Index) -> None:
    answer = index.aggregations({"x": {"extended_stats": {"field": "p"}}}, query={"term": {"tag": "b"}})["x"]
    assert (answer["variance"], answer["variance_sampling"], answer["sum_of_squares"]) == (0.0, "NaN", 2.25)
    assert answer["std_deviation_bounds"]["upper"] == 1.5
    empty = index.aggregations({"x": {"extended_stats": {"field": "nope"}}})["x"]
    assert (empty["count"], empty["sum"], empty["variance"]) == (0, 0.0, None)
    assert set(empty["std_deviation_bounds"].values()) == {None}


def test_a_sum_loses_nothing_to_rounding() -> None:
    index = Index({"p": {"type": "double"}}, [{"p": 0.1}] * 10)
    assert index.aggregations({"x": {"sum": {"field": "p"}}}) == {"x": {"value": 1.0}}


def test_global_ignores_the_query(index: Index) -> None:
    answer = index.aggregations(
        {"x": {"global": {}}, "y": {"missing": {"field": "n"}}}, query={"term": {"tag": "c"}}
    )
    assert answer == {"x": {"doc_count": 4}, "y": {"doc_count": 0}}


def test_top_hits_below_terms(index: Index) -> None:
    below = {"best": {"top_hits": {"size": 1, "sort": [{"n": "desc"}], "_source": ["n"]}}}
    answer = index.aggregations({"x": {"terms": {"field": "tag"}, "aggs": below}})["x"]
    best = [(one["key"], one["best"]["hits"]["hits"][0]["_id"]) for one in answer["buckets"]]
    assert best == [("a", "1"), ("b", "0"), ("c", "2")]
    hits = answer["buckets"][0]["best"]["hits"]
    assert hits["total"] == {"value": 2, "relation": "eq"}
    assert hits["hits"][0]["_source"] == {"n": 3}
    assert hits["hits"][0]["sort"] == [3]


def test_top_hits_below_no_bucket(index: Index) -> None:
    below = {"terms": {"field": "tag"}, "aggs": {"best": {"top_hits": {}}}}
    answer = index.aggregations({"tags": below}, query={"match_none": {}})
    assert answer["tags"]["buckets"] == []


def test_pipelines(index: Index) -> None:
    below = {
        "s": {"sum": {"field": "n"}},
        "total": {"cumulative_sum": {"buckets_path": "s"}},
        "step": {"derivative": {"buckets_path": "_count"}},
    }
    aggs = {
        "h": {"histogram": {"field": "n", "interval": 4}, "aggs": below},
        "best": {"max_bucket": {"buckets_path": "h>s"}},
        "mean": {"avg_bucket": {"buckets_path": "h>_count"}},
    }
    answer = index.aggregations(aggs)
    assert answer["h"]["buckets"] == [
        key(0.0, 3, s={"value": 13.0}, total={"value": 13.0}),
        key(4.0, 1, s={"value": 9.0}, total={"value": 22.0}, step={"value": -2.0}),
    ]
    assert answer["best"] == {"value": 13.0, "keys": ["0.0"]}
    assert answer["mean"] == {"value": 2.0}
    cut = {"s": {"sum": {"field": "n"}}, "cut": {"bucket_sort": {"sort": [{"s": "asc"}], "size": 2}}}
    buckets = index.aggregations({"t": {"terms": {"field": "tag"}, "aggs": cut}})["t"]["buckets"]
    assert [one["key"] for one in buckets] == ["b", "a"]


@pytest.mark.parametrize("bound", ["NaN", "Infinity", "-Infinity"])
def test_bounds_are_finite(index: Index, bound: str) -> None:
    histogram = {"field": "n", "interval": 2, "min_doc_count": 0, "extended_bounds": {"min": bound}}
    with pytest.raises(SearchError, match="failed to parse field"):
        index.aggregations({"h": {"histogram": histogram}})


def test_bounds_that_are_far_away_are_refused(index: Index) -> None:
    for low, high in ((-1e300, 1e300), (-1e300, 0), (0, 1e300)):
        histogram = {"field": "n", "interval": 1, "extended_bounds": {"min": low, "max": high}}
        with pytest.raises(SearchError, match="is too small for"):
            index.aggregations({"h": {"histogram": {**histogram, "min_doc_count": 0}}})


@pytest.mark.parametrize("lag", [{}, {"lag": 2}, {"lag": 1.0}, {"lag": 9}])
def test_serial_diff(index: Index, lag: dict[str, Any]) -> None:
    below = {"diff": {"serial_diff": {"buckets_path": "_count", **lag}}}
    histogram = {"field": "n", "interval": 2, "extended_bounds": {"min": 0, "max": 11}}
    buckets = index.aggregations({"h": {"histogram": histogram, "aggs": below}})["h"]["buckets"]
    counts = [bucket["doc_count"] for bucket in buckets]
    step = int(lag.get("lag", 1))
    assert [bucket.get("diff", {}).get("value") for bucket in buckets] == [
        None if place < step else float(counts[place] - counts[place - step]) for place in range(len(counts))
    ]


@pytest.mark.parametrize(
    ("aggs", "kind", "reason"),
    [
        (
            {"h": {"histogram": {"field": "n", "interval": 4}, "aggs": {"d": {"serial_diff": {"lag": 0}}}}},
            "illegal_argument_exception",
            "Lag must be a positive, non-zero integer.  Value supplied was[0] for [d].",
        ),
        (
            {"x": {"term": {"field": "n"}}},
            "parsing_exception",
            "Unknown aggregation type [term] did you mean [terms]?",
        ),
        ({"x": {}}, "parsing_exception", "Missing definition for aggregation [x]"),
        ({"x": {"avg": {}}}, "illegal_argument_exception", "Required one of fields [field, script]"),
        (
            {"x": {"avg": {"field": "n", "nope": 1}}},
            "x_content_parse_exception",
            "[avg] unknown field [nope]",
        ),
        (
            {"x": {"avg": {"field": "tag"}}},
            "illegal_argument_exception",
            "Field [tag] of type [keyword] is not supported",
        ),
        (
            {"x": {"terms": {"field": "text"}}},
            "illegal_argument_exception",
            "Fielddata is disabled on [text] in [books]. Text fields",
        ),
        ({"x[": {"avg": {"field": "n"}}}, "parsing_exception", "Invalid aggregation name [x[]."),
        (
            {"x": {"avg": {"field": "n"}, "aggs": {"y": {"avg": {"field": "n"}}}}},
            "illegal_argument_exception",
            "Aggregator [x] of type [avg] cannot accept sub-aggregations",
        ),
        (
            {"x": {"histogram": {"field": "n", "interval": 0}}},
            "illegal_argument_exception",
            "[interval] must be >0",
        ),
        (
            {"x": {"histogram": {"field": "n", "interval": 1e-9}}},
            "too_many_buckets_exception",
            "Trying to create too many buckets.",
        ),
        (
            {"x": {"date_histogram": {"field": "day", "calendar_interval": "2d"}}},
            "illegal_argument_exception",
            "The supplied interval [2d]",
        ),
        (
            {"x": {"date_histogram": {"field": "day", "fixed_interval": "1s"}}},
            "too_many_buckets_exception",
            "Trying to create",
        ),
        (
            {"x": {"reverse_nested": {}}},
            "illegal_argument_exception",
            "Reverse nested aggregation [x] can only be used",
        ),
    ],
)
def test_refused(index: Index, aggs: dict[str, Any], kind: str, reason: str) -> None:
    with pytest.raises(SearchError) as error:
        index.aggregations(aggs)
    assert error.value.kind == kind
    assert error.value.reason.startswith(reason)


def test_depth_and_buckets_are_bounded(index: Index) -> None:
    deep: dict[str, Any] = {"terms": {"field": "tag"}}
    for _ in range(30):
        deep = {"terms": {"field": "tag"}, "aggs": {"x": deep}}
    with pytest.raises(SearchError, match="deeper"):
        index.aggregations({"x": deep})
    body = {"size": 0, "aggs": {"x": {"terms": {"field": "tag"}}}}
    with pytest.raises(SearchError, match="too many buckets"):
        index.search(body, SearchOptions(max_buckets=2))


def test_a_histogram_of_percentiles_has_no_values_below_zero() -> None:
    below = Index({"n": {"type": "integer"}}, [{"n": 1}, {"n": -1}])
    with pytest.raises(SearchError, match="Negative values cannot be recorded"):
        below.aggregations({"x": {"percentiles": {"field": "n", "hdr": {}}}})


@pytest.mark.parametrize(("field", "count"), [("tag", 2), ("n", 3), ("p", 2), ("ip", 4)])
def test_the_partitions_of_terms_are_disjoint_and_all(index: Index, field: str, count: int) -> None:
    def keys(**include: Any) -> list[Any]:
        aggs = {"t": {"terms": {"field": field, **include}}}
        return [bucket["key"] for bucket in index.aggregations(aggs)["t"]["buckets"]]

    parts = [keys(include={"partition": number, "num_partitions": count}) for number in range(count)]
    assert sorted(key for part in parts for key in part) == sorted(keys())


def test_terms_are_in_the_partitions_that_elasticsearch_has_them_in() -> None:
    """By its own examples, one for terms and one for numbers."""
    index = Index(PROPERTIES, [{"tag": "abc", "n": 1234}, {"tag": "bcd", "n": 5678}])
    for field, expected in (("tag", ["bcd", "abc"]), ("n", [5678, 1234])):
        for number in (0, 1):
            include = {"partition": number, "num_partitions": 2}
            buckets = index.aggregations({"t": {"terms": {"field": field, "include": include}}})["t"][
                "buckets"
            ]
            assert [bucket["key"] for bucket in buckets] == [expected[number]]


def test_multi_terms_without_documents(index: Index) -> None:
    terms = [{"field": "tag"}, {"field": "flag"}]
    aggs = {"m": {"multi_terms": {"terms": terms, "min_doc_count": 0}}}
    found = index.aggregations(aggs, query={"term": {"flag": False}})["m"]
    counts = {bucket["key_as_string"]: bucket["doc_count"] for bucket in found["buckets"]}
    assert counts == {"a|false": 1, "a|true": 0, "b|true": 0}
