"""`rewrite`: how a query that stands for many terms scores what they find.

Source: Elasticsearch's reference, "rewrite parameter"; Lucene's MultiTermQuery.
"""

import re
from dataclasses import dataclass

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.query.clause import QueryContext
from graphdb.search.query.compound import BoolQuery, ConstantScoreQuery
from graphdb.search.query.dictionary_queries import DictionaryQuery, FuzzyQuery
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import KeywordQuery, TermQuery, TermsQuery
from graphdb.search.query.tree import MatchNoneQuery, Query, RewrittenQuery

__all__ = ["ExpandedQuery", "Rewrite", "parse_rewrite", "rewritten_by"]

_CLAUSES_MAX = 4096
_CONSTANT = ("constant_score", "constant_score_blended", "constant_score_boolean")
_TOP = re.compile(r"(top_terms|top_terms_boost|top_terms_blended_freqs)_(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """kind: constant_score, scoring_boolean, top_terms, top_terms_boost or top_terms_blended_freqs.

    count: how many terms at most.
    """

    kind: str
    count: int = _CLAUSES_MAX


def parse_rewrite(name: str | None, context: QueryContext) -> Rewrite | None:
    """None where the query's own way is meant. Errors: query_shard_exception for an unknown name."""
    if name is None:
        return None
    if name in _CONSTANT:
        return Rewrite("constant_score")
    if name == "scoring_boolean":
        return Rewrite(name)
    found = _TOP.fullmatch(name)
    if found is None:
        reason = f"Failed to parse rewrite_method [{name[:100]}]"
        raise context.failed(reason, illegal_argument(reason))
    return Rewrite(found[1], min(int(found[2]), context.max_clause_count))


def rewritten_by(query: Query, rewrite: Rewrite | None) -> Query:
    """A query scored so; one that is not of terms, and one that scores so by itself, stays as it is."""
    is_constant = rewrite is None or rewrite.kind == "constant_score"
    if isinstance(query, FuzzyQuery) and rewrite is not None:
        return ExpandedQuery(terms=query, rewrite=rewrite)
    if isinstance(query, DictionaryQuery) and not is_constant:
        assert rewrite is not None
        return ExpandedQuery(terms=query, rewrite=rewrite)
    return query


@dataclass(frozen=True, kw_only=True)
class ExpandedQuery(RewrittenQuery):
    """The terms that a query stands for, each scored by itself."""

    terms: DictionaryQuery | FuzzyQuery
    rewrite: Rewrite

    @property
    def path(self) -> str:
        return self.terms.path

    def rewritten(self, searcher: Searcher) -> Query:
        return searcher.keep(("rewritten", self), lambda: self._expanded(searcher))

    def _expanded(self, searcher: Searcher) -> Query:
        likeness: dict[str, float] = {}
        is_text = False
        for found, is_of_text in searcher.ask(_Chosen(self.terms)):
            likeness.update(found)
            is_text |= is_of_text
        kind, path = self.rewrite.kind, self.terms.path
        if not likeness or self.rewrite.count == 0:
            return MatchNoneQuery(reason=f"no term like {self.terms}")
        if kind == "constant_score":
            return TermsQuery(path=path, terms=tuple(sorted(likeness)))
        if kind == "scoring_boolean" and len(likeness) > _CLAUSES_MAX:
            raise SearchError("too_many_nested_clauses", f"maxClauseCount is set to {_CLAUSES_MAX}", 400)
        best = sorted(likeness, key=lambda term: (-likeness[term], term))[: self.rewrite.count]
        freq = None
        if kind == "top_terms_blended_freqs":
            freq = max(searcher.doc_freq(path, term) for term in best)
        made = TermQuery if is_text else KeywordQuery
        terms: list[Query] = [
            made(path=path, term=term, doc_freq=freq, boost=likeness[term]) for term in best
        ]
        if kind == "top_terms_boost":
            terms = [
                ConstantScoreQuery(query=made(path=path, term=term), boost=likeness[term]) for term in best
            ]
        return terms[0] if len(terms) == 1 else BoolQuery(should=tuple(terms))

    def text(self) -> str:
        return str(self.terms)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The terms of a shard that a query stands for, with their likeness, and whether the field is a text."""

    query: DictionaryQuery | FuzzyQuery

    def answered(self, searcher: Searcher) -> tuple[dict[str, float], bool]:
        query = self.query
        if isinstance(query, FuzzyQuery):
            return query.near(searcher)
        found: dict[str, float] = {}
        is_text = False
        for leaf, dictionary in searcher.dictionaries(query.path):
            chosen = query.chosen(leaf, dictionary, searcher).tolist()
            found.update((dictionary.term(number), 1.0) for number in chosen)
            is_text |= leaf.segment.text(query.path) is not None
        return found, is_text
