"""The similarities beside BM25: `boolean`, DFR, DFI, IB and language models, as Lucene computes them.

They need more of a term than BM25 does, so they score by arrays and not by the kernels of BM25.

Sources: Amati and van Rijsbergen, "Probabilistic models of information retrieval based on measuring the
divergence from randomness" (2002); Kocabas, Dincer and Karaoglan, "A nonparametric term weighting method for
information retrieval based on measuring the divergence from independence" (2014); Clinchant and Gaussier,
"Information-based models for ad hoc IR" (2010); Zhai and Lafferty, "A study of smoothing methods for language
models applied to ad hoc information retrieval" (2001); Lucene's package `search.similarities`, for which of
their forms it has.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AFTER_EFFECTS",
    "BASIC_MODELS",
    "DISTRIBUTIONS",
    "INDEPENDENCE_MEASURES",
    "LAMBDAS",
    "NORMALIZATIONS",
    "BooleanSimilarity",
    "Dfi",
    "Dfr",
    "DirichletModel",
    "Doubles",
    "InformationBased",
    "JelinekMercerModel",
    "Normalization",
    "OtherSimilarity",
    "TermStatistics",
]

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Of a term in a field of an index, with deleted documents.

    doc_count: documents that have the field; total_terms: tokens in it; doc_freq: documents that have the
    term; total_freq: how often it stands there.
    """

    doc_count: int
    total_terms: int
    doc_freq: int
    total_freq: int

    @property
    def average_length(self) -> float:
        return self.total_terms / self.doc_count

    @property
    def share(self) -> float:
        """Of all tokens, so that no term has none."""
        return (self.total_freq + 1) / (self.total_terms + 1)


class OtherSimilarity(ABC):
    """Immutable."""

    name: str
    sums = True
    """Whether the terms of a phrase score each for itself, and are added."""

    @abstractmethod
    def scores(self, freqs: Doubles, lengths: Doubles, term: TermStatistics) -> Doubles:
        """Without boost, of documents that have the term: how often, and how long their field is."""

    def boosted(self, freqs: Doubles, lengths: Doubles, term: TermStatistics, boost: float) -> Doubles:
        """The same with the boost of the query."""
        return boost * self.scores(freqs, lengths, term)


@dataclass(frozen=True, slots=True)
class BooleanSimilarity(OtherSimilarity):
    """A match scores the boost."""

    name = "BooleanSimilarity"
    sums = False

    def scores(self, freqs: Doubles, lengths: Doubles, term: TermStatistics) -> Doubles:
        return np.ones(len(freqs))


# How a frequency counts in a document of a certain length.

Normalize = Callable[[float, Doubles, Doubles, TermStatistics], Doubles]
NORMALIZATIONS: dict[str, tuple[Normalize, str, float]] = {
    "no": (lambda given, freqs, lengths, term: freqs, "", 0.0),
    "h1": (lambda c, freqs, lengths, term: freqs * c * (term.average_length / lengths), "c", 1.0),
    "h2": (lambda c, freqs, lengths, term: freqs * np.log2(1 + c * term.average_length / lengths), "c", 1.0),
    "h3": (lambda c, freqs, lengths, term: (freqs + c * term.share) / (lengths + c) * c, "c", 800.0),
    "z": (lambda z, freqs, lengths, term: freqs * (term.average_length / lengths) ** z, "z", 0.3),
}
"""By name: what it does with its parameter, the parameter's name, and its default."""


@dataclass(frozen=True, slots=True)
class Normalization:
    """One of NORMALIZATIONS, with its parameter."""

    name: str
    value: float

    def __call__(self, freqs: Doubles, lengths: Doubles, term: TermStatistics) -> Doubles:
        return NORMALIZATIONS[self.name][0](self.value, freqs, lengths, term)


# Divergence from randomness.


def _by_rarity(expected: Callable[[TermStatistics], float]) -> Callable[[TermStatistics, Doubles], Doubles]:
    """The models that weigh a term by in how few documents it is, or might be."""

    def information(term: TermStatistics, counts: Doubles) -> Doubles:
        weight = math.log2((term.doc_count + 1) / (expected(term) + 0.5))
        found: Doubles = weight * (1 - 1 / (1 + counts))
        return found

    return information


def _geometric(term: TermStatistics, counts: Doubles) -> Doubles:
    """Bose-Einstein statistics, approached by a geometric distribution."""
    mean = (term.total_freq + 1) / (term.doc_count + term.total_freq + 1)
    base, step = math.log2(mean + 1), math.log2((1 + mean) / mean)
    found: Doubles = step - (step - base) / (1 + counts)
    return found


def _if(term: TermStatistics, counts: Doubles) -> Doubles:
    weight = math.log2(1 + (term.doc_count + 1) / (term.total_freq + 0.5))
    found: Doubles = weight * (1 - 1 / (1 + counts))
    return found


BASIC_MODELS: dict[str, Callable[[TermStatistics, Doubles], Doubles]] = {
    "g": _geometric,
    "if": _if,
    "in": _by_rarity(lambda term: term.doc_freq),
    "ine": _by_rarity(
        lambda term: term.doc_count * (1 - ((term.doc_count - 1) / term.doc_count) ** term.total_freq)
    ),
}
AFTER_EFFECTS: dict[str, Callable[[TermStatistics], float]] = {
    "b": lambda term: (term.total_freq + 2) / (term.doc_freq + 1),
    "l": lambda term: 1.0,
}


@dataclass(frozen=True, slots=True)
class Dfr(OtherSimilarity):
    """How much a frequency tells, given a model of terms that stand anywhere at random."""

    model: str
    after_effect: str
    normalization: Normalization
    name = "DFRSimilarity"

    def scores(self, freqs: Doubles, lengths: Doubles, term: TermStatistics) -> Doubles:
        counts = self.normalization(freqs, lengths, term)
        return BASIC_MODELS[self.model](term, counts) * AFTER_EFFECTS[self.after_effect](term)


# Divergence from independence.

INDEPENDENCE_MEASURES: dict[str, Callable[[Doubles, Doubles], Doubles]] = {
    "standardized": lambda freqs, expected: (freqs - expected) / np.sqrt(expected),
    "saturated": lambda freqs, expected: (freqs - expected) / expected,
    "chisquared": lambda freqs, expected: (freqs - expected) ** 2 / expected,
}


@dataclass(frozen=True, slots=True)
class Dfi(OtherSimilarity):
    """How far a frequency is above what the length of the document lets expect."""

    measure: str
    name = "DFISimilarity"

    def scores(self, freqs: Doubles, lengths: Doubles, term: TermStatistics) -> Doubles:
        expected = term.share * lengths
        above = np.maximum(freqs, expected)
        found: Doubles = np.log2(INDEPENDENCE_MEASURES[self.measure](above, expected) + 1)
        return found


# Information.


def _log_logistic(counts: Doubles, parameter: float) -> Doubles:
    return -np.log(parameter / (counts + parameter))


def _smoothed_power_law(counts: Doubles, parameter: float) -> Doubles:
    exponents = np.minimum(1 - 1 / (counts + 1), math.nextafter(1, 0))
    powers = parameter**exponents
    powers[powers == parameter] = math.nextafter(parameter, 1)  # else the logarithm is that of 0
    found: Doubles = -np.log((powers - parameter) / (1 - parameter))
    return found


DISTRIBUTIONS: dict[str, Callable[[Doubles, float], Doubles]] = {
    "ll": _log_logistic,
    "spl": _smoothed_power_law,
}
LAMBDAS: dict[str, Callable[[TermStatistics], float]] = {
    "df": lambda term: (term.doc_freq + 1) / (term.doc_count + 1),
    "ttf": lambda term: (term.total_freq + 1) / (term.doc_count + 1),
}


@dataclass(frozen=True, slots=True)
class InformationBased(OtherSimilarity):
    """How unlikely a frequency is, given how often the term is in a document on average."""

    distribution: str
    parameter: str
    normalization: Normalization
    name = "IBSimilarity"

    def scores(self, freqs: Doubles, lengths: Doubles, term: TermStatistics) -> Doubles:
        counts = self.normalization(freqs, lengths, term)
        parameter = np.float32(LAMBDAS[self.parameter](term))  # as Lucene: next to 1 the digits decide
        below = np.nextafter(np.float32(1), np.float32(0))
        return DISTRIBUTIONS[self.distribution](counts, float(below if parameter == 1 else parameter))


# Language models.


@dataclass(frozen=True, slots=True)
class DirichletModel(OtherSimilarity):
    """The model of a document is smoothed as though mu tokens of the index were part of it."""

    mu: float
    name = "LMDirichletSimilarity"

    def scores(self, freqs: Doubles, lengths: Doubles, term: TermStatistics) -> Doubles:
        found = np.log(1 + freqs / (self.mu * term.share)) + np.log(self.mu / (lengths + self.mu))
        least: Doubles = np.maximum(found, 0.0)
        return least


@dataclass(frozen=True, slots=True)
class JelinekMercerModel(OtherSimilarity):
    """The model of a document and that of the index, mixed: lambda is the part of the index."""

    part: float
    name = "LMJelinekMercerSimilarity"

    def scores(self, freqs: Doubles, lengths: Doubles, term: TermStatistics) -> Doubles:
        found: Doubles = np.log(1 + ((1 - self.part) * freqs / lengths) / (self.part * term.share))
        return found
