"""Shards that are searched apart from one another answer as those of one process do, request by request."""

import re
from dataclasses import replace
from random import Random
from typing import Any

import orjson
import pytest

from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError
from graphdb.search.multi import AllFailed, Searchers, Target, prepare
from tests.property.test_search_shards import AGGREGATIONS, WORDS, filled, query, request, target
from tests.support.search_apart import search_apart, search_several_apart, shards_of

# What does not go with the comparison of one shard with several, for it depends on the order of documents.

MORE_AGGREGATIONS: dict[str, Any] = {
    "every": {"terms": {"field": "k", "min_doc_count": 0, "order": {"_key": "desc"}}},
    "rare": {"terms": {"field": "n", "min_doc_count": 2, "size": 3, "missing": 99}},
    "absent": {"terms": {"field": "k", "missing": "bb"}, "aggs": {"u": {"cardinality": {"field": "u"}}}},
    "some": {"terms": {"field": "t.no", "missing": "none"}},
    "part": {"terms": {"field": "u", "include": {"partition": 1, "num_partitions": 3}}},
    "deep": {
        "terms": {"field": "k", "order": {"x>s.std_deviation": "desc"}},
        "aggs": {"x": {"nested": {"path": "c"}, "aggs": {"s": {"extended_stats": {"field": "c.n"}}}}},
    },
    "w": {"weighted_avg": {"value": {"field": "n"}, "weight": {"field": "n", "missing": 2}}},
    "back": {
        "nested": {"path": "c"},
        "aggs": {
            "k": {"terms": {"field": "c.k"}, "aggs": {"up": {"reverse_nested": {}, "aggs": {
                "h": {"top_hits": {"size": 2, "sort": [{"n": "desc"}]}}}}}},
        },
    },
    "rates": {
        "date_histogram": {"field": "d", "calendar_interval": "year"},
        "aggs": {
            "r": {"rate": {"field": "n", "unit": "day"}},
            "k": {"terms": {"field": "k", "order": {"r": "asc"}}, "aggs": {"r": {"rate": {"unit": "month"}}}},
            "c": {"cardinality": {"field": "k"}},
            "so_far": {"cumulative_cardinality": {"buckets_path": "c"}},
        },
    },
    "tiles": {"geotile_grid": {"field": "g", "precision": 2, "size": 4}},
    "centre": {"geo_centroid": {"field": "g"}},
    "hdr": {"percentiles": {"field": "n", "hdr": {"number_of_significant_value_digits": 2}, "missing": 3}},
    "dates": {"date_range": {"field": "d", "ranges": [{"to": "2015"}, {"from": "2015"}]}},
    "months": {
        "date_histogram": {"field": "d", "fixed_interval": "300d", "min_doc_count": 1, "time_zone": "+02:00"},
        "aggs": {"m": {"avg": {"field": "n"}}, "d": {"derivative": {"buckets_path": "m"}}},
    },
    "hard": {
        "histogram": {
            "field": "n", "interval": 3, "extended_bounds": {"min": -5, "max": 30}, "offset": 1,
            "order": {"_count": "desc"},
        }
    },
    "pages": {
        "composite": {
            "size": 3,
            "sources": [
                {"k": {"terms": {"field": "k", "missing_bucket": True, "order": "desc"}}},
                {"d": {"date_histogram": {"field": "d", "calendar_interval": "year"}}},
                {"g": {"geotile_grid": {"field": "g", "precision": 1}}},
            ],
        },
        "aggs": {"n": {"stats": {"field": "n"}}},
    },
    "after": {
        "composite": {
            "size": 4, "after": {"k": "b", "n": 7.0},
            "sources": [
                {"k": {"terms": {"field": "k"}}}, {"n": {"histogram": {"field": "n", "interval": 2}}},
            ],
        }
    },
    "other": {
        "filters": {"filters": [{"term": {"k": "a"}}, {"fuzzy": {"t": "blu"}}], "other_bucket": True},
        "aggs": {"v": {"value_count": {"field": "k"}}},
    },
    "best": {
        "terms": {"field": "k"},
        "aggs": {"h": {"top_hits": {"from": 1, "size": 2, "highlight": {"fields": {"t": {}}}}}},
    },
    "each": {"auto_date_histogram": {"field": "d", "buckets": 3}, "aggs": {"a": {
        "auto_date_histogram": {"field": "d", "buckets": 2}}}},
    "sum": {"sum_bucket": {"buckets_path": "k>n.sum"}},
    "pairs": {
        "multi_terms": {"terms": [{"field": "k"}, {"field": "o", "missing": True}], "order": {"n": "desc"}},
        "aggs": {"n": {"max": {"field": "n"}}},
    },
    "few": {"rare_terms": {"field": "n", "max_doc_count": 3}},
    "telling": {
        "terms": {"field": "k"},
        "aggs": {"s": {"significant_terms": {"field": "n", "min_doc_count": 1, "chi_square": {}}}},
    },
    "words": {
        "significant_text": {"field": "t", "min_doc_count": 1, "background_filter": {"term": {"o": True}}}
    },
    "box": {"boxplot": {"field": "n"}},
    "strings": {"string_stats": {"field": "u", "show_distribution": True}},
    "t": {"t_test": {"a": {"field": "n", "filter": {"term": {"k": "a"}}}, "b": {"field": "n"}}},
    "far": {"geo_distance": {"field": "g", "origin": [10, 20], "ranges": [{"to": 5e6}, {"from": 5e6}]}},
    "both": {"adjacency_matrix": {"filters": {"a": {"term": {"k": "a"}}, "o": {"term": {"o": True}}}}},
    "first": {
        "terms": {"field": "k"},
        "aggs": {"m": {"top_metrics": {"metrics": {"field": "d"}, "sort": {"n": "desc"}}}},
    },
    "sample": {
        "diversified_sampler": {"field": "k", "shard_size": 6, "max_docs_per_value": 2},
        "aggs": {"n": {"sum": {"field": "n"}}},
    },
}  # fmt: skip


def more_query(random: Random) -> dict[str, Any]:
    some = " ".join(random.choices(WORDS, k=2))
    vector = [random.random() for _ in range(3)]
    return random.choice(
        [
            query(random),
            {"term": {"o": random.random() < 0.5}},
            {"match_phrase_prefix": {"t": {"query": f"{some[:-2]}", "max_expansions": 2}}},
            {"match_bool_prefix": {"t": some[:-1]}},
            {"fuzzy": {"t": {"value": "gren", "max_expansions": 1}}},
            {"bool": {"should": [{"term": {"o": True}}, {"match": {"t": some}}]}},
            {"dis_max": {"queries": [{"match": {"t": some}}, {"term": {"k": "a"}}], "tie_breaker": 0.3}},
            {
                "bool": {
                    "must": {"match": {"t": {"query": some, "_name": "words"}}},
                    "should": {"term": {"k": {"value": "b", "_name": "b"}}},
                }
            },
            {
                "nested": {
                    "path": "c",
                    "query": {"range": {"c.n": {"gte": 1}}},
                    "inner_hits": {"sort": [{"c.n": "desc"}]},
                }
            },
            {
                "knn": {
                    "field": "v",
                    "query_vector": vector,
                    "k": 4,
                    "num_candidates": 50,
                    "filter": {"fuzzy": {"t": "gren"}},
                }
            },
            {"constant_score": {"filter": {"match": {"t": some}}, "boost": 2}},
            {"function_score": {"query": {"match": {"t": some}}, "random_score": {"seed": 3}}},
        ]
    )  # fmt: skip


def more_request(random: Random) -> dict[str, Any]:
    body: dict[str, Any] = {
        "query": more_query(random),
        "from": random.randrange(3),
        "size": random.randrange(9),
    }
    some = " ".join(random.choices(WORDS, k=2))
    vector = [random.random() for _ in range(3)]
    knn = {"field": "v", "query_vector": vector, "k": 3, "num_candidates": 20}
    sorts: list[Any] = [
        ["_doc"],
        [{"k": {"order": "desc", "missing": "_first"}}, "_score"],
        [{"k": {"order": "asc", "missing": "bb"}}, {"_doc": "desc"}],
        [{"n": {"order": "desc", "missing": 7}}],
        [{"c.n": {"order": "asc", "mode": "max", "nested": {"path": "c", "filter": {"term": {"c.k": "x"}}}}}],
        [{"_geo_distance": {"g": [10, 20], "order": "asc"}}],
        [{"_score": "asc"}, "u"],
    ]
    extra: list[dict[str, Any]] = [
        {},
        {"sort": random.choice(sorts)},
        {"sort": random.choice(sorts), "track_total_hits": False},
        {"sort": random.choice(sorts), "collapse": {"field": random.choice(["k", "n", "d"])}},
        {
            "collapse": {
                "field": "k",
                "inner_hits": [
                    {"name": "a", "size": 3, "from": 1},
                    {"name": "b", "sort": [{"n": "desc"}], "collapse": {"field": "n"}, "version": True},
                ],
            }
        },
        {
            "rescore": [
                {
                    "window_size": 3,
                    "query": {"rescore_query": {"match": {"t": some}}, "score_mode": "multiply"},
                },
                {"window_size": 9, "query": {"rescore_query": {"term": {"k": "a"}}, "query_weight": 0.5}},
            ]
        },
        {"terminate_after": random.randrange(1, 9)},
        {"knn": knn},
        {"knn": [knn, {**knn, "boost": 2.0, "k": 6}], "size": 10},
        {"knn": knn, "rank": {"rrf": {"rank_window_size": 12}}},
        {
            "query": None,
            "retriever": {
                "linear": {
                    "rank_window_size": 20,
                    "retrievers": [
                        {"retriever": {"standard": {"query": more_query(random)}}, "normalizer": "minmax"},
                        {"retriever": {"knn": knn}, "weight": 2, "normalizer": "l2_norm"},
                    ],
                }
            },
        },
        {"query": None, "retriever": {"standard": {"query": more_query(random), "min_score": 0.4}}},
        {"min_score": 0.7, "explain": True},
        {"sort": [{"k": "desc"}, {"u": "asc"}], "search_after": [random.choice("abz"), "3"], "from": 0},
        {"sort": ["_doc"], "search_after": [random.randrange(40)], "from": 0},
        {"slice": {"id": 1, "max": 2}, "docvalue_fields": ["d", "k"], "seq_no_primary_term": True},
        {"post_filter": {"fuzzy": {"t": "gren"}}, "highlight": {"fields": {"t": {}}}, "stored_fields": ["k"]},
    ]
    body |= random.choice(extra)
    known = {**AGGREGATIONS, **MORE_AGGREGATIONS}
    if random.random() < 0.6:
        body["aggs"] = {name: known[name] for name in ["k", *random.sample(sorted(known), k=4)]}
    return {name: value for name, value in body.items() if value is not None}


def together(index: Index, body: dict[str, Any], chosen: frozenset[int] | None = None) -> Any:
    """The answer, or the error. chosen: the shards that are searched, None: all."""
    try:
        return shown(prepare(body, [target(index, chosen)], Searchers()).run())
    except AllFailed as failed:
        return str(failed.failures[0].error)
    except SearchError as error:
        return str(error)


def apart(index: Index, body: dict[str, Any], chosen: frozenset[int] | None = None) -> Any:
    try:
        return shown(search_apart(shards_of(index), body, chosen=chosen))
    except SearchError as error:
        return str(error)


def shown(answer: dict[str, Any]) -> Any:
    """Without the numbers of documents in explanations, which count from the start of each shard; of sums of
    fractions, what rounding cannot touch.
    """
    text = re.sub(rb" (in \d+\)|from \d+ to \d+)|doesn't match id \d+", b"", orjson.dumps(answer))
    return rounded(orjson.loads(text))


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(24))
def test_shards_apart_answer_as_together(seed: int) -> None:
    random = Random(seed)
    indexes = filled(random, changes=seed % 2 == 0)
    for number in range(15):
        body = request(random) if number % 3 == 0 else more_request(random)
        for index in indexes:
            assert apart(index, body) == together(index, body), orjson.dumps(body)


@pytest.mark.parametrize("seed", range(4))
def test_some_of_the_shards_apart_answer_as_together(seed: int) -> None:
    random = Random(seed)
    index = filled(random, changes=seed % 2 == 0)[2]
    for number in range(15):
        body = request(random) if number % 3 == 0 else more_request(random)
        chosen = frozenset(random.sample(range(5), k=random.randrange(1, 5)))
        assert apart(index, body, chosen) == together(index, body, chosen), (chosen, orjson.dumps(body))


def several_together(indexes: list[Index], body: dict[str, Any], shared_statistics: bool) -> Any:
    targets = [
        Target(index.searcher(), replace(index.context(0), index_name=f"i{number}"))
        for number, index in enumerate(indexes)
    ]
    try:
        return shown(prepare(body, targets, Searchers(), shared_statistics=shared_statistics).run())
    except AllFailed as failed:
        return str(failed.failures[0].error)
    except SearchError as error:
        return str(error)


def several_apart(indexes: list[Index], body: dict[str, Any], shared_statistics: bool) -> Any:
    try:
        return shown(search_several_apart(indexes, body, shared_statistics))
    except SearchError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(6))
def test_shards_of_several_indexes_apart_answer_as_together(seed: int) -> None:
    random = Random(seed)
    indexes = [filled(random, changes=seed % 2 == 0)[number] for number in (1, 0, 2)][: 2 + seed % 2]
    for number in range(15):
        body = request(random) if number % 3 == 0 else more_request(random)
        shared = number % 5 == 4
        expected = several_together(indexes, body, shared)
        assert several_apart(indexes, body, shared) == expected, orjson.dumps(body)


def test_without_a_shard_of_several_indexes_the_rest_answers() -> None:
    indexes = [filled(Random(1), changes=False)[2], filled(Random(2), changes=False)[1]]
    body = {"size": 1_000}
    whole = [hit["_id"] for hit in search_several_apart(indexes, body)["hits"]["hits"]]
    missing = []
    for lost in range(sum(len(index.shards) for index in indexes)):
        found = search_several_apart(indexes, body, without=lost)["hits"]
        assert found["total"]["value"] == len(found["hits"])
        missing.append(len(whole) - len(found["hits"]))
    assert sum(missing) == len(whole)
