"""What an exact value means for a field of whatever type: the query for one value, and for any of several."""

from collections.abc import Sequence
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.values import range_of, term_of
from graphdb.search.query.context import QueryContext
from graphdb.search.query.number_queries import IdsQuery, NumberRangeQuery, NumbersQuery
from graphdb.search.query.patterns import PatternQuery
from graphdb.search.query.term_queries import BooleanQuery, KeywordQuery, TermQuery, TermsQuery
from graphdb.search.query.tree import MatchAllQuery, MatchNoneQuery, Query

__all__ = ["any_of", "exact", "metadata_query", "unmapped"]

INTEGRAL_MIN, INTEGRAL_MAX = -(2**63), 2**63 - 1


def unmapped(path: str) -> MatchNoneQuery:
    """A field that the index does not know matches nothing."""
    return MatchNoneQuery(reason=f"unmapped field [{path}]")


def metadata_query(path: str, values: Sequence[Any], context: QueryContext) -> Query | None:
    """`_id` and `_index` by value; None for all other paths."""
    if path == "_id":
        return IdsQuery(ids=tuple(str(value) for value in values))
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
    if spec.storage is Storage.TEXT:
        text = _text(value)
        return _folded(path, text) if case_insensitive else TermQuery(path=path, term=text)
    if spec.type == "date" or spec.type == "date_nanos":
        return _moment(spec, value, context)
    if spec.type == "ip" and "/" in str(value):
        return _network(spec, value, context)
    term = _converted(spec, value, context)
    if spec.type == "boolean":
        return BooleanQuery(path=path, value=bool(term))
    if spec.storage is Storage.TERMS:
        if case_insensitive:
            return _folded(path, str(term))
        return _whole(spec, str(term))
    if isinstance(term, str) or not _representable(spec, term):
        return MatchNoneQuery(reason=f"Value [{value}] is out of range or has a decimal part")
    return NumberRangeQuery(path=path, low=term, high=term)


def any_of(path: str, values: Sequence[Any], context: QueryContext) -> Query:
    """The query for any of several values; every match scores 1."""
    found, spec = metadata_query(path, values, context), context.mapping.field(path)
    if found is not None:
        return found
    if spec is None:
        return unmapped(path)
    _searchable(spec, context)
    if spec.storage is Storage.TEXT:
        return TermsQuery(path=path, terms=tuple(sorted({_text(value) for value in values})))
    if spec.storage is Storage.TERMS and not (spec.type == "ip" and any("/" in str(v) for v in values)):
        terms = {str(_converted(spec, value, context)) for value in values}
        return TermsQuery(path=path, terms=tuple(sorted(terms)))
    if spec.storage in (Storage.INTS, Storage.FLOATS) and not spec.type.startswith("date"):
        numbers = [_converted(spec, value, context) for value in values]
        kept = [term for term in numbers if not isinstance(term, str) and _representable(spec, term)]
        return NumbersQuery(path=path, values=tuple(sorted(set(kept))))
    from_each = [exact(path, value, context) for value in values]
    return AnyQuery(queries=tuple(from_each))
