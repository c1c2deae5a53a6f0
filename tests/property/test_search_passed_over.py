"""Sorts that pass over documents, and buckets that are counted from columns of single values, against the
ways that read every value.
"""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from graphdb.search.aggregations.columns import Columns
from graphdb.search.results import columns_of, competitive
from graphdb.search.results.sort_keys import ByField
from tests.unit.search.results.index import Index

_DOCUMENTS = 3_000  # several blocks in each of two segments
_DAY = 86_400_000
_PROPERTIES = {
    "t": {"type": "text"},
    "n": {"type": "long"},
    "p": {"type": "double"},
    "d": {"type": "date"},
    "some": {"type": "long"},
    "k": {"type": "keyword"},
}
_QUERIES: list[dict[str, Any]] = [
    {"match_all": {}},
    {"term": {"t": "often"}},
    {"term": {"t": "seldom"}},
    {"bool": {"must": {"term": {"t": "often"}}, "filter": {"range": {"p": {"gte": -1}}}}},
]


def _index(chance: np.random.Generator) -> Index:
    width = int(chance.choice([3, 50, 10**15]))
    numbers = chance.integers(-width, width, _DOCUMENTS)
    if chance.random() < 0.5:
        numbers.sort()
    parts = chance.integers(-30, 30, _DOCUMENTS) / 4
    days = 1_600_000_000_000 + chance.integers(-400 * _DAY, 400 * _DAY, _DOCUMENTS)
    documents = []
    for place in range(_DOCUMENTS):
        one: dict[str, Any] = {"n": int(numbers[place]), "p": float(parts[place]), "d": int(days[place])}
        one["t"] = "often" if place % 3 else "seldom" if place % 7 else "never"
        one["k"] = ["abcde"[place % 5], "xyz"[place % 3]]
        if place % 2:
            one["some"] = int(numbers[place])
        documents.append(one)
    index = Index(_PROPERTIES, documents)
    for leaf in index.searcher.leaves:
        leaf.live[chance.integers(0, leaf.segment.size, 40)] = False
    return index


@pytest.mark.parametrize("seed", range(6))
def test_the_first_of_a_sort_are_the_same(seed: int) -> None:
    chance = np.random.default_rng(seed)
    index = _index(chance)
    fields = ["n", "p", "d", "some", "_doc"]
    for query in _QUERIES:
        for _ in range(8):
            chosen = chance.permutation(fields)[: chance.integers(1, 4)].tolist()
            order = [{name: {"order": str(chance.choice(["asc", "desc"]))}} for name in chosen]
            body = {"query": query, "sort": order, "from": int(chance.integers(0, 20)), "size": 20}
            found = index.search(body)
            with patch.object(competitive, "_values_of", return_value=None):
                assert found == index.search(body)


def test_blocks_are_passed_over() -> None:
    index = Index(_PROPERTIES, [{"n": -number} for number in range(_DOCUMENTS)])
    body = {"sort": [{"n": "desc"}], "size": 5}
    assert [hit["sort"] for hit in index.search(body)["hits"]["hits"]] == [[0], [-1], [-2], [-3], [-4]]
    spec = index.searcher.mapping.field("n")
    assert spec is not None
    key, docs = ByField("n", spec, descending=True), np.arange(_DOCUMENTS)
    rows = competitive.competitive_rows(columns_of(index.searcher), key, docs, 5, keeps_equal=True)
    assert rows is not None
    assert rows.tolist() == [*range(5), *range(1_500, 1_505)]  # of each segment


@pytest.mark.parametrize("seed", range(3))
def test_buckets_are_the_same(seed: int) -> None:
    chance = np.random.default_rng(seed)
    index = _index(chance)
    aggregations: list[dict[str, Any]] = [
        {"histogram": {"field": "p", "interval": 0.3, "offset": 0.1}},
        {"histogram": {"field": "n", "interval": 10**13, "min_doc_count": 1}},
        {"histogram": {"field": "some", "interval": 10**14, "min_doc_count": 1}},
        {"terms": {"field": "k"}},
        *(
            {"date_histogram": {"field": "d", "calendar_interval": unit, **more}}
            for unit in ("day", "week", "month", "quarter", "year")
            for more in ({}, {"offset": "+5h"}, {"time_zone": "+05:30"}, {"time_zone": "Europe/Vienna"})
        ),
        *(
            {"date_histogram": {"field": "d", "fixed_interval": length, "min_doc_count": 1}}
            for length in ("7d", "36h", "100d")
        ),
    ]
    for path in ("n", "p", "d", "some"):  # as whether a search is short is decided by these
        spec = index.searcher.mapping.field(path)
        assert spec is not None
        columns_of(index.searcher).bounds(spec)
    for query in _QUERIES:
        for aggregation in aggregations:
            body = {"size": 0, "query": query, "aggs": {"of": aggregation}}
            found = [index.search(body) for _ in range(2)]  # counts of all are kept for the second time
            with patch.object(Columns, "single_values", return_value=None):
                assert found == [index.search(body)] * 2
