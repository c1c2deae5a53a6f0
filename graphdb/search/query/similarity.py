"""BM25 as Lucene computes it and Elasticsearch 8 shows it: in 32-bit floats, with the factor k1 + 1.

Source: Lucene's BM25Similarity, SmallFloat; Elasticsearch's LegacyBM25Similarity for the factor.
"""

import math
from dataclasses import dataclass

import numpy as np

from graphdb.search.query.explanation import Explanation, explained
from graphdb.search.segment import Floats

__all__ = ["LENGTHS", "FieldStatistics", "idf", "idf_explained", "score", "score_explained", "term_weight"]

K1 = np.float32(1.2)
B = np.float32(0.75)
EXACT_NORM_MAX = 39  # norm bytes up to here stand for one length each


def _length(norm: int) -> int:
    """SmallFloat.byte4ToInt: up to 24 exact, then four significant bits."""
    if norm < 24:
        return norm
    bits = norm - 24
    if bits < 8:
        return 24 + bits
    return 24 + ((bits & 7 | 8) << (bits // 8 - 1))


LENGTHS: Floats = np.array([_length(norm) for norm in range(256)], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class FieldStatistics:
    """Of one field over all segments, with deleted documents: those that have it, and all their tokens."""

    doc_count: int
    total_terms: int

    @property
    def average_length(self) -> np.float32:
        return np.float32(self.total_terms / self.doc_count) if self.doc_count else np.float32(1)

    def inverse_norms(self) -> Floats:
        """(256,) by norm byte: 1 / (k1 * (1 - b + b * dl / avgdl))."""
        return (1 / (K1 * ((1 - B) + B * LENGTHS / self.average_length))).astype(np.float32)


def idf(doc_freq: int, doc_count: int) -> np.float32:
    """Weigh a term by its rarity: ln(1 + (N - n + 0.5) / (n + 0.5)), in nats."""
    return np.float32(math.log(1 + (doc_count - doc_freq + 0.5) / (doc_freq + 0.5)))


def term_weight(boost: float, idf_sum: np.float32) -> np.float32:
    """What a document scores at most: boost * (k1 + 1) * idf."""
    return np.float32(np.float32(np.float32(boost) * (1 + K1)) * idf_sum)


def score(weight: np.float32, freq: float, inverse_norm: np.float32) -> np.float32:
    """The score of one document."""
    return np.float32(weight - weight / (np.float32(1) + np.float32(freq) * inverse_norm))


def idf_explained(doc_freq: int, doc_count: int) -> Explanation:
    return explained(
        float(idf(doc_freq, doc_count)),
        "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
        [
            explained(doc_freq, "n, number of documents containing term"),
            explained(doc_count, "N, total number of documents with field"),
        ],
    )


def _tf_explained(freq: Explanation, norm: int, statistics: FieldStatistics) -> Explanation:
    length, average = float(LENGTHS[norm]), statistics.average_length
    inverse = statistics.inverse_norms()[norm]
    approximate = " (approximate)" if norm > EXACT_NORM_MAX else ""
    return explained(
        float(score(np.float32(1), freq["value"], inverse)),
        "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
        [
            freq,
            explained(1.2, "k1, term saturation parameter"),
            explained(0.75, "b, length normalization parameter"),
            explained(length, f"dl, length of field{approximate}"),
            explained(float(average), "avgdl, average length of field"),
        ],
    )


def score_explained(
    boost: float, idf_part: Explanation, freq: Explanation, norm: int, statistics: FieldStatistics
) -> Explanation:
    """Explain the score of a term or phrase that stands freq times in a field with a norm byte."""
    weight = term_weight(boost, np.float32(idf_part["value"]))
    value = score(weight, freq["value"], statistics.inverse_norms()[norm])
    details = [idf_part, _tf_explained(freq, norm, statistics)]
    factor = float(np.float32(boost) * (1 + K1))
    if factor != 1.0:
        details.insert(0, explained(factor, "boost"))
    text = f"score(freq={float(freq['value'])}), computed as boost * idf * tf from:"
    return explained(float(value), text, details)
