"""Scripts as values of aggregations, and `scripted_metric`: against the same over fields that hold the
values, in one piece and by shards.
"""

from random import Random
from typing import Any

import pytest

from graphdb.search.errors import SearchError
from tests.unit.search.results.index import Index

PROPERTIES = {
    "kind": {"type": "keyword"},
    "n": {"type": "long"},
    "twice": {"type": "double"},  # what `n` and a script make
    "day": {"type": "date"},
    "next": {"type": "date"},
    "long_kind": {"type": "keyword"},
    "title": {"type": "text"},
}
DAY_MS = 86_400_000
HAS_N = {"exists": {"field": "n"}}


def documents() -> list[dict[str, Any]]:
    random = Random(7)
    made: list[dict[str, Any]] = []
    for _ in range(40):
        kind, n, day = random.choice("abc"), random.randrange(-5, 20), random.randrange(1, 27)
        made.append({
            "kind": kind, "n": n, "twice": 2 * n + 0.5, "long_kind": f"{kind}-{n % 2}",
            "day": f"2024-02-{day:02}", "next": f"2024-02-{day + 1:02}", "title": "fox",
        })  # fmt: skip
    made += [{"title": "none of the fields"}, {"title": "fox", "kind": ["a", "c"]}]
    random.shuffle(made)
    return made


DOCUMENTS = documents()


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(PROPERTIES, DOCUMENTS)


def asked(index: Index, kind: str, options: dict[str, Any], **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = index.aggregations({"x": {kind: options}}, **body)["x"]
    return found


TWICE = "doc['n'].value * 2 + 0.5"
RANGES = {"ranges": [{"to": 3}, {"from": 3, "to": 11}, {"from": 11}]}
OF_NUMBERS: list[tuple[str, dict[str, Any]]] = [
    *((kind, {}) for kind in ("avg", "sum", "min", "max", "stats", "extended_stats", "value_count")),
    ("percentiles", {}),
    ("percentile_ranks", {"values": [1, 10]}),
    ("median_absolute_deviation", {}),
    ("boxplot", {}),
    ("cardinality", {}),
    ("histogram", {"interval": 4}),
    ("histogram", {"interval": 4, "missing": 7}),
    ("variable_width_histogram", {"buckets": 3}),
    ("range", RANGES),
    ("missing", {}),
]


@pytest.mark.parametrize(("kind", "options"), OF_NUMBERS, ids=str)
def test_a_script_is_as_a_field_with_its_values(index: Index, kind: str, options: dict[str, Any]) -> None:
    for query in (HAS_N, {"bool": {"must": HAS_N, "filter": {"term": {"kind": "a"}}}}):
        of_field = asked(index, kind, {"field": "twice", **options}, query=query)
        assert asked(index, kind, {"script": TWICE, **options}, query=query) == of_field
        of_values = {"field": "n", "script": {"source": "_value * params.f + 0.5", "params": {"f": 2}}}
        assert asked(index, kind, {**of_values, **options}, query=query) == of_field


@pytest.mark.parametrize("kind", ["terms", "rare_terms", "value_count", "cardinality", "string_stats"])
def test_texts_of_a_script_are_as_a_field_of_them(index: Index, kind: str) -> None:
    script = "doc['kind'].value + '-' + (doc['n'].value % 2 == 0 ? 0 : 1)"
    of_field = asked(index, kind, {"field": "long_kind"}, query=HAS_N)
    assert asked(index, kind, {"script": script}, query=HAS_N) == of_field


def test_buckets_of_a_script_have_others_below(index: Index) -> None:
    below = {"s": {"sum": {"field": "n"}}}

    def buckets(by: dict[str, Any]) -> Any:
        aggs = {"x": {"terms": {**by, "order": {"s": "desc"}, "min_doc_count": 0}, "aggs": below}}
        return index.aggregations(aggs, query=HAS_N)["x"]["buckets"]

    by_value = {"field": "kind", "script": "_value + _value"}
    assert buckets(by_value) == [{**one, "key": 2 * one["key"]} for one in buckets({"field": "kind"})]


def test_dates_of_a_script(index: Index) -> None:
    options = {"calendar_interval": "week", "format": "yyyy-MM-dd"}
    of_field = asked(index, "date_histogram", {"field": "next", **options}, query=HAS_N)
    script = {"script": "doc['day'].value.plusDays(1)", **options}
    assert asked(index, "date_histogram", script, query=HAS_N) == of_field
    of_values = {"field": "day", "script": f"_value + {DAY_MS}L", **options}
    assert asked(index, "date_histogram", of_values, query=HAS_N) == of_field
    composite = {"sources": [{"w": {"date_histogram": {"field": "next", **options}}}], "size": 3}
    by_script = {"sources": [{"w": {"date_histogram": script}}], "size": 3}
    first, second = (asked(index, "composite", one, query=HAS_N) for one in (composite, by_script))
    assert first == second
    after = [{**one, "after": first["after_key"]} for one in (composite, by_script)]
    assert asked(index, "composite", after[0], query=HAS_N) == asked(
        index, "composite", after[1], query=HAS_N
    )


def test_the_type_of_values(index: Index) -> None:
    def keys(**options: Any) -> list[Any]:
        options |= {"order": {"_key": "asc"}}
        return [one["key"] for one in asked(index, "terms", options, query=HAS_N)["buckets"]]

    script = "doc['n'].value > 3 ? 1 : 2"
    assert keys(script=script) == ["1", "2"]
    assert keys(script=script, value_type="long") == [1, 2]
    assert keys(script=script, value_type="double") == [1.0, 2.0]
    assert keys(field="n", script=script) == [1.0, 2.0]
    shown = asked(index, "terms", {"script": "doc['n'].value > 3", "value_type": "boolean"}, query=HAS_N)
    assert {(one["key"], one["key_as_string"]) for one in shown["buckets"]} == {(0, "false"), (1, "true")}


def test_several_values_none_and_missing(index: Index) -> None:
    counts = {
        one["key"]: one["doc_count"] for one in asked(index, "terms", {"script": "doc['kind']"})["buckets"]
    }
    assert counts == {kind: sum(kind in one.get("kind", "") for one in DOCUMENTS) for kind in "abc"}
    none = {"script": "doc['n'].empty ? null : doc['n'].value"}
    without = sum("n" not in one for one in DOCUMENTS)
    assert asked(index, "missing", none) == {"doc_count": without}
    assert asked(index, "value_count", none)["value"] == len(DOCUMENTS) - without
    filled = asked(index, "terms", {**none, "missing": "none", "size": 100})["buckets"]
    assert {"key": "none", "doc_count": without} in filled


def test_scores(index: Index) -> None:
    query = {"function_score": {"query": HAS_N, "script_score": {"script": "doc['n'].value + 6"}}}
    found = asked(index, "avg", {"script": "_score"}, query={**query, "function_score": {
        **query["function_score"], "boost_mode": "replace"}})  # fmt: skip
    numbers = [one["n"] + 6 for one in DOCUMENTS if "n" in one]
    assert found["value"] == pytest.approx(sum(numbers) / len(numbers))


SUMS = {
    "init_script": "state.all = [:]",
    "map_script": """
        String kind = doc['kind'].value;
        state.all[kind] = (state.all.containsKey(kind) ? state.all[kind] : 0) + doc['n'].value * params.factor
    """,
    "combine_script": "return state.all",
    "reduce_script": """
        def sums = [:];
        for (one in states) for (each in one.entrySet()) {
            String kind = each.getKey();
            sums[kind] = (sums.containsKey(kind) ? sums[kind] : 0) + each.getValue();
        }
        return sums
    """,
    "params": {"factor": 3},
}


def by_kind(documents: list[dict[str, Any]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for one in documents:
        sums[one["kind"]] = sums.get(one["kind"], 0) + 3 * one["n"]
    return sums


def test_a_scripted_metric_is_a_sum_by_hand(index: Index) -> None:
    having = [one for one in DOCUMENTS if "n" in one]
    assert asked(index, "scripted_metric", SUMS, query=HAS_N) == {"value": by_kind(having)}
    assert asked(index, "scripted_metric", SUMS, query={"match_none": {}}) == {"value": {}}


def test_each_bucket_has_a_state_of_its_own(index: Index) -> None:
    aggs = {"k": {"terms": {"field": "long_kind", "size": 20}, "aggs": {"m": {"scripted_metric": SUMS}}}}
    for bucket in index.aggregations(aggs, query=HAS_N)["k"]["buckets"]:
        own = [one for one in DOCUMENTS if one.get("long_kind") == bucket["key"]]
        assert bucket["m"]["value"] == by_kind(own)


GROWING = "for (int i = 0; i < 40000; i++) { state.all.add('0123456789') }"


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        ("avg", {"script": "doc['kind'].value"}, r"Unsupported script value \[[abc]\]"),
        ("avg", {"script": "doc['n'"}, "compile error"),
        ("avg", {"script": "emit(1)"}, "compile error"),
        ("sum", {"script": "1", "value_type": "string"}, r"Values of type \[keyword\] are not supported"),
        ("geo_bounds", {"script": "1"}, "does not support scripts"),
        ("significant_terms", {"script": "1"}, "but none were specified"),
        ("avg", {}, r"Required one of fields \[field, script\]"),
        ("scripted_metric", {**SUMS, "combine_script": None}, r"\[combineScript\] must not be null: \[x\]"),
        ("scripted_metric", {**SUMS, "more": 1}, "more"),
        ("scripted_metric", {**SUMS, "map_script": "state.self = state"}, "runtime error"),
        ("scripted_metric", {**SUMS, "map_script": "while (true) {}"}, "runtime error"),
        (
            "scripted_metric",
            {**SUMS, "init_script": "state.all = []", "map_script": GROWING},
            "runtime error",
        ),
    ],
)  # fmt: skip
def test_refusals(index: Index, kind: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        asked(index, kind, options, query=HAS_N)
