"""Cranfield: ranked as well as by an oracle with the same analysis and idf, and all but in the same order."""

import math
import os
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from rank_bm25 import BM25Okapi  # type: ignore[import-untyped]

from tests.unit.search.query.corpus import Corpus

ROOT = Path(__file__).resolve().parents[4]
CRANFIELD = Path(os.environ.get("GRAPHDB_SHARED", ROOT.parent / "shared")) / "data" / "cranfield"


class _Oracle(BM25Okapi):  # type: ignore[misc]  # rank_bm25 has no types
    """rank-bm25 with Lucene's idf; it would be negative for words in more than half of the documents."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        for word, n in nd.items():
            self.idf[word] = math.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5))


def _ndcg(ranked: list[str], gains: dict[str, int]) -> float:
    found = sum(gains.get(doc, 0) / math.log2(rank + 2) for rank, doc in enumerate(ranked[:10]))
    best = sum(
        gain / math.log2(rank + 2) for rank, gain in enumerate(sorted(gains.values(), reverse=True)[:10])
    )
    return found / best if best else 0.0


def _texts(name: str, tag: str) -> list[str]:
    text = (CRANFIELD / name).read_text(encoding="utf-8")
    return [found.strip() for found in re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)]


@pytest.mark.skipif(not CRANFIELD.exists(), reason="no ../shared/data/cranfield")
def test_cranfield_is_ranked_as_by_the_oracle() -> None:
    documents = [re.sub(r"<[^>]+>", " ", body) for body in _texts("cran.all.1400.xml", "text")]
    corpus = Corpus(
        [{"t": text} for text in documents], {"properties": {"t": {"type": "text", "analyzer": "english"}}}, 3
    )
    analyzer = corpus.analyzers.analyzer("english")
    having = [number for number, text in enumerate(documents) if analyzer.tokens(text)[0]]
    oracle = _Oracle([analyzer.tokens(documents[number])[0] for number in having], k1=1.2, b=0.75)
    gains: dict[int, dict[str, int]] = defaultdict(dict)
    for line in (CRANFIELD / "cranqrel.trec.txt").read_text().splitlines():
        query, _, doc, gain = line.split()
        gains[int(query)][str(int(doc) - 1)] = max(0, int(gain))
    ours, its = [], []
    for number, query in enumerate(_texts("cran.qry.xml", "title"), start=1):
        scores = oracle.get_scores(analyzer.tokens(query)[0])
        order = [str(having[place]) for place in np.argsort(-scores, kind="stable")[:10]]
        ours.append(_ndcg([doc for doc, _ in corpus.hits({"match": {"t": query}}, 10)], gains[number]))
        its.append(_ndcg(order, gains[number]))
    assert len(ours) == 225
    assert np.mean(ours) == pytest.approx(np.mean(its), abs=0.005)
    assert np.mean(ours) > 0.3
