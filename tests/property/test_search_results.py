"""Sorting, paging, collapsing and aggregations against plain Python over the documents themselves."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cmp_to_key
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.analysis import Analyzers
from graphdb.search.leaf_reader import Leaf
from graphdb.search.mapping import Mapping
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.results import search
from graphdb.search.segments import SegmentBuilder

PROPERTIES = {
    "k": {"type": "keyword"},
    "one": {"type": "keyword"},
    "n": {"type": "integer"},
    "p": {"type": "double"},
    "d": {"type": "date"},
    "b": {"type": "boolean"},
    "c": {"type": "nested", "properties": {"s": {"type": "long"}, "u": {"type": "keyword"}}},
}
ZONE = ZoneInfo("Europe/Paris")
Doc = dict[str, Any]

letters = st.sampled_from(["a", "b", "c", "d", "é", "\U0001f600", "～"])
numbers = st.integers(-5, 5)
doubles = st.sampled_from([-2.5, -0.5, 0.0, 0.25, 1.5, 3.0])
instants = st.integers(1_540_000_000_000, 1_620_000_000_000)
objects = st.fixed_dictionaries({}, optional={"s": numbers, "u": letters})
documents = st.fixed_dictionaries(
    {},
    optional={
        "k": st.lists(letters, max_size=3),
        "one": letters,
        "n": st.lists(numbers, max_size=3),
        "p": doubles,
        "d": instants,
        "b": st.booleans(),
        "c": st.lists(objects, max_size=3),
    },
)


@st.composite
def corpora(draw: st.DrawFn) -> "Corpus":
    docs = draw(st.lists(documents, max_size=12))
    cuts = sorted(draw(st.lists(st.integers(0, len(docs)), max_size=2)))
    dead = draw(st.sets(st.integers(0, max(0, len(docs) - 1)), max_size=3))
    return Corpus(docs, cuts, dead)


class Corpus:
    """Documents in one or several segments, some of them deleted, and the same as a plain list."""

    def __init__(self, docs: list[Doc], cuts: list[int], dead: set[int]) -> None:
        analyzers = Analyzers.of({})
        mapping = Mapping.of({"properties": PROPERTIES}, analyzers)
        leaves: list[Leaf] = []
        base = 0
        for low, high in zip([0, *cuts], [*cuts, len(docs)], strict=True):
            builder = SegmentBuilder()
            for number in range(low, high):
                parsed, _ = mapping.parse(docs[number])
                builder.add(str(number), orjson.dumps(docs[number]), number, 1, parsed)
            segment = builder.build(f"s{len(leaves)}")
            live = np.array([int(segment.doc_id(doc)) not in dead for doc in range(segment.size)], np.bool_)
            leaves.append(Leaf(segment, live, base))
            base += segment.size
        self.searcher = Searcher(leaves, mapping, analyzers)
        self.context = QueryContext(mapping, analyzers, now_ms=0, index_name="i")
        self.docs = {number: doc for number, doc in enumerate(docs) if number not in dead}

    def __repr__(self) -> str:
        return f"Corpus({self.docs})"

    def search(self, **body: Any) -> dict[str, Any]:
        return search(body, self.searcher, self.context)

    def ids(self, **body: Any) -> list[int]:
        return [int(hit["_id"]) for hit in self.search(size=100, **body)["hits"]["hits"]]

    def aggregated(self, kind: str, below: dict[str, Any] | None = None, **parameters: Any) -> Any:
        body: dict[str, Any] = {kind: parameters} | ({"aggs": below} if below else {})
        return self.search(size=0, aggs={"x": body})["aggregations"]["x"]


def values(doc: Doc, field: str) -> list[Any]:
    found = doc.get(field, [])
    return sorted(found if isinstance(found, list) else [found])


@settings(max_examples=60, deadline=None)
@given(corpora(), st.integers(1, 4), st.sampled_from(["_count", "_key", "m"]), st.booleans())
def test_terms_with_a_metric_below(corpus: Corpus, size: int, by: str, descending: bool) -> None:
    groups: dict[str, list[Doc]] = defaultdict(list)
    for doc in corpus.docs.values():
        for term in set(values(doc, "k")):
            groups[term].append(doc)
    expected = []
    for term, docs in groups.items():
        found = [n for doc in docs for n in values(doc, "n")]
        expected.append((term, len(docs), sum(found) / len(found) if found else None))
    sign = -1 if descending else 1
    place = {
        "_count": lambda row: (sign * row[1], row[0]),
        "_key": lambda row: (sign * sorted(groups).index(row[0]), row[0]),
        "m": lambda row: (math.inf if row[2] is None else sign * row[2], row[0]),
    }[by]
    expected.sort(key=place)

    order = {by: "desc" if descending else "asc"}
    answer = corpus.aggregated("terms", {"m": {"avg": {"field": "n"}}}, field="k", size=size, order=order)

    got = [(bucket["key"], bucket["doc_count"], bucket["m"]["value"]) for bucket in answer["buckets"]]
    assert got == expected[:size]
    assert answer["sum_other_doc_count"] == sum(row[1] for row in expected[size:])


@settings(max_examples=60, deadline=None)
@given(corpora())
def test_terms_without_documents(corpus: Corpus) -> None:
    known = {n for doc in corpus.docs.values() for n in values(doc, "n")}
    answer = corpus.search(
        size=0,
        query={"term": {"one": "a"}},
        aggs={"x": {"terms": {"field": "n", "min_doc_count": 0, "size": 100, "order": {"_key": "asc"}}}},
    )["aggregations"]["x"]
    counts = Counter(
        n for doc in corpus.docs.values() if doc.get("one") == "a" for n in set(values(doc, "n"))
    )
    assert [(one["key"], one["doc_count"]) for one in answer["buckets"]] == [
        (n, counts[n]) for n in sorted(known)
    ]


@settings(max_examples=60, deadline=None)
@given(corpora(), st.sampled_from([0.5, 1.0, 2.0, 3.0]), st.sampled_from([0.0, 0.5, -1.0]))
def test_histogram(corpus: Corpus, interval: float, offset: float) -> None:
    counts: Counter[int] = Counter()
    for doc in corpus.docs.values():
        counts.update({math.floor((n - offset) / interval) for n in values(doc, "n")})
    steps = range(min(counts), max(counts) + 1) if counts else range(0)
    answer = corpus.aggregated("histogram", field="n", interval=interval, offset=offset)
    got = [(bucket["key"], bucket["doc_count"]) for bucket in answer["buckets"]]
    assert got == [(step * interval + offset, counts[step]) for step in steps]


@settings(max_examples=60, deadline=None)
@given(corpora(), st.sampled_from(["day", "week", "month", "quarter", "year"]))
def test_date_histogram_follows_the_clocks_of_a_zone(corpus: Corpus, unit: str) -> None:
    counts: Counter[int] = Counter()
    for doc in corpus.docs.values():
        counts.update(_start(ms, unit) for ms in values(doc, "d"))
    answer = corpus.aggregated(
        "date_histogram", field="d", calendar_interval=unit, time_zone="Europe/Paris", min_doc_count=1
    )
    assert [(one["key"], one["doc_count"]) for one in answer["buckets"]] == sorted(counts.items())
    empty = corpus.aggregated("date_histogram", field="d", calendar_interval=unit, time_zone="Europe/Paris")
    keys = [one["key"] for one in empty["buckets"]]
    assert keys == sorted(set(keys))
    assert all(_start(key, unit) == key for key in keys)
    assert {key for key, count in counts.items() if count} <= set(keys)


def _start(ms: int, unit: str) -> int:
    local = datetime.fromtimestamp(ms // 1000, UTC).astimezone(ZONE)
    year, month, day = local.year, local.month, local.day
    if unit == "week":
        monday = datetime.fromordinal(local.toordinal() - local.weekday())
        year, month, day = monday.year, monday.month, monday.day
    elif unit != "day":
        day = 1
        month = {"month": month, "quarter": (month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return int(datetime(year, month, day, tzinfo=ZONE).timestamp()) * 1000


@settings(max_examples=60, deadline=None)
@given(corpora())
def test_metrics(corpus: Corpus) -> None:
    found = sorted(n for doc in corpus.docs.values() for n in values(doc, "n"))
    stats = corpus.aggregated("stats", field="n")
    assert stats["count"] == len(found)
    assert stats["sum"] == sum(found)
    assert stats["min"] == (min(found) if found else None)
    assert stats["avg"] == (pytest.approx(sum(found) / len(found)) if found else None)
    assert corpus.aggregated("cardinality", field="n")["value"] == len(set(found))
    percentiles = corpus.aggregated("percentiles", field="n", percents=[0, 30, 50, 100])["values"]
    for percent, value in percentiles.items():
        expected = float(np.percentile(found, float(percent))) if found else None
        assert value == (None if expected is None else pytest.approx(expected))


@settings(max_examples=60, deadline=None)
@given(corpora())
def test_ranges_and_missing(corpus: Corpus) -> None:
    answer = corpus.aggregated("range", field="n", ranges=[{"to": 0}, {"from": 0, "to": 3}, {"from": -1}])
    for bucket in answer["buckets"]:
        low, high = bucket.get("from", -math.inf), bucket.get("to", math.inf)
        inside = [doc for doc in corpus.docs.values() if any(low <= n < high for n in values(doc, "n"))]
        assert bucket["doc_count"] == len(inside)
    lacking = [doc for doc in corpus.docs.values() if not values(doc, "k")]
    assert corpus.aggregated("missing", field="k")["doc_count"] == len(lacking)


@settings(max_examples=60, deadline=None)
@given(corpora())
def test_nested_and_back(corpus: Corpus) -> None:
    below = {"u": {"terms": {"field": "c.u", "size": 20}, "aggs": {"back": {"reverse_nested": {}}}}}
    answer = corpus.aggregated("nested", below, path="c")
    everything = [(number, item) for number, doc in corpus.docs.items() for item in doc.get("c", [])]
    assert answer["doc_count"] == len(everything)
    for bucket in answer["u"]["buckets"]:
        those = [number for number, item in everything if item.get("u") == bucket["key"]]
        assert bucket["doc_count"] == len(those)
        assert bucket["back"]["doc_count"] == len(set(those))
    assert len(answer["u"]["buckets"]) == len({item["u"] for _, item in everything if "u" in item})


SortSpec = list[tuple[str, bool, Any]]
sort_specs = st.lists(
    st.tuples(
        st.sampled_from(["k", "one", "n", "p", "d", "b"]), st.booleans(), st.sampled_from(["_first", "_last"])
    ),
    min_size=1,
    max_size=3,
)


def _sorted(corpus: Corpus, spec: SortSpec) -> list[int]:
    def compare(left: int, right: int) -> int:
        for field, descending, missing in spec:
            pair = [values(corpus.docs[number], field) for number in (left, right)]
            if not all(pair):
                absent = 1 if missing == "_last" else -1
                order = absent * (bool(pair[1]) - bool(pair[0]))
            else:
                one, two = (found[-1 if descending else 0] for found in pair)
                order = ((one > two) - (one < two)) * (-1 if descending else 1)
            if order:
                return order
        return left - right

    return sorted(corpus.docs, key=cmp_to_key(compare))


def _sort(spec: SortSpec) -> list[Any]:
    return [
        {field: {"order": "desc" if descending else "asc", "missing": missing}}
        for field, descending, missing in spec
    ]


@settings(max_examples=60, deadline=None)
@given(corpora(), sort_specs)
def test_sorting_by_several_keys(corpus: Corpus, spec: SortSpec) -> None:
    assert corpus.ids(sort=_sort(spec)) == _sorted(corpus, spec)


@settings(max_examples=60, deadline=None)
@given(corpora(), sort_specs, st.integers(1, 4))
def test_pages_join_to_the_whole(corpus: Corpus, spec: SortSpec, size: int) -> None:
    assert list(_paged(corpus, [*_sort(spec), "_shard_doc"], size)) == _sorted(corpus, spec)


def _paged(corpus: Corpus, sort: list[Any], size: int) -> Iterator[int]:
    after: dict[str, Any] = {}
    for _ in range(100):
        hits = corpus.search(sort=sort, size=size, **after)["hits"]["hits"]
        if not hits:
            return
        yield from (int(hit["_id"]) for hit in hits)
        # As a client sends it: through JSON.
        after = {"search_after": orjson.loads(orjson.dumps(hits[-1]["sort"]))}
    raise AssertionError("the pages never end")


@settings(max_examples=60, deadline=None)
@given(corpora(), sort_specs)
def test_collapse(corpus: Corpus, spec: SortSpec) -> None:
    leaders: dict[str | None, int] = {}
    members: dict[str | None, list[int]] = defaultdict(list)
    for number in _sorted(corpus, spec):
        leaders.setdefault(corpus.docs[number].get("one"), number)
        members[corpus.docs[number].get("one")].append(number)
    collapse = {"field": "one", "inner_hits": {"name": "x", "size": 2, "sort": _sort(spec)}}
    hits = corpus.search(sort=_sort(spec), size=100, collapse=collapse)["hits"]["hits"]
    assert [int(hit["_id"]) for hit in hits] == list(leaders.values())
    for hit in hits:
        (group,) = hit.get("fields", {"one": [None]})["one"]  # of documents without a value nothing is shown
        inner = hit["inner_hits"]["x"]["hits"]
        assert [int(one["_id"]) for one in inner["hits"]] == members[group][:2]
        assert inner["total"]["value"] == len(members[group])


@settings(max_examples=60, deadline=None)
@given(corpora(), st.sampled_from(["min", "max", "sum"]))
def test_sorting_by_nested_values(corpus: Corpus, mode: str) -> None:
    def place(number: int) -> tuple[float, int]:
        found = [item["s"] for item in corpus.docs[number].get("c", []) if "s" in item]
        return (int(getattr(np, mode)(found)) if found else math.inf), number

    sort = [{"c.s": {"order": "asc", "mode": mode, "nested": {"path": "c"}}}]
    assert corpus.ids(sort=sort) == sorted(corpus.docs, key=place)
