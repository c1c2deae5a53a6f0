"""Hybrid search: several lists of hits made one. See DESIGN.md."""

from graphdb.search.hybrid.fused import FusedQuery
from graphdb.search.hybrid.plan import planned
from graphdb.search.hybrid.scorers import DEFAULT_SCORER, Bayesian, Linear, ReciprocalRank, Scorer, scorer_of

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
