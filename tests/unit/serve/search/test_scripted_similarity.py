"""Similarities that a script computes."""

from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.search.other_similarities import (
    Dfi,
    DirichletModel,
    JelinekMercerModel,
    OtherSimilarity,
    TermStatistics,
)
from graphdb.search.scripted_similarity import ScriptedSimilarity
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard

IDF = "double idf = Math.log((field.docCount+1.0)/(term.docFreq+1.0)) + 1.0; "
TF = "double tf = Math.sqrt(doc.freq); double norm = 1/Math.sqrt(doc.length); "
WHOLE = {"type": "scripted", "script": {"source": f"{IDF}{TF}return query.boost * tf * idf * norm;"}}
PARTS = {
    "type": "scripted",
    "weight_script": {"source": f"{IDF}return query.boost * idf;"},
    "script": {"source": f"{TF}return weight * tf * norm;"},
}
# The script of each, in place of what it has of its own.
SHARE = "double share = (term.totalTermFreq + 1.0) / (field.sumTotalTermFreq + 1.0); "
TWINS: list[tuple[OtherSimilarity, str]] = [
    (
        JelinekMercerModel(0.3),
        f"{SHARE}return query.boost * Math.log(1 + (0.7 * doc.freq / doc.length) / (0.3 * share));",
    ),
    (
        DirichletModel(100.0),
        f"{SHARE}double s = Math.log(1 + doc.freq / (100 * share)) + Math.log(100 / (doc.length + 100.0)); "
        "return query.boost * Math.max(s, 0);",
    ),
    (
        Dfi("saturated"),
        f"{SHARE}double e = share * doc.length; double f = Math.max(doc.freq, e); "
        "return query.boost * Math.log((f - e) / e + 1) / Math.log(2.0);",
    ),
]


def made(http: httpx.Client, **similarities: Any) -> None:
    properties = {name: {"type": "text", "similarity": name} for name in similarities}
    body = {"settings": {"similarity": similarities}, "mappings": {"properties": properties}}
    http.put("/a", json=body).raise_for_status()
    for doc_id, text in enumerate(("foo bar foo", "bar baz")):
        http.put(f"/a/_doc/{doc_id}?refresh=true", json=dict.fromkeys(similarities, text))


def scores(http: httpx.Client, query: Any) -> dict[str, float]:
    hits = http.post("/a/_search", json={"query": query}).json()["hits"]["hits"]
    return {hit["_id"]: hit["_score"] for hit in hits}


def test_the_score_of_the_documentation(http: httpx.Client) -> None:
    made(http, whole=WHOLE, parts=PARTS)
    for field in ("whole", "parts"):
        assert scores(http, {"query_string": {"query": f"{field}:foo^1.7"}}) == {"0": 1.9508477}
    shown = http.get("/a/_settings").json()["a"]["settings"]["index"]["similarity"]
    assert shown == {"whole": WHOLE, "parts": PARTS}


def test_terms_of_a_query_and_of_a_phrase_are_added(http: httpx.Client) -> None:
    count = {"type": "scripted", "script": {"source": "doc.freq * params.by", "params": {"by": 10}}}
    made(http, count=count)
    assert scores(http, {"match": {"count": "foo bar"}}) == {"0": 30.0, "1": 10.0}
    assert scores(http, {"match_phrase": {"count": "foo bar"}}) == {"0": 20.0}
    assert scores(http, {"bool": {"must": {"match": {"count": "baz"}}}}) == {"1": 10.0}
    one = http.post("/a/_explain/0", json={"query": {"match": {"count": "foo"}}}).json()["explanation"]
    assert (one["value"], "ScriptedSimilarity" in str(one)) == (20.0, True)


@pytest.mark.parametrize(("similarity", "source"), TWINS)
@given(st.data())
def test_a_script_computes_what_a_similarity_does(
    similarity: OtherSimilarity, source: str, data: st.DataObject
) -> None:
    pairs = data.draw(st.lists(st.tuples(st.integers(1, 50), st.integers(50, 500)), min_size=1, max_size=9))
    freqs, lengths = np.array(pairs, np.float64).T
    doc_freq = data.draw(st.integers(1, 100))
    term = TermStatistics(100, 20_000, doc_freq, doc_freq + data.draw(st.integers(0, 1_000)))
    boost = data.draw(st.floats(0.125, 10, width=32))
    scripted = ScriptedSimilarity.of("s", {"script": source})
    expected = similarity.boosted(freqs, lengths, term, boost)
    assert np.allclose(scripted.boosted(freqs, lengths, term, boost), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("similarity", "kind", "reason"),
    [
        ({"type": "scripted"}, "illegal_argument_exception", "needs a [script]"),
        ({"type": "scripted", "script": {"source": "doc.freq +"}}, "script_exception", "compile error"),
        ({"type": "scripted", "script": {"source": "1"}, "k1": 1}, "illegal_argument_exception", "[k1]"),
        ({**WHOLE, "weight_script": {"source": "doc.freq"}}, "script_exception", "compile error"),
    ],
)
def test_similarities_that_cannot_be(http: httpx.Client, similarity: Any, kind: str, reason: str) -> None:
    answer = reason_of(http.put("/b", json={"settings": {"similarity": {"s": similarity}}}))
    assert (answer[:2], reason in answer[2]) == ((400, kind), True)


@pytest.mark.parametrize("source", ["-1 * doc.freq", "'x'", "0.0 / 0.0", "field.sumDocFreq", "doc.nothing"])
def test_scripts_that_fail_when_they_run(http: httpx.Client, source: str) -> None:
    made(http, bad={"type": "scripted", "script": {"source": source}})
    assert http.post("/a/_search", json={"query": {"match": {"bad": "foo"}}}).status_code == 400
