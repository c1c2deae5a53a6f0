"""Significant and rare terms, combinations, samples, statistics and pipelines against plain Python."""

import math
import statistics
from collections import Counter
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.results import SearchOptions, search
from tests.unit.search.results.index import Index

FIELDS = {
    "k": {"type": "keyword"},
    "t": {"type": "text"},
    "n": {"type": "integer"},
    "m": {"type": "double"},
    "d": {"type": "date"},
    "ip": {"type": "ip"},
    "p": {"type": "geo_point"},
}
DAY = 86_400_000
documents = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "k": st.lists(st.sampled_from("abc"), max_size=2),
            "t": st.lists(st.sampled_from(["red", "blue", "green"]), max_size=4).map(" ".join),
            "n": st.one_of(st.integers(0, 3), st.lists(st.integers(0, 3), max_size=2)),
            "m": st.integers(-4, 4).map(float),
            "d": st.integers(0, 4).map(lambda day: day * DAY),
            "ip": st.tuples(st.integers(0, 2), st.integers(0, 255)).map(lambda p: f"10.{p[0]}.0.{p[1]}"),
            "p": st.fixed_dictionaries({"lat": st.integers(-3, 3), "lon": st.integers(-3, 3)}),
        },
    ),
    max_size=14,
)


def values(doc: dict[str, Any], field: str) -> list[Any]:
    found = doc.get(field, [])
    return sorted(set(found if isinstance(found, list) else [found]))


def counts(buckets: list[dict[str, Any]]) -> list[tuple[Any, int]]:
    return [(bucket["key"], bucket["doc_count"]) for bucket in buckets]


@settings(max_examples=30, deadline=None)
@given(documents, st.integers(1, 3))
def test_rare_values_and_combinations(docs: list[dict[str, Any]], most: int) -> None:
    found = Index(FIELDS, docs).aggregations(
        {
            "rare": {"rare_terms": {"field": "k", "max_doc_count": most}},
            "both": {"multi_terms": {"terms": [{"field": "k"}, {"field": "n"}], "size": 100}},
            "nets": {"ip_prefix": {"field": "ip", "prefix_length": 16}},
        }
    )
    singles = Counter(value for doc in docs for value in values(doc, "k"))
    rare = sorted(((key, n) for key, n in singles.items() if n <= most), key=lambda one: (one[1], one[0]))
    assert counts(found["rare"]["buckets"]) == rare
    pairs = Counter(pair for doc in docs for pair in product(values(doc, "k"), values(doc, "n")))
    wanted = sorted(pairs.items(), key=lambda one: (-one[1], one[0]))
    assert counts(found["both"]["buckets"]) == [(list(key), n) for key, n in wanted]
    assert [one["key_as_string"] for one in found["both"]["buckets"]] == [f"{k}|{n}" for (k, n), _ in wanted]
    nets = Counter(doc["ip"].rsplit(".", 2)[0] + ".0.0" for doc in docs if "ip" in doc)
    assert counts(found["nets"]["buckets"]) == sorted(nets.items())
    assert all(one["netmask"] == "255.255.0.0" for one in found["nets"]["buckets"])


@settings(max_examples=30, deadline=None)
@given(documents, st.sampled_from(["k", "t", "n"]), st.sampled_from(["jlh", "percentage", "chi_square"]))
def test_significant_terms(docs: list[dict[str, Any]], field: str, measure: str) -> None:
    kind = "significant_text" if field == "t" else "significant_terms"
    body = {kind: {"field": field, "min_doc_count": 1, measure: {}, "size": 50}}
    found = Index(FIELDS, docs).aggregations({"s": body}, query={"term": {"k": "a"}})["s"]
    here = [doc for doc in docs if "a" in values(doc, "k")]

    def terms(doc: dict[str, Any]) -> list[Any]:
        return sorted(set(doc.get("t", "").split())) if field == "t" else values(doc, field)

    inside = Counter(term for doc in here for term in terms(doc))
    behind = Counter(term for doc in docs for term in terms(doc))
    assert (found["doc_count"], found["bg_count"]) == (len(here), len(docs))
    expected = {}
    for term, count in inside.items():
        share, base = count / len(here), behind[term] / len(docs)
        if measure == "jlh":
            score = (share - base) * (share / base) if share > base else 0.0
        elif measure == "percentage":
            score = count / behind[term]
        else:
            table = [[count, behind[term] - count], [len(here) - count, 0]]
            table[1][1] = len(docs) - count - table[0][1] - table[1][0]
            score = chi_square(table)
        if score > 0:
            expected[term] = score
    assert {one["key"]: one["doc_count"] for one in found["buckets"]} == {t: inside[t] for t in expected}
    for one in found["buckets"]:
        assert one["bg_count"] == behind[one["key"]]
        assert one["score"] == pytest.approx(expected[one["key"]])
    scores = [one["score"] for one in found["buckets"]]
    assert scores == sorted(scores, reverse=True)


def chi_square(table: list[list[int]]) -> float:
    """The sum of squared differences from what is expected, each by what is expected."""
    total = sum(map(sum, table))
    rows, columns = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    if 0 in rows or 0 in columns or table[0][0] / columns[0] < table[0][1] / columns[1]:
        return 0.0
    wanted = [[row * column / total for column in columns] for row in rows]
    cells = [(table[i][j], wanted[i][j]) for i in (0, 1) for j in (0, 1)]
    return math.fsum((found - expected) ** 2 / expected for found, expected in cells)


@settings(max_examples=25, deadline=None)
@given(documents)
def test_pairs_of_filters(docs: list[dict[str, Any]]) -> None:
    filters = {name: {"term": {"k": name}} for name in "cab"} | {"z": {"range": {"n": {"gte": 2}}}}
    found = Index(FIELDS, docs).aggregations({"x": {"adjacency_matrix": {"filters": filters}}})["x"]
    expected: Counter[str] = Counter()
    for doc in docs:
        names = values(doc, "k") + (["z"] if any(n >= 2 for n in values(doc, "n")) else [])
        expected.update(names)
        expected.update("&".join(pair) for pair in combinations(sorted(names), 2))
    assert counts(found["buckets"]) == sorted(expected.items())


@settings(max_examples=25, deadline=None)
@given(documents, st.integers(1, 5))
def test_samples_are_the_best(docs: list[dict[str, Any]], size: int) -> None:
    index, query = Index(FIELDS, docs), {"match": {"t": "red blue"}}
    hits = index.hits(query=query, size=100, _source=False)
    body = {"ids": {"top_hits": {"size": 100, "_source": False}}}
    found = index.aggregations({"s": {"sampler": {"shard_size": size}, "aggs": body}}, query=query)["s"]
    best = {hit["_id"] for hit in hits[:size]}
    assert {hit["_id"] for hit in found["ids"]["hits"]["hits"]} == best
    assert found["doc_count"] == len(best)
    varied = {"diversified_sampler": {"field": "m", "shard_size": size}, "aggs": body}
    found = index.aggregations({"s": varied}, query=query)["s"]
    chosen: list[str] = []
    met: set[float | None] = set()  # documents without a value count as of one value
    for hit in hits:
        value = docs[int(hit["_id"])].get("m")
        if value not in met:
            chosen.append(hit["_id"])
        met.add(value)
    assert {hit["_id"] for hit in found["ids"]["hits"]["hits"]} == set(chosen[:size])


@settings(max_examples=25, deadline=None)
@given(documents)
def test_statistics_of_fields(docs: list[dict[str, Any]]) -> None:
    docs = [{**doc, "n": values(doc, "n")[:1]} for doc in docs]
    aggregations = {
        "box": {"boxplot": {"field": "m"}},
        "text": {"string_stats": {"field": "k", "show_distribution": True}},
        "top": {"top_metrics": {"metrics": [{"field": "k"}], "sort": {"m": "desc"}}},
        "far": {"geo_distance": {"field": "p", "origin": [0, 0], "unit": "km", "ranges": [
            {"to": 200}, {"from": 200}]}},
    }  # fmt: skip
    index = Index(FIELDS, docs)
    found = index.aggregations(aggregations)
    # Of shards that are searched apart the last digit may differ.
    body = {"size": 0, "aggs": {"both": {"matrix_stats": {"fields": ["m", "n"]}}}}
    found |= search(body, index.searcher, index.context, None, SearchOptions())["aggregations"]
    numbers = sorted(doc["m"] for doc in docs if "m" in doc)
    assert found["box"]["min"] == (numbers[0] if numbers else "Infinity")
    if numbers:
        assert found["box"]["q2"] == statistics.median(numbers)
        width = 1.5 * (found["box"]["q3"] - found["box"]["q1"])
        assert found["box"]["upper"] == max(n for n in numbers if n <= found["box"]["q3"] + width)
    letters = [value for doc in docs for value in values(doc, "k")]
    assert found["text"]["count"] == len(letters)
    shares = {letter: count / len(letters) for letter, count in Counter(letters).items()}
    assert (found["text"]["distribution"] or {}) == pytest.approx(shares)
    assert found["text"]["entropy"] == pytest.approx(sum(-p * math.log2(p) for p in shares.values()))
    pairs = [(doc["m"], doc["n"][0]) for doc in docs if "m" in doc and doc["n"]]
    assert found["both"]["doc_count"] == len(pairs)
    if len(pairs) > 1:
        first, second = found["both"]["fields"]
        assert first["variance"] == pytest.approx(statistics.variance(m for m, _ in pairs))
        together = statistics.covariance(*zip(*pairs, strict=True))
        assert first["covariance"]["n"] == pytest.approx(together, abs=1e-9)
        assert second["covariance"]["m"] == pytest.approx(together, abs=1e-9)
    if numbers:
        assert found["top"]["top"][0]["sort"] == [numbers[-1]]
    near = [math.hypot(doc["p"]["lat"], doc["p"]["lon"]) for doc in docs if "p" in doc]
    got = [one["doc_count"] for one in found["far"]["buckets"]]
    assert got == [sum(r < 1.79 for r in near), sum(r > 1.79 for r in near)]


@settings(max_examples=20, deadline=None)
@given(documents, st.integers(1, 4), st.integers(-1, 2))
def test_pipelines_over_windows(docs: list[dict[str, Any]], window: int, shift: int) -> None:
    def moving(call: str) -> dict[str, Any]:
        return {"moving_fn": {"buckets_path": "_count", "window": window, "shift": shift, "script": call}}

    body: dict[str, Any] = {
        "days": {
            "date_histogram": {"field": "d", "fixed_interval": "1d"},
            "aggs": {
                "max": moving("MovingFunctions.max(values)"),
                "mean": moving("MovingFunctions.unweightedAvg(values)"),
                "off": moving("MovingFunctions.stdDev(values, MovingFunctions.unweightedAvg(values))"),
                "part": {"normalize": {"buckets_path": "_count", "method": "percent_of_sum"}},
            },
        },
        "half": {"percentiles_bucket": {"buckets_path": "days>_count", "percents": [0, 50, 100]}},
        "all": {"extended_stats_bucket": {"buckets_path": "days>_count"}},
    }
    found = Index(FIELDS, docs).aggregations(body)
    buckets = found["days"]["buckets"]
    series = [one["doc_count"] for one in buckets]
    for place, one in enumerate(buckets):
        part = series[max(0, place - window + shift) : max(0, place + shift)]
        assert one["max"]["value"] == max(part, default=None)
        assert one["mean"]["value"] == (statistics.fmean(part) if part else None)
        assert one["off"]["value"] == (pytest.approx(statistics.pstdev(part)) if part else None)
        assert one["part"]["value"] == pytest.approx(one["doc_count"] / sum(series))
    assert found["all"]["count"] == len(series)
    if series:
        assert found["all"]["variance"] == pytest.approx(statistics.pvariance(series), abs=1e-9)
        assert found["half"]["values"]["0.0"] == min(series)
        assert found["half"]["values"]["100.0"] == max(series)


def test_types_in_names() -> None:
    body = {
        "days": {
            "date_histogram": {"field": "d", "fixed_interval": "1d"},
            "aggs": {
                "m": {"max": {"field": "n"}},
                "c": {"cumulative_sum": {"buckets_path": "m"}},
                "s": {"derivative": {"buckets_path": "c"}},
            },
        },
        "best": {"max_bucket": {"buckets_path": "days>m"}},
    }
    docs = [{"d": 0, "n": 1}, {"d": DAY, "n": 3}]
    answer = Index(FIELDS, docs).search({"size": 0, "aggs": body}, SearchOptions(typed_keys=True))
    found = answer["aggregations"]
    assert found["bucket_metric_value#best"]["value"] == 3.0
    last = found["date_histogram#days"]["buckets"][1]
    assert last["simple_value#c"]["value"] == 4.0
    assert last["derivative#s"]["value"] == 3.0
