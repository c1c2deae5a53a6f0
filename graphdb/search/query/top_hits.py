"""The best k documents of a query over all segments; queries of plain terms take a shorter way."""

from dataclasses import dataclass, replace

import numpy as np

from graphdb.search.query.bool_query import BoolQuery
from graphdb.search.query.kernels import accumulate, find_sorted, top_k, top_of_any
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import TermQuery
from graphdb.search.query.tree import Query
from graphdb.search.segment import Bools, Floats, Leaf, Longs

__all__ = ["TopHits", "collect", "top_hits"]

NOTHING = (np.zeros(0, np.int64), np.zeros(0, np.float32), 0)


@dataclass(frozen=True, slots=True)
class TopHits:
    """docs are numbers in the whole searcher, best first, ties by number; total is how many match at all."""

    docs: Longs
    scores: Floats
    total: int


def top_hits(query: Query, searcher: Searcher, k: int) -> list[tuple[int, float]]:
    """(document, score), best first."""
    found = collect(query, searcher, k)
    return list(zip(found.docs.tolist(), found.scores.tolist(), strict=True))


def collect(query: Query, searcher: Searcher, k: int) -> TopHits:
    """The k best live documents, nested ones left out."""
    docs, scores = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    total = 0
    for leaf in searcher.leaves:
        found, its_scores, count = _best(query, leaf, searcher, k)
        docs.append(found + leaf.base)
        scores.append(its_scores)
        total += count
    merged_docs, merged_scores = np.concatenate(docs), np.concatenate(scores)
    order = np.lexsort((merged_docs, -merged_scores))[:k]
    return TopHits(merged_docs[order], merged_scores[order], total)


def _best(query: Query, leaf: Leaf, searcher: Searcher, k: int) -> tuple[Longs, Floats, int]:
    k = min(k, leaf.segment.size)
    query, allowed, boost = _peeled(query, leaf, searcher)
    terms = _plain_terms(query)
    if terms is None:
        found = query.matches(leaf, searcher, boost)
        return top_k(found.dense(), found.mask & allowed, -1.0, k)
    if isinstance(query, BoolQuery):
        boost *= query.boost
        if query.must:
            return _all_of(terms, leaf, searcher, boost, allowed, k)
    return _any_of(terms, leaf, searcher, boost, allowed, k)


def _peeled(query: Query, leaf: Leaf, searcher: Searcher) -> tuple[Query, Bools, float]:
    """(query, allowed, boost): the one that scores, and where what only filters allows it to."""
    allowed, boost = leaf.roots, 1.0
    while isinstance(query, BoolQuery) and (query.must or not query.filter):
        for one in query.filter:
            allowed = allowed & one.mask(leaf, searcher)
        for one in query.must_not:
            allowed = allowed & ~one.mask(leaf, searcher)
        if len(query.must) != 1 or query.should:
            return replace(query, filter=(), must_not=()), allowed, boost
        boost *= query.boost
        query = query.must[0]
    return query, allowed, boost


def _plain_terms(query: Query) -> tuple[TermQuery, ...] | None:
    """The terms of one text field any or all of which have to match; None for any other query."""
    queries: tuple[Query, ...] = (query,)
    if isinstance(query, BoolQuery):
        if (query.must and query.should) or query.minimum > 1 or query.filter or query.must_not:
            return None
        queries = query.must or query.should
    terms = tuple(one for one in queries if isinstance(one, TermQuery))
    positive = query.boost > 0 and all(term.boost > 0 for term in terms)
    one_field = len({term.path for term in terms}) == 1
    return terms if one_field and len(terms) == len(queries) and positive else None


def _any_of(
    terms: tuple[TermQuery, ...], leaf: Leaf, searcher: Searcher, boost: float, allowed: Bools, k: int
) -> tuple[Longs, Floats, int]:
    found = [(term, postings) for term in terms if (postings := term.postings(leaf)) is not None]
    index = leaf.segment.text(terms[0].path)
    if not found or index is None:
        return NOTHING
    starts = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum([len(docs) for _, (docs, _) in found], out=starts[1:])
    return top_of_any(
        np.concatenate([docs for _, (docs, _) in found]),
        np.concatenate([freqs for _, (_, freqs) in found]),
        starts,
        np.array([term.weight(searcher, boost) for term, _ in found], dtype=np.float32),
        index.norms,
        searcher.inverse_norms(terms[0].path),
        allowed,
        k,
    )


def _all_of(
    terms: tuple[TermQuery, ...], leaf: Leaf, searcher: Searcher, boost: float, allowed: Bools, k: int
) -> tuple[Longs, Floats, int]:
    """Conjunctions start from the rarest term: its documents alone are looked up in the others' postings."""
    postings = [found for found in (term.postings(leaf) for term in terms) if found is not None]
    if len(postings) < len(terms):
        return NOTHING
    docs = min((found[0] for found in postings), key=len)
    for its_docs, _ in sorted(postings, key=lambda found: len(found[0])):
        if its_docs is not docs:
            docs = docs[find_sorted(docs, its_docs) >= 0]
    scores = np.zeros(len(docs), dtype=np.float64)
    places = np.arange(len(docs), dtype=np.int32)
    for term, (its_docs, freqs) in zip(terms, postings, strict=True):
        index = leaf.segment.text(term.path)
        assert index is not None
        inverse, weight = searcher.inverse_norms(term.path), term.weight(searcher, boost)
        own = freqs[find_sorted(docs, its_docs)]
        counts = np.zeros(len(docs), dtype=np.int32)
        accumulate(scores, counts, places, own, index.norms[docs], inverse, weight)
    best, its_scores, count = top_k(scores, allowed[docs], 0.0, min(k, len(docs)))
    return docs[best].astype(np.int64), its_scores, count
