"""`Similarity`: how the frequency of a term and the length of a text become a score.

Only BM25 is offered: of Elasticsearch's other similarities, what they need of a term is not kept.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.errors import illegal_argument

__all__ = ["STANDARD", "Similarity", "similarities_of"]

_MEMBERS = frozenset({"type", "k1", "b", "discount_overlaps"})
_BUILT_IN = frozenset({"BM25", "boolean"})


@dataclass(frozen=True, slots=True)
class Similarity:
    """BM25 as Lucene computes it and Elasticsearch 8 shows it: in 32-bit floats, with the factor k1 + 1.

    k1 is not negative and says how much another occurrence adds; b in [0, 1] says how much the length counts.
    Source: Lucene's BM25Similarity, SmallFloat; Elasticsearch's LegacyBM25Similarity for the factor.
    """

    k1: float = 1.2
    b: float = 0.75

    def inverse_norms(self, lengths: NDArray[np.float32], average: np.float32) -> NDArray[np.float32]:
        """1 / (k1 * (1 - b + b * dl / avgdl)) for each length; infinite for a k1 of 0."""
        k1, b = np.float32(self.k1), np.float32(self.b)
        with np.errstate(divide="ignore"):
            found = 1 / (k1 * ((1 - b) + b * lengths / average))
        return np.asarray(found, dtype=np.float32)

    def weight(self, boost: float, idf_sum: np.float32) -> np.float32:
        """What a document scores at most: boost * (k1 + 1) * idf."""
        return np.float32(self.factor(boost) * idf_sum)

    def factor(self, boost: float) -> np.float32:
        """boost * (k1 + 1)"""
        return np.float32(np.float32(boost) * (1 + np.float32(self.k1)))


STANDARD = Similarity()


def similarities_of(settings: object) -> dict[str, Similarity]:
    """Those that stand under `index.similarity`, by name; `default` is that of fields which name none.

    Errors: illegal_argument_exception.
    """
    if not isinstance(settings, Mapping):
        raise illegal_argument("[index.similarity] must be an object")
    found = {}
    for name, values in settings.items():
        if name in _BUILT_IN:
            raise illegal_argument(f"Cannot redefine built-in Similarity [{name}]")
        if not isinstance(values, Mapping) or values.get("type") is None:
            raise illegal_argument(f"Similarity [{name}] must have an associated type")
        found[name] = _similarity(name, values)
    return found


def _similarity(name: str, values: Mapping[str, Any]) -> Similarity:
    if values["type"] != "BM25":
        raise illegal_argument(f"Unknown Similarity type [{str(values['type'])[:100]}] for [{name}]")
    if unknown := values.keys() - _MEMBERS:
        raise illegal_argument(f"Unknown settings for similarity of type [BM25]: [{min(unknown)}]")
    if str(values.get("discount_overlaps", True)).lower() != "true":
        raise illegal_argument(f"[discount_overlaps] of Similarity [{name}] has to be [true]")
    k1, b = (_number(name, key, values.get(key, default)) for key, default in (("k1", 1.2), ("b", 0.75)))
    if not (math.isfinite(k1) and k1 >= 0):
        raise illegal_argument(f"illegal k1 value: {k1}, must be a non-negative finite value")
    if not 0 <= b <= 1:
        raise illegal_argument(f"illegal b value: {b}, must be between 0 and 1")
    return Similarity(k1, b)


def _number(name: str, key: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        text = str(value)[:100]
        raise illegal_argument(
            f"Failed to parse value [{text}] for setting [index.similarity.{name}.{key}]"
        ) from None
