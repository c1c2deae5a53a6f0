"""Documents spread over one to three indexes answer as one naive scan over all of them."""

from collections import Counter
from typing import Any

import numpy as np
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.analysis import Analyzers
from graphdb.search.leaf_reader import Leaf
from graphdb.search.mapping import Mapping
from graphdb.search.multi import Scroll, Searchers, Target, prepare
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.segments import SegmentBuilder

Doc = dict[str, Any]
FIELDS = {"k": {"type": "keyword"}, "n": {"type": "integer"}, "t": {"type": "text"}}

documents = st.fixed_dictionaries(
    {"n": st.integers(0, 5)},
    optional={
        "k": st.sampled_from("abc"),
        "t": st.lists(st.sampled_from(["red", "blue"]), max_size=3).map(" ".join),
    },
)
indexes = st.lists(st.lists(documents, max_size=6), min_size=1, max_size=3)
words = st.sampled_from(["red", "blue"])


def target(name: str, docs: list[Doc], number_type: str = "integer", filter_: Any = None) -> Target:
    """An index in two segments."""
    analyzers = Analyzers.of({})
    mapping = Mapping.of({"properties": {**FIELDS, "n": {"type": number_type}}}, analyzers)
    leaves, base = [], 0
    for low, high in ((0, len(docs) // 2), (len(docs) // 2, len(docs))):
        builder = SegmentBuilder()
        for number in range(low, high):
            parsed, _ = mapping.parse(docs[number])
            builder.add(str(number), orjson.dumps(docs[number]), number, 1, parsed)
        segment = builder.build(f"s{low}")
        leaves.append(Leaf(segment, np.ones(segment.size, np.bool_), base))
        base += segment.size
    searcher = Searcher(leaves, mapping, analyzers)
    return Target(searcher, QueryContext(mapping, analyzers, 0, name), filter_)


def targets(corpus: list[list[Doc]], mixed: bool = False, filter_: Any = None) -> list[Target]:
    kinds = ["integer", "double", "long"] if mixed else ["integer"] * 3
    return [target(f"i{number}", docs, kinds[number], filter_) for number, docs in enumerate(corpus)]


def flat(corpus: list[list[Doc]]) -> list[tuple[str, str, Doc]]:
    """(index, id, document) in the order of indexes and documents."""
    return [
        (f"i{index}", str(number), doc)
        for index, docs in enumerate(corpus)
        for number, doc in enumerate(docs)
    ]


def shown(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [(hit["_index"], hit["_id"]) for hit in answer["hits"]["hits"]]


@settings(max_examples=60, deadline=None)
@given(indexes, st.booleans(), st.integers(0, 4), st.integers(1, 6), st.booleans())
def test_sorted_pages_totals_and_aggregations(
    corpus: list[list[Doc]], mixed: bool, start: int, size: int, down: bool
) -> None:
    body = {
        "query": {"range": {"n": {"gte": 2}}},
        "from": start,
        "size": size,
        "sort": [{"n": "desc" if down else "asc"}],
        "aggs": {"k": {"terms": {"field": "k"}}, "s": {"sum": {"field": "n"}}},
    }
    answer = prepare(body, targets(corpus, mixed), Searchers()).run()
    matching = [one for one in flat(corpus) if one[2]["n"] >= 2]
    ordered = sorted(matching, key=lambda one: -one[2]["n"] if down else one[2]["n"])
    assert shown(answer) == [one[:2] for one in ordered[start : start + size]]
    assert answer["hits"]["total"] == {"value": len(matching), "relation": "eq"}
    counts = {one["key"]: one["doc_count"] for one in answer["aggregations"]["k"]["buckets"]}
    assert counts == Counter(doc["k"] for _, _, doc in matching if "k" in doc)
    assert answer["aggregations"]["s"]["value"] == sum(doc["n"] for _, _, doc in matching)


@settings(max_examples=60, deadline=None)
@given(indexes, words, st.integers(1, 20))
def test_shared_statistics_score_as_one_index(corpus: list[list[Doc]], word: str, size: int) -> None:
    body = {"query": {"match": {"t": word}}, "size": size}
    several = prepare(body, targets(corpus), Searchers(), shared_statistics=True).run()
    alone = prepare(body, [target("all", [doc for _, _, doc in flat(corpus)])], Searchers()).run()
    names = {str(number): one[:2] for number, one in enumerate(flat(corpus))}
    assert shown(several) == [names[hit["_id"]] for hit in alone["hits"]["hits"]]
    assert [hit["_score"] for hit in several["hits"]["hits"]] == [
        hit["_score"] for hit in alone["hits"]["hits"]
    ]


@settings(max_examples=60, deadline=None)
@given(indexes, words)
def test_own_statistics_score_as_each_index_alone(corpus: list[list[Doc]], word: str) -> None:
    body = {"query": {"match": {"t": word}}, "size": 50}
    several = prepare(body, targets(corpus), Searchers()).run()
    expected = [
        (-hit["_score"], number, hit["_id"])
        for number, one in enumerate(targets(corpus))
        for hit in prepare(body, [one], Searchers()).run()["hits"]["hits"]
    ]
    found = [(-hit["_score"], int(hit["_index"][1:]), hit["_id"]) for hit in several["hits"]["hits"]]
    assert sorted(found) == sorted(expected)
    assert [one[:2] for one in found] == [one[:2] for one in sorted(expected)]


@settings(max_examples=60, deadline=None)
@given(indexes, st.integers(1, 4), st.sampled_from([None, "n", "_doc"]))
def test_a_scroll_shows_every_hit_once_in_order(corpus: list[list[Doc]], size: int, key: str | None) -> None:
    body = {"query": {"match_all": {}}, "size": size, **({"sort": [key]} if key else {})}
    prepared = prepare(body, targets(corpus), Searchers())
    scroll, found = Scroll(prepared, prepared.find()), []
    while page := scroll.page()["hits"]:
        assert len(page) <= size
        found += [(hit["_index"], hit["_id"]) for hit in page]
    everything = flat(corpus)
    ordered = sorted(everything, key=lambda one: one[2]["n"]) if key == "n" else everything
    assert found == [one[:2] for one in ordered]


@settings(max_examples=40, deadline=None)
@given(indexes, st.sampled_from("abc"))
def test_what_an_alias_hides_is_neither_found_nor_counted(corpus: list[list[Doc]], letter: str) -> None:
    body = {"size": 50, "aggs": {"all": {"global": {}}, "n": {"value_count": {"field": "n"}}}}
    answer = prepare(body, targets(corpus, filter_={"term": {"k": letter}}), Searchers()).run()
    seen = [one[:2] for one in flat(corpus) if one[2].get("k") == letter]
    assert shown(answer) == seen
    assert answer["aggregations"] == {"all": {"doc_count": len(seen)}, "n": {"value": len(seen)}}


@settings(max_examples=40, deadline=None)
@given(indexes, st.integers(2, 4))
def test_slices_are_disjoint_and_complete(corpus: list[list[Doc]], count: int) -> None:
    found: list[tuple[str, str]] = []
    for number in range(count):
        body = {"size": 50, "slice": {"id": number, "max": count}}
        found += shown(prepare(body, targets(corpus), Searchers()).run())
    assert sorted(found) == sorted(one[:2] for one in flat(corpus))


@settings(max_examples=40, deadline=None)
@given(indexes, st.integers(1, 5))
def test_collapse_takes_the_best_of_each_value_over_all_indexes(corpus: list[list[Doc]], size: int) -> None:
    body = {
        "sort": [{"n": "desc"}],
        "collapse": {"field": "k"},
        "size": size,
        "query": {"exists": {"field": "k"}},
    }
    answer = prepare(body, targets(corpus), Searchers()).run()
    leaders: dict[str, tuple[str, str]] = {}
    for index, number, doc in sorted(flat(corpus), key=lambda one: -one[2]["n"]):
        if "k" in doc:
            leaders.setdefault(doc["k"], (index, number))
    assert shown(answer) == list(leaders.values())[:size]
