"""Fields that score by another similarity than BM25, beside what Elasticsearch 8.19 answered.

`similarity_answers.json` has the texts, the settings, and each query with its hits.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.similarity import similarities_of
from tests.unit.search.query.corpus import Corpus

FACTS = json.loads(Path(__file__).with_name("similarity_answers.json").read_text())


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    fields = [path for path in FACTS["mappings"]["properties"] if path not in ("k", "kb")]
    documents = [
        {**dict.fromkeys(fields, text), "k": text.split()[0], "kb": text.split()[-1]}
        for text in FACTS["texts"]
    ]
    return Corpus(documents, FACTS["mappings"], 3, FACTS["similarity"], FACTS["analysis"])


@pytest.mark.parametrize(("query", "hits"), FACTS["answers"], ids=lambda value: json.dumps(value)[:80])
def test_scores_are_elasticsearchs(corpus: Corpus, query: Any, hits: dict[str, float]) -> None:
    assert dict(corpus.hits(query)) == pytest.approx(hits, rel=2e-5, abs=1e-5)
    explained = {key: value for key, value in corpus.explained(query).items() if value is not None}
    assert explained == pytest.approx(dict(corpus.hits(query)), rel=1e-6)


@pytest.mark.parametrize("field", ["boo", "dfr1", "lmd2", "chisquared", "ib11"])
def test_filters_and_boosts(corpus: Corpus, field: str) -> None:
    words = {"match": {field: "red dog"}}
    plain = dict(corpus.hits(words))
    boosted = corpus.hits({"bool": {"must": [words], "filter": [{"match": {field: "big"}}], "boost": 3}})
    assert dict(boosted) == pytest.approx({key: 3 * plain[key] for key, _ in boosted})
    assert {key for key, _ in boosted} == {"1", "3", "6", "8"} & plain.keys()
    assert [key for key, _ in corpus.hits(words, 2)] == [key for key, _ in corpus.hits(words)][:2]


def test_combined_fields_need_bm25(corpus: Corpus) -> None:
    with pytest.raises(SearchError, match="only be used with the similarity BM25"):
        corpus.hits({"combined_fields": {"query": "red", "fields": ["lmd"]}})


def test_parameters_of_a_normalization_may_be_an_object() -> None:
    base = {"type": "DFR", "basic_model": "g", "after_effect": "l", "normalization": "h2"}
    flat = similarities_of({"s": {**base, "normalization.h2.c": "3"}})
    assert flat == similarities_of({"s": {**base, "normalization.h2": {"c": 3}}})
    assert flat != similarities_of({"s": base})


DFR = {"type": "DFR", "basic_model": "g", "after_effect": "l", "normalization": "h2"}


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ({**DFR, "basic_model": "be"}, r"Unsupported BasicModel \[be\], expected one of \[g, if, in, ine\]"),
        ({**DFR, "after_effect": None}, r"Unsupported AfterEffect \[None\]"),
        ({**DFR, "normalization": "q"}, r"Unsupported Normalization \[q\]"),
        ({**DFR, "normalization.h2.c": "x"}, r"Failed to parse value \[x\]"),
        ({**DFR, "normalization.h2.c": 0}, "illegal value of"),
        ({**DFR, "x": 1}, r"Unknown settings for similarity of type \[DFR\]: \[x\]"),
        ({"type": "DFI", "independence_measure": "x"}, r"Unsupported IndependenceMeasure \[x\]"),
        ({"type": "IB", "distribution": "ll", "lambda": "x"}, r"Unsupported Lambda \[x\]"),
        ({"type": "LMDirichlet", "mu": -1}, "illegal mu value: -1.0"),
        ({"type": "LMJelinekMercer", "lambda": 2}, r"lambda must be in the range \(0 .. 1\]"),
        ({"type": "classic"}, r"Unknown Similarity type \[classic\]"),
    ],
)
def test_similarities_that_cannot_be(definition: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        similarities_of({"s": definition})
