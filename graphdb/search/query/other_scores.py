"""Scores of fields that have another similarity than BM25."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.search.leaf_reader import Floats
from graphdb.search.other_similarities import TermStatistics
from graphdb.search.query.explanation import Explanation, explained
from graphdb.search.query.searcher import LENGTHS, Searcher

__all__ = ["Norms", "Scorer", "otherwise_explained", "scored_as_one", "scored_otherwise"]

Norms = NDArray[np.uint8]
Freqs = NDArray[np.float32] | NDArray[np.int32]
Scorer = Callable[[Floats, Norms], Floats]
"""The scores of documents by how often each has what is looked for, and by the byte of its length."""


def scored_otherwise(
    searcher: Searcher,
    path: str,
    terms: Sequence[str],
    freqs: Freqs,
    norms: Norms,
    boost: float,
) -> Floats | None:
    """The scores of documents that hold several terms together so often. norms: the bytes of their lengths.

    None where the field scores by BM25.
    """
    similarity = searcher.other_similarity(path)
    if similarity is None:
        return None
    if not similarity.sums:
        return np.full(len(freqs), boost, np.float32)
    known = [
        (searcher.doc_freq(path, term), _total_freq(searcher, path, term)) for term in dict.fromkeys(terms)
    ]
    return _summed(searcher, path, [one for one in known if one[0]], freqs, norms, boost)


def scored_as_one(
    searcher: Searcher,
    path: str,
    terms: Sequence[str],
    freqs: Freqs,
    norms: Norms,
    boost: float,
    doc_freq: int | None = None,
) -> Floats | None:
    """The same of terms that stand for one another: as frequent as all, in as many documents as the most
    frequent, or in doc_freq.
    """
    if searcher.other_similarity(path) is None:
        return None
    own = max(searcher.doc_freq(path, term) for term in terms) if doc_freq is None else doc_freq
    total = sum(_total_freq(searcher, path, term) for term in terms)
    return _summed(searcher, path, [(own, total)], freqs, norms, boost)


def _total_freq(searcher: Searcher, path: str, term: str) -> int:
    """How often a term is in a field, in deleted documents too; of a keyword in how many documents."""
    question = _TotalFrequency(path, term)
    return searcher.keep(("total freq", path, term), lambda: sum(searcher.ask(question)))


@dataclass(frozen=True, slots=True)
class _TotalFrequency:
    """How often a term is in a field of a shard."""

    path: str
    term: str

    def answered(self, searcher: Searcher) -> int:
        count = 0
        for leaf, dictionary in searcher.dictionaries(self.path):
            number, text = dictionary.find(self.term), leaf.segment.text(self.path)
            if number < 0:
                continue
            if text is not None:
                count += int(text.postings(number)[1].sum())
            elif (terms := leaf.segment.terms(self.path)) is not None:
                count += len(terms.postings(number))
        return count


def _summed(
    searcher: Searcher,
    path: str,
    known: Sequence[tuple[int, int]],
    freqs: Freqs,
    norms: Norms,
    boost: float,
) -> Floats:
    similarity, statistics = searcher.other_similarity(path), searcher.statistics(path)
    assert similarity is not None
    sums = np.zeros(len(freqs), np.float32)
    given, lengths = freqs.astype(np.float64), LENGTHS[norms].astype(np.float64)
    for doc_freq, total in known:
        term = TermStatistics(statistics.doc_count, statistics.total_terms, doc_freq, max(total, doc_freq))
        sums += similarity.boosted(given, lengths, term, boost).astype(np.float32)
    return sums


def otherwise_explained(
    searcher: Searcher, path: str, value: float, freq: float, norm: int, boost: float
) -> Explanation:
    """Of the score of one document."""
    similarity, statistics = searcher.other_similarity(path), searcher.statistics(path)
    assert similarity is not None
    return explained(
        value,
        f"score({type(similarity).name}, freq={freq}), computed from:",
        [
            explained(boost, "boost"),
            explained(freq, "freq, occurrences of term within document"),
            explained(float(LENGTHS[norm]), "dl, length of field"),
            explained(statistics.doc_count, "N, total number of documents with field"),
            explained(float(statistics.average_length), "avgdl, average length of field"),
        ],
    )
