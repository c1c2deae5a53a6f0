"""Scores to the last digits that Lucene would show, worked out by hand from its formulas."""

import math
from typing import Any

import numpy as np
import pytest

from graphdb.search.query import collect, explain, parse_query
from graphdb.search.query.searcher import LENGTHS
from tests.unit.search.query.corpus import Corpus

MAPPING: dict[str, Any] = {
    "properties": {
        "t": {"type": "text"},
        "u": {"type": "text"},
        "k": {"type": "keyword"},
        "n": {"type": "integer"},
        "kids": {"type": "nested", "properties": {"t": {"type": "text"}}},
    }
}


def _idf(n: int, count: int) -> float:
    return math.log(1 + (count - n + 0.5) / (n + 0.5))


def _bm25(idf: float, freq: float, length: float, average: float) -> float:
    return 2.2 * idf * freq / (freq + 1.2 * (0.25 + 0.75 * length / average))


def test_one_document_with_one_word_scores_as_the_books_say() -> None:
    corpus = Corpus([{"t": "foo"}], MAPPING)
    ((_, score),) = corpus.hits({"match": {"t": "foo"}})
    assert score == np.float32(0.2876821)


def test_the_statistics_are_of_the_documents_that_have_the_field() -> None:
    corpus = Corpus([{"t": "foo foo bar"}, {"t": "bar"}, *[{"k": "x"}] * 8], MAPPING, segments=2)
    expected = pytest.approx(_bm25(_idf(1, 2), 2, 3, 2), rel=1e-6)
    assert dict(corpus.hits({"match": {"t": "foo"}})) == {"0": expected}


@pytest.mark.parametrize(("k1", "b"), [(2, 0.1), ("0.5", "1"), (0, 0.75), (1.2, 0), (1.2, 0.75)])
def test_an_index_has_similarities_of_its_own(k1: Any, b: Any) -> None:
    own = {"own": {"type": "BM25", "k1": k1, "b": b}}
    mapping = {"properties": {"t": {"type": "text", "similarity": "own"}, "u": {"type": "text"}}}
    documents = [{"t": text, "u": text} for text in ("foo foo bar", "bar", "bar foo bar bar bar")]
    corpus = Corpus(documents, mapping, segments=2, similarity=own)
    of_own, standard = [dict(corpus.hits({"match": {field: "foo"}})) for field in ("t", "u")]
    for number, freq, length in (("0", 2, 3), ("2", 1, 5)):
        assert standard[number] == pytest.approx(_bm25(_idf(2, 3), freq, length, 3), rel=1e-6)
        tf = freq / (freq + float(k1) * (1 - float(b) + float(b) * length / 3))
        assert of_own[number] == pytest.approx((float(k1) + 1) * _idf(2, 3) * tf, rel=1e-6)
        assert corpus.explained({"match": {"t": "foo"}})[number] == pytest.approx(of_own[number], rel=1e-6)
    phrase = dict(corpus.hits({"match_phrase": {"t": "foo bar"}}))
    tf = 1 / (1 + float(k1) * (1 - float(b) + float(b) * 3 / 3))
    assert phrase["0"] == pytest.approx((float(k1) + 1) * (_idf(2, 3) + _idf(3, 3)) * tf, rel=1e-6)


def test_lengths_are_as_exact_as_a_norm_byte() -> None:
    assert LENGTHS[:41].tolist() == list(range(41))
    assert LENGTHS[[41, 48, 60, 255]].tolist() == [42, 56, 120, np.float32(2_013_265_944)]


@pytest.mark.parametrize(
    ("text", "slop", "freq"),
    [
        ("a b", 0, 1.0),
        ("a x b", 1, 1 / 2),
        ("a x x b", 3, 1 / 3),
        ("b a", 2, 1 / 3),
        ("a b x a x b", 2, 1 + 1 / 2),
        ("a x b a b", 2, 1 / 2 + 1),
    ],
)
def test_a_phrase_counts_less_the_farther_apart(text: str, slop: int, freq: float) -> None:
    corpus = Corpus([{"t": text}], MAPPING)
    ((_, score),) = corpus.hits({"match_phrase": {"t": {"query": "a b", "slop": slop}}})
    length = len(text.split())
    assert score == pytest.approx(_bm25(2 * _idf(1, 1), freq, length, length), rel=1e-6)


def test_fuzzy_terms_share_the_documents_of_the_most_frequent() -> None:
    corpus = Corpus([{"t": "house"}, {"t": "house"}, {"t": "mouse"}, {"t": "else"}], MAPPING)
    scores = dict(corpus.hits({"match": {"t": {"query": "house", "fuzziness": 1}}}))
    assert scores["0"] == pytest.approx(_bm25(_idf(2, 4), 1, 1, 1), rel=1e-6)
    assert scores["2"] == pytest.approx(0.8 * _bm25(_idf(2, 4), 1, 1, 1), rel=1e-6)


def test_cross_fields_blend_the_documents_of_the_fields() -> None:
    corpus = Corpus([{"t": "smith", "u": "x"}, {"t": "smith", "u": "x"}, {"t": "x", "u": "smith"}], MAPPING)
    body = {"multi_match": {"query": "smith", "fields": ["t", "u"], "type": "cross_fields"}}
    scores = dict(corpus.hits(body))
    assert scores["0"] == pytest.approx(_bm25(_idf(2, 3), 1, 1, 1), rel=1e-6)
    assert scores["2"] == pytest.approx(_bm25(_idf(3, 3), 1, 1, 1), rel=1e-6)


@pytest.mark.parametrize(
    ("mode", "expected"), [("avg", 2.0), ("sum", 4.0), ("max", 3.0), ("min", 1.0), ("none", 0.0)]
)
def test_nested_scores(mode: str, expected: float) -> None:
    corpus = Corpus([{"kids": [{"t": "a"}, {"t": "a b"}, {"t": "c"}]}], MAPPING)
    inner = {
        "bool": {
            "must": {"constant_score": {"filter": {"match": {"kids.t": "a"}}}},
            "should": {"constant_score": {"filter": {"match": {"kids.t": "b"}}, "boost": 2}},
        }
    }
    body = {"nested": {"path": "kids", "query": inner, "score_mode": mode}}
    assert corpus.hits(body) == [("0", expected)]


FUNCTIONS: dict[str, tuple[dict[str, Any], float]] = {
    "weight": ({"weight": 3}, 6.0),
    "replace": ({"weight": 3, "boost_mode": "replace"}, 3.0),
    "sum": ({"weight": 3, "boost_mode": "sum"}, 5.0),
    "avg": ({"weight": 4, "boost_mode": "avg"}, 3.0),
    "max boost": ({"weight": 30, "max_boost": 5}, 10.0),
    "field": ({"field_value_factor": {"field": "n", "factor": 2}}, 40.0),
    "modifier": ({"field_value_factor": {"field": "n", "modifier": "log", "factor": 10}}, 4.0),
    "missing": ({"field_value_factor": {"field": "none", "missing": 7}}, 14.0),
    "gauss": ({"gauss": {"n": {"origin": 6, "scale": 4}}}, 1.0),
    "gauss, twice as far": ({"gauss": {"n": {"origin": 2, "scale": 4}}}, 2 / 16),
    "exp": ({"exp": {"n": {"origin": 2, "scale": 4}}}, 2 / 4),
    "linear": ({"linear": {"n": {"origin": 6, "scale": 4, "decay": 0.75}}}, 1.5),
    "within the offset": ({"linear": {"n": {"origin": 6, "scale": 1, "offset": 4}}}, 2.0),
    "multiply": ({"functions": [{"weight": 2}, {"weight": 5}]}, 20.0),
    "sum of functions": ({"functions": [{"weight": 2}, {"weight": 5}], "score_mode": "sum"}, 14.0),
    "first": ({"functions": [{"weight": 2}, {"weight": 5}], "score_mode": "first"}, 4.0),
    "average": (
        {
            "functions": [{"weight": 2}, {"weight": 6, "field_value_factor": {"field": "n", "factor": 0.1}}],
            "score_mode": "avg",
        },
        2.0,
    ),
    "filtered away": ({"functions": [{"weight": 2, "filter": {"term": {"k": "y"}}}]}, 2.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_scores(name: str) -> None:
    body, expected = FUNCTIONS[name]
    corpus = Corpus([{"n": 10, "k": "x"}], MAPPING)
    query = {"constant_score": {"filter": {"match_all": {}}, "boost": 2}}
    ((_, score),) = corpus.hits({"function_score": {"query": query, **body}})
    assert score == pytest.approx(expected, rel=1e-6)


def test_min_score_leaves_documents_out() -> None:
    corpus = Corpus([{"n": 1}, {"n": 5}], MAPPING)
    body = {"function_score": {"field_value_factor": {"field": "n"}, "min_score": 2}}
    assert corpus.hits(body) == [("1", 5.0)]


def test_boosts_multiply_all_the_way_down() -> None:
    corpus = Corpus([{"t": "foo", "k": "x"}], MAPPING)
    inner = {"match": {"t": {"query": "foo", "boost": 2}}}
    body = {"bool": {"must": [{"bool": {"should": [inner], "boost": 3}}], "boost": 5}}
    ((_, score),) = corpus.hits(body)
    assert score == pytest.approx(30 * 0.2876821, rel=1e-6)


def test_scores_of_must_and_should_add_up_and_filters_add_nothing() -> None:
    corpus = Corpus([{"t": "foo", "n": 1}, {"n": 1}], MAPPING)
    one = {"term": {"n": 1}}
    body = {"bool": {"must": [one, one], "filter": one, "should": [{"match": {"t": "foo"}}, one]}}
    assert dict(corpus.hits(body)) == {"0": pytest.approx(3.2876821), "1": 3.0}


@pytest.mark.parametrize(
    "query",
    [
        {"script_score": {"query": {"match_all": {}}, "script": {"source": "doc['n'].value"}}},
        {"function_score": {"script_score": {"script": {"source": "doc['n'].value"}}}},
    ],
)
def test_scripts_run_for_no_nested_document_that_is_no_hit(query: dict[str, Any]) -> None:
    kids = [{"t": "a"}, {"t": "b"}]
    corpus = Corpus([{"n": 3, "kids": kids}, {"n": 5}], MAPPING)
    assert corpus.hits(query) == [("1", 5.0), ("0", 3.0)]
    within = {"nested": {"path": "kids", "query": _twice({"match_all": {}}), "score_mode": "sum"}}
    assert corpus.hits(within) == [("0", 4.0)]


def _twice(query: dict[str, Any]) -> dict[str, Any]:
    return {"script_score": {"query": query, "script": {"source": "2 * _score"}}}


def test_deleted_and_nested_documents_are_no_hits() -> None:
    corpus = Corpus([{"t": "a", "kids": [{"t": "a"}]}, {"t": "a"}], MAPPING)
    (leaf,) = corpus.searcher.leaves
    leaf.live[leaf.segment.find("1")] = False
    found = collect(parse_query({"match_all": {}}, corpus.context), corpus.searcher, 10)
    assert found.total == 1
    assert leaf.segment.doc_id(int(found.docs[0])) == "0"
    assert dict(corpus.hits({"match": {"t": "a"}})) == {
        "0": pytest.approx(_bm25(_idf(2, 2), 1, 1, 1), rel=1e-6)
    }


def test_an_explanation_is_as_elasticsearchs() -> None:
    corpus = Corpus([{"t": "foo bar"}], MAPPING)
    (leaf,) = corpus.searcher.leaves
    matched, found = explain(parse_query({"match": {"t": "foo"}}, corpus.context), leaf, 0, corpus.searcher)
    assert matched
    assert found["description"] == "weight(t:foo in 0) [PerFieldSimilarity], result of:"
    (inner,) = found["details"]
    assert inner["description"] == "score(freq=1.0), computed as boost * idf * tf from:"
    assert [part["description"].split(",")[0] for part in inner["details"]] == ["boost", "idf", "tf"]
    assert [part["value"] for part in inner["details"]] == pytest.approx([2.2, 0.2876821, 0.45454544])
    names = [part["description"] for part in inner["details"][2]["details"]]
    assert names[3:] == ["dl, length of field", "avgdl, average length of field"]
    missed = explain(parse_query({"match": {"t": "nope"}}, corpus.context), leaf, 0, corpus.searcher)
    assert missed == (False, {"value": 0.0, "description": "no matching term", "details": []})
