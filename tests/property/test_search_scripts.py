"""Scripts over columns against the same scripts interpreted document by document; and whole searches."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.scripts import script as scripts
from graphdb.search.scripts.columnar import NotColumnar
from graphdb.search.scripts.script import SCORE, Script
from tests.unit.search.results.index import Index

FIELDS = {
    "n": {"type": "long"},
    "f": {"type": "double"},
    "d": {"type": "date"},
    "k": {"type": "keyword"},
    "v": {"type": "dense_vector", "dims": 2},
}
numbers = st.integers(-20, 20)
documents = st.lists(
    st.fixed_dictionaries(
        {"k": st.sampled_from("abc"), "v": st.tuples(st.integers(1, 5), st.integers(-5, 5)).map(list)},
        optional={
            "n": numbers | st.lists(numbers, min_size=1, max_size=3),
            "f": st.floats(-9, 9).map(lambda value: round(value, 2)),
            "d": st.integers(0, 10**12),
        },
    ),
    min_size=1,
    max_size=8,
)
PARAMS = {"one": 1, "half": 0.5, "yes": True, "q": [1, 2]}

leaves = st.sampled_from(
    [
        "0", "3", "-2", "2.5", "params.one", "params['half']", "_score", "doc['n'].value", "doc['f'].value",
        "doc['n'].size()", "doc['f'].length", "doc['d'].value.millis",
        "doc.d.value.toInstant().toEpochMilli()",
        "dotProduct(params.q, 'v')", "(double) doc['n'].value", "doc['k'].size()",
    ]
)  # fmt: skip
tests = st.sampled_from(
    ["doc['n'].empty", "doc['f'].isEmpty()", "params.yes", "true", "doc['d'].size() == 0"]
)


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    comparison = st.tuples(inner, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner)
    test = tests | comparison.map(lambda parts: f"({' '.join(parts)})")
    test = test | st.tuples(test, st.sampled_from(["&&", "||"]), test).map(lambda p: f"({' '.join(p)})")
    test = test | test.map(lambda one: f"!({one})")
    return st.one_of(
        st.tuples(inner, st.sampled_from("+-*/%"), inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(test, inner, inner).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})"),
        st.tuples(st.sampled_from(["Math.max", "Math.min"]), inner, inner).map(
            lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
        ),
        st.tuples(st.sampled_from(["Math.abs", "Math.sqrt", "Math.floor", "Math.log", "-"]), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})"
        ),
        inner.map(lambda one: f"saturation(Math.abs({one}), 2)"),
    )


expressions = st.recursive(leaves, combined, max_leaves=6)
sources = st.one_of(
    expressions,
    st.tuples(expressions, expressions).map(lambda p: f"def x = {p[0]}; return x + {p[1]}"),
    st.tuples(tests, expressions, expressions).map(
        lambda p: f"if ({p[0]}) {{ return {p[1]} }} def y = {p[2]}; y"
    ),
)


def outcome(index: Index, script: Script, docs: Any) -> Any:
    """By leaf the numbers, or the type and the cause of the error."""
    found = []
    for leaf in index.searcher.leaves:
        own = docs[docs < leaf.segment.size]
        scores = np.arange(leaf.segment.size, dtype=np.float32)
        try:
            values = script.on(leaf, index.context.mapping, "books").numbers(own, scores)
            found.append(values.tolist())
        except SearchError as error:
            found.append((error.kind, error.cause.kind if error.cause else ""))
    return found


@settings(max_examples=150, deadline=None)
@given(documents, sources)
def test_columns_and_interpreter_agree(docs: list[dict[str, Any]], source: str) -> None:
    index, script = Index(FIELDS, docs), Script(source, "painless", PARAMS, SCORE)
    every = np.arange(len(docs))
    columnar = [outcome(index, script, every[row : row + 1]) for row in every] + [
        outcome(index, script, every)
    ]
    with pytest.MonkeyPatch.context() as patch:

        def refuse(*_: Any) -> None:
            raise NotColumnar

        patch.setattr(scripts, "evaluated", refuse)
        plain = [outcome(index, script, every[row : row + 1]) for row in every]
        plain.append(outcome(index, script, every))
    for one, other in zip(columnar, plain, strict=True):
        for mine, theirs in zip(one, other, strict=True):
            if isinstance(mine, tuple) or isinstance(theirs, tuple):
                assert isinstance(mine, tuple)
                assert isinstance(theirs, tuple)
            else:
                assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-9, nan_ok=True)


def first(doc: dict[str, Any], default: float = 0) -> float:
    value: Any = doc.get("n", default)
    least: float = min(value) if isinstance(value, list) else value
    return least


@settings(max_examples=30, deadline=None)
@given(documents, st.integers(-5, 5))
def test_searches_with_scripts(docs: list[dict[str, Any]], bound: int) -> None:
    index = Index(FIELDS, docs)
    guarded = "(doc['n'].empty ? 0 : doc['n'].value)"
    script = {"source": f"{guarded} > params.b", "params": {"b": bound}}
    expected = [str(number) for number, doc in enumerate(docs) if first(doc) > bound]
    assert sorted(index.ids(query={"script": {"script": script}}, size=50)) == sorted(expected)
    plain = {"script": {"script": {"source": "doc['n'].value > params.b", "params": {"b": bound}}}}
    with_n = [number for number in expected if "n" in docs[int(number)]]
    both = {"bool": {"filter": [plain, {"exists": {"field": "n"}}]}}
    assert sorted(index.ids(query=both, size=50)) == sorted(with_n)
    required = {"bool": {"must": [plain, {"exists": {"field": "n"}}]}}
    assert sorted(index.ids(query=required, size=50)) == sorted(with_n)

    score = {"source": f"Math.abs({guarded}) + _score", "lang": "painless"}
    scored = {"script_score": {"query": {"match_all": {"boost": 2}}, "script": score}}
    found = {hit["_id"]: hit["_score"] for hit in index.hits(query=scored, size=50)}
    assert found == {str(number): abs(first(doc)) + 2.0 for number, doc in enumerate(docs)}
    function = {"query": {"match_all": {}}, "script_score": {"script": score}, "boost_mode": "sum"}
    found = {hit["_id"]: hit["_score"] for hit in index.hits(query={"function_score": function}, size=50)}
    assert found == {str(number): abs(first(doc)) + 2.0 for number, doc in enumerate(docs)}

    by_number = {"_script": {"type": "number", "script": guarded, "order": "desc"}}
    hits = index.hits(sort=[by_number, "_doc"], size=50)
    wanted = sorted(range(len(docs)), key=lambda number: -first(docs[number]))
    assert [int(hit["_id"]) for hit in hits] == wanted
    by_text = {"_script": {"type": "string", "script": "doc['k'].value + 'x'"}}
    hits = index.hits(sort=[by_text, "_doc"], size=50)
    assert [int(hit["_id"]) for hit in hits] == sorted(range(len(docs)), key=lambda n: docs[n]["k"])
    middle = hits[len(hits) // 2]
    after = index.hits(sort=[by_text, "_doc"], size=50, search_after=middle["sort"])
    assert after == hits[len(hits) // 2 + 1 :]

    fields = {"k": {"script": "doc['k']"}, "n": {"script": f"{guarded} * 2"}}
    hits = index.hits(script_fields=fields, sort="_doc", size=50)
    assert [hit["fields"] for hit in hits] == [{"k": [doc["k"]], "n": [first(doc) * 2]} for doc in docs]
    assert all("_source" not in hit for hit in hits)


def test_buckets() -> None:
    index = Index(FIELDS, [{"k": "a", "n": 1}, {"k": "a", "n": 5}, {"k": "b", "n": 2}, {"k": "c"}])
    below: dict[str, Any] = {
        "sum": {"sum": {"field": "n"}},
        "mean": {
            "bucket_script": {
                "buckets_path": {"sum": "sum", "count": "_count"},
                "script": "params.sum / params.count",
                "format": "0.0",
            }
        },
        "many": {"bucket_selector": {"buckets_path": {"sum": "sum"}, "script": "params.sum > 0"}},
    }
    answer = index.search({"size": 0, "aggs": {"k": {"terms": {"field": "k"}, "aggs": below}}})
    assert [(one["key"], one["mean"]) for one in answer["aggregations"]["k"]["buckets"]] == [
        ("a", {"value": 3.0, "value_as_string": "3.0"}),
        ("b", {"value": 2.0, "value_as_string": "2.0"}),
    ]
