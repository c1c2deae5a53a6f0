"""Whether a query is known to be short: so short that handing it to a thread would cost more."""

from collections.abc import Callable, Iterable, Sequence
from math import prod

from graphdb.search.query.compound import BoolQuery, ConstantScoreQuery
from graphdb.search.query.dense_positions import dense_positions
from graphdb.search.query.knn import KnnQuery
from graphdb.search.query.phrase import PhraseQuery
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.several import PerIndexQuery
from graphdb.search.query.term_queries import KeywordQuery, NumberRangeQuery, TermQuery, column_of
from graphdb.search.query.top_hits import Peeled, plain_terms
from graphdb.search.query.tree import MatchAllQuery, Query, RewrittenQuery

__all__ = ["STEPS_MAX", "documents_max", "is_narrow_query", "is_short_query", "steps_together"]

STEPS_MAX = 200_000  # postings and documents that are walked
_DOCUMENTS_MAX = 2_000
_NODES_MAX = 32
_WALKED_MIN = 0.25  # of the documents of the rarest of all terms, where hits are counted up to a number
_MATCHES_MAX = 300_000  # documents that are sorted
_DENSE_MAX = 2_000_000  # documents in arrays of all


def is_short_query(query: Query, searcher: Searcher, counted: int | None = None) -> bool:
    """Whether its best documents are found within about two milliseconds. counted: how many hits are to be
    counted, None: all.
    """
    if searcher.has_runtime_fields:
        return False
    if searcher.max_doc > _DOCUMENTS_MAX:
        steps = _steps(query, searcher, counted)
        return steps is not None and steps <= STEPS_MAX
    nodes = query.nodes
    if len(nodes) > _NODES_MAX or any(node.is_late for node in nodes):
        return False
    return not any(isinstance(node, RewrittenQuery | PerIndexQuery) for node in nodes)


def is_narrow_query(
    query: Query, searcher: Searcher, passes_over: Callable[[], bool] = lambda: False
) -> bool:
    """Whether all that it matches is found, and sorted by a column, within about two milliseconds.
    passes_over: whether the sort looks at a few of them only, however many there are.
    """
    most = documents_max(query, searcher)
    return most is not None and (most <= _MATCHES_MAX or passes_over())


def documents_max(query: Query, searcher: Searcher) -> int | None:
    """No more documents match; None where finding all of them takes longer than two milliseconds."""
    if searcher.max_doc > _DENSE_MAX or not is_short_query(query, searcher):
        return None
    return _matches_max(query, searcher)


def _matches_max(query: Query, searcher: Searcher) -> int:
    whole = searcher.max_doc
    match query:
        case TermQuery() | KeywordQuery():
            return searcher.doc_freq(query.path, query.term)
        case PhraseQuery():
            return sum(searcher.doc_freq(*term) for term in query.scored_by())
        case BoolQuery() if query.must or query.filter:
            return min(_matches_max(one, searcher) for one in (*query.must, *query.filter))
        case BoolQuery() if query.should:
            return sum(_matches_max(one, searcher) for one in query.should)
        case _:
            return whole


def steps_together(steps: Iterable[float | None]) -> float | None:
    """Their sum; None where one of them is not known."""
    total = 0.0
    for one in steps:
        if one is None:
            return None
        total += one
    return total


def _steps(query: Query, searcher: Searcher, counted: int | None = None) -> float | None:
    """How much is walked, in steps of some 10 ns; None: who knows.

    Measured with 50,000 and 300,000 documents of 65 words: what is done for each of all documents takes 1 ns,
    as does a posting that is only counted; one whose document is compared with another list 20 ns, with
    positions 40 ns, as long as these are not bits (`DensePositions`).
    """
    terms = plain_terms(query)
    if terms:
        return _term_steps(query, terms, searcher, counted)
    peeled = Peeled.of(query)
    terms = plain_terms(peeled.query)
    if peeled.narrows and terms:
        others = (*peeled.filters, *peeled.excluded)
        masks = steps_together(_mask_steps(one, searcher) for one in others)
        return None if masks is None else masks + _term_steps(peeled.query, terms, searcher, None)
    match query:
        case KnnQuery():
            return _nearest_steps(query, searcher)
        case TermQuery() | KeywordQuery():
            return searcher.doc_freq(query.path, query.term) / 2
        case PhraseQuery() if not query.slop:
            return _phrase_steps(query, searcher)
        case MatchAllQuery():
            return searcher.max_doc / 10
        case NumberRangeQuery():
            return searcher.max_doc / 8
        case ConstantScoreQuery() | BoolQuery():
            children = query.children()
            if len(children) > _NODES_MAX:
                return None
            below = steps_together(_steps(one, searcher) for one in children)
            return None if below is None else searcher.max_doc / 8 + below
        case _:
            return None


def _phrase_steps(query: PhraseQuery, searcher: Searcher) -> float:
    terms = query.scored_by()
    freqs = [searcher.doc_freq(*term) for term in terms]
    walked = 4 * min(freqs) + sum(freqs) / 10
    table = searcher.table(query.path)
    if walked <= STEPS_MAX or table is None:
        return walked
    known = searcher.known_terms(table, query.path, [term for _, term in terms])
    total = 0.0
    for place, leaf in enumerate(searcher.leaves):
        numbers = [int(one.numbers[place]) for one in known]
        if min(numbers) >= 0:
            steps = dense_positions(leaf, query.path).steps(numbers)
            if steps is None:
                return walked
            total += steps
    return total


def _mask_steps(query: Query, searcher: Searcher) -> float | None:
    """Of an array that says of each of all documents whether it matches: 0.2 ns for each, measured with
    500,000, and 1 ns for a posting.
    """
    each = searcher.max_doc / 64
    match query:
        case TermQuery() | KeywordQuery():
            return each + searcher.doc_freq(query.path, query.term) / 8
        case MatchAllQuery():
            return each
        case NumberRangeQuery():
            columns = (column_of(leaf, query.path, query.exact) for leaf in searcher.leaves)
            has_several = any(column is not None and column.starts is not None for column in columns)
            return searcher.max_doc / 4 if has_several else each
        case ConstantScoreQuery() | BoolQuery():
            children = query.children()
            if len(children) > _NODES_MAX:
                return None
            below = steps_together(_mask_steps(one, searcher) for one in children)
            return None if below is None else each + below
        case _:
            return None


def _term_steps(query: Query, terms: Sequence[TermQuery], searcher: Searcher, counted: int | None) -> float:
    """Of plain terms alone: where all have to match, the documents of the rarest are looked up in the others'
    postings, and when enough are counted most are passed over; where any has, most postings are.
    """
    table = searcher.table(terms[0].path)
    if table is None:
        return sum(searcher.doc_freq(one.path, one.term) for one in terms)
    freqs = [one.doc_freq for one in searcher.known_terms(table, terms[0].path, [one.term for one in terms])]
    needs_all = isinstance(query, BoolQuery) and bool(query.must)
    if not needs_all:
        return sum(freqs) / 4
    whole = searcher.max_doc
    matching = whole * prod([freq / whole for freq in freqs])  # if the terms do not depend on one another
    share = 1 if counted is None or matching <= counted else max(counted / matching, _WALKED_MIN)
    return share * len(freqs) * min(freqs)


def _nearest_steps(query: KnnQuery, searcher: Searcher) -> float | None:
    """Twice those of the loops: without the interpreter's lock, on a thread others might run beside them."""
    matched = steps_together(_steps(one, searcher) for one in query.unknown_filters(searcher))
    return None if matched is None else 2 * query.steps(searcher) + matched
