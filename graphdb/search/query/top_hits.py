"""The best k documents of a query over all segments; queries of plain terms take a shorter way."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import NamedTuple

import numpy as np

from graphdb.search.deadline import checkpoint
from graphdb.search.leaf_reader import Bools, Floats, Leaf, Longs
from graphdb.search.query.compound import BoolQuery
from graphdb.search.query.document_rows import rows_in
from graphdb.search.query.few_terms import NEVER, top_of_few
from graphdb.search.query.field_table import FieldTable, ceilings_of, with_masks
from graphdb.search.query.kernels import accumulate, find_sorted, top_k
from graphdb.search.query.max_score import FEW, top_of_any, top_of_leaves
from graphdb.search.query.searcher import KEPT_MAX, Searcher
from graphdb.search.query.several import PerIndexQuery
from graphdb.search.query.term_queries import TermQuery
from graphdb.search.query.tree import Query

__all__ = ["Peeled", "TopHits", "collect", "every_hit", "plain_terms", "top_hits"]

_AT_ONCE_DOCUMENTS = 1 << 20
_AT_ONCE_MAX = 1_000  # hits; more are put in order by an algorithm for many
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
    counted = NEVER if counted is None else counted
    of_terms = None if isinstance(query, PerIndexQuery) else _of_terms(query, searcher, k, counted)
    return _leaf_by_leaf(query, searcher, k, counted) if of_terms is None else of_terms


def _leaf_by_leaf(query: Query, searcher: Searcher, k: int, counted: int) -> TopHits:
    docs, scores = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    best, total, floor, weights = np.zeros(0, np.float32), 0, -math.inf, _Weights()
    for leaf in searcher.leaves:
        checkpoint()
        wanted = _Wanted(k, floor, counted - total, weights)
        found, its_scores, count = _best(query, leaf, searcher, wanted)
        total += count
        if not len(found):
            continue
        docs.append(found + leaf.base)
        scores.append(its_scores)
        if leaf is not searcher.leaves[-1]:
            best = np.sort(np.append(best, its_scores))[::-1][:k]
            floor = float(best[-1]) if 0 < len(best) == k else -math.inf
    merged_docs, merged_scores = np.concatenate(docs), np.concatenate(scores)
    order = np.lexsort((merged_docs, -merged_scores))[:k]
    return TopHits(merged_docs[order], merged_scores[order], total)


def _of_terms(query: Query, searcher: Searcher, k: int, counted: int) -> TopHits | None:
    """The same for terms of one text field, in all leaves at once; None for other queries, and where the
    leaves do not have the field in one form.
    """
    peeled = None  # where nothing is to be peeled, as mostly
    terms = plain_terms(query)
    if not terms or (len(terms) == 1 and isinstance(query, BoolQuery)):
        peeled = Peeled.of(query)
        query = peeled.query
        terms = plain_terms(query)
    if not terms or k > _AT_ONCE_MAX:
        return None
    path = terms[0].path
    field = searcher.keep(("field of terms", path), lambda: _FieldOfTerms.of(searcher, path))
    if field is None:
        return None
    boost, needs_all, narrows = 1.0, False, False
    if peeled is not None:
        boost, narrows = peeled.boost, peeled.narrows
    if isinstance(query, BoolQuery):
        boost, needs_all = boost * query.boost, bool(query.must)
    found = field.found
    known = [found.get(term.term) or field.find(searcher, term.term) for term in terms]
    ranks = [one.rank for one in known]
    if boost != 1.0 or any([term.boost != 1.0 or term.doc_freq is not None for term in terms]):
        ranks = [(-float(term.weight(searcher, boost)), term.term) for term in terms]
    places = sorted(range(len(known)), key=ranks.__getitem__)
    numbers = np.array([known[place].numbers for place in places])
    dense = np.array([known[place].rows for place in places])
    weights = np.array([-ranks[place][0] for place in places], np.float32)
    order = np.array(sorted(range(len(places)), key=places.__getitem__), np.int64)
    table, kept, best = field.table, np.empty(k, np.int64), np.empty(k, np.float32)
    begun = total = 0
    for part in field.runs:
        checkpoint()
        # contiguous, else the loops are compiled once more for them
        held, rows = np.ascontiguousarray(numbers[:, part]), np.ascontiguousarray(dense[:, part])
        allowed, masks = table.live[part], None
        if narrows and peeled is not None:
            # of leaves without the terms nothing is looked at
            has_terms: list[bool] = (held.max(axis=0) >= 0).tolist()
            leaves = zip(searcher.leaves[part], has_terms, strict=True)
            masks = [peeled.allowed(leaf, searcher) if met else None for leaf, met in leaves]
            allowed = with_masks(allowed, masks)
        begun, count = top_of_leaves(
            table.rows[part],
            allowed,
            held,
            rows,
            weights,
            field.inverse,
            needs_all,
            order,
            kept,
            best,
            begun,
            counted - total,
            narrows,
        )
        total += count
    return TopHits(kept[:begun], best[:begun], total)


class _OfTerm(NamedTuple):
    """A term of a text field. rank: the heaviest term is to be the first, so its negative weight, and the
    term: the order is the same for all documents, see `_Weights`. numbers, rows: its number and the address
    of its row in each leaf, see `top_of_leaves`.
    """

    rank: tuple[float, str]
    numbers: Longs
    rows: Longs


@dataclass(frozen=True, slots=True)
class _FieldOfTerms:
    """What searches for terms of a text field have in common: kept with a searcher.

    runs: leaves that are searched in one call. found: by term, those that were looked for.
    """

    path: str
    table: FieldTable
    inverse: Floats
    runs: tuple[slice, ...]
    found: dict[str, _OfTerm] = dataclass_field(default_factory=dict)

    @classmethod
    def of(cls, searcher: Searcher, path: str) -> "_FieldOfTerms | None":
        """None where it does not score by BM25, or the leaves do not have it in one form."""
        table = searcher.table(path)
        if table is None or searcher.other_similarity(path) is not None:
            return None
        runs = searcher.keep("runs", lambda: tuple(_runs(searcher.leaves)))
        return cls(path, table, searcher.inverse_norms(path), runs)

    def find(self, searcher: Searcher, term: str) -> _OfTerm:
        """searcher: the one that it is kept with."""
        (known,) = searcher.known_terms(self.table, self.path, (term,))
        rows = rows_in(searcher.leaves, self.path, known.numbers, known.doc_freq)
        if len(self.found) >= KEPT_MAX:
            self.found.clear()
        made = self.found[term] = _OfTerm((-float(known.weight), term), known.numbers, rows)
        return made


def _runs(leaves: Sequence[Leaf]) -> Iterator[slice]:
    """Leaves that are searched in one call, which nothing interrupts."""
    start = size = 0
    for number, leaf in enumerate(leaves):
        if size and size + leaf.segment.size > _AT_ONCE_DOCUMENTS:
            yield slice(start, number)
            start, size = number, 0
        size += leaf.segment.size
    if size:
        yield slice(start, len(leaves))


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
        self._known: dict[tuple[object, ...], list[tuple[np.float32, str]]] = {}

    def of(
        self, terms: Sequence[TermQuery], searcher: Searcher, boost: float
    ) -> list[tuple[np.float32, str]]:
        """Each term with its weight; the heaviest first.

        The order is the same for all documents, so that equal ones score the same to the last bit.
        """
        key = (id(searcher), boost, *map(id, terms))
        if key not in self._known:
            weighed = [(term.weight(searcher, boost), term.term) for term in terms]
            self._known[key] = sorted(weighed, key=lambda each: (-each[0], each[1]))
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
    peeled = Peeled.of(query)
    query, allowed, boost = peeled.query, peeled.allowed(leaf, searcher), peeled.boost
    terms = plain_terms(query)
    if terms is None or searcher.other_similarity(terms[0].path) is not None:
        listed = query.listed_in(leaf, searcher, boost)
        if listed is not None:
            held, own = listed
            places, its_scores, count = top_k(own, allowed[held], -1.0, min(k, len(held)))
            best: Longs = held[places].astype(np.int64)
            return best, its_scores, count
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


@dataclass(frozen=True, slots=True)
class Peeled:
    """A query, as the one that scores, with its boost, and those that only filter."""

    query: Query
    boost: float
    filters: tuple[Query, ...]
    excluded: tuple[Query, ...]

    @classmethod
    def of(cls, query: Query) -> "Peeled":
        boost, filters, excluded = 1.0, tuple[Query, ...](), tuple[Query, ...]()
        while isinstance(query, BoolQuery) and (query.must or not query.filter):
            filters, excluded = filters + query.filter, excluded + query.must_not
            if len(query.must) != 1 or query.should:
                narrows = query.filter or query.must_not
                query = replace(query, filter=(), must_not=()) if narrows else query
                break
            boost *= query.boost
            query = query.must[0]
        return cls(query, boost, filters, excluded)

    @property
    def narrows(self) -> bool:
        return bool(self.filters or self.excluded)

    def allowed(self, leaf: Leaf, searcher: Searcher) -> Bools:
        """Which documents of a leaf may be hits."""
        allowed = leaf.roots
        for one in self.filters:
            allowed = allowed & one.mask(leaf, searcher)
        for one in self.excluded:
            allowed = allowed & ~one.mask(leaf, searcher)
        return allowed


def plain_terms(query: Query) -> tuple[TermQuery, ...] | None:
    """The terms of one text field any or all of which have to match; None for any other query. Found once."""
    kept = vars(query)
    if "plain_terms" not in kept:
        kept["plain_terms"] = _plain_terms(query)
    found: tuple[TermQuery, ...] | None = kept["plain_terms"]
    return found


def _plain_terms(query: Query) -> tuple[TermQuery, ...] | None:
    if query.boost <= 0:
        return None
    if isinstance(query, TermQuery):
        return (query,)
    if not isinstance(query, BoolQuery) or (query.must and query.should) or query.minimum > 1:
        return None
    if query.filter or query.must_not:
        return None
    terms: list[TermQuery] = []
    for one in query.must or query.should:
        if not isinstance(one, TermQuery) or one.boost <= 0 or (terms and one.path != terms[0].path):
            return None
        terms.append(one)
    return tuple(terms) or None


def _any_of(
    terms: Sequence[TermQuery], leaf: Leaf, searcher: Searcher, boost: float, allowed: Bools, wanted: _Wanted
) -> tuple[Longs, Floats, int]:
    index = leaf.segment.text(terms[0].path)
    if index is None:
        return NOTHING
    weighed = wanted.weights.of(terms, searcher, boost)
    looked_up = ((weight, index.dictionary.find(term)) for weight, term in weighed)
    found = [(weight, number) for weight, number in looked_up if number >= 0]
    if not found:
        return NOTHING
    numbers = np.array([number for _, number in found], np.int64)
    docs, freqs, high, starts, stops = index.posting_ranges(numbers)
    best = top_of_few if len(found) <= FEW else top_of_any
    top: tuple[Longs, Floats, int] = best(
        docs,
        freqs,
        high,
        starts,
        stops,
        np.array([weight for weight, _ in found], np.float32),
        index.norms,
        searcher.inverse_norms(terms[0].path),
        allowed,
        ceilings_of(leaf, terms[0].path, len(docs)),
        min(wanted.k, leaf.segment.size),
        wanted.floor,
        wanted.counted,
    )
    return top


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
