"""A term looked for in several fields as though they were one, as `cross_fields` does.

Every field counts the documents of the field where the term is most frequent, and one more for each field
where it is rarer, so that where a word happens to be rare does not decide.
Source: Elasticsearch's BlendedTermQuery.
"""

from dataclasses import dataclass

from graphdb.search.query.compound import DisMaxQuery
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import TermQuery
from graphdb.search.query.tree import Query, RewrittenQuery

__all__ = ["BlendedQuery"]


@dataclass(frozen=True, kw_only=True)
class BlendedQuery(RewrittenQuery):
    """The best field's score and tie_breaker of the others'. fields are (path, boost)."""

    fields: tuple[tuple[str, float], ...]
    term: str
    tie_breaker: float = 0.0

    def boost_max(self) -> float:
        return self.boost * max(boost for _, boost in self.fields)

    def rewritten(self, searcher: Searcher) -> Query:
        """The terms with their blended numbers of documents, in this searcher."""
        return searcher.keep(("blended", self), lambda: self._blend(searcher))

    def _blend(self, searcher: Searcher) -> Query:
        own = {path: searcher.doc_freq(path, self.term) for path, _ in self.fields}
        statistics = {path: searcher.statistics(path) for path, _ in self.fields}
        limit = min(searcher.doc_count, *(of_field.total_terms for of_field in statistics.values()))
        blended = dict(own)
        shared = previous = max(own.values())
        for path in sorted(own, key=lambda path: -own[path]):
            if not own[path]:
                break
            shared += own[path] < previous
            blended[path] = min(statistics[path].doc_count, limit, shared)
            previous = own[path]
        terms = tuple(
            TermQuery(path=path, term=self.term, boost=boost, doc_freq=blended[path])
            for path, boost in self.fields
        )
        return DisMaxQuery(queries=terms, tie_breaker=self.tie_breaker) if len(terms) > 1 else terms[0]

    def text(self) -> str:
        terms = [f"{path}:{self.term}" + (f"^{boost}" if boost != 1 else "") for path, boost in self.fields]
        return f"blended(terms:[{', '.join(terms)}])"
