"""The best hits of a query, found by upper bounds of scores."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from graphdb.search.deadline import checkpoint
from graphdb.search.leaf_reader import Bools, Doubles, Floats, Ints, Leaf, Longs
from graphdb.search.query.compound import BoolQuery
from graphdb.search.query.kernels import accumulate, find_sorted, top_k
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.several import PerIndexQuery
from graphdb.search.query.term_queries import TermQuery
from graphdb.search.query.tree import Query

__all__ = ["NEVER", "TopHits", "collect", "every_hit", "plain_terms", "top_hits", "top_of_any", "top_of_few"]

Ceilings: TypeAlias = NDArray[np.uint32]
"""What no posting of a block is above: see `_ceiling`."""

# The loops behind a disjunction of terms: its best documents, without walking all postings.
#
# Source: Turtle and Flood's MaxScore, with the postings of a few terms merged, and those of many added up in
# windows of documents as in Lucene's MaxScoreBulkScorer.

NEVER = 1 << 62  # more than anybody counts

_FEW = 12  # terms whose postings are merged as fast as they are added up in windows
_WINDOW = 4096  # documents; their sums stay in the processor's nearest cache
_SLACK = 1 + 1e-12  # for what sums of doubles lose in rounding
_BLOCK = 128  # postings with one ceiling
_LOOKED_AT = 8  # times k postings, for a first floor
_FREQ_MAX = (1 << 24) - 1  # that a ceiling has; it stands for any from there on


@numba.njit(cache=True, nogil=True)
def top_of_few(
    docs: Ints,
    freqs: NDArray[Any],
    begins: Longs,
    ends: Longs,
    weights: Floats,
    norms: NDArray[np.uint8],
    inverse: Floats,
    allowed: Bools,
    ceilings: Ceilings,
    k: int,
    floor: float,
    counted: int,
) -> tuple[Longs, Floats, int]:
    """The k best documents with a score above floor, ties by number; and how many have one at all.

    Term t has docs[begins[t]:ends[t]]; weights descend; inverse does not rise with the norm. ceilings has a
    place for each block of the postings, 0 until it is known. Once more than `counted` are found, only those
    are still counted that may be among the best: the last terms, which together cannot lift a document above
    the worst of these, are then looked up for the documents of the others alone.
    """
    bounds = _bounds(docs, freqs, begins, ends, weights, norms, inverse, ceilings)
    if k > 0 and counted < NEVER:
        floor = max(floor, _floor_of_one(docs, freqs, begins, ends, weights, norms, inverse, allowed, k))
    kept, best = np.full(k, -1, np.int64), np.full(k, floor, np.float32)
    at, heads, beyond = begins.copy(), np.empty(len(weights), np.int64), len(allowed)
    for term in range(len(weights)):
        heads[term] = docs[at[term]] if at[term] < ends[term] else beyond
    count, first = 0, len(weights)  # terms from `first` on are looked up
    while True:
        chooses = k > 0 and count > counted
        if chooses:
            while first > 0 and np.float32(bounds[first - 1]) <= best[k - 1]:
                first -= 1
        doc = beyond
        for term in range(first):
            doc = min(doc, heads[term])
        if doc == beyond:
            break
        total = np.float64(0)
        for term in range(first):
            if heads[term] == doc:
                i = at[term]
                total += _score(weights[term], freqs[i], inverse[norms[doc]])
                at[term] = i + 1
                heads[term] = docs[i + 1] if i + 1 < ends[term] else beyond
        if chooses and np.float32(total + bounds[first]) <= best[k - 1]:
            continue
        if total == 0 or not allowed[doc]:
            continue
        count += 1
        if k == 0:
            continue
        for term in range(first, len(weights)):
            if np.float32(total + bounds[term]) <= best[k - 1]:
                break
            i = at[term] = _sought(docs, at[term], ends[term], doc)
            if i < ends[term] and docs[i] == doc:
                total += _score(weights[term], freqs[i], inverse[norms[doc]])
        _keep(kept, best, doc, np.float32(total))
    some = int(np.sum(kept >= 0))
    return kept[:some], best[:some], count


@numba.njit(cache=True, nogil=True)
def top_of_any(
    docs: Ints,
    freqs: NDArray[Any],
    begins: Longs,
    ends: Longs,
    weights: Floats,
    norms: NDArray[np.uint8],
    inverse: Floats,
    allowed: Bools,
    ceilings: Ceilings,
    k: int,
    floor: float,
    counted: int,
) -> tuple[Longs, Floats, int]:
    """The same for many terms.

    The look-ups of the last terms stand in both: as a function, also one that the compiler inlines, they cost
    a quarter to a half of the whole more (2 and 3 terms, measured).
    """
    bounds = _bounds(docs, freqs, begins, ends, weights, norms, inverse, ceilings)
    at = begins.copy()
    sums = np.zeros(_WINDOW)
    met = np.zeros(_WINDOW, np.uint8)  # which documents of a window have a sum, eight at a time in `eights`
    eights = met.view(np.uint64)
    kept, best = np.full(k, -1, np.int64), np.full(k, floor, np.float32)
    count, first = 0, len(weights)
    for base in range(0, len(allowed), _WINDOW):
        if k > 0 and count > counted:
            while first > 0 and np.float32(bounds[first - 1]) <= best[k - 1]:
                first -= 1
            if first == 0:
                break
        end = min(base + _WINDOW, len(allowed))
        if not _sum_up(docs, freqs, at, ends, weights[:first], norms, inverse, base, end, sums, met):
            continue
        for eight in range(len(eights)):
            if eights[eight] == 0:
                continue
            eights[eight] = 0
            for doc in range(base + 8 * eight, min(base + 8 * eight + 8, end)):
                total = sums[doc - base]
                if total == 0:
                    continue
                sums[doc - base] = 0
                if not allowed[doc]:
                    continue
                count += 1
                if k == 0:
                    continue
                for term in range(first, len(weights)):
                    if np.float32(total + bounds[term]) <= best[k - 1]:
                        break
                    i = at[term] = _sought(docs, at[term], ends[term], doc)
                    if i < ends[term] and docs[i] == doc:
                        total += _score(weights[term], freqs[i], inverse[norms[doc]])
                _keep(kept, best, doc, np.float32(total))
    some = int(np.sum(kept >= 0))
    return kept[:some], best[:some], count


@numba.njit(cache=True, nogil=True)
def _bounds(
    docs: Ints,
    freqs: NDArray[Any],
    begins: Longs,
    ends: Longs,
    weights: Floats,
    norms: NDArray[np.uint8],
    inverse: Floats,
    ceilings: Ceilings,
) -> Doubles:
    """What the terms from each on may add together. A score rises with the frequency and falls with the norm,
    and so does its rounding: none is above that of the highest frequency with the least norm of its block.
    """
    bounds = np.zeros(len(weights) + 1)
    for term in range(len(weights) - 1, -1, -1):
        top = np.float32(0)
        for block in range(begins[term] // _BLOCK, (ends[term] + _BLOCK - 1) // _BLOCK):
            if ceilings[block] == 0:
                ceilings[block] = _ceiling(docs, freqs, norms, block)
            freq, norm = ceilings[block] >> 8, ceilings[block] & 255
            top = max(top, weights[term] if freq == _FREQ_MAX else _score(weights[term], freq, inverse[norm]))
        bounds[term] = (bounds[term + 1] + top) * _SLACK
    return bounds


@numba.njit(cache=True, nogil=True)
def _ceiling(docs: Ints, freqs: NDArray[Any], norms: NDArray[np.uint8], block: int) -> np.uint32:
    """The highest frequency of a block of postings, and the least norm of its documents in the last byte."""
    freq, norm = 1, 255
    for i in range(block * _BLOCK, min((block + 1) * _BLOCK, len(docs))):
        freq, norm = max(freq, freqs[i]), min(norm, norms[docs[i]])
    return np.uint32(min(freq, _FREQ_MAX) << 8 | norm)


@numba.njit(cache=True, nogil=True)
def _floor_of_one(
    docs: Ints,
    freqs: NDArray[Any],
    begins: Longs,
    ends: Longs,
    weights: Floats,
    norms: NDArray[np.uint8],
    inverse: Floats,
    allowed: Bools,
    k: int,
) -> float:
    """Right below a score that k documents have by one term alone, the heaviest that soon has so many."""
    for term in range(len(weights)):
        found, least = 0, np.float32(np.inf)
        for i in range(begins[term], min(ends[term], begins[term] + _LOOKED_AT * k)):
            if allowed[docs[i]]:
                least = min(least, _score(weights[term], freqs[i], inverse[norms[docs[i]]]))
                found += 1
                if found == k:
                    return float(np.nextafter(least, np.float32(-np.inf)))
    return -np.inf


@numba.njit(cache=True, nogil=True)
def _sum_up(
    docs: Ints,
    freqs: NDArray[Any],
    at: Longs,
    ends: Longs,
    weights: Floats,
    norms: NDArray[np.uint8],
    inverse: Floats,
    base: int,
    end: int,
    sums: Doubles,
    met: NDArray[np.uint8],
) -> bool:
    """Add the scores of these terms in [base, end), mark their documents in met, and move the places in their
    postings past it. Returns whether there were any.
    """
    found = False
    for term in range(len(weights)):
        i, stop, weight = at[term], ends[term], weights[term]
        while i < stop and docs[i] < end:
            if docs[i] >= base:
                sums[docs[i] - base] += _score(weight, freqs[i], inverse[norms[docs[i]]])
                met[docs[i] - base] = 1
            i += 1
        found |= i > at[term]
        at[term] = i
    return found


@numba.njit(cache=True, nogil=True)
def _score(weight: np.float32, freq: int, inverse: np.float32) -> np.float32:
    return np.float32(weight - weight / (np.float32(1) + np.float32(freq) * inverse))


@numba.njit(cache=True, nogil=True)
def _sought(docs: Ints, place: int, stop: int, doc: int) -> int:
    """The first place from there on whose document is not before doc."""
    step = 1
    while place + step < stop and docs[place + step] < doc:
        place += step
        step *= 2
    high = min(place + step, stop)
    while place < high:
        middle = (place + high) // 2
        if docs[middle] < doc:
            place = middle + 1
        else:
            high = middle
    return place


@numba.njit(cache=True, nogil=True)
def _keep(kept: Longs, best: Floats, doc: int, score: np.float32) -> None:
    """Put it in its place among the best, if it has one."""
    place = len(best)
    if score <= best[place - 1]:
        return
    place -= 1
    while place > 0 and best[place - 1] < score:
        best[place], kept[place] = best[place - 1], kept[place - 1]
        place -= 1
    best[place], kept[place] = score, doc


# The best k documents of a query over all segments; queries of plain terms take a shorter way.

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
    if len(searcher.leaves) == 1:
        (leaf,) = searcher.leaves
        wanted = _Wanted(k, -math.inf, NEVER if counted is None else counted, _Weights())
        found, its_scores, total = _best(query, leaf, searcher, wanted)
        return TopHits(found + leaf.base, its_scores, total)
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


def every_hit(term: TermQuery, searcher: Searcher, boost: float = 1.0) -> tuple[Longs, Floats]:
    """All live documents with a term, best first, ties by number, and their scores."""
    docs, scores = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for leaf in searcher.leaves:
        found, index = term.postings(leaf), leaf.segment.text(term.path)
        if found is None or index is None:
            continue
        own, freqs = found
        sums, counts = np.zeros(len(own)), np.zeros(len(own), np.int32)
        inverse, weight = searcher.inverse_norms(term.path), term.weight(searcher, boost)
        places = np.arange(len(own), dtype=np.int32)
        accumulate(sums, counts, places, freqs, index.norms[own], inverse, weight)
        kept = leaf.roots[own]
        docs.append(own[kept].astype(np.int64) + leaf.base)
        scores.append(sums[kept].astype(np.float32))
    all_docs, all_scores = np.concatenate(docs), np.concatenate(scores)
    order = np.argsort(-all_scores, kind="stable")
    return all_docs[order], all_scores[order]


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
            weighed = [(term.weight(searcher, boost), term) for term in terms]
            weighed.sort(key=lambda each: (-each[0], each[1].term))
            self._known[key] = [
                (weight, searcher.text_numbers(term.path, term.term)) for weight, term in weighed
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
    best = top_of_few if len(found) <= _FEW else top_of_any
    top: tuple[Longs, Floats, int] = best(
        docs,
        freqs,
        starts,
        stops,
        np.array([weight for weight, _ in found], np.float32),
        index.norms,
        searcher.inverse_norms(terms[0].path),
        allowed,
        _ceilings(leaf, terms[0].path, len(docs)),
        min(wanted.k, leaf.segment.size),
        wanted.floor,
        wanted.counted,
    )
    return top


def _ceilings(leaf: Leaf, path: str, postings: int) -> Ceilings:
    """Of a field of a segment; those that are known already."""
    key, derived = ("ceilings", path), leaf.segment.derived
    if key not in derived:
        derived[key] = np.zeros(postings // _BLOCK + 1, np.uint32)
    found: Ceilings = derived[key]
    return found


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
