"""Hybrid search: several lists of hits made one. See DESIGN.md."""

from graphdb.search.hybrid.fusion import (
    DEFAULT_SCORER,
    Bayesian,
    FusedQuery,
    Linear,
    ReciprocalRank,
    Scorer,
    scorer_of,
)
from graphdb.search.hybrid.plan import planned

__all__ = [
    "DEFAULT_SCORER",
    "Bayesian",
    "FusedQuery",
    "Linear",
    "ReciprocalRank",
    "Scorer",
    "planned",
    "scorer_of",
]
