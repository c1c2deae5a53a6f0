"""The same documents in one shard and in several: every answer is the same."""

import re
from collections.abc import Iterator
from random import Random
from typing import Any

import orjson
import pytest

from graphdb.search.catalog.catalog_commands import DocumentWrite
from graphdb.search.catalog.state import Index
from graphdb.search.multi import Scroll, Searchers, Target, prepare
from graphdb.search.segments.operations import Action, Operation
from tests.unit.search.catalog.catalogs import Commands

COUNTS = (1, 2, 5)
WORDS = ["red", "green", "blue", "dark", "light", "warm", "cold", "old", "new", "round"]
FIELDS = {
    "u": {"type": "keyword"},  # one for each document: breaks ties
    "t": {"type": "text"},
    "k": {"type": "keyword"},
    "n": {"type": "integer"},
    "d": {"type": "date"},
    "o": {"type": "boolean"},
    "g": {"type": "geo_point"},
    "v": {"type": "dense_vector", "dims": 3, "similarity": "l2_norm"},
    "r": {"type": "integer_range"},
    "w": {"type": "version"},
    "s": {"type": "sparse_vector"},
    "c": {"type": "nested", "properties": {"k": {"type": "keyword"}, "n": {"type": "integer"}}},
}


def document(random: Random, doc_id: str) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "u": doc_id,
        "t": " ".join(random.choices(WORDS, k=random.randrange(1, 12))),
        "k": random.choice("abcd"),
        "n": random.randrange(20),
        "o": random.random() < 0.7,
        "d": f"20{random.randrange(10, 24)}-0{random.randrange(1, 10)}-11",
        "g": {"lat": random.randrange(-80, 80), "lon": random.randrange(-170, 170)},
        "v": [random.random() for _ in range(3)],
        "r": {"gte": (low := random.randrange(20)), "lte": low + random.randrange(5)},
        "w": f"{random.randrange(3)}.{random.randrange(20)}{random.choice(['', '-rc'])}",
        "s": {word: random.randrange(1, 9) for word in random.choices(WORDS, k=3)},
        "c": [{"k": random.choice("xyz"), "n": random.randrange(5)} for _ in range(random.randrange(3))],
    }
    return {name: value for name, value in whole.items() if name == "u" or random.random() < 0.9}


def writes(random: Random, ids: Iterator[str]) -> list[DocumentWrite]:
    """ids: of new documents, each once; at their end any document is written, changed or deleted."""
    made = []
    for _ in range(random.randrange(1, 30)):
        new_id = next(ids, None)
        doc_id = new_id or str(random.randrange(60))
        if new_id is not None:
            operation = Operation(Action.INDEX, doc_id, orjson.dumps(document(random, doc_id)))
        elif random.random() < 0.15:
            operation = Operation(Action.DELETE, doc_id)
        elif random.random() < 0.2:
            body = {"doc": {"n": random.randrange(20)}, "upsert": document(random, doc_id)}
            operation = Operation(Action.UPDATE, doc_id, orjson.dumps(body))
        else:
            operation = Operation(Action.INDEX, doc_id, orjson.dumps(document(random, doc_id)))
        made.append(DocumentWrite("i", operation))
    return made


def filled(random: Random, changes: bool) -> list[Index]:
    """The same commands for each number of shards; merged and refreshed at random. changes: documents are
    changed and deleted, too. What is deleted counts in statistics until it is merged away, as in Lucene.
    """
    ids = iter([]) if changes else map(str, range(1_000))
    catalogs = [Commands() for _ in COUNTS]
    for commands, count in zip(catalogs, COUNTS, strict=True):
        body = {"settings": {"number_of_shards": count}, "mappings": {"properties": FIELDS}}
        commands.create("i", body)
    for _ in range(random.randrange(1, 8)):
        batch = writes(random, ids)
        outcomes = []
        for commands in catalogs:
            results = commands.write(*batch, refresh=random.random() < 0.7)
            outcomes.append([(one.result.outcome, one.result.version, one.result.status) for one in results])
            index = commands.catalog.find("i")
            assert index is not None
            if random.random() < 0.3:
                index.shards.maybe_merge()
        assert outcomes[1:] == outcomes[:1] * 2
    found = []
    for commands in catalogs:
        index = commands.catalog.find("i")
        assert index is not None
        index.shards.refresh()
        found.append(index)
    return found


def query(random: Random, depth: int = 0) -> dict[str, Any]:
    some = " ".join(random.choices(WORDS, k=2))
    leaves: list[dict[str, Any]] = [
        {"match": {"t": some}},
        {"match_phrase": {"t": {"query": some, "slop": 2}}},
        {"term": {"k": random.choice("abcd")}},
        {"terms": {"k": ["a", "c"]}},
        {"range": {"n": {"gte": random.randrange(20)}}},
        {"range": {"r": {"gte": random.randrange(20), "relation": random.choice(["within", "intersects"])}}},
        {"sparse_vector": {"field": "s", "query_vector": dict.fromkeys(some.split(), 0.5)}},
        {"combined_fields": {"query": some, "fields": ["t"]}},
        {"range": {"w": {"lt": f"1.{random.randrange(20)}"}}},
        {"prefix": {"t": random.choice("rgb")}},
        {"fuzzy": {"t": "reds"}},
        {"exists": {"field": random.choice(["k", "v", "c"])}},
        {"ids": {"values": [str(random.randrange(60)) for _ in range(9)]}},
        {"match_all": {}},
        {"nested": {"path": "c", "query": {"term": {"c.k": "x"}}, "score_mode": "sum"}},
        {"query_string": {"query": f"t:({some}) OR k:b"}},
        {"multi_match": {"query": f"{some} a", "fields": ["t", "k"], "type": "cross_fields"}},
        {"more_like_this": {"fields": ["t"], "like": [some], "min_term_freq": 1, "min_doc_freq": 1}},
        {"knn": {"field": "v", "query_vector": [0.1, 0.5, 0.9], "k": 5, "num_candidates": 100}},
        {
            "function_score": {
                "query": {"match": {"t": some}},
                "field_value_factor": {"field": "n", "missing": 1},
            }
        },
    ]
    if depth < 2 and random.random() < 0.5:
        parts = {
            name: [query(random, depth + 1) for _ in range(random.randrange(1, 3))]
            for name in random.sample(["must", "should", "filter", "must_not"], k=2)
        }
        return {"bool": parts}
    return random.choice(leaves)


AGGREGATIONS: dict[str, Any] = {
    "k": {"terms": {"field": "k"}, "aggs": {"n": {"extended_stats": {"field": "n"}}}},
    "t": {"terms": {"field": "u", "size": 5, "order": {"n": "desc"}}, "aggs": {"n": {"max": {"field": "n"}}}},
    "n": {"histogram": {"field": "n", "interval": 5}, "aggs": {"c": {"cardinality": {"field": "k"}}}},
    "d": {"date_histogram": {"field": "d", "calendar_interval": "year"}},
    "a": {"auto_date_histogram": {"field": "d", "buckets": 4}},
    "p": {"percentiles": {"field": "n"}},
    "q": {"percentile_ranks": {"field": "n", "values": [3, 12]}},
    "m": {"median_absolute_deviation": {"field": "n"}},
    "c": {
        "composite": {
            "size": 7,
            "sources": [{"k": {"terms": {"field": "k"}}}, {"n": {"terms": {"field": "n"}}}],
        }
    },
    "g": {"geohash_grid": {"field": "g", "precision": 1}},
    "b": {"geo_bounds": {"field": "g"}},
    "x": {"nested": {"path": "c"}, "aggs": {"k": {"terms": {"field": "c.k"}}}},
    "h": {"top_hits": {"size": 2, "sort": [{"u": "desc"}], "_source": ["n"]}},
    "f": {"filters": {"filters": {"a": {"term": {"k": "a"}}, "r": {"match": {"t": "red"}}}}},
    "o": {"global": {}, "aggs": {"none": {"missing": {"field": "k"}}}},
    "r": {
        "range": {"field": "n", "ranges": [{"to": 5}, {"from": 5}]},
        "aggs": {"n": {"avg": {"field": "n"}}},
    },
}


def request(random: Random) -> dict[str, Any]:
    down = random.choice(["asc", "desc"])
    body: dict[str, Any] = {
        "query": query(random),
        "sort": [random.choice(["_score", {"n": down}, {"d": down}, {"k": {"order": down}}]), {"u": down}],
        "from": random.randrange(3),
        "size": random.randrange(12),
        "track_scores": True,
        "track_total_hits": random.choice([True, 5]),
        "_source": ["n", "k"],
        "aggs": {name: AGGREGATIONS[name] for name in random.sample(sorted(AGGREGATIONS), k=4)},
    }
    extra: list[dict[str, Any]] = [
        {},
        {"highlight": {"fields": {"t": {}}}},
        {"post_filter": {"term": {"k": "a"}}},
        {"collapse": {"field": "k", "inner_hits": {"name": "x", "size": 2, "sort": [{"u": "asc"}]}}},
        {"min_score": 0.5},
        {"fields": ["t", "d"], "explain": True},
        {"search_after": [None, "3"], "from": 0},
    ]
    body |= random.choice(extra)
    if "search_after" in body:
        body["sort"] = [{"n": down}, {"u": down}]
        body["search_after"] = [random.randrange(20), str(random.randrange(60))]
    return body


def without_scores(body: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in body.items() if name not in ("min_score", "explain")}
    sort = [{"n": "asc"} if key == "_score" else key for key in body["sort"]]
    return {**kept, "sort": sort, "track_scores": False, "query": {"bool": {"filter": body["query"]}}}


def target(index: Index, numbers: frozenset[int] | None = None) -> Target:
    return Target(index.searcher(numbers), index.context(0))


def answer(index: Index, body: dict[str, Any]) -> Any:
    """Explanations without the numbers of documents, which depend on their order."""
    answered = orjson.dumps(prepare(body, [target(index)], Searchers()).run())
    return orjson.loads(re.sub(rb" (in \d+\)|from \d+ to \d+)", b"", answered))


@pytest.mark.parametrize("seed", range(30))
def test_answers_do_not_depend_on_the_number_of_shards(seed: int) -> None:
    random = Random(seed)
    changes = seed % 3 == 0
    indexes = filled(random, changes)
    assert [len(index.shards) for index in indexes] == list(COUNTS)
    for _ in range(12):
        body = request(random)
        if changes:
            body = without_scores(body)
        one, two, five = (answer(index, body) for index in indexes)
        assert two == one, body
        assert five == one, body


@pytest.mark.parametrize("seed", range(10))
def test_scrolls_and_slices_give_each_hit_once(seed: int) -> None:
    random = Random(seed)
    expected: list[list[str]] = []
    for index in filled(random, changes=True):
        ids = sorted(index.shards.ids())
        body = {"query": {"match_all": {}}, "size": 7, "sort": [{"u": "asc"}]}
        prepared = prepare(body, [target(index)], Searchers())
        scroll = Scroll(prepared, prepared.find())
        shown: list[str] = []
        while page := scroll.page()["hits"]:
            shown += [hit["_id"] for hit in page]
        assert sorted(shown) == ids
        expected.append(shown)
        sliced = [
            hit["_id"]
            for number in range(3)
            for hit in answer(index, {"size": 100, "slice": {"id": number, "max": 3}})["hits"]["hits"]
        ]
        assert sorted(sliced) == ids
    assert expected[1:] == expected[:1] * 2


@pytest.mark.parametrize("seed", range(10))
def test_some_shards_score_as_all_do(seed: int) -> None:
    random = Random(seed)
    _, index, _ = filled(random, changes=True)
    for _ in range(10):
        body = {"query": query(random), "sort": ["_score", {"u": "asc"}], "size": 100}
        if "knn" in orjson.dumps(body).decode() or "fuzzy" in orjson.dumps(body).decode():
            continue  # the nearest, and the likest terms, are those of the shards that are searched
        whole = {hit["_id"]: hit["_score"] for hit in answer(index, body)["hits"]["hits"]}
        parts = [
            {hit["_id"]: hit["_score"] for hit in prepared.run()["hits"]["hits"]}
            for number in range(2)
            for prepared in [prepare(body, [target(index, frozenset([number]))], Searchers())]
        ]
        assert parts[0] | parts[1] == whole, body
        assert not parts[0].keys() & parts[1].keys()
