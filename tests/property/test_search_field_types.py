"""Ranges, versions and constants against plain Python over the documents."""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.mapping.versions import version_of, version_term
from graphdb.search.query import parse_query
from graphdb.search.segments.visible_segment import VisibleSegment
from tests.unit.search.results.index import Index

Bounds = tuple[float, float]
INF = float("inf")

# Ranges.

MEMBERS = st.builds(
    lambda low, high: dict(low) | dict(high),
    st.lists(st.tuples(st.sampled_from(["gt", "gte"]), st.integers(-6, 6)), max_size=1),
    st.lists(st.tuples(st.sampled_from(["lt", "lte"]), st.integers(-6, 6)), max_size=1),
)


def bounds_of(member: dict[str, int]) -> Bounds:
    """Both included."""
    low, high = -INF, INF
    for name, value in member.items():
        if name.startswith("g"):
            low = value + (name == "gt")
        else:
            high = value - (name == "lt")
    return low, high


def related(own: Bounds, asked: Bounds, relation: str) -> bool:
    if relation == "within":
        return own[0] >= asked[0] and own[1] <= asked[1]
    if relation == "contains":
        return own[0] <= asked[0] and own[1] >= asked[1]
    return own[0] <= asked[1] and own[1] >= asked[0]


def is_range(member: dict[str, int]) -> bool:
    low, high = bounds_of(member)
    return low <= high


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(MEMBERS.filter(is_range), max_size=3), max_size=8),
    MEMBERS,
    st.sampled_from(["intersects", "within", "contains", "WITHIN"]),
    st.sets(st.integers(0, 7)),
)
def test_ranges(
    docs: list[list[dict[str, int]]], asked: dict[str, int], relation: str, hidden: set[int]
) -> None:
    """As whole numbers, as dates, and as addresses; also where some documents are not visible."""
    kinds: dict[str, Callable[[int], Any]] = {
        "integer_range": int,
        "long_range": int,
        "date_range": int,
        "ip_range": lambda number: str(ipaddress.ip_address(number + 99)),
    }
    fields = {name: {"type": name} for name in kinds}
    written = [
        {
            name: [{member: make(value) for member, value in one.items()} for one in doc]
            for name, make in kinds.items()
        }
        for doc in docs
    ]
    index = Index(fields, written)
    bounds = bounds_of(asked)
    expected = [
        str(number)
        for number, doc in enumerate(docs)
        if bounds[0] <= bounds[1] and any(related(bounds_of(one), bounds, relation.lower()) for one in doc)
    ]
    for name, make in kinds.items():
        body = {member: make(value) for member, value in asked.items()} | {"relation": relation}
        query = {"range": {name: body}}
        assert sorted(index.ids(query=query, size=50)) == expected, name
        visible = []
        parsed = parse_query(query, index.context)
        for leaf in index.searcher.leaves:
            live = np.array([leaf.base + doc not in hidden for doc in range(leaf.segment.size)], np.bool_)
            part = replace(leaf, segment=VisibleSegment(leaf.segment, live), live=live)  # type: ignore[arg-type]
            visible += [leaf.base + doc for doc in np.flatnonzero(parsed.mask(part, index.searcher)).tolist()]
        assert visible == [int(one) for one in expected if int(one) not in hidden]


def test_bounds_of_fractions_dates_and_networks() -> None:
    fields = {"f": {"type": "float_range"}, "d": {"type": "double_range"}, "a": {"type": "ip_range"}}
    fields["t"] = {"type": "date_range", "format": "yyyy-MM-dd"}
    day = {"gte": "2020-01-01", "lte": "2020-01-01"}
    index = Index(
        fields,
        [
            {"f": {"gt": 0.1}, "d": {"gte": -0.0, "lt": 1}, "a": "10.0.0.0/8"},
            {
                "f": {"gte": 0.1},
                "d": {"gte": 1, "lte": None},
                "t": day,
            },
        ],
    )
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"term": {"f": 0.1}}, ["1"]),
        ({"term": {"f": 0.2}}, ["0", "1"]),
        ({"term": {"d": 0}}, ["0"]),
        ({"term": {"d": 1}}, ["1"]),
        ({"terms": {"d": [0, 7]}}, ["0", "1"]),
        ({"term": {"a": "10.255.0.1"}}, ["0"]),
        ({"term": {"a": "11.0.0.0"}}, []),
        ({"term": {"t": "2020-01-01"}}, ["1"]),
        ({"range": {"t": {"gt": "2020-01-01"}}}, []),
        ({"range": {"t": {"gte": "2020-01-01T23", "format": "strict_date_optional_time"}}}, ["1"]),
        ({"exists": {"field": "a"}}, ["0"]),
        ({"match": {"a": "10.0.0.1"}}, ["0"]),
    ]
    for query, expected in cases:
        assert index.ids(query=query) == expected, query
    (hit,) = index.hits(query={"ids": {"values": ["1"]}}, fields=["t", "d"])
    assert hit["fields"] == {
        "t": [{"gte": "2020-01-01", "lte": "2020-01-01"}],
        "d": [{"gte": 1.0, "lte": None}],
    }
    found = index.search({"aggs": {"n": {"value_count": {"field": "d"}}, "m": {"missing": {"field": "a"}}}})
    assert found["aggregations"] == {"n": {"value": 2}, "m": {"doc_count": 1}}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 9)), max_size=3), max_size=6),
    st.integers(1, 5),
    st.integers(-3, 3),
)
def test_histograms_of_ranges(docs: list[list[tuple[int, int]]], interval: int, offset: int) -> None:
    """A document is once in each interval that one of its ranges has a part of."""
    fields = {"n": {"type": "long_range"}, "f": {"type": "double_range"}, "d": {"type": "date_range"}}
    written = [
        {name: [{"gte": low, "lte": low + more} for low, more in doc] for name in fields} for doc in docs
    ]
    counts: dict[int, int] = {}
    for doc in docs:
        found = {(one - offset) // interval for low, more in doc for one in range(low, low + more + 1)}
        for number in found:
            key = number * interval + offset
            counts[key] = counts.get(key, 0) + 1
    index = Index(fields, written)
    for name in ("n", "f"):
        body: dict[str, Any] = {"field": name, "interval": interval, "offset": offset, "min_doc_count": 1}
        answer = index.search({"size": 0, "aggs": {"h": {"histogram": body}}})
        assert {one["key"]: one["doc_count"] for one in answer["aggregations"]["h"]["buckets"]} == counts
    body = {"field": "d", "fixed_interval": f"{interval}ms", "offset": f"{offset}ms", "min_doc_count": 1}
    answer = index.search({"size": 0, "aggs": {"h": {"date_histogram": body}}})
    assert {one["key"]: one["doc_count"] for one in answer["aggregations"]["h"]["buckets"]} == counts


def test_open_ranges_need_hard_bounds() -> None:
    index = Index(
        {"n": {"type": "long_range"}, "a": {"type": "ip_range"}}, [{"n": {"gte": 3}}, {"n": {"lt": 5}}]
    )
    body: dict[str, Any] = {"field": "n", "interval": 2, "min_doc_count": 1}
    with pytest.raises(SearchError, match=r"has ranges without an end: give \[hard_bounds\]"):
        index.search({"aggs": {"h": {"histogram": body}}})
    body["hard_bounds"] = {"min": 2, "max": 7}
    buckets = index.search({"aggs": {"h": {"histogram": body}}})["aggregations"]["h"]["buckets"]
    assert {one["key"]: one["doc_count"] for one in buckets} == {2: 2, 4: 2, 6: 1}
    body["hard_bounds"] = {"min": 0, "max": 10**9}
    with pytest.raises(SearchError, match="in more than 10000000 intervals together"):
        index.search({"aggs": {"h": {"histogram": body}}})
    with pytest.raises(SearchError, match="not supported for aggregation"):
        index.search({"aggs": {"h": {"histogram": {"field": "a", "interval": 1}}}})


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"i": 5}, "expected an object but got 5"),
        ({"i": {"from": 5}}, r"with unknown parameter \[from\]"),
        ({"i": {"gte": 6, "lt": 6}}, r"min value \(6\) is greater than max value \(5\)"),
        ({"i": {"gt": 2**31 - 1}}, "no value is above 2147483647"),
        ({"i": {"gte": 2**31}}, "out of range for an integer"),
        ({"i": {"gte": ""}}, "For input string"),
        ({"a": "10.0.0.0/x"}, "is not an IP string literal"),
        ({"c": "y"}, r"only accepts values that are equal to the value defined in the mappings \[x\]"),
    ],
)
def test_documents_that_are_refused(document: dict[str, Any], reason: str) -> None:
    fields = {"i": {"type": "integer_range"}, "a": {"type": "ip_range"}}
    fields["c"] = {"type": "constant_keyword", "value": "x"}
    with pytest.raises(SearchError) as raised:
        Index(fields, [document])
    error = raised.value
    assert re.search(reason, error.reason if error.cause is None else error.cause.reason)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"query": {"range": {"i": {"gte": 1, "relation": "disjoint"}}}}, "disjoint is not a valid relation"),
        ({"query": {"prefix": {"i": "1"}}}, "Can only use prefix queries"),
        ({"query": {"fuzzy": {"v": "1"}}}, "Can only use fuzzy queries"),
        ({"sort": ["i"]}, "can't sort on"),
        ({"aggs": {"t": {"terms": {"field": "i"}}}}, "not supported for aggregation"),
    ],
)
def test_requests_that_are_refused(body: dict[str, Any], reason: str) -> None:
    fields = {"i": {"type": "integer_range"}, "v": {"type": "version"}, "c": {"type": "constant_keyword"}}
    with pytest.raises(SearchError, match=reason):
        Index(fields, [{"i": {"gte": 1}}]).search(body)


# Versions.

PART = st.one_of(st.integers(0, 120).map(str), st.sampled_from(["alpha", "rc", "x-y"]))
VERSION = st.builds(
    lambda numbers, pre, build: ".".join(map(str, numbers)) + ("-" + ".".join(pre) if pre else "") + build,
    st.lists(st.integers(0, 120), min_size=1, max_size=4),
    st.lists(PART, max_size=3),
    st.sampled_from(["", "", "+7", "+b"]),
)
GIVEN = st.one_of(VERSION, st.sampled_from(["", "1.2.", "01.1", "v1", "zzz", "1.a"]))


def precedence(text: str) -> tuple[Any, ...]:
    match = re.fullmatch(r"([0-9.]+?)(?:-([^+]*))?(\+.*)?", text)
    numbers = [] if match is None else match[1].split(".")
    if match is None or not all(part == str(int(part)) for part in numbers if part) or "" in numbers:
        return (1, text)
    pre = None if match[2] is None else [(0, int(p)) if p.isdigit() else (1, p) for p in match[2].split(".")]
    return (0, [int(part) for part in numbers], pre is None, pre or [], match[3] or "")


@settings(max_examples=50, deadline=None)
@given(st.lists(GIVEN, max_size=9), GIVEN, st.sampled_from(["1", "1.1", "rc", "v", ""]))
def test_versions(docs: list[str], bound: str, start: str) -> None:
    assert [version_of(version_term(text)) for text in docs] == docs
    index = Index({"v": {"type": "version"}}, [{"v": text} for text in docs])
    order = sorted(range(len(docs)), key=lambda number: (precedence(docs[number]), number))
    hits = index.hits(sort=["v", "_doc"], size=50)
    assert [int(hit["_id"]) for hit in hits] == order
    assert [hit["sort"][0] for hit in hits] == [docs[number] for number in order]
    after = index.ids(sort=["v"], size=50, search_after=[bound])
    assert [docs[int(one)] for one in after] == [
        docs[number] for number in order if precedence(docs[number]) > precedence(bound)
    ]
    cases: dict[str, tuple[dict[str, Any], Callable[[str], bool]]] = {
        "below": ({"range": {"v": {"lt": bound}}}, lambda text: precedence(text) < precedence(bound)),
        "equal": ({"term": {"v": bound}}, lambda text: text == bound),
        "any": ({"terms": {"v": [bound, "1"]}}, lambda text: text in (bound, "1")),
        "start": ({"prefix": {"v": start}}, lambda text: text.startswith(start)),
        "inside": ({"wildcard": {"v": f"*{start}*"}}, lambda text: start in text),
        "letters": ({"regexp": {"v": start.replace(".", "[.]") + ".*"}}, lambda text: text.startswith(start)),
        "fold": ({"term": {"v": {"value": bound.upper(), "case_insensitive": True}}}, lambda t: t == bound),
    }
    for name, (query, matches) in cases.items():
        expected = [number for number, text in enumerate(docs) if matches(text)]
        assert sorted(int(one) for one in index.ids(query=query, size=50)) == expected, name
    found = index.search(
        {"size": 0, "aggs": {"v": {"terms": {"field": "v", "size": 50, "order": {"_key": "asc"}}}}}
    )
    keys = [bucket["key"] for bucket in found["aggregations"]["v"]["buckets"]]
    assert keys == sorted(set(docs), key=precedence)


# Constants.


@settings(max_examples=25, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=6), st.sampled_from([None, "red"]))
def test_a_constant_is_of_all_documents(having: list[bool], value: str | None) -> None:
    """Of those that do not name it, and those from before it was known."""
    field = {"type": "constant_keyword"} | ({} if value is None else {"value": value})
    index = Index({"c": field, "n": {"type": "long"}}, [{"c": "red"} if has else {"n": 1} for has in having])
    known = value is not None or any(having)
    every = [str(number) for number in range(len(having))] if known else []
    matching: list[dict[str, Any]] = [
        {"term": {"c": "red"}},
        {"term": {"c": {"value": "RED", "case_insensitive": True}}},
        {"terms": {"c": ["blue", "red"]}},
        {"prefix": {"c": "r"}},
        {"wildcard": {"c": "*"}},
        {"wildcard": {"c": "r?d"}},
        {"regexp": {"c": "r.d"}},
        {"range": {"c": {"gte": "red", "lt": "s"}}},
        {"exists": {"field": "c"}},
        {"match": {"c": "red"}},
        {"query_string": {"query": "c:re*"}},
        {"query_string": {"query": "_exists_:c"}},
    ]
    for query in matching:
        assert index.ids(query=query) == every, query
    for query in (
        {"term": {"c": "blue"}},
        {"range": {"c": {"gt": "red"}}},
        {"prefix": {"c": "b"}},
        {"match": {"c": "re"}},
    ):
        assert index.ids(query=query) == []
    buckets = index.search({"aggs": {"c": {"terms": {"field": "c"}}}})["aggregations"]["c"]["buckets"]
    assert buckets == ([{"key": "red", "doc_count": len(having)}] if known else [])
    shown = [hit.get("fields") for hit in index.hits(fields=["c"], sort=["c", "_doc"])]
    assert shown == [{"c": ["red"]} if known else None] * len(having)
