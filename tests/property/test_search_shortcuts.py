"""The short ways of common searches against the plain ones: hits that are shown together, buckets without
anything below them, texts of dates that are kept, scores that are made where somebody asks for them.
"""

from typing import Any
from unittest.mock import patch

import numpy as np
import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphdb.search.aggregations import value_sources
from graphdb.search.analysis import Analyzers
from graphdb.search.leaf_reader import Leaf
from graphdb.search.mapping import Mapping
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.results import SearchOptions, search
from graphdb.search.results.hits import Fetcher
from graphdb.search.segments import SegmentBuilder

PROPERTIES = {
    "t": {"type": "text"},
    "k": {"type": "keyword", "ignore_above": 3},
    "n": {"type": "integer"},
    "p": {"type": "double"},
    "u": {"type": "unsigned_long"},
    "f": {"type": "scaled_float", "scaling_factor": 10},
    "b": {"type": "boolean"},
    "d": {"type": "date"},
    "y": {"type": "date", "format": "yyyy-MM"},
    "c": {"type": "nested", "properties": {"n": {"type": "integer"}}},
}
Doc = dict[str, Any]

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
words = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4).map(" ".join)
documents = st.fixed_dictionaries(
    {"t": words},
    optional={
        "k": st.lists(st.sampled_from(["x", "y", "é", "longer"]), max_size=2),
        "n": st.integers(-3, 3),
        "p": st.sampled_from([-2.5, 0.0, 0.25, 3.0, 1e15]),
        "u": st.integers(2**64 - 3, 2**64 - 1),
        "f": st.sampled_from([-0.5, 1.25, 2.0]),
        "b": st.booleans(),
        "d": st.integers(1_600_000_000_000, 1_600_600_000_000),
        "y": st.sampled_from(["2020-01", "2020-02", "2021-12"]),
    },
)
queries = st.sampled_from(
    [
        {"match_all": {}},
        {"match": {"t": "a b"}},
        {"match": {"t": {"query": "b c", "operator": "and"}}},
        {"term": {"t": {"value": "c", "boost": 2.5}}},
        {"constant_score": {"filter": {"range": {"n": {"gte": 0}}}}},
        {"bool": {"should": [{"term": {"k": "x"}}, {"match": {"t": "c"}}]}},
        {"match": {"t": {"query": "a", "_name": "named"}}},
    ]
)


@st.composite
def corpora(draw: st.DrawFn) -> "Corpus":
    docs = draw(st.lists(documents, max_size=10))
    for doc in docs:
        if draw(st.integers(0, 19)) == 0:  # one such document makes the whole segment another one
            doc["c"] = [{"n": 1}, {"n": 2}]
    cut = draw(st.integers(0, len(docs)))
    return Corpus(docs, cut, draw(st.sets(st.integers(0, 9), max_size=2)), draw(st.booleans()))


class Corpus:
    """Documents in two segments, some of them deleted. routed: some have a routing."""

    def __init__(self, docs: list[Doc], cut: int, dead: set[int], routed: bool) -> None:
        analyzers = Analyzers.of({})
        mapping = Mapping.of({"properties": PROPERTIES}, analyzers)
        leaves: list[Leaf] = []
        base = 0
        for low, high in ((0, cut), (cut, len(docs))):
            builder = SegmentBuilder()
            for number in range(low, high):
                parsed, _ = mapping.parse(docs[number])
                routing = "r" if routed and number % 3 == 0 else None
                builder.add(str(number), orjson.dumps(docs[number]), number, 1, parsed, routing)
            segment = builder.build(f"s{len(leaves)}")
            live = np.array([int(segment.doc_id(doc)) not in dead for doc in range(segment.size)], np.bool_)
            leaves.append(Leaf(segment, live, base))
            base += segment.size
        self.searcher = Searcher(leaves, mapping, analyzers)
        self.context = QueryContext(mapping, analyzers, now_ms=0, index_name="i")
        self.docs = docs

    def __repr__(self) -> str:
        return f"Corpus({self.docs})"

    def search(self, body: dict[str, Any], *, raw: bool = True) -> Any:
        found = search(body, self.searcher, self.context, options=SearchOptions(raw_source=raw))
        return orjson.loads(orjson.dumps(found))

    def buckets(self, definition: dict[str, Any]) -> Any:
        return self.search({"size": 0, "aggs": {"x": definition}})["aggregations"]["x"]


sorts = st.sampled_from(
    [None, "n", {"d": "desc"}, ["k", "_doc"], [{"p": {"order": "desc", "missing": "_first"}}, "_score"], "u"]
)


@few
@given(corpora(), queries, sorts, st.integers(0, 3), st.integers(1, 5))
def test_hits_shown_together(corpus: Corpus, query: Any, sort: Any, start: int, size: int) -> None:
    body = {"query": query, "from": start, "size": size} | ({} if sort is None else {"sort": sort})
    found = corpus.search(body)
    with patch.object(Fetcher, "shown_plain", lambda *_: None):
        one_by_one = corpus.search(body)
        with patch.object(Fetcher, "_is_plain", lambda *_: False):
            in_full = corpus.search(body)
    assert found == one_by_one == in_full == corpus.search(body, raw=False)


histograms = st.one_of(
    st.tuples(st.sampled_from(["n", "p", "f", "b"]), st.sampled_from([1, 2.5, 1e16]))
    .map(lambda pair: {"field": pair[0], "interval": pair[1]})
    .map(lambda options: ("histogram", {"min_doc_count": 1, **options})),
    st.just(("histogram", {"field": "u", "interval": 1e16, "min_doc_count": 1})),
    st.builds(
        lambda field, interval, zone, layout: {"field": field, **interval, **zone, **layout},
        st.sampled_from(["d", "y"]),
        st.sampled_from([{"fixed_interval": "12h"}, {"calendar_interval": "month"}]),
        st.sampled_from([{}, {"time_zone": "Europe/Paris"}, {"time_zone": "+05:30", "offset": "+1h"}]),
        st.sampled_from([{}, {"format": "yyyy/MM/dd HH:mm"}, {"format": "epoch_second"}]),
    ).map(lambda options: ("date_histogram", {"min_doc_count": 1, **options})),
)
terms = st.builds(
    lambda field, size, order: ("terms", {"field": field, "size": size, "order": order}),
    st.sampled_from(["k", "n", "u", "b", "d", "y"]),
    st.integers(1, 4),
    st.sampled_from([{"_count": "desc"}, {"_key": "asc"}, {"_key": "desc"}]),
)
missing_terms = st.just(("terms", {"field": "k", "missing": "none"}))


@few
@given(corpora(), st.one_of(histograms, terms, missing_terms))
def test_buckets_without_anything_below(corpus: Corpus, aggregation: tuple[str, dict[str, Any]]) -> None:
    kind, options = aggregation
    below: dict[str, Any] = {"c": {"filter": {"match_all": {}}}}
    plain, full = corpus.buckets({kind: options}), corpus.buckets({kind: options, "aggs": below})
    for bucket in full["buckets"]:
        assert bucket.pop("c") == {"doc_count": bucket["doc_count"]}
    assert plain == full


@few
@given(corpora(), st.lists(histograms.filter(lambda one: one[0] == "date_histogram"), max_size=4))
def test_texts_of_dates_that_are_kept(corpus: Corpus, asked: list[tuple[str, dict[str, Any]]]) -> None:
    """However few there is room for, and whatever was asked for before."""
    fresh = []
    for kind, options in asked:
        value_sources._known_texts.cache_clear()
        fresh.append(corpus.buckets({kind: options}))
    value_sources._known_texts.cache_clear()
    with patch.object(value_sources, "_TEXTS_MAX", 3):
        for _ in range(2):
            assert [corpus.buckets({kind: options}) for kind, options in asked] == fresh
    assert [corpus.buckets({kind: options}) for kind, options in asked] == fresh


@few
@given(corpora(), queries)
def test_scores_where_an_aggregation_asks(corpus: Corpus, query: Any) -> None:
    hits = corpus.search({"query": query, "size": 100})["hits"]["hits"]
    scores = {hit["_id"]: hit["_score"] for hit in hits}
    best = {"top_hits": {"size": 100, "_source": False}}
    aggs = {"all": best, "k": {"terms": {"field": "k", "size": 10}, "aggs": {"best": best}}}
    found = corpus.search({"query": query, "size": 0, "aggs": aggs})["aggregations"]
    shown = found["all"]["hits"]["hits"]
    assert {hit["_id"]: hit["_score"] for hit in shown} == scores
    for bucket in found["k"]["buckets"]:
        inside = bucket["best"]["hits"]["hits"]
        assert len(inside) == bucket["doc_count"]
        assert all(scores[hit["_id"]] == hit["_score"] for hit in inside)
        assert [hit["_score"] for hit in inside] == sorted((hit["_score"] for hit in inside), reverse=True)
