"""What requests for aggregations may say at the edges, and what the answers are then."""

from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.number_text import number_text
from tests.unit.search.results.index import Index

PROPERTIES = {
    "tag": {"type": "keyword"},
    "n": {"type": "long"},
    "narrow": {"type": "float"},
    "day": {"type": "date"},
    "second": {"type": "date", "format": "epoch_second"},
    "ip": {"type": "ip"},
    "place": {"type": "geo_point"},
}
DOCUMENTS: list[dict[str, Any]] = [
    {"tag": "a", "n": 5, "narrow": 0.1, "day": "2021-05-01", "second": 60, "ip": "10.0.0.1"},
    {"tag": "b", "n": 20_000_000, "narrow": 0.3, "day": "2021-05-03", "second": 120, "place": [10, 50]},
]


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(PROPERTIES, DOCUMENTS)


def answer(index: Index, body: dict[str, Any], **beside: Any) -> Any:
    return index.aggregations({"x": body, **beside})["x"]


def counts(answer: Any) -> dict[str, int]:
    return {bucket["key"]: bucket["doc_count"] for bucket in answer["buckets"]}


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-12.5, "-12.5"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-2.5e-4, "-2.5E-4"),
        (-(2.0**63), "-9.223372036854776E18"),
        (1e300, "1.0E300"),
        (7, "7"),
    ],
)
def test_numbers_in_keys(number: float, text: str) -> None:
    assert number_text(number) == text


def test_great_numbers_in_keys(index: Index) -> None:
    ranges = answer(index, {"range": {"field": "n", "ranges": [{"from": 1e7}, {"to": 1e7}]}})
    assert counts(ranges) == {"*-1.0E7": 1, "1.0E7-*": 1}
    keyed = answer(index, {"histogram": {"field": "n", "interval": 1e7, "min_doc_count": 1, "keyed": True}})
    assert list(keyed["buckets"]) == ["0.0", "2.0E7"]


def test_an_end_of_a_range_is_as_exact_as_the_field(index: Index) -> None:
    ranges = [{"to": 0.1}, {"from": 0.1, "to": 0.3}, {"from": 0.3}]
    found = answer(index, {"range": {"field": "narrow", "ranges": ranges}})
    assert counts(found) == {"*-0.1": 0, "0.1-0.3": 1, "0.3-*": 1}
    assert found["buckets"][1]["to"] == 0.3


def test_ranges_of_dates(index: Index) -> None:
    texts = answer(index, {"range": {"field": "day", "ranges": [{"from": "2021-05-02"}]}})
    assert counts(texts) == {"2021-05-02T00:00:00.000Z-*": 1}
    numbers = answer(index, {"date_range": {"field": "second", "ranges": [{"from": 60, "to": 120}]}})
    assert counts(numbers) == {"60-120": 1}
    assert numbers["buckets"][0]["from"] == 60_000.0


@pytest.mark.parametrize(
    ("value_type", "missing", "bucket"),
    [
        ("boolean", True, {"key": 1, "key_as_string": "true"}),
        ("date", "2021-05-01", {"key": 1619827200000, "key_as_string": "2021-05-01T00:00:00.000Z"}),
        ("string", "5", {"key": "5"}),
        ("long", "5", {"key": 5}),
        ("ip", "10.0.0.9", {"key": "10.0.0.9"}),
    ],
)
def test_the_type_of_what_is_not_mapped(
    index: Index, value_type: str, missing: Any, bucket: dict[str, Any]
) -> None:
    body = {"terms": {"field": "nowhere", "value_type": value_type, "missing": missing}}
    assert answer(index, body)["buckets"] == [{**bucket, "doc_count": 2}]


def test_named_filters_in_another_order(index: Index) -> None:
    filters = {"few": {"term": {"n": 5}}, "all": {"match_all": {}}, "none": {"term": {"n": 6}}}
    below = {
        "c": {"value_count": {"field": "tag"}},
        "s": {"bucket_sort": {"sort": [{"c": "asc"}], "size": 2}},
    }
    keyed = answer(index, {"filters": {"filters": filters}, "aggs": below})
    assert [(name, one["doc_count"]) for name, one in keyed["buckets"].items()] == [("few", 1), ("all", 2)]
    listed = answer(index, {"filters": {"filters": filters, "keyed": False}, "aggs": below})
    assert counts(listed) == {"few": 1, "all": 2}


def test_an_aggregation_that_is_called_like_a_member_of_its_bucket(index: Index) -> None:
    below = {"key": {"max": {"field": "n"}}}
    found = answer(index, {"filters": {"filters": {"all": {"match_all": {}}}}, "aggs": below})
    assert list(found["buckets"]) == ["all"]


@pytest.mark.parametrize(("policy", "average"), [({}, 5.0), ({"gap_policy": "insert_zeros"}, 2.5)])
def test_buckets_without_documents_are_gaps(index: Index, policy: dict[str, str], average: float) -> None:
    ranges: dict[str, Any] = {"range": {"field": "n", "ranges": [{"to": 1}, {"from": 1, "to": 9}]}}
    ranges["aggs"] = {"s": {"sum": {"field": "n"}}}
    found = index.aggregations({"r": ranges, "x": {"avg_bucket": {"buckets_path": "r.s", **policy}}})
    assert found["x"] == {"value": average}


def test_pages_of_map_tiles(index: Index) -> None:
    sources = [{"tile": {"geotile_grid": {"field": "place", "precision": 3}}}]
    page = answer(index, {"composite": {"sources": sources}})
    assert page == {
        "after_key": {"tile": "3/4/2"},
        "buckets": [{"key": {"tile": "3/4/2"}, "doc_count": 1}],
    }
    assert answer(index, {"composite": {"sources": sources, "after": {"tile": "3/4/2"}}}) == {"buckets": []}
    before = answer(index, {"composite": {"sources": sources, "after": {"tile": "3/0/7"}}})
    assert before["buckets"] == page["buckets"]


def test_a_page_goes_on_in_the_zone_of_its_keys(index: Index) -> None:
    source = {"field": "day", "calendar_interval": "day", "time_zone": "-02:00", "format": "yyyy-MM-dd"}
    body = {"sources": [{"day": {"date_histogram": source}}], "size": 1}
    first = answer(index, {"composite": body})
    assert first["after_key"] == {"day": "2021-04-30"}
    second = answer(index, {"composite": {**body, "after": first["after_key"]}})
    assert second["after_key"] == {"day": "2021-05-02"}


def test_hits_of_buckets_show_the_fields_of_the_search(index: Index) -> None:
    def fields_of(hits: dict[str, Any]) -> Any:
        aggs = {"t": {"terms": {"field": "tag"}, "aggs": {"h": {"top_hits": hits}}}}
        found = index.search({"size": 0, "fields": ["n"], "aggs": aggs})["aggregations"]["t"]["buckets"][0]
        return found["h"]["hits"]["hits"][0]["fields"]

    assert fields_of({}) == {"n": [5]}
    assert fields_of({"fields": ["tag"]}) == {"tag": ["a"]}


MONTHS = {"date_histogram": {"field": "day", "calendar_interval": "day", "format": "yyyy-MM"}}
KEYWORD = {"k": {"terms": {"field": "tag"}}}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            {"avg": {"field": "n"}, "meta": None},
            "Expected [START_OBJECT] under [meta], but got a [VALUE_NULL]",
        ),
        ({"filters": {}}, "[filters] cannot be empty"),
        ({"terms": {"field": "ip", "include": "10.*"}}, "Aggregation [x] cannot support regular expression"),
        ({"terms": {"field": "nowhere", "value_type": "shape"}}, "Unknown value type [shape]"),
        ({"composite": {"size": 1}}, "Required [sources]"),
        (
            {"composite": {"sources": [KEYWORD] * 2}},
            "Composite source names must be unique, found duplicates: [k]",
        ),
        ({"composite": {"sources": [KEYWORD], "size": 10**9}}, "Trying to create too many buckets. Must be"),
        ({"composite": {"sources": [{"m": MONTHS}]}}, "Format [yyyy-MM] created output it couldn't parse"),
        (
            {
                "composite": {
                    "sources": [{"t": {"geotile_grid": {"field": "place"}}}],
                    "after": {"t": "8/1/1"},
                }
            },
            "[after.t] [8/1/1] is no key of the source",
        ),
        (
            {"percentiles": {"field": "n", "tdigest": {"compression": -1}}},
            "[compression] must be greater than",
        ),
        ({"percentiles": {"field": "n", "tdigest": {}, "hdr": {}}}, "Only one percentiles method"),
        (
            {"percentile_ranks": {"field": "n", "values": [-1], "hdr": {}}},
            "Histogram recorded value cannot be negative.",
        ),
        ({"percentiles": {"field": "n", "percents": None}}, "Required one of fields [percents]"),
        (
            {"cardinality": {"field": "n", "precision_threshold": -1}},
            "[precisionThreshold] must be greater than",
        ),
        ({"avg_bucket": {"buckets_path": "y", "gap_policy": "no"}}, "Invalid gap policy: [no]"),
    ],
)
def test_refused(index: Index, body: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError) as error:
        index.aggregations({"x": body})
    assert error.value.reason.startswith(reason)
    assert error.value.status == 400
