"""`percolate`: stored queries, in a field of type `percolator`, matched to documents.

A stored query is kept with terms of which a document that it matches has at least one (`required_terms`). The
given documents become an index in memory. Only queries with a term that this index has, and those that
require no term, are parsed again and run on it.

Source: Elasticsearch's PercolateQuery and QueryAnalyzer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import orjson

from graphdb.search.analysis import Analyzers
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.leaf_reader import Bools, Leaf
from graphdb.search.mapping.lookup import FieldLookup
from graphdb.search.mapping.percolators import ANY_DOCUMENT, required_code, terms_path
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, malformed
from graphdb.search.query.combined_fields import CombinedFieldsQuery
from graphdb.search.query.compound import BoolQuery, BoostingQuery, ConstantScoreQuery, DisMaxQuery
from graphdb.search.query.full_text import BlendedQuery
from graphdb.search.query.function_score import FunctionScoreQuery
from graphdb.search.query.joins import HasChildQuery, HasParentQuery
from graphdb.search.query.knn import KnnQuery
from graphdb.search.query.phrase import PhraseQuery
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import KeywordQuery, SynonymQuery, TermQuery, TermsQuery
from graphdb.search.query.tree import Matches, MatchNoneQuery, Query, walk
from graphdb.search.segments.builder import SegmentBuilder

__all__ = ["PARSERS", "PercolateQuery", "Percolated", "percolate_queries", "read_query"]

DOCUMENTS_MAX = 1_000
"""In one query."""
QUERY_LENGTH_MAX = 100_000
"""Characters of a stored query."""

Terms = frozenset[tuple[str, str]]

# The terms that a stored query requires.


def _stored_query(
    body: Any, mapping: FieldLookup, analyzers: Analyzers, parse: Parse, now_ms: int = 0
) -> Query:
    """A query as it is stored.

    Errors: as of `parse_query`; illegal_argument_exception for what cannot be stored, or an unknown field.
    """
    query = parse(body, QueryContext(mapping, analyzers, now_ms))
    for node in walk(query):
        if isinstance(node, HasChildQuery | HasParentQuery | KnnQuery | PercolateQuery):
            kind = type(node).__name__
            raise illegal_argument(f"the query [{kind}] is unsupported inside a percolator query")
        if isinstance(node, MatchNoneQuery) and node.reason.startswith("unmapped field ["):
            name = node.reason.removeprefix("unmapped field [").removesuffix("]")
            raise illegal_argument(f"No field mapping can be found for the field with name [{name[:200]}]")
    return query


def read_query(parse: Parse, value: Any, mapping: FieldLookup, analyzers: Any) -> tuple[str, list[str]]:
    """See `read_stored_query`."""
    if not isinstance(value, dict):
        raise illegal_argument("query malformed, must start with start_object")
    text = orjson.dumps(value).decode()
    if len(text) > QUERY_LENGTH_MAX:
        raise illegal_argument(f"a stored query has at most {QUERY_LENGTH_MAX} characters, got [{len(text)}]")
    terms = required_terms(_stored_query(value, mapping, analyzers, parse))
    codes = [ANY_DOCUMENT] if terms is None else sorted(required_code(path, term) for path, term in terms)
    return text, codes


def required_terms(query: Query) -> Terms | None:
    """(path, term) of which a document that matches has at least one; None where that cannot be said."""
    match query:
        case TermQuery() | KeywordQuery():
            return frozenset({(query.path, query.term)})
        case TermsQuery() | SynonymQuery():
            return frozenset((query.path, term) for term in query.terms)
        case CombinedFieldsQuery():
            return frozenset(query.scored_by())
        case BlendedQuery():
            return frozenset((path, term) for path, _ in query.fields for term in query.terms)
        case PhraseQuery():
            best = max(query.places, key=lambda terms: min(map(len, terms)))
            return frozenset((query.path, term) for term in best)
        case MatchNoneQuery():
            return frozenset()
        case BoolQuery():
            return _of_bool(query)
        case ConstantScoreQuery() | FunctionScoreQuery():
            return required_terms(query.query)
        case BoostingQuery():
            return required_terms(query.positive)
        case DisMaxQuery():
            return _any_of(query.queries)
    return None


def _of_bool(query: BoolQuery) -> Terms | None:
    """Of all that must match the one with the fewest terms, and the longest."""
    needed = [required_terms(one) for one in (*query.must, *query.filter)]
    if query.needed:
        needed.append(_any_of(query.should))
    known = [terms for terms in needed if terms is not None]
    return min(known, key=_breadth, default=None)


def _breadth(terms: Terms) -> tuple[int, int]:
    return len(terms), -min((len(term) for _, term in terms), default=0)


def _any_of(queries: tuple[Query, ...]) -> Terms | None:
    each = [required_terms(one) for one in queries]
    known = [terms for terms in each if terms is not None]
    return None if len(known) < len(each) else frozenset().union(*known)


# Matching.


@dataclass(frozen=True, slots=True)
class Percolated:
    """What a stored query finds: the places of documents in the request, and the best of their scores."""

    query: Query
    slots: tuple[int, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Given:
    """The documents of a request as an index. terms: all that it has, as `required_code`s."""

    leaf: Leaf
    searcher: Searcher
    terms: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class PercolateQuery(Query):
    """Documents with a stored query that matches any of the given ones, scored by the best of its scores."""

    is_late: ClassVar[bool] = True  # it runs queries

    path: str
    documents: tuple[bytes, ...]
    now_ms: int
    parse: Parse = field(compare=False, repr=False)

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        scores = np.zeros(leaf.segment.size, np.float32)
        mask = np.zeros(leaf.segment.size, np.bool_)
        index = leaf.segment.terms(self.path)
        if index is not None:
            for number, found in self._percolated(leaf, searcher).items():
                docs = index.postings(number)
                mask[docs], scores[docs] = True, np.float32(found.score * boost * self.boost)
        return Matches(mask, scores)

    def found(self, leaf: Leaf, doc: int, searcher: Searcher) -> Percolated | None:
        """What the query of one document finds."""
        index = leaf.segment.terms(self.path)
        if index is None:
            return None
        start, stop = index.ordinals.starts[doc : doc + 2].tolist()
        percolated = self._percolated(leaf, searcher)
        found = (percolated.get(number) for number in index.ordinals.terms[start:stop].tolist())
        return next((one for one in found if one is not None), None)

    def given(self, searcher: Searcher) -> Searcher:
        """The searcher over the given documents."""
        return self._given(searcher).searcher

    def _percolated(self, leaf: Leaf, searcher: Searcher) -> dict[int, Percolated]:
        """By the number of their query in the dictionary."""
        return searcher.keep_of(leaf, ("percolated", self), lambda: self._run(leaf, searcher))

    def _run(self, leaf: Leaf, searcher: Searcher) -> dict[int, Percolated]:
        index, given = leaf.segment.terms(self.path), self._given(searcher)
        if index is None:
            return {}
        candidates = self._candidates(leaf, given) & leaf.live
        counts = np.diff(index.ordinals.starts)
        percolated = {}
        for number in np.unique(index.ordinals.terms[np.repeat(candidates, counts)]).tolist():
            checkpoint()
            body = orjson.loads(index.dictionary.term(number))
            query = _stored_query(body, searcher.mapping, searcher.analyzers, self.parse, self.now_ms)
            matches = query.matches(given.leaf, given.searcher)
            roots = np.flatnonzero(given.leaf.roots)
            slots = np.flatnonzero(matches.mask[roots])
            if len(slots):
                score = float(matches.dense()[roots[slots]].max())
                percolated[number] = Percolated(query, tuple(slots.tolist()), score)
        return percolated

    def _candidates(self, leaf: Leaf, given: _Given) -> Bools:
        mask = np.zeros(leaf.segment.size, np.bool_)
        index = leaf.segment.terms(terms_path(self.path))
        if index is None:
            return mask
        dictionary = index.dictionary
        if len(dictionary) < len(given.terms):
            codes = enumerate(dictionary.terms(0, len(dictionary)))
            numbers = [number for number, code in codes if code in given.terms]
        else:
            numbers = [number for code in given.terms if (number := dictionary.find(code)) >= 0]
        for number in numbers:
            mask[index.postings(number)] = True
        return mask

    def _given(self, searcher: Searcher) -> _Given:
        return searcher.keep(("given", self), lambda: self._indexed(searcher))

    def _indexed(self, searcher: Searcher) -> _Given:
        builder, mapping = SegmentBuilder(), searcher.mapping
        for slot, raw in enumerate(self.documents):
            parsed, mapping = mapping.parse(orjson.loads(raw))
            builder.add(str(slot), raw, slot, 1, parsed)
        segment = builder.build("percolated")
        leaf = Leaf(segment, np.ones(segment.size, np.bool_), 0)
        inner = Searcher([leaf], mapping, searcher.analyzers, index_name=searcher.index_name)
        return _Given(leaf, inner, frozenset(_codes(inner)))

    def text(self) -> str:
        return f"PercolateQuery{{document_sources={{{len(self.documents)}}},path={self.path}}}"


def _codes(searcher: Searcher) -> Iterator[str]:
    yield ANY_DOCUMENT
    for leaf in searcher.leaves:
        for path in leaf.segment.fields():
            for _, dictionary in searcher.dictionaries(path):
                for term in dictionary.terms(0, len(dictionary)):
                    yield required_code(path, term)


def percolate_queries(query: Query | None) -> list[PercolateQuery]:
    """Those in a query."""
    return [] if query is None else [node for node in walk(query) if isinstance(node, PercolateQuery)]


# Parsing.


def _percolate(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("percolate", body, "[{}] query does not support [{}]")
    path, name = clause.string("field"), clause.string("name")
    document, documents = clause.take("document"), clause.take("documents")
    index, doc_id = clause.string("index"), clause.string("id")
    routing = clause.string("routing")
    clause.ignore("preference", "version", "document_type")
    clause.done()
    if path is None:
        raise illegal_request("[percolate] query is missing required [field] parameter")
    ways = sum(given is not None for given in (document, documents, doc_id))
    if ways != 1:
        raise illegal_request(
            "[percolate] query, nothing to percolate"
            if not ways
            else "[percolate] query, specify one of [document], [documents] and [id]"
        )
    if doc_id is not None:
        documents = [_looked_up(context, index or context.index_name, doc_id, routing)]
    elif document is not None:
        documents = [document]
    if not isinstance(documents, list) or not all(isinstance(one, Mapping) for one in documents):
        raise malformed("[percolate] query takes objects as documents")
    if not 0 < len(documents) <= DOCUMENTS_MAX:
        raise illegal_argument(f"[percolate] takes 1 to {DOCUMENTS_MAX} documents, got [{len(documents)}]")
    spec = context.mapping.field(path)
    if spec is None:
        raise context.failed(f"field [{path}] does not exist")
    if spec.type != "percolator":
        raise context.failed(
            f"expected field [{path}] to be of type [percolator], but is of type [{spec.type}]"
        )
    context.check_expensive("[percolate] queries")
    raws = tuple(orjson.dumps(one) for one in documents)
    return PercolateQuery(
        path=spec.path,
        documents=raws,
        now_ms=context.now_ms,
        parse=parse,
        boost=clause.boost,
        name=clause.name or name,
    )


def _looked_up(context: QueryContext, index: str, doc_id: str, routing: str | None) -> Any:
    if context.terms_lookup is None:
        raise illegal_request("[percolate] of a stored document is not supported here")
    found = list(context.terms_lookup(index, doc_id, "", routing))
    if not found:
        raise SearchError(
            "resource_not_found_exception",
            f"indexed document [{index}/{doc_id}] couldn't be found",
            404,
        )
    return found[0]


PARSERS: dict[str, ClauseParser] = {"percolate": _percolate}
