"""What an exact value means for a field of whatever type: the query for one value, and for any of several."""

import math
from collections.abc import Sequence
from typing import Any

from graphdb.search.errors import SearchError
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.addresses import address_term, network_terms
from graphdb.search.mapping.values import range_of, term_of
from graphdb.search.query.bool_query import BoolQuery
from graphdb.search.query.compound import ConstantScoreQuery
from graphdb.search.query.context import QueryContext
from graphdb.search.query.dictionary_queries import TermRangeQuery, WildcardQuery
from graphdb.search.query.number_queries import IdsQuery, NumberRangeQuery, NumbersQuery
from graphdb.search.query.term_queries import BooleanQuery, KeywordQuery, TermQuery, TermsQuery
from graphdb.search.query.tree import MatchAllQuery, MatchNoneQuery, Query

__all__ = ["any_of", "exact", "metadata_query", "unmapped"]


def unmapped(path: str) -> MatchNoneQuery:
    """A field that the index does not know matches nothing."""
    return MatchNoneQuery(reason=f"unmapped field [{path}]")


def metadata_query(path: str, values: Sequence[Any], context: QueryContext) -> Query | None:
    """The metadata fields by value; None for all other paths."""
    if path == "_id":
        return IdsQuery(ids=tuple(str(value) for value in values))
    if path in ("_ignored", "_routing"):
        return TermsQuery(path=path, terms=tuple(sorted({str(value) for value in values})))
    if path == "_index":
        found = context.index_name in {str(value) for value in values}
        return MatchAllQuery() if found else MatchNoneQuery(reason="The index doesn't match")
    return None


def exact(path: str, value: Any, context: QueryContext, case_insensitive: bool = False) -> Query:
    """The query for one value, which is not analyzed; fails where it cannot be one of the field's."""
    found, spec = metadata_query(path, [value], context), context.mapping.field(path)
    if found is not None:
        return found
    if spec is None:
        return unmapped(path)
    _searchable(spec, context)
    path = spec.path  # another one where it was an alias
    if spec.storage in (Storage.TEXT, Storage.TERMS):
        return _term(spec, value, context, case_insensitive)
    if spec.type.startswith("date"):
        return _moment(spec, value, context)
    number = _converted(spec, value, context)
    if spec.type == "boolean":
        return BooleanQuery(path=path, value=bool(number))
    if not _representable(spec, number):
        return MatchNoneQuery(reason=f"Value [{value}] is out of range or has a decimal part")
    return NumberRangeQuery(path=path, low=number, high=number)


def _term(spec: FieldSpec, value: Any, context: QueryContext, case_insensitive: bool) -> Query:
    if spec.type == "ip":
        return _address(spec, value, context)
    term = str(_converted(spec, value, context))
    if case_insensitive:
        return WildcardQuery.literal(spec.path, term)
    if spec.storage is Storage.TEXT:
        return TermQuery(path=spec.path, term=term)
    return KeywordQuery(path=spec.path, term=term)


def any_of(path: str, values: Sequence[Any], context: QueryContext) -> Query:
    """The query for any of several values; every match scores 1."""
    found, spec = metadata_query(path, values, context), context.mapping.field(path)
    if found is not None:
        return found
    if spec is None:
        return unmapped(path)
    _searchable(spec, context)
    path = spec.path
    networks = spec.type == "ip" and any("/" in str(value) for value in values)
    if spec.storage in (Storage.TEXT, Storage.TERMS) and not networks:
        terms = {str(_converted(spec, value, context)) for value in values}
        return TermsQuery(path=path, terms=tuple(sorted(terms)))
    if spec.storage in (Storage.INTS, Storage.FLOATS) and not spec.type.startswith("date"):
        numbers = [_converted(spec, value, context) for value in values]
        kept = {number for number in numbers if _representable(spec, number)}
        return NumbersQuery(path=path, values=tuple(sorted(kept)))
    each = tuple(exact(path, value, context) for value in values)
    return ConstantScoreQuery(query=BoolQuery(should=each)) if each else MatchNoneQuery()


def _address(spec: FieldSpec, value: Any, context: QueryContext) -> Query:
    """An address, or a network such as 10.0.0.0/8. As points of one dimension they score the boost."""
    try:
        low, high = network_terms(str(value)) if "/" in str(value) else (address_term(str(value)),) * 2
    except SearchError as error:
        raise context.failed(error.reason, error) from None
    return TermRangeQuery(path=spec.path, low=low, high=high, shown=str(value))


def _searchable(spec: FieldSpec, context: QueryContext) -> None:
    if not spec.indexed and not spec.doc_values:
        raise context.failed(
            f"Cannot search on field [{spec.path}] since it is not indexed nor has doc values."
        )


def _converted(spec: FieldSpec, value: Any, context: QueryContext) -> Any:
    try:
        return term_of(spec, value)
    except SearchError as error:
        raise context.failed(error.reason, error) from None


def _representable(spec: FieldSpec, number: Any) -> bool:
    if isinstance(number, str) or not math.isfinite(number):
        return False
    return spec.storage is not Storage.INTS or (number == int(number) and -(2**63) <= number < 2**63)


def _moment(spec: FieldSpec, value: Any, context: QueryContext) -> Query:
    """A date that is not exact to the millisecond stands for all of its time."""
    try:
        low, high = (int(range_of(spec, value, up, now_ms=context.now_ms)) for up in (False, True))
    except SearchError as error:
        raise context.failed(error.reason, error) from None
    return NumberRangeQuery(path=spec.path, low=low, high=high)
