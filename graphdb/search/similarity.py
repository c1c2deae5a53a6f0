"""`Similarity`: how the frequency of a term and the length of a text become a score by BM25; the similarities
that settings define.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.errors import illegal_argument
from graphdb.search.other_similarities import (
    AFTER_EFFECTS,
    BASIC_MODELS,
    DISTRIBUTIONS,
    INDEPENDENCE_MEASURES,
    LAMBDAS,
    NORMALIZATIONS,
    BooleanSimilarity,
    Dfi,
    Dfr,
    DirichletModel,
    InformationBased,
    JelinekMercerModel,
    Normalization,
    OtherSimilarity,
)
from graphdb.search.scripted_similarity import ScriptedSimilarity

__all__ = ["BUILT_IN", "STANDARD", "AnySimilarity", "Similarity", "similarities_of"]


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


AnySimilarity = Similarity | OtherSimilarity
STANDARD = Similarity()
BUILT_IN: Mapping[str, AnySimilarity] = {"BM25": STANDARD, "boolean": BooleanSimilarity()}


def similarities_of(settings: object) -> dict[str, AnySimilarity]:
    """Those that stand under `index.similarity`, by name; `default` is that of fields which name none.

    Errors: illegal_argument_exception.
    """
    if not isinstance(settings, Mapping):
        raise illegal_argument("[index.similarity] must be an object")
    found = {}
    for name, values in settings.items():
        if name in BUILT_IN:
            raise illegal_argument(f"Cannot redefine built-in Similarity [{name}]")
        if not isinstance(values, Mapping) or values.get("type") is None:
            raise illegal_argument(f"Similarity [{name}] must have an associated type")
        found[name] = _similarity(name, values)
    return found


def _similarity(name: str, values: Mapping[str, Any]) -> AnySimilarity:
    kind = str(values["type"])
    if kind == "scripted":
        return ScriptedSimilarity.of(name, values)
    if kind not in _READERS:
        raise illegal_argument(f"Unknown Similarity type [{kind[:100]}] for [{name}]")
    members, read = _READERS[kind]
    given = dict(_flat(values))
    unknown = given.keys() - members - {"type"}
    if unknown:
        raise illegal_argument(f"Unknown settings for similarity of type [{kind}]: [{min(unknown)[:100]}]")
    return read(name, given)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`normalization.h2.c` may be written as an object in an object."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _bm25(name: str, values: Mapping[str, Any]) -> AnySimilarity:
    if str(values.get("discount_overlaps", True)).lower() != "true":
        raise illegal_argument(f"[discount_overlaps] of Similarity [{name}] has to be [true]")
    k1, b = (_number(name, key, values.get(key, default)) for key, default in (("k1", 1.2), ("b", 0.75)))
    if not (math.isfinite(k1) and k1 >= 0):
        raise illegal_argument(f"illegal k1 value: {k1}, must be a non-negative finite value")
    if not 0 <= b <= 1:
        raise illegal_argument(f"illegal b value: {b}, must be between 0 and 1")
    return Similarity(k1, b)


def _dfr(name: str, values: Mapping[str, Any]) -> AnySimilarity:
    model = _choice(values, "basic_model", "BasicModel", BASIC_MODELS)
    effect = _choice(values, "after_effect", "AfterEffect", AFTER_EFFECTS)
    return Dfr(model, effect, _normalization(name, values))


def _dfi(name: str, values: Mapping[str, Any]) -> AnySimilarity:
    return Dfi(_choice(values, "independence_measure", "IndependenceMeasure", INDEPENDENCE_MEASURES))


def _information_based(name: str, values: Mapping[str, Any]) -> AnySimilarity:
    distribution = _choice(values, "distribution", "Distribution", DISTRIBUTIONS)
    parameter = _choice(values, "lambda", "Lambda", LAMBDAS)
    return InformationBased(distribution, parameter, _normalization(name, values))


def _dirichlet(name: str, values: Mapping[str, Any]) -> AnySimilarity:
    mu = _number(name, "mu", values.get("mu", 2000))
    if not (math.isfinite(mu) and mu > 0):
        raise illegal_argument(f"illegal mu value: {mu}, must be a positive finite value")
    return DirichletModel(mu)


def _jelinek_mercer(name: str, values: Mapping[str, Any]) -> AnySimilarity:
    part = _number(name, "lambda", values.get("lambda", 0.1))
    if not 0 < part <= 1:
        raise illegal_argument("lambda must be in the range (0 .. 1]")
    return JelinekMercerModel(part)


def _normalization(name: str, values: Mapping[str, Any]) -> Normalization:
    kind = _choice(values, "normalization", "Normalization", NORMALIZATIONS)
    _, parameter, default = NORMALIZATIONS[kind]
    key = f"normalization.{kind}.{parameter}"
    value = _number(name, key, values.get(key, default))
    if not (math.isfinite(value) and (value > 0 or (kind == "no"))):
        raise illegal_argument(f"illegal value of [{key}]: {value}, must be a positive finite value")
    return Normalization(kind, value)


def _choice(values: Mapping[str, Any], key: str, what: str, known: Mapping[str, Any]) -> str:
    value = values.get(key)
    if value not in known:
        raise illegal_argument(
            f"Unsupported {what} [{str(value)[:100]}], expected one of [{', '.join(known)}]"
        )
    return str(value)


_NORMALIZATION_KEYS = frozenset(
    {"normalization", "normalization.h1.c", "normalization.h2.c", "normalization.h3.c", "normalization.z.z"}
)
_READERS: dict[str, tuple[frozenset[str], Callable[[str, Mapping[str, Any]], AnySimilarity]]] = {
    "BM25": (frozenset({"k1", "b", "discount_overlaps"}), _bm25),
    "boolean": (frozenset(), lambda name, values: BooleanSimilarity()),
    "DFI": (frozenset({"independence_measure"}), _dfi),
    "DFR": (frozenset({"basic_model", "after_effect"}) | _NORMALIZATION_KEYS, _dfr),
    "IB": (frozenset({"distribution", "lambda"}) | _NORMALIZATION_KEYS, _information_based),
    "LMDirichlet": (frozenset({"mu"}), _dirichlet),
    "LMJelinekMercer": (frozenset({"lambda"}), _jelinek_mercer),
}
"""By type: the members beside it, and what reads them."""


def _number(name: str, key: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        text = str(value)[:100]
        raise illegal_argument(
            f"Failed to parse value [{text}] for setting [index.similarity.{name}.{key}]"
        ) from None
