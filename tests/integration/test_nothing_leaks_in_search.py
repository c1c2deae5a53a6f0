"""Whoever does not see all documents gets from every operation what an index without the others would answer.

Random documents behind the search port in this process; a twin holds those that are visible, written in the
same order.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphdb.access.principal import NODE, Principal
from tests.unit.serve.search.asking import Asking, principal_of

INDEX = "logs"
SIDS = ["S-1-5-1", "S-1-5-2"]
PRINCIPALS = [
    principal_of(name, *sids, patterns=(INDEX,))
    for name, sids in (("plain", ()), ("one", SIDS[:1]), ("both", SIDS))
]
MAPPINGS = {
    "properties": {
        "title": {"type": "text"},
        "body": {"type": "text"},
        "tag": {"type": "keyword"},
        "size": {"type": "integer"},
        "flag": {"type": "boolean"},
        "at": {"type": "geo_point"},
        "near": {"type": "dense_vector", "dims": 3, "similarity": "l2_norm"},
        "parts": {
            "type": "nested",
            "properties": {"name": {"type": "keyword"}, "note": {"type": "text"}},
        },
    }
}
TEXT_QUERIES: list[dict[str, Any]] = [
    {"match": {"title": "ab ba"}},
    {"match": {"title": {"query": "ab ba", "operator": "and"}}},
    {"match": {"title": {"query": "aba", "fuzziness": 2, "max_expansions": 2}}},
    {"match_phrase": {"title": "a b"}},
    {"match_phrase": {"title": {"query": "a b", "slop": 3}}},
    *(
        {"match_phrase_prefix": {"title": {"query": text, "max_expansions": 1}}}
        for text in ("a", "b", "ab a")
    ),
    {"match_phrase_prefix": {"title": {"query": "b", "max_expansions": 3}}},
    {"match_bool_prefix": {"title": {"query": "b a", "max_expansions": 1}}},
    {"match_bool_prefix": {"title": {"query": "bab aa", "fuzziness": 1, "max_expansions": 1}}},
    {
        "multi_match": {
            "query": "a",
            "fields": ["title", "body"],
            "type": "phrase_prefix",
            "max_expansions": 1,
        }
    },
    {"multi_match": {"query": "ab b", "fields": ["title^2", "body"], "type": "cross_fields"}},
    {"multi_match": {"query": "ab b", "fields": ["title", "body"], "fuzziness": 1, "max_expansions": 2}},
    {"multi_match": {"query": "ab b", "fields": ["title", "body"], "type": "most_fields"}},
    *({"fuzzy": {"title": {"value": text, "fuzziness": 2, "max_expansions": 1}}} for text in ("aba", "bbbb")),
    {"fuzzy": {"tag": {"value": "aba", "fuzziness": 2, "max_expansions": 2}}},
    {"query_string": {"query": "title:ab* OR body:ba~1 OR tag:/b.*/", "fuzzy_max_expansions": 1}},
    {"query_string": {"query": '"a b"~2 OR aba~', "fields": ["title"], "fuzzy_max_expansions": 1}},
    {"simple_query_string": {"query": 'ab* + "a b" | aba~1', "fields": ["title", "body"]}},
    {"prefix": {"title": "ab"}},
    {"wildcard": {"tag": {"value": "?B*", "case_insensitive": True}}},
    {"regexp": {"title": "a[ab]+"}},
    {"range": {"tag": {"gte": "ab", "lt": "b"}}},
    {"term": {"tag": "ab"}},
    {"terms": {"title": ["ab", "ba", "bbb"]}},
    {"term": {"flag": True}},
    {"terms_set": {"title": {"terms": ["a", "b", "ab"], "minimum_should_match": 2}}},
    *(
        {
            "more_like_this": {
                "fields": ["title", "body"],
                "like": "a b ab ba aba bab",
                "min_term_freq": 1,
                "max_query_terms": 3,
                "boost_terms": 1,
                **limits,
            }
        }
        for limits in ({"min_doc_freq": 1}, {"min_doc_freq": 4}, {"min_doc_freq": 1, "max_doc_freq": 3})
    ),
    {"more_like_this": {"fields": ["tag"], "like": [{"_id": "3"}], "min_term_freq": 1, "min_doc_freq": 2}},
    {"exists": {"field": "body"}},
    {"nested": {"path": "parts", "query": {"match": {"parts.note": "ab"}}, "inner_hits": {}}},
    {"nested": {"path": "parts", "query": {"prefix": {"parts.name": "b"}}, "score_mode": "sum"}},
    {"bool": {"must": {"match": {"title": "a"}}, "must_not": {"prefix": {"tag": "ab"}}}},
    {"dis_max": {"queries": [{"match": {"title": "a"}}, {"match": {"body": "b"}}], "tie_breaker": 0.3}},
    {"function_score": {"query": {"match": {"title": "a"}}, "field_value_factor": {"field": "size"}}},
    {"distance_feature": {"field": "at", "origin": [1, 2], "pivot": "100km"}},
    {"knn": {"field": "near", "query_vector": [1, 2, 3], "k": 3, "num_candidates": 5}},
]
AGGREGATIONS: dict[str, Any] = {
    "tags": {"terms": {"field": "tag", "size": 3, "shard_size": 3}},
    "all tags": {"terms": {"field": "tag", "min_doc_count": 0, "size": 100, "order": {"_key": "desc"}}},
    "some tags": {"terms": {"field": "tag", "min_doc_count": 0, "include": "a.*", "size": 100}},
    "kinds": {"cardinality": {"field": "tag"}},
    "missing": {"missing": {"field": "tag"}},
    "values": {"value_count": {"field": "tag"}},
    "first": {"terms": {"field": "tag", "missing": "zz", "size": 100}},
    "stats": {"extended_stats": {"field": "size"}},
    "quantiles": {"percentiles": {"field": "size"}},
    "histogram": {"histogram": {"field": "size", "interval": 5, "min_doc_count": 0}},
    "pairs": {"composite": {"sources": [{"tag": {"terms": {"field": "tag"}}}], "size": 100}},
    "parts": {"nested": {"path": "parts"}, "aggs": {"names": {"terms": {"field": "parts.name"}}}},
    "everything": {
        "global": {},
        "aggs": {"top": {"top_hits": {"size": 2, "sort": [{"tag": "asc"}, "_doc"]}}},
    },
    "several": {"multi_terms": {"terms": [{"field": "tag"}, {"field": "flag"}]}},
    "bounds": {"geo_bounds": {"field": "at"}},
}
BODIES: list[dict[str, Any]] = [
    {"aggs": AGGREGATIONS, "size": 0},
    {"aggs": AGGREGATIONS, "query": {"match": {"title": "ab"}}, "size": 3},
    {"sort": [{"tag": {"order": "desc", "missing": "_first"}}, "_doc"], "size": 20},
    {"sort": [{"size": "asc"}, "_doc"], "search_after": [5, 7], "size": 5},
    {"sort": ["_doc"], "from": 2, "size": 4},
    {"collapse": {"field": "tag"}, "query": {"match": {"title": "a"}}},
    {"query": {"match": {"title": "ab"}}, "highlight": {"fields": {"*": {}}}, "fields": ["*"]},
    {"query": {"match": {"title": "a b"}}, "track_total_hits": 2, "size": 1},
    {"query": {"match": {"title": "a b"}}, "terminate_after": 2},
    {"query": {"match_all": {}}, "docvalue_fields": ["tag", "size"], "size": 100},
    {"query": {"match": {"title": "a"}}, "rescore": []},
    {"knn": {"field": "near", "query_vector": [1, 2, 3], "k": 4, "num_candidates": 4}},
    {
        "knn": {
            "field": "near",
            "query_vector": [1, 2, 3],
            "k": 4,
            "num_candidates": 9,
            "filter": {"term": {"flag": True}},
        },
        "query": {"match": {"title": "a"}},
    },
]
COUNTS: list[tuple[str, Any]] = [
    (f"/{INDEX}/_terms_enum", {"field": "tag", "size": 100}),
    (f"/{INDEX}/_terms_enum", {"field": "tag", "string": "A", "case_insensitive": True}),
    (f"/{INDEX}/_terms_enum", {"field": "parts.name", "string": "b", "search_after": "ba"}),
    (f"/{INDEX}/_field_caps?fields=*", {"index_filter": {"term": {"tag": "ab"}}}),
    (f"/{INDEX}/_validate/query?explain=true", {"query": {"match_phrase_prefix": {"title": "a"}}}),
    ("/_cat/count?format=json&h=count", None),
    ("/_cat/indices?format=json&h=index,docs.count,docs.deleted", None),
    ("/_cat/shards?format=json&h=index,docs", None),
    (f"/{INDEX}/_stats/docs", None),
    (f"/{INDEX}/_mget", {"ids": [str(number) for number in range(40)]}),
]
VOLATILE = {"took", "_seq_no", "_version", "uuid", "total_size_in_bytes", "size_in_bytes"}


class Random(random.Random):
    """Random documents of few words, so that hidden and visible ones stand side by side in all orders."""

    def word(self) -> str:
        return "".join(self.choices("ab", k=self.randint(1, 4)))

    def words(self) -> str:
        return " ".join(self.word() for _ in range(self.randint(1, 6)))

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "title": self.words(),
            "size": self.randrange(1, 30),
            "flag": self.random() < 0.5,
            "at": [self.randrange(10), self.randrange(10)],
            "near": [self.randrange(5) for _ in range(3)],
        }
        if self.random() < 0.7:
            found["body"] = self.words()
        if self.random() < 0.8:
            found["tag"] = [self.word() for _ in range(self.randint(1, 2))]
        if self.random() < 0.4:
            found["parts"] = [{"name": self.word(), "note": self.words()} for _ in range(2)]
        if self.random() < 0.5:
            found["_allow_sids"] = self.sample(SIDS, self.randrange(3))
        return found


def requests() -> Iterator[tuple[str, Any]]:
    for query in TEXT_QUERIES:
        yield f"/{INDEX}/_search", {"query": query, "size": 50, "explain": True}
        yield f"/{INDEX}/_search?search_type=dfs_query_then_fetch", {"query": query, "size": 3}
        yield f"/{INDEX}/_count", {"query": query}
        yield f"/{INDEX}/_explain/5", {"query": query}
    for body in BODIES:
        yield f"/{INDEX}/_search", body
    yield from COUNTS


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if name not in VOLATILE}
    return [plain(one) for one in value] if isinstance(value, list) else value


def sees(who: Principal, document: dict[str, Any]) -> bool:
    return "_allow_sids" not in document or not who.sids.isdisjoint(document["_allow_sids"])


def without_sids(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "_allow_sids"}


def bulk(ask: Asking, documents: dict[str, dict[str, Any]]) -> None:
    lines = [line for doc_id, one in documents.items() for line in ({"index": {"_id": doc_id}}, one)]
    assert not ask(NODE, "POST", f"/{INDEX}/_bulk?refresh=true", lines=lines).json()["errors"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_twin_with_only_what_is_visible_answers_the_same(tmp_path: Path, seed: int) -> None:
    rng, ask = Random(seed), Asking(tmp_path)
    ask(NODE, "PUT", f"/{INDEX}", {"mappings": MAPPINGS})
    # what was written together, less what was replaced or deleted since; one is protected, whatever else
    batches: list[dict[str, dict[str, Any]]] = [{"-1": {"_allow_sids": []}}]
    bulk(ask, batches[0])
    hidden = 0
    for step in range(3):
        written = {str(rng.randrange(40)): rng.document() for _ in range(20)}
        bulk(ask, written)
        gone = rng.sample(sorted(written), 3)
        for doc_id in gone:
            ask(NODE, "DELETE", f"/{INDEX}/_doc/{doc_id}?refresh=true")
        batches = [{name: one for name, one in old.items() if name not in written} for old in batches]
        batches.append({name: one for name, one in written.items() if name not in gone})
        for who in PRINCIPALS:
            twin = Asking(tmp_path)
            twin(NODE, "PUT", f"/{INDEX}", {"mappings": MAPPINGS})
            for batch in batches:
                seen = {doc_id: without_sids(one) for doc_id, one in batch.items() if sees(who, one)}
                hidden += len(batch) - len(seen)
                if seen:
                    bulk(twin, seen)
            for path, body in requests():
                found, expected = (node(who, "GET", path, body) for node in (ask, twin))
                assert expected.status_code < 500
                assert found.status_code == expected.status_code, (step, who.name, path, body, found.text)
                differs = difference(plain(found.json()), plain(expected.json()))
                assert not differs, (step, who.name, path, body)
    assert hidden > 50  # or nothing was tested


def difference(one: Any, other: Any, path: str = "") -> str:
    """Where two answers differ first."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = [(name, one[name], other[name]) for name in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(str(number), *pair) for number, pair in enumerate(zip(one, other, strict=True))]
    else:
        return "" if one == other else f"{path}: {one} is not {other}"
    return next(filter(None, (difference(a, b, f"{path}/{name}") for name, a, b in pairs)), "")
