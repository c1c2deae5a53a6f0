"""`range`: values between two bounds, of numbers, dates, keywords, texts and addresses."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphdb.search.errors import SearchError
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.range_fields import RANGE_TYPES
from graphdb.search.mapping.readers import address_term, network_terms
from graphdb.search.mapping.value_formats import range_of, term_of, whole_range
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, field_clause, malformed
from graphdb.search.query.dictionary_queries import TermRangeQuery
from graphdb.search.query.field_types import of_constant, range_field_query
from graphdb.search.query.forms import ClauseForm, Form, Make, Values
from graphdb.search.query.term_level import number_range, unmapped
from graphdb.search.query.tree import MatchNoneQuery, Query, boosted

__all__ = ["FORMS", "PARSERS", "Bounds", "range_on"]


class Bounds:
    """(low, with_low, high, with_high); None is no bound."""

    def __init__(
        self, low: Any = None, with_low: bool = True, high: Any = None, with_high: bool = True
    ) -> None:
        self.low, self.with_low, self.high, self.with_high = low, with_low, high, with_high


def range_on(
    path: str,
    bounds: Bounds,
    context: QueryContext,
    time_zone: str | None = None,
    format: str | None = None,
    relation: str = "intersects",
) -> Query:
    """The query for a range on one field; fails where a bound cannot be one of its values."""
    spec = context.mapping.field(path)
    if spec is None:
        return unmapped(path)
    if spec.type == "ip":
        return _addresses(spec, bounds)
    if spec.type in RANGE_TYPES:
        return range_field_query(
            spec,
            bounds.low,
            bounds.high,
            context,
            bounds.with_low,
            bounds.with_high,
            time_zone,
            format,
            relation,
        )
    if spec.type == "constant_keyword":
        low, high = (None if bound is None else str(bound) for bound in (bounds.low, bounds.high))
        query = TermRangeQuery(
            path=spec.path, low=low, high=high, with_low=bounds.with_low, with_high=bounds.with_high
        )
        return of_constant(spec, query.accepts)
    is_textual = spec.storage in (Storage.TEXT, Storage.TERMS)
    if is_textual and spec.type != "_index":
        context.check_expensive("[range] queries on [text] or [keyword] fields")
        low, high = (_term(spec, bound) for bound in (bounds.low, bounds.high))
        return TermRangeQuery(
            path=spec.path, low=low, high=high, with_low=bounds.with_low, with_high=bounds.with_high
        )
    if spec.storage in (Storage.INTS, Storage.FLOATS) and spec.type != "_version":
        return _numbers(spec, bounds, context, time_zone, format)
    raise context.failed(f"Field [{path}] of type [{spec.type}] does not support range queries")


def _term(spec: FieldSpec, bound: Any) -> str | None:
    """A bound as a keyword's normalizer writes it; a text's is one of its terms already."""
    if bound is None:
        return None
    return str(term_of(spec, bound)) if spec.storage is Storage.TERMS else str(bound)


def _addresses(spec: FieldSpec, bounds: Bounds) -> Query:
    """A network as a bound stands for its first or last address."""
    low, high = (None if bound is None else str(bound) for bound in (bounds.low, bounds.high))
    return TermRangeQuery(
        path=spec.path,
        low=None if low is None else network_terms(low)[0] if "/" in low else address_term(low),
        high=None if high is None else network_terms(high)[1] if "/" in high else address_term(high),
        with_low=bounds.with_low,
        with_high=bounds.with_high,
        shown=f"[{low or '*'} TO {high or '*'}]",
    )


def _numbers(
    spec: FieldSpec, bounds: Bounds, context: QueryContext, time_zone: str | None, format: str | None
) -> Query:
    """A bound of a date rounds up where what it names is to be left behind (`gt`) or to be in (`lte`)."""
    whole = spec.storage is Storage.INTS
    least, most = whole_range(spec)
    low: Any = least if whole else -math.inf
    high: Any = most if whole else math.inf
    if bounds.low is not None:
        low = range_of(spec, bounds.low, not bounds.with_low, time_zone, format, context.now_ms)
        if not bounds.with_low:
            low = low + 1 if whole else math.nextafter(low, math.inf)
    if bounds.high is not None:
        high = range_of(spec, bounds.high, bounds.with_high, time_zone, format, context.now_ms)
        if not bounds.with_high:
            high = high - 1 if whole else math.nextafter(high, -math.inf)
    if low > high or (whole and (low > most or high < least)):
        return MatchNoneQuery(reason="empty range")
    if whole:
        low, high = max(low, least), min(high, most)
    return number_range(spec, low, high)


BOUNDS = {"gt": ("low", False), "gte": ("low", True), "lt": ("high", False), "lte": ("high", True)}


def _bounds(clause: Clause) -> Bounds:
    bounds = Bounds()
    for old, side, sign in (("from", "low", "include_lower"), ("to", "high", "include_upper")):
        setattr(bounds, side, clause.sought(old))
        setattr(bounds, f"with_{side}", clause.flag(sign, True))
    for member, (side, included) in BOUNDS.items():
        if member in clause:
            setattr(bounds, side, clause.sought(member))
            setattr(bounds, f"with_{side}", included)
        clause.ignore(member)
    for value in (bounds.low, bounds.high):
        if isinstance(value, dict | list):
            clause.refuse(next(iter(BOUNDS)), value)
    return bounds


@dataclass(frozen=True, slots=True)
class _OfField:
    """A range on one field, but for its bounds."""

    path: str
    time_zone: str | None
    format: str | None
    relation: str
    boost: float
    name: str | None

    def query(self, bounds: Bounds, context: QueryContext) -> Query:
        try:
            query = range_on(self.path, bounds, context, self.time_zone, self.format, self.relation)
        except SearchError as error:
            is_its_own = error.kind in ("parse_exception", "exception", "query_shard_exception")
            raise (error if is_its_own else context.failed(error.reason, error)) from None
        return boosted(query, self.boost, self.name)


def _read(body: Mapping[str, Any]) -> tuple[_OfField, Bounds]:
    """The bounds are values or their slots."""
    fields = [value for key, value in body.items() if key not in ("boost", "_name")]
    if fields and not isinstance(fields[0], Mapping):
        raise malformed(f"[range] query does not support [{next(iter(body))}]")
    path, clause = field_clause("range", body, "gte")
    bounds = _bounds(clause)
    time_zone, format = clause.string("time_zone"), clause.string("format")
    relation = clause.word("relation", "intersects")
    clause.done()
    if relation.lower() not in ("intersects", "contains", "within"):
        raise malformed(f"{relation} is not a valid relation")
    return _OfField(path, time_zone, format, relation.lower(), clause.boost, clause.name), bounds


def _range(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    found, bounds = _read(body)
    return found.query(bounds, context)


def _form(body: Mapping[str, Any], context: QueryContext, form: Form) -> Make:
    found, bounds = _read(body)
    low, high = (None if bound is None else form.open(bound) for bound in (bounds.low, bounds.high))

    def make(values: Values, context: QueryContext) -> Query:
        own = Bounds(
            None if low is None else values[low],
            bounds.with_low,
            None if high is None else values[high],
            bounds.with_high,
        )
        return found.query(own, context)

    return make


PARSERS: dict[str, ClauseParser] = {"range": _range}
FORMS: dict[str, ClauseForm] = {"range": _form}
