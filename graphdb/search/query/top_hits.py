"""The best k documents of a query over all segments; queries of plain terms take a shorter way."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphdb.search.deadline import checkpoint
from graphdb.search.query.bool_query import BoolQuery
from graphdb.search.query.kernels import accumulate, find_sorted, top_k
from graphdb.search.query.max_score import NEVER, top_of_any
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.several import PerIndexQuery
from graphdb.search.query.term_queries import TermQuery
from graphdb.search.query.tree import Query
from graphdb.search.segment import Bools, Floats, Leaf, Longs

__all__ = ["TopHits", "collect", "plain_terms", "top_hits"]

NOTHING = (np.zeros(0, np.int64), np.zeros(0, np.float32), 0)


@dataclass(frozen=True, slots=True)
class TopHits:
    """docs are numbers in the whole searcher, best first, ties by number; total is how many match at all, or
    some number beyond what was to be counted.
    """

    docs: Longs
    scores: Floats
    total: int


def top_hits(query: Query, searcher: Searcher, k: int) -> list[tuple[int, float]]:
    """(document, score), best first."""
    found = collect(query, searcher, k)
    return list(zip(found.docs.tolist(), found.scores.tolist(), strict=True))


def collect(query: Query, searcher: Searcher, k: int, counted: int | None = None) -> TopHits:
    """The k best live documents, nested ones left out; all are counted, or up to `counted` at least."""
    listed = query.listed(searcher)
    if listed is not None:
        return TopHits(listed[0][:k], listed[1][:k], len(listed[0]))
    docs, scores = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    best, total, floor, weights = np.zeros(0, np.float32), 0, -math.inf, _Weights()
    for leaf in searcher.leaves:
        checkpoint()
        wanted = _Wanted(k, floor, NEVER if counted is None else counted - total, weights)
        found, its_scores, count = _best(query, leaf, searcher, wanted)
        docs.append(found + leaf.base)
        scores.append(its_scores)
        total += count
        best = np.sort(np.append(best, its_scores))[::-1][:k]
        floor = float(best[-1]) if 0 < len(best) == k else -math.inf
    merged_docs, merged_scores = np.concatenate(docs), np.concatenate(scores)
    order = np.lexsort((merged_docs, -merged_scores))[:k]
    return TopHits(merged_docs[order], merged_scores[order], total)


class _Weights:
    """Of the terms of one search, so that they are not worked out again in every leaf."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], list[tuple[np.float32, dict[int, int]]]] = {}

    def of(
        self, terms: Sequence[TermQuery], searcher: Searcher, boost: float
    ) -> list[tuple[np.float32, dict[int, int]]]:
        """Each term's weight, with its numbers in the leaves; the heaviest first.

        The order is the same for all documents, so that equal ones score the same to the last bit.
        """
        key = (id(searcher), boost, *map(id, terms))
        if key not in self._known:
            ordered = sorted(terms, key=lambda term: (-term.weight(searcher, boost), term.term))
            self._known[key] = [
                (term.weight(searcher, boost), searcher.text_numbers(term.path, term.term))
                for term in ordered
            ]
        return self._known[key]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Of a leaf: the best, those above the worst of the leaves before suffice; how many to count at least."""

    k: int
    floor: float
    counted: int
    weights: _Weights


def _best(query: Query, leaf: Leaf, searcher: Searcher, wanted: _Wanted) -> tuple[Longs, Floats, int]:
    if isinstance(query, PerIndexQuery):
        return _best(*query.on(leaf, searcher), wanted)
    k = min(wanted.k, leaf.segment.size)
    query, allowed, boost = _peeled(query, leaf, searcher)
    terms = plain_terms(query)
    if terms is None:
        found = query.matches(leaf, searcher, boost)
        if found.scores is None:
            docs = np.flatnonzero(found.mask & allowed)
            return docs[:k], np.full(min(k, len(docs)), found.constant, np.float32), len(docs)
        return top_k(found.dense(), found.mask & allowed, -1.0, k)
    if isinstance(query, BoolQuery):
        boost *= query.boost
        if query.must:
            return _all_of(terms, leaf, searcher, boost, allowed, k)
    return _any_of(terms, leaf, searcher, boost, allowed, wanted)


def _peeled(query: Query, leaf: Leaf, searcher: Searcher) -> tuple[Query, Bools, float]:
    """(query, allowed, boost): the one that scores, and where what only filters allows it to."""
    allowed, boost = leaf.roots, 1.0
    while isinstance(query, BoolQuery) and (query.must or not query.filter):
        for one in query.filter:
            allowed = allowed & one.mask(leaf, searcher)
        for one in query.must_not:
            allowed = allowed & ~one.mask(leaf, searcher)
        if len(query.must) != 1 or query.should:
            narrows = query.filter or query.must_not
            return (replace(query, filter=(), must_not=()) if narrows else query), allowed, boost
        boost *= query.boost
        query = query.must[0]
    return query, allowed, boost


def plain_terms(query: Query) -> tuple[TermQuery, ...] | None:
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
    terms: Sequence[TermQuery], leaf: Leaf, searcher: Searcher, boost: float, allowed: Bools, wanted: _Wanted
) -> tuple[Longs, Floats, int]:
    index = leaf.segment.text(terms[0].path)
    found = [
        (weight, numbers[leaf.base])
        for weight, numbers in wanted.weights.of(terms, searcher, boost)
        if leaf.base in numbers
    ]
    if not found or index is None:
        return NOTHING
    numbers = np.array([number for _, number in found], np.int64)
    docs, freqs, starts, stops = index.posting_ranges(numbers)
    return top_of_any(
        docs,
        freqs,
        starts,
        stops,
        np.array([weight for weight, _ in found], np.float32),
        index.norms,
        searcher.inverse_norms(terms[0].path),
        allowed,
        min(wanted.k, leaf.segment.size),
        wanted.floor,
        wanted.counted,
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
