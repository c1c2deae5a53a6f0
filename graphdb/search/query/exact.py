"""What an exact value means for a field of whatever type: the query for one value, and for any of several."""

import math
from collections.abc import Sequence
from typing import Any

from graphdb.search.errors import SearchError
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.addresses import address_term, network_terms
from graphdb.search.mapping.values import range_of, term_of, whole_range
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.query.bool_query import BoolQuery
from graphdb.search.query.compound import ConstantScoreQuery
from graphdb.search.query.context import QueryContext
from graphdb.search.query.dictionary_queries import TermRangeQuery, WildcardQuery
from graphdb.search.query.number_queries import ExistsQuery, IdsQuery, NumberRangeQuery, NumbersQuery
from graphdb.search.query.term_queries import BooleanQuery, KeywordQuery, TermQuery, TermsQuery
from graphdb.search.query.tree import MatchAllQuery, MatchNoneQuery, Query

__all__ = ["any_of", "exact", "exists_query", "index_query", "metadata_query", "number_range", "unmapped"]

_EXACT = {"date_nanos": ("date_nanos", 0), "unsigned_long": ("unsigned_long", 2**63)}  # see `exact_numbers`
_EVERYWHERE = frozenset({"_id", "_index", "_seq_no", "_version"})


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
        return _constant(any(_names_index(str(value), context) for value in values))
    if path == "_version":
        raise context.failed("VersionField field [_version] is not searchable")
    return None


def index_query(pattern: str, context: QueryContext, any_character: bool = False) -> Query:
    """All documents where a pattern with `*` (and `?`, if any_character) names the index or an alias of it.

    Source: Elasticsearch's ConstantFieldType and SearchIndexNameMatcher.
    """
    return _constant(_names_index(pattern, context, any_character))


def _constant(found: bool) -> Query:
    return MatchAllQuery() if found else MatchNoneQuery(reason="The index doesn't match")


def _names_index(pattern: str, context: QueryContext, any_character: bool = False) -> bool:
    """A pattern means hidden names only where both begin with a dot."""
    names = context.index_names or ((context.index_name, False),)
    pattern = "*" if pattern == "_all" else pattern
    if "*" not in pattern and not (any_character and "?" in pattern):
        return any(pattern == name for name, _ in names)
    shown = [name for name, hidden in names if not hidden or pattern[0] == name[0] == "."]
    if any_character:
        return any(map(WildcardQuery.of("_index", pattern).accepts, shown))
    return any(wildcard_match(pattern, name) for name in shown)


def exists_query(paths: Sequence[str]) -> Query:
    """Documents that have a value for any of the paths; some fields all documents have."""
    if not _EVERYWHERE.isdisjoint(paths):
        return MatchAllQuery()
    return ExistsQuery(paths=tuple(paths))


def exact(path: str, value: Any, context: QueryContext, case_insensitive: bool = False) -> Query:
    """The query for one value, which is not analyzed; fails where it cannot be one of the field's."""
    if path == "_index" and case_insensitive:
        return index_query(str(value).lower(), context)
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
    return number_range(spec, number, number)


def number_range(spec: FieldSpec, low: Any, high: Any) -> NumberRangeQuery:
    """The numbers of a field in [low, high], as the field has them."""
    type_name, shift = _EXACT.get(spec.type, ("", 0))
    return NumberRangeQuery(path=spec.path, low=low - shift, high=high - shift, exact=type_name)


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
        type_name, shift = _EXACT.get(spec.type, ("", 0))
        return NumbersQuery(
            path=path, values=tuple(sorted(number - shift for number in kept)), exact=type_name
        )
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
    least, most = whole_range(spec)
    return spec.storage is not Storage.INTS or (number == int(number) and least <= number <= most)


def _moment(spec: FieldSpec, value: Any, context: QueryContext) -> Query:
    """A date that is not exact to the millisecond stands for all of its time."""
    try:
        low, high = (int(range_of(spec, value, up, now_ms=context.now_ms)) for up in (False, True))
    except SearchError as error:
        raise context.failed(error.reason, error) from None
    return number_range(spec, low, high)
