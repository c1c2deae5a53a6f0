"""Settings: their spellings, what is refused, how they are shown."""

from typing import Any

import pytest

from graphdb.search.catalog.catalog_commands import PutSettings
from graphdb.search.catalog.index_settings import (
    check_new_settings,
    duration_ms,
    read_settings,
    refresh_interval_ms,
    updated_settings,
)
from graphdb.search.errors import SearchError
from graphdb.search.similarity import Similarity
from tests.unit.search.catalog.catalogs import Commands, put


@pytest.mark.parametrize(
    "body",
    [
        {
            "number_of_replicas": 0,
            "mapping": {"total_fields": {"limit": 5}},
            "query.default_field": ["a", "b"],
        },
        {
            "index": {
                "number_of_replicas": "0",
                "mapping.total_fields.limit": 5,
                "query": {"default_field": ["a", "b"]},
            }
        },
        {
            "index.number_of_replicas": 0,
            "index": {"mapping": {"total_fields.limit": "5"}},
            "index.query.default_field": ["a", "b"],
        },
    ],
)
def test_spellings(body: dict[str, Any]) -> None:
    assert read_settings(body) == {
        "mapping.total_fields.limit": "5",
        "number_of_replicas": "0",
        "query.default_field": ["a", "b"],
    }


def test_trees_stay_trees() -> None:
    body = {
        "index": {"analysis": {"analyzer": {"a": {"type": "custom", "tokenizer": "standard"}}}},
        "index.analysis.analyzer.b.type": "keyword",
        "graph.shape": {"class": "ex:Person", "depth": 1},
        "index.graph.refresh": "1s",
    }
    assert read_settings(body) == {
        "analysis": {
            "analyzer": {"a": {"type": "custom", "tokenizer": "standard"}, "b": {"type": "keyword"}}
        },
        "graph": {"shape": {"class": "ex:Person", "depth": 1}, "refresh": "1s"},
    }


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "nonsense",
            1,
            "unknown setting [index.nonsense] please check that any required plugins are installed, or check "
            "the breaking changes documentation for removed settings",
        ),
        (
            "number_of_replicas",
            -1,
            "Failed to parse value [-1] for setting [index.number_of_replicas] must be >= 0",
        ),
        (
            "number_of_shards",
            1025,
            "Failed to parse value [1025] for setting [index.number_of_shards] must be <= 1024",
        ),
        ("number_of_shards", "two", "Failed to parse value [two] for setting [index.number_of_shards]"),
        ("hidden", "maybe", "Failed to parse value [maybe] as only [true] or [false] are allowed."),
        (
            "refresh_interval",
            "5",
            "failed to parse setting [index.refresh_interval] with value [5] as a time value: unit is "
            "missing or unrecognized",
        ),
    ],
)
def test_values_that_are_refused(name: str, value: Any, reason: str) -> None:
    with pytest.raises(SearchError) as raised:
        check_new_settings(read_settings({name: value}))
    assert (raised.value.kind, raised.value.reason) == ("illegal_argument_exception", reason)


def test_private_settings_are_refused() -> None:
    with pytest.raises(SearchError) as raised:
        check_new_settings(read_settings({"uuid": "x", "version.created": 1}))
    assert raised.value.kind == "validation_exception"
    assert raised.value.reason == (
        "Validation Failed: 1: private index setting [index.uuid] can not be set explicitly;"
        "2: private index setting [index.version.created] can not be set explicitly;"
    )
    with pytest.raises(SearchError, match=r"can not update private setting \[index\.uuid\]"):
        updated_settings({}, {"uuid": "x"}, False)


@pytest.mark.parametrize("depth", [60, 5000])
def test_settings_cannot_be_too_deep(depth: int) -> None:
    nested: Any = 1
    for _ in range(depth):
        nested = {"a": nested}
    for body in ({"x": nested}, {"analysis" + ".a" * depth: 1}):
        with pytest.raises(SearchError, match="deeper than"):
            read_settings(body)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1s", 1000), ("500ms", 500), ("1.5m", 90_000), ("0", 0), ("-1", -1), ("1d", 86_400_000)],
)
def test_durations(text: str, expected: float) -> None:
    assert duration_ms(text, "x") == expected


def test_updates() -> None:
    existing = {"number_of_replicas": "2", "refresh_interval": "5s"}
    assert updated_settings(existing, {"refresh_interval": None}, False) == {"number_of_replicas": "2"}
    assert updated_settings(existing, {"refresh_interval": "9s", "hidden": "true"}, True) == {
        **existing,
        "hidden": "true",
    }
    assert (refresh_interval_ms(existing), refresh_interval_ms({})) == (5000, 1000)


def test_how_they_are_shown() -> None:
    commands = Commands()
    commands.create("a", {"settings": {"analysis": {"filter": {"s": {"type": "stop", "stopwords": ["x"]}}}}})
    index = commands.catalog.find("a")
    assert index is not None
    assert index.shown_settings() == {
        "settings": {
            "index": {
                "analysis": {"filter": {"s": {"stopwords": ["x"], "type": "stop"}}},
                "creation_date": "1001",
                "number_of_replicas": "1",
                "number_of_shards": "1",
                "provided_name": "a",
                "uuid": "a",
                "version": {"created": "8536000"},
            }
        }
    }
    assert index.shown_settings("index.number_*", flat=True, include_defaults=True) == {
        "settings": {"index.number_of_replicas": "1", "index.number_of_shards": "1"},
        "defaults": {"index.number_of_routing_shards": "1"},
    }


def test_static_settings_do_not_change() -> None:
    commands = Commands("a")
    with pytest.raises(SearchError) as raised:
        commands(PutSettings(("a",), {"settings": {"index": {"number_of_shards": 2}}}))
    assert raised.value.reason == (
        "Can't update non dynamic settings [[index.number_of_shards]] for open indices [[a/a]]"
    )


def test_limits_hold_for_the_mapping() -> None:
    commands = Commands()
    commands.create("a", {"settings": {"mapping.total_fields.limit": 2}})
    bodies = [b'{"a":1,"b":1}', b'{"a":1,"b":1,"c":1}']
    results = commands.write(*(put("a", str(number), body) for number, body in enumerate(bodies)))
    assert [one.result.status for one in results] == [201, 400]
    with pytest.raises(SearchError, match=r"Limit of total fields \[1\] has been exceeded"):
        commands(PutSettings(("a",), {"mapping.total_fields.limit": 1}))
    commands(PutSettings(("a",), {"mapping.total_fields.limit": 3}))
    assert commands.write(put("a", "1", bodies[1]))[0].result.status == 201


def test_settings_that_analyzers_need_stay() -> None:
    commands = Commands()
    grams = {"type": "ngram", "min_gram": 1, "max_gram": 3}
    analysis = {"tokenizer": {"g": grams}, "analyzer": {"a": {"tokenizer": "g"}}}
    commands.create("a", {"settings": {"max_ngram_diff": 2, "analysis": analysis}})
    with pytest.raises(SearchError, match="difference between max_gram and min_gram"):
        commands(PutSettings(("a",), {"max_ngram_diff": 1}))


OWN = {"own": {"type": "BM25", "k1": 2, "b": "0.1"}}
NAMED = {"properties": {"t": {"type": "text", "similarity": "own"}, "k": {"type": "keyword"}}}


def test_similarities_are_defined_and_named() -> None:
    commands = Commands()
    commands.create("a", {"settings": {"index": {"similarity": OWN}}, "mappings": NAMED})
    index = commands.catalog.find("a")
    assert index is not None
    shown = index.shown_settings()["settings"]["index"]
    assert shown["similarity"] == {"own": {"type": "BM25", "k1": "2", "b": "0.1"}}
    assert index.mapping.as_json()["properties"]["t"] == {"type": "text", "similarity": "own"}
    with pytest.raises(SearchError, match="non dynamic"):
        commands(PutSettings(("a",), {"index.similarity.own.k1": 1}))


@pytest.mark.parametrize(
    ("similarity", "reason"),
    [
        ({"own": {"type": "classic"}}, r"Unknown Similarity type \[classic\] for \[own\]"),
        ({"own": {"k1": 1}}, "must have an associated type"),
        ({"own": 1}, "must have an associated type"),
        ({"BM25": {"type": "BM25"}}, "Cannot redefine built-in"),
        ({"own": {"type": "BM25", "k": 1}}, r"Unknown settings .* \[k\]"),
        ({"own": {"type": "BM25", "k1": -1}}, "illegal k1 value: -1"),
        ({"own": {"type": "BM25", "k1": "inf"}}, "illegal k1 value: inf"),
        ({"own": {"type": "BM25", "b": 1.5}}, "illegal b value: 1.5"),
        ({"own": {"type": "BM25", "b": "nan"}}, "illegal b value: nan"),
        ({"own": {"type": "BM25", "b": []}}, r"Failed to parse value \[\[\]\]"),
        ({"own": {"type": "BM25", "discount_overlaps": False}}, "discount_overlaps"),
        ({"other": {"type": "BM25"}}, r"Unknown Similarity type \[own\] for field \[t\]"),
    ],
)
def test_similarities_that_cannot_be(similarity: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        Commands().create("a", {"settings": {"similarity": similarity}, "mappings": NAMED})


def test_the_default_similarity_is_that_of_fields_that_name_none() -> None:
    commands = Commands()
    commands.create("a", {"settings": {"similarity.default": {"type": "BM25", "b": 0}}})
    index = commands.catalog.find("a")
    assert index is not None
    assert index.analyzers.similarity(None) == Similarity(b=0)
    assert index.analyzers.similarity("BM25") == Similarity(b=0.75)
