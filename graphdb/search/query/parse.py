"""From the JSON of a query to its tree: which parser reads which clause, and the limits on the whole."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import illegal_request
from graphdb.search.mapping.percolators import read_queries_with
from graphdb.search.near_names import did_you_mean
from graphdb.search.query.clause import ClauseParser, QueryContext, malformed, too_many_clauses
from graphdb.search.query.combined_fields import PARSERS as COMBINED_FIELDS
from graphdb.search.query.compound import FORMS as COMPOUND_FORMS
from graphdb.search.query.compound import PARSERS as COMPOUND
from graphdb.search.query.features import PARSERS as FEATURES
from graphdb.search.query.forms import ClauseForm, Form, Make
from graphdb.search.query.full_text import FORMS as FULL_TEXT_FORMS
from graphdb.search.query.full_text import PARSERS as FULL_TEXT
from graphdb.search.query.function_score import PARSERS as FUNCTION_SCORE
from graphdb.search.query.geo import PARSERS as GEO
from graphdb.search.query.intervals import PARSERS as INTERVALS
from graphdb.search.query.joins import PARSERS as JOINS
from graphdb.search.query.knn import PARSERS as KNN
from graphdb.search.query.more_like_this import PARSERS as MORE_LIKE_THIS
from graphdb.search.query.multi_terms import PARSERS as MULTI_TERMS
from graphdb.search.query.nested import PARSERS as NESTED
from graphdb.search.query.percolate import PARSERS as PERCOLATE
from graphdb.search.query.percolate import read_query
from graphdb.search.query.query_string import PARSERS as QUERY_STRING
from graphdb.search.query.ranges import FORMS as RANGE_FORMS
from graphdb.search.query.ranges import PARSERS as RANGES
from graphdb.search.query.scripted import PARSERS as SCRIPTED
from graphdb.search.query.several import PerIndexQuery
from graphdb.search.query.shapes import PARSERS as SHAPES
from graphdb.search.query.simple_query_string import PARSERS as SIMPLE_QUERY_STRING
from graphdb.search.query.spans import PARSERS as SPANS
from graphdb.search.query.sparse_vectors import PARSERS as SPARSE_VECTORS
from graphdb.search.query.term_level import FORMS as TERM_LEVEL_FORMS
from graphdb.search.query.term_level import PARSERS as TERM_LEVEL
from graphdb.search.query.top_hits import plain_terms
from graphdb.search.query.tree import SCORE_MAX, Query, largest_boost

__all__ = ["FORMS", "PARSERS", "form_of_query", "parse_query"]

FORMS: dict[str, ClauseForm] = {**COMPOUND_FORMS, **FULL_TEXT_FORMS, **RANGE_FORMS, **TERM_LEVEL_FORMS}
"""By the name of a clause, see `forms`."""

PARSERS: dict[str, ClauseParser] = {
    **COMBINED_FIELDS,
    **COMPOUND,
    **FEATURES,
    **FULL_TEXT,
    **FUNCTION_SCORE,
    **GEO,
    **INTERVALS,
    **JOINS,
    **KNN,
    **MORE_LIKE_THIS,
    **MULTI_TERMS,
    **NESTED,
    **PERCOLATE,
    **QUERY_STRING,
    **RANGES,
    **SCRIPTED,
    **SHAPES,
    **SIMPLE_QUERY_STRING,
    **SPANS,
    **SPARSE_VECTORS,
    **TERM_LEVEL,
}
"""By the name of a clause."""

_NO_MODEL = (
    "no model runs here: make vectors of texts with your own, store them in a [dense_vector] or "
    "[sparse_vector], use [knn] or [sparse_vector]"
)
_ABSENT = {
    "rule": "there are no query rules: use [pinned]",
    "semantic": _NO_MODEL,
    "text_expansion": _NO_MODEL,
}
"""Queries of Elasticsearch that are not there, with what helps instead."""


def parse_query(body: object, context: QueryContext) -> Query:
    """Parse what stands under `query`; fails with a SearchError, also where it is too large."""
    if context.parts:
        return PerIndexQuery(queries=tuple(parse_query(body, part) for part in context.parts))
    return _checked(_parse(body, context), context)


def form_of_query(body: Any, context: QueryContext, form: Form) -> Make:
    """What makes the query of the values that are left open. body: with slots. context: of one index.

    Raises NoForm where a clause takes no part, SearchError where parsing fails.
    """
    make = form.clause(body, context)
    return lambda values, context: _checked(make(values, context), context)


def _checked(query: Query, context: QueryContext) -> Query:
    terms = plain_terms(query)
    is_few = terms is not None and len(terms) <= context.max_clause_count
    if is_few and query.boost == 1.0 and all([term.boost == 1.0 for term in terms or ()]):
        return query
    # few nodes are no more clauses, and boosts that are 1 have no product
    nodes = query.nodes
    if len(nodes) > context.max_clause_count < sum(1 for node in nodes if not node.children()):
        raise too_many_clauses(context)
    if any([node.boost_max() != 1.0 for node in nodes]) and largest_boost(query) > SCORE_MAX:
        raise illegal_request(f"[boost] must not make more of a score than {SCORE_MAX}")
    return query


def _parse(body: object, context: QueryContext) -> Query:
    checkpoint()
    if not isinstance(body, Mapping):
        raise malformed("[_na] query malformed, must start with start_object")
    if not body:
        raise illegal_request("query malformed, empty clause found at [1:1]")
    kind = next(iter(body))
    inner = body[kind]
    if not isinstance(inner, Mapping):
        raise malformed(f"[{kind}] query malformed, no start_object after query name")
    parser = PARSERS.get(kind)
    if parser is None:
        hint = f": {_ABSENT[kind]}" if kind in _ABSENT else did_you_mean(kind, PARSERS)
        raise malformed(f"unknown query [{kind}]{hint}")
    if len(body) > 1:
        raise malformed(f"[{kind}] malformed query, expected [END_OBJECT] but found [FIELD_NAME]")
    return parser(inner, context.deeper(), _parse)


read_queries_with(partial(read_query, parse_query))
