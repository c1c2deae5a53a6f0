"""Analysis: how texts become terms."""

from graphdb.search.analysis.analyzer import Analyzer, Normalizer
from graphdb.search.analysis.analyzers import PREFIX_LENGTH_MAX, Analyzers
from graphdb.search.analysis.requests import analyze
from graphdb.search.analysis.token import Token

__all__ = ["PREFIX_LENGTH_MAX", "Analyzer", "Analyzers", "Normalizer", "Token", "analyze"]
