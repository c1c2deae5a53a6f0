"""`rate` and `cumulative_cardinality`, against counts by hand and by a naive twin."""

from collections import defaultdict
from random import Random
from typing import Any

import pytest

from graphdb.search.errors import SearchError
from tests.unit.search.results.index import Index

PROPERTIES = {
    "day": {"type": "date"},
    "p": {"type": "double"},
    "user": {"type": "keyword"},
    "tag": {"type": "keyword"},
}
DAYS = {"2024-01": 31, "2024-02": 29, "2024-03": 31, "2024-04": 30}
MONTHS = {"field": "day", "calendar_interval": "month", "format": "yyyy-MM"}


def documents() -> list[dict[str, Any]]:
    random = Random(26)
    made = []
    for month in ("2024-01", "2024-02", "2024-04"):  # March is an empty bucket
        for _ in range(random.randrange(3, 12)):
            made.append(
                {
                    "day": f"{month}-{random.randrange(1, 29):02}",
                    "p": random.randrange(9),
                    "user": random.sample("abcdefgh", k=2),
                    "tag": random.choice("xy"),
                }
            )
    random.shuffle(made)
    return made


DOCUMENTS = documents()


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(PROPERTIES, DOCUMENTS)


def buckets(index: Index, below: dict[str, Any], **histogram: Any) -> dict[str, Any]:
    aggs = {"h": {"date_histogram": {**MONTHS, **histogram}, "aggs": below}}
    return {one["key_as_string"]: one for one in index.aggregations(aggs)["h"]["buckets"]}


def of_month(month: str) -> list[dict[str, Any]]:
    return [one for one in DOCUMENTS if one["day"].startswith(month)]


def test_rates_are_by_the_length_of_each_month(index: Index) -> None:
    below = {
        "daily": {"rate": {"unit": "day"}},
        "yearly": {"rate": {"field": "p", "unit": "year", "format": "0.0"}},
        "values": {"rate": {"field": "user", "mode": "value_count"}},
    }
    found = buckets(index, below)
    assert list(found) == list(DAYS)
    for month, bucket in found.items():
        own = of_month(month)
        total = 12.0 * sum(one["p"] for one in own)
        assert bucket["daily"]["value"] == pytest.approx(len(own) / DAYS[month])
        assert bucket["yearly"] == {"value": total, "value_as_string": f"{total:.1f}"}
        assert bucket["values"] == {"value": 2.0 * len(own)}


def test_buckets_below_have_the_length_of_the_interval_around_them(index: Index) -> None:
    rate = {"r": {"rate": {"field": "p", "unit": "week"}}}
    parts = {"parts": {"auto_date_histogram": {"field": "day", "buckets": 2}, "aggs": rate}}
    tags = {"tags": {"terms": {"field": "tag", "order": {"r": "desc"}}, "aggs": {**rate, **parts}}}
    for month, bucket in buckets(index, tags, min_doc_count=1).items():
        totals: dict[str, float] = defaultdict(float)
        for one in of_month(month):
            totals[one["tag"]] += one["p"]
        found = {tag["key"]: tag["r"]["value"] for tag in bucket["tags"]["buckets"]}
        assert found == pytest.approx({tag: 7 * total / DAYS[month] for tag, total in totals.items()})
        assert list(found.values()) == sorted(found.values(), reverse=True)
        for tag in bucket["tags"]["buckets"]:
            assert sum(one["r"]["value"] for one in tag["parts"]["buckets"]) == pytest.approx(
                tag["r"]["value"]
            )


def test_months_are_ordered_by_their_rates(index: Index) -> None:
    found = buckets(index, {"r": {"rate": {"unit": "day"}}}, order={"r": "desc"}, min_doc_count=1)
    rates = [one["r"]["value"] for one in found.values()]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(
    ("interval", "unit", "length"),
    [
        ({"fixed_interval": "90m"}, "hour", 1.5),
        ({"calendar_interval": "day"}, "hour", 24),
        ({"calendar_interval": "week", "time_zone": "Europe/Berlin"}, "day", 7),
        ({"calendar_interval": "quarter"}, "month", 3),
        ({"calendar_interval": "year"}, "quarter", 4),
    ],
)
def test_lengths_of_intervals(index: Index, interval: dict[str, str], unit: str, length: float) -> None:
    histogram = {"field": "day", **interval, "min_doc_count": 1}
    aggs = {"h": {"date_histogram": histogram, "aggs": {"r": {"rate": {"unit": unit}}}}}
    for bucket in index.aggregations(aggs)["h"]["buckets"]:
        assert bucket["r"]["value"] == pytest.approx(bucket["doc_count"] / length)


@pytest.mark.parametrize(
    ("rate", "reason"),
    [
        ({"unit": "month"}, "Cannot use month-based rate unit [month] with intervals that are not of months"),
        ({"unit": "fortnight"}, "Unsupported unit fortnight"),
        ({"mode": "sum"}, "The mode parameter is only supported with field or script"),
        ({"field": "p", "mode": "most"}, "Unknown rate mode [most]"),
        ({"field": "tag"}, "Field [tag] of type [keyword] is not supported for aggregation [rate]"),
    ],
)
def test_rates_that_there_are_not(index: Index, rate: dict[str, str], reason: str) -> None:
    histogram = {"field": "day", "fixed_interval": "30d"}
    with pytest.raises(SearchError) as caught:
        index.aggregations({"h": {"date_histogram": histogram, "aggs": {"r": {"rate": rate}}}})
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_of_combinations_with_one_interval_each(index: Index, order: str) -> None:
    dated = {"m": {"date_histogram": {**MONTHS, "order": order}}}
    composite = {"size": 50, "sources": [{"t": {"terms": {"field": "tag"}}}, dated]}
    aggs = {"c": {"composite": composite, "aggs": {"r": {"rate": {"unit": "day"}}}}}
    found = index.aggregations(aggs)["c"]["buckets"]
    assert len(found) == 6
    for bucket in found:
        assert bucket["r"]["value"] == pytest.approx(bucket["doc_count"] / DAYS[bucket["key"]["m"]])
    for sources in ([{"t": {"terms": {"field": "tag"}}}], [dated, {"n": dated["m"]}]):
        below = {"composite": {"sources": sources}, "aggs": aggs["c"]["aggs"]}
        with pytest.raises(SearchError, match="exactly one date histogram value source"):
            index.aggregations({"c": below})


def test_a_rate_needs_a_date_histogram_around_it(index: Index) -> None:
    with pytest.raises(SearchError, match="can only be used inside a date histogram"):
        index.aggregations({"t": {"terms": {"field": "tag"}, "aggs": {"r": {"rate": {"unit": "day"}}}}})


def test_distinct_values_up_to_each_bucket(index: Index) -> None:
    below = {
        "users": {"cardinality": {"field": "user"}},
        "so_far": {"cumulative_cardinality": {"buckets_path": "users"}},
        "again": {"cumulative_cardinality": {"buckets_path": "users"}},
        "new": {"derivative": {"buckets_path": "so_far"}},
        "x": {"filter": {"term": {"tag": "x"}}, "aggs": {"users": {"cardinality": {"field": "user"}}}},
        "so_far_x": {"cumulative_cardinality": {"buckets_path": "x>users"}},
    }
    seen, of_x = set[str](), set[str]()
    for month, bucket in buckets(index, below).items():
        for one in of_month(month):
            seen.update(one["user"])
            of_x.update(one["user"] if one["tag"] == "x" else ())
        counts = bucket["users"]["value"], bucket["x"]["users"]["value"]
        assert [type(count) for count in counts] == [int, int]  # without the values
        assert (bucket["so_far"], bucket["so_far_x"]) == ({"value": len(seen)}, {"value": len(of_x)})


def test_an_aggregation_that_is_called_as_a_bucket_is(index: Index) -> None:
    below = {
        "key": {"cardinality": {"field": "user"}},
        "so_far": {"cumulative_cardinality": {"buckets_path": "key"}},
    }
    assert all(isinstance(bucket["key"], int) for bucket in buckets(index, below).values())


def test_no_bucket_at_all(index: Index) -> None:
    below = {
        "users": {"cardinality": {"field": "user"}},
        "so_far": {"cumulative_cardinality": {"buckets_path": "users"}},
    }
    found = index.aggregations({"h": {"date_histogram": MONTHS, "aggs": below}}, query={"match_none": {}})
    assert found["h"]["buckets"] == []


def test_each_list_of_buckets_begins_anew(index: Index) -> None:
    below = {
        "users": {"cardinality": {"field": "user"}},
        "so_far": {"cumulative_cardinality": {"buckets_path": "users"}},
    }
    aggs = {"t": {"terms": {"field": "tag"}, "aggs": {"h": {"date_histogram": MONTHS, "aggs": below}}}}
    for tag in index.aggregations(aggs)["t"]["buckets"]:
        seen = set[str]()
        for bucket in tag["h"]["buckets"]:
            own = (one for one in of_month(bucket["key_as_string"]) if one["tag"] == tag["key"])
            seen.update(user for one in own for user in one["user"])
            assert bucket["so_far"] == {"value": len(seen)}


@pytest.mark.parametrize("path", ["users>more", "none", "p", "h"])
def test_a_path_that_leads_to_no_distinct_values(index: Index, path: str) -> None:
    below = {
        "users": {"cardinality": {"field": "user"}},
        "p": {"sum": {"field": "p"}},
        "so_far": {"cumulative_cardinality": {"buckets_path": path}},
    }
    with pytest.raises(SearchError, match="must reference a cardinality aggregation"):
        buckets(index, below)
