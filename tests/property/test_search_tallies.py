"""Buckets that are counted in one pass and written at once, against plain loops and the general way."""

import json
from collections import Counter
from typing import Any

import numpy as np
import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphdb.search.aggregations.columns import Columns
from graphdb.search.aggregations.tallies import FIRST_MAX, StepTally, TermTally
from graphdb.search.analysis import Analyzers
from graphdb.search.leaf_reader import Leaf, NumberColumn
from graphdb.search.mapping import Mapping
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.results import SearchOptions, search
from graphdb.search.results.search import columns_of
from graphdb.search.segments import SegmentBuilder

few = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PROPERTIES: dict[str, Any] = {
    "t": {"type": "text"},
    "k": {"type": "keyword"},
    "n": {"type": "integer"},
    "p": {"type": "double"},
    "f": {"type": "half_float"},
    "same": {"type": "alias", "path": "k"},
    "c": {"type": "nested", "properties": {"k": {"type": "keyword"}}},
}
NUMBERS = ("n", "p", "f")
Doc = dict[str, Any]


def _fixed(values: Any, kind: Any) -> NDArray[Any]:
    array = np.array(values, kind)
    array.setflags(write=False)
    return array


def _searcher(leaves: list[list[Doc]], dead: set[int]) -> Searcher:
    """dead: numbers of documents, over all leaves, that are deleted."""
    analyzers = Analyzers.of({})
    mapping = Mapping.of({"properties": PROPERTIES}, analyzers)
    made: list[Leaf] = []
    base = number = 0
    for docs in leaves:
        builder = SegmentBuilder()
        for doc in docs:
            parsed, _ = mapping.parse(doc)
            builder.add(str(number), json.dumps(doc).encode(), number, 1, parsed)
            number += 1
        segment = builder.build(f"s{len(made)}")
        live = np.array([int(segment.doc_id(doc)) not in dead for doc in range(segment.size)], np.bool_)
        made.append(Leaf(segment, live, base))
        base += segment.size
    return Searcher(made, mapping, analyzers)


terms = st.lists(st.sampled_from(["", "a", "b", 'é"', "\\", "\x00", "z" * 40]), max_size=4)
documents = st.fixed_dictionaries(
    {"t": st.sampled_from(["x", "y", "x y"])},
    optional={
        "k": terms,
        "n": st.lists(st.integers(-40, 40), max_size=3),
        "p": st.one_of(st.sampled_from([-0.75, 0.0, 2.5]), st.lists(st.integers(-9, 9), max_size=3)),
        "f": st.sampled_from([-1.5, 0.25, 7]),
        "c": st.lists(st.just({"k": "a"}), max_size=2),
    },
)
aggregations = st.one_of(
    st.builds(
        lambda field, size, least: {"terms": {"field": field, "size": size, "min_doc_count": least}},
        st.sampled_from(["k", "same", "c.k", "none"]),
        st.sampled_from([1, 2, 10, FIRST_MAX, FIRST_MAX + 1]),
        st.integers(0, 2),
    ),
    st.builds(
        lambda field, interval, offset, least: {
            "histogram": {"field": field, "interval": interval, "offset": offset, "min_doc_count": least}
        },
        st.sampled_from(NUMBERS),
        st.sampled_from([0.3, 1, 7, 2.5, 1e15, 3e17]),
        st.sampled_from([0, 0.5, -3, 6]),
        st.integers(0, 2),
    ),
)
queries = st.sampled_from(
    [
        {"match_all": {}},
        {"match": {"t": "x"}},
        {"term": {"k": "a"}},
        {"match": {"t": "x y"}},
        {"match_none": {}},
        {"range": {"n": {"gte": 0}}},
    ]
)


@few
@given(
    st.lists(st.lists(documents, max_size=6), max_size=3),
    st.sets(st.integers(0, 17), max_size=3),
    queries,
    st.lists(aggregations, min_size=1, max_size=3),
    st.sampled_from([True, False, 1]),
)
def test_searches_that_only_count(
    leaves: list[list[Doc]], dead: set[int], query: Any, asked: list[Any], tracked: Any
) -> None:
    searcher = _searcher(leaves, dead)
    context = QueryContext(searcher.mapping, searcher.analyzers, now_ms=0, index_name="i")
    for name in NUMBERS:  # as whoever finds out how long a search takes
        spec = searcher.mapping.field(name)
        assert spec is not None
        columns_of(searcher).bounds(spec)
    body = {"query": query, "size": 0, "track_total_hits": tracked}
    body["aggs"] = {f"x{number}": one for number, one in enumerate(asked)}
    for _ in range(2):  # what the first one keeps, the second one finds
        short, plain = (
            orjson.loads(orjson.dumps(search(body, searcher, context, options=SearchOptions(raw_source=raw))))
            for raw in (True, False)
        )
        assert short == plain


def test_that_counting_makes_no_objects() -> None:
    """Else the tests above would compare the general way with itself. Half a surrogate pair is left to it."""
    searcher = _searcher([[{"k": "a", "n": 1}], [{"k": "b"}]], set())
    odd = _searcher([[{"k": "\ud800", "n": 1}]], set())
    for one, kinds in ((searcher, (orjson.Fragment, orjson.Fragment)), (odd, (dict, dict))):
        context = QueryContext(one.mapping, one.analyzers, now_ms=0, index_name="i")
        spec = one.mapping.field("n")
        assert spec is not None
        columns_of(one).bounds(spec)
        aggs = {"k": {"terms": {"field": "k"}}, "n": {"histogram": {"field": "n", "interval": 2}}}
        found = search({"size": 0, "aggs": aggs}, one, context, options=SearchOptions(raw_source=True))
        assert tuple(type(answer) for answer in found["aggregations"].values()) == kinds


@few
@given(
    st.lists(st.lists(st.integers(0, 400), max_size=12, unique=True), min_size=1, max_size=30),
    st.integers(1, FIRST_MAX),
    st.integers(1, 3),
    st.data(),
)
def test_most_frequent_terms(documents: list[list[int]], size: int, least: int, data: st.DataObject) -> None:
    """Few and many terms, few and many of a document: by rows and without."""
    searcher = _searcher([[{"k": [f"{term:03}" for term in doc]} for doc in documents]], set())
    spec = searcher.mapping.field("k")
    assert spec is not None
    chosen = sorted(data.draw(st.sets(st.integers(0, len(documents) - 1))))
    tally = TermTally(Columns(searcher.leaves), spec, size, least)
    tally.add(0, _fixed(chosen, np.int32))
    text, buckets = tally.written()
    counted = Counter(f"{term:03}" for number in chosen for term in documents[number])
    held = sorted(
        ((term, count) for term, count in counted.items() if count >= least),
        key=lambda pair: (-pair[1], pair[0]),
    )
    answer = orjson.loads(text)
    assert [(one["key"], one["doc_count"]) for one in answer["buckets"]] == held[:size]
    assert answer["sum_other_doc_count"] == sum(count for _, count in held[size:])
    assert buckets == len(held[:size])


@few
@given(
    st.lists(st.integers(-(10**9), 10**9), max_size=20),
    st.one_of(st.integers(1, 10**7), st.sampled_from([0.5, 1.75, 1e16, 1e300])),
    st.one_of(st.integers(-(10**16), 10**16), st.sampled_from([0.0, -0.0, 0.125])),
    st.integers(0, 2),
)
def test_steps_as_they_are_written(values: list[int], interval: float, offset: float, least: int) -> None:
    """Byte for byte what the encoder makes of the buckets."""
    interval, offset = float(interval), float(offset)
    numbers = [int(np.floor((value - offset) / interval)) for value in values]
    if numbers and max(numbers) - min(numbers) > 1_000:
        values, numbers = values[:1], numbers[:1]
    ends = (min(numbers, default=0), max(numbers, default=0))
    column = NumberColumn(_fixed(values, np.int64), None)
    tally = StepTally([column], interval, offset, ends, least)
    tally.add(0, _fixed(range(len(values)), np.int32))
    counted = Counter(numbers)
    every = range(ends[0], ends[1] + 1) if numbers else ()
    buckets = [
        {"key": number * interval + offset, "doc_count": counted[number]}
        for number in every
        if counted[number] >= least
    ]
    assert tally.written() == (orjson.dumps({"buckets": buckets}), len(buckets))
