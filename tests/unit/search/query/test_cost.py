"""Which searches for the nearest vectors are short enough for an event loop."""

from typing import Any

import numpy as np
import orjson
import pytest

from graphdb.search.analysis import Analyzers
from graphdb.search.mapping import Mapping
from graphdb.search.query import QueryContext, Searcher, collect, cost, parse_query
from graphdb.search.query.cost import is_narrow_query, is_short_query
from graphdb.search.segments.index_shard import IndexShard
from graphdb.search.segments.operations import Action, Operation
from graphdb.search.vectors import missing_graphs

ROWS, DIMS = 2_100, 8  # more than are always few
ANALYZERS = Analyzers.of({})


@pytest.fixture(scope="module")
def shard() -> "IndexShard[Mapping]":
    vector = {"type": "dense_vector", "dims": DIMS, "similarity": "l2_norm"}
    fields = {"v": vector, "tag": {"type": "keyword"}}
    shard = IndexShard("i", Mapping.of({"properties": fields}, ANALYZERS), {})
    rows = np.random.default_rng(0).standard_normal((ROWS, DIMS)).astype(np.float32)
    bodies = [orjson.dumps({"v": row.tolist(), "tag": f"t{i % 7}"}) for i, row in enumerate(rows)]
    shard.apply([Operation(Action.INDEX, str(i), body) for i, body in enumerate(bodies)])
    shard.refresh()
    return shard


def test_only_with_a_graph_and_filters_that_are_told_quickly(
    shard: "IndexShard[Mapping]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "STEPS_MAX", 3_000)
    searcher = Searcher(shard.leaves(), shard.mapping, ANALYZERS)

    def parsed(**more: Any) -> Any:
        body = {"field": "v", "query_vector": [0.5] * DIMS, "k": 5} | more
        return parse_query({"knn": body}, QueryContext(shard.mapping, ANALYZERS))

    assert not is_short_query(parsed(), searcher)
    (job,) = missing_graphs(shard.leaves(), shard.mapping, rows_min=0)
    assert job.run(None)
    assert is_short_query(parsed(), searcher)
    assert not is_short_query(parsed(query_vector=[1e20] * DIMS), searcher)
    assert is_short_query(parsed(filter={"term": {"tag": "t1"}}), searcher)
    slow = parsed(filter={"wildcard": {"tag": "*1"}})
    assert not is_short_query(slow, searcher)
    known = parsed(filter={"terms": {"tag": ["t1", "t2"]}})
    assert not is_short_query(known, searcher)
    collect(known, searcher, 5)
    assert is_short_query(known, searcher)


def test_what_matches_few_is_narrow(shard: "IndexShard[Mapping]", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_MATCHES_MAX", 700)
    searcher = Searcher(shard.leaves(), shard.mapping, ANALYZERS)

    def is_narrow(body: dict[str, Any]) -> bool:
        return is_narrow_query(parse_query(body, QueryContext(shard.mapping, ANALYZERS)), searcher)

    one, other, third = ({"term": {"tag": f"t{number}"}} for number in range(3))  # 300 documents each
    assert is_narrow(one)
    assert is_narrow({"bool": {"should": [one, other]}})
    assert not is_narrow({"bool": {"should": [one, other, third]}})
    assert is_narrow({"bool": {"must": [{"match_all": {}}], "filter": [one]}})
    assert not is_narrow({"match_all": {}})
    assert not is_narrow({"bool": {"must_not": [one]}})
    assert not is_narrow({"wildcard": {"tag": "*1"}})
    monkeypatch.setattr(cost, "_DENSE_MAX", 2_000)
    assert not is_narrow(one)


def test_filters_of_many_documents_are_short() -> None:
    """An array of a range takes a fifth of a nanosecond for each document."""
    mapping = Mapping.of({"properties": {"t": {"type": "text"}, "n": {"type": "long"}}}, ANALYZERS)
    wide: IndexShard[Mapping] = IndexShard("w", mapping, {})
    texts = [b'{"t":"a%s","n":%d}' % (b" b" if i % 2 else b"", i) for i in range(ROWS)]
    wide.apply([Operation(Action.INDEX, str(i), body) for i, body in enumerate(texts)])
    wide.refresh()
    searcher = Searcher(wide.leaves(), wide.mapping, ANALYZERS)

    def steps(body: dict[str, Any], counted: int | None = None) -> float | None:
        return cost._steps(parse_query(body, QueryContext(wide.mapping, ANALYZERS)), searcher, counted)

    match = {"match": {"t": "a b"}}
    alone, half = steps(match), {"range": {"n": {"gte": ROWS // 2}}}
    filtered = steps({"bool": {"must": [match], "filter": [half], "must_not": [{"term": {"t": "c"}}]}})
    assert alone is not None
    assert filtered is not None
    assert alone < filtered < alone + ROWS / 8
    assert steps({"bool": {"must": [match], "filter": [{"wildcard": {"t": "*b*"}}]}}) is None
    both = {"match": {"t": {"query": "a b", "operator": "and"}}}
    whole, some = steps(both), steps(both, 100)
    assert whole is not None
    assert some == whole / 4
