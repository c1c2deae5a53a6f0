"""Term-level queries: term, terms, terms_set, exists, ids, by the exact value of a field."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.search.errors import SearchError, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Bools, Leaf, Longs
from graphdb.search.mapping.range_fields import RANGE_TYPES
from graphdb.search.mapping.readers import address_term, network_terms, text_of
from graphdb.search.mapping.types import OBJECT_TYPES
from graphdb.search.mapping.value_formats import range_of, term_of, whole_range
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, field_clause, malformed
from graphdb.search.query.compound import BoolQuery, ConstantScoreQuery
from graphdb.search.query.dictionary_queries import TermRangeQuery, WildcardQuery
from graphdb.search.query.field_types import among_versions, of_constant, range_field_query
from graphdb.search.query.forms import ClauseForm, Form, Make, NoForm, fixed
from graphdb.search.query.scripted import BoundScript
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import (
    BooleanQuery,
    ExistsQuery,
    IdsQuery,
    KeywordQuery,
    NumberRangeQuery,
    NumbersQuery,
    TermQuery,
    TermsQuery,
    column_of,
)
from graphdb.search.query.tree import MatchAllQuery, Matches, MatchNoneQuery, Query, boosted
from graphdb.search.scripts.script import SCORE

__all__ = [
    "FORMS",
    "PARSERS",
    "TermsSetQuery",
    "any_of",
    "exact",
    "exists_query",
    "index_query",
    "metadata_query",
    "number_range",
    "unmapped",
]

# What an exact value means for a field of whatever type: the query for one value, and for any of several.

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


def exists_query(paths: Sequence[str], alone: Collection[str] = ()) -> Query:
    """Documents that have a value for any of the paths; some fields all documents have. alone: those of the
    paths that do not stand for what is below them.
    """
    if not _EVERYWHERE.isdisjoint(paths):
        return MatchAllQuery()
    return ExistsQuery(paths=tuple(paths), alone=frozenset(alone))


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
    if spec.type == "constant_keyword":
        text = text_of(value)
        return of_constant(spec, lambda own: own.lower() == text.lower() if case_insensitive else own == text)
    if spec.type in RANGE_TYPES:
        return range_field_query(spec, value, value, context)
    path = spec.path  # another one where it was an alias
    if spec.storage in (Storage.TEXT, Storage.TERMS):
        return _exact_term(spec, value, context, case_insensitive)
    if spec.type.startswith("date"):
        return _moment(spec, value, context)
    number = _converted(spec, value, context)
    if spec.type == "boolean" and not spec.options.get("runtime"):
        return BooleanQuery(path=path, value=bool(number))
    if not _representable(spec, number):
        return MatchNoneQuery(reason=f"Value [{value}] is out of range or has a decimal part")
    return number_range(spec, number, number)


def number_range(spec: FieldSpec, low: Any, high: Any) -> NumberRangeQuery:
    """The numbers of a field in [low, high], as the field has them."""
    type_name, shift = _EXACT.get(spec.type, ("", 0))
    return NumberRangeQuery(path=spec.path, low=low - shift, high=high - shift, exact=type_name)


def _exact_term(spec: FieldSpec, value: Any, context: QueryContext, case_insensitive: bool) -> Query:
    if spec.type == "ip":
        return _address(spec, value, context)
    term = str(_converted(spec, value, context))
    if case_insensitive:
        return among_versions(spec, WildcardQuery.literal(spec.path, str(value)))
    if spec.storage is Storage.TEXT:
        return TermQuery(path=spec.path, term=term)
    if spec.options.get("runtime"):  # no statistics are kept of its terms
        return TermsQuery(path=spec.path, terms=(term,))
    return KeywordQuery(path=spec.path, term=term)


def any_of(path: str, values: Sequence[Any], context: QueryContext) -> Query:
    """The query for any of several values; every match scores 1."""
    found, spec = metadata_query(path, values, context), context.mapping.field(path)
    if found is not None:
        return found
    if spec is None:
        return unmapped(path)
    _searchable(spec, context)
    if spec.type == "constant_keyword":
        wanted = {text_of(value) for value in values}
        return of_constant(spec, lambda own: own in wanted)
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


# The clauses for exact values: `term`, `terms`, `exists`, `ids`.


def _term_read(body: Mapping[str, Any]) -> tuple[Any, Callable[[Any, QueryContext], Query]]:
    """(the value, or its slot; what makes the query of it)."""
    path, clause = field_clause("term", body, "value")
    value, other = clause.sought("value"), clause.sought("term")
    value = other if value is None else value
    if value is None:
        raise illegal_request("value cannot be null")
    if isinstance(value, dict | list):
        clause.refuse("value", value)
    fold = clause.flag("case_insensitive", False)
    clause.done()
    return value, lambda value, context: boosted(exact(path, value, context, fold), clause.boost, clause.name)


def _term(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    value, make = _term_read(body)
    return make(value, context)


def _term_form(body: Mapping[str, Any], context: QueryContext, form: Form) -> Make:
    value, make = _term_read(body)
    number = form.open(value)
    return lambda values, context: make(values[number], context)


def _terms_read(body: Mapping[str, Any], context: QueryContext) -> tuple[str, list[Any], Clause]:
    """(the field, its values or their slots, the clause for what it is beside)."""
    fields = [key for key in body if key not in ("boost", "_name")]
    if len(fields) > 1:
        raise malformed("[terms] query does not support multiple fields")
    if not fields:
        raise malformed(
            "[terms] query requires a field name, followed by array of terms or a document lookup "
            "specification"
        )
    clause = Clause("terms", {key: value for key, value in body.items() if key != fields[0]})
    given = body[fields[0]]
    if isinstance(given, Mapping):
        given = _looked_up(given, context)
    if not isinstance(given, list):
        raise malformed(f"[terms] query does not support [{fields[0]}]")
    if any(value is None for value in given):
        raise illegal_request("No value specified for terms query")
    if len(given) > context.max_terms_count:
        raise context.failed(
            f"The number of terms [{len(given)}] used in the Terms Query request has exceeded the allowed "
            f"maximum of [{context.max_terms_count}]. This maximum can be set by changing the "
            "[index.max_terms_count] index level setting."
        )
    return fields[0], given, clause


def _terms(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    path, given, clause = _terms_read(body, context)
    if not given:
        return MatchNoneQuery(reason='The "terms" query was rewritten to a "match_none" query.')
    # A field of booleans or dates has queries of its own for a value; the score is the boost all the same.
    query = any_of(path, given, context)
    return boosted(query, clause.boost, clause.name)


def _terms_form(body: Mapping[str, Any], context: QueryContext, form: Form) -> Make:
    """How many values there are is of the form; each of them is left open."""
    if not all(isinstance(value, list) for name, value in body.items() if name not in ("boost", "_name")):
        raise NoForm  # the terms of a document are looked up for each request
    path, given, clause = _terms_read(body, context)
    if not given:
        raise NoForm
    numbers = [form.open(one) for one in given]
    return lambda values, context: boosted(
        any_of(path, [values[number] for number in numbers], context), clause.boost, clause.name
    )


def _looked_up(given: Mapping[str, Any], context: QueryContext) -> list[Any]:
    """The terms that another document has at a path."""
    clause = Clause("terms", given, "[{}] query does not support [{}] within lookup element")
    index, doc_id, path = (clause.string(member) for member in ("index", "id", "path"))
    routing = clause.string("routing")
    clause.done()
    for member, value in (("index", index), ("id", doc_id), ("path", path)):
        if value is None:
            raise illegal_request(f"[terms] query lookup element requires specifying the {member}.")
    if context.terms_lookup is None:
        raise illegal_request("[terms] query lookup is not supported here")
    return list(context.terms_lookup(str(index), str(doc_id), str(path), routing))


def _exists(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("exists", body)
    pattern = clause.string("field")
    clause.done()
    if not pattern:
        raise malformed("[exists] must be provided with a [field]")
    if pattern == "_source":
        raise context.failed("The _source field is not searchable")
    spec = context.mapping.field(pattern)
    specs = context.mapping.match(pattern) if "*" in pattern else [] if spec is None else [spec]
    paths = tuple(spec.path for spec in specs) if specs or "*" in pattern else (pattern,)
    query = exists_query(paths, [spec.path for spec in specs if _has_fields_below(spec, context)])
    if any(spec.type == "constant_keyword" and spec.options["value"] is not None for spec in specs):
        query = MatchAllQuery()
    if isinstance(query, MatchAllQuery):
        return boosted(query, clause.boost, clause.name)
    return ConstantScoreQuery(query=query, boost=clause.boost, name=clause.name)


def _has_fields_below(spec: FieldSpec, context: QueryContext) -> bool:
    """Whether a field has others below it that are neither multi-fields of it nor its keys."""
    below = context.mapping.match(f"{spec.path}.*") if spec.type not in OBJECT_TYPES else ()
    return any(one.multi_of is None for one in below)


def _ids(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("ids", body, "[{}] unknown field [{}]")
    values = clause.take("values")
    clause.done()
    if values is None:
        raise illegal_request("Required [values]")
    given = values if isinstance(values, list) else [values]
    if any(value is None or isinstance(value, dict | list) for value in given):
        raise malformed("[ids] failed to parse field [values]")
    return IdsQuery(ids=tuple(map(str, given)), boost=clause.boost, name=clause.name)


# `terms_set`: as many of some terms as the document itself asks for, in a field of numbers.

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class TermsSetQuery(Query):
    """At least `minimum` of the queries, or as many as the number at minimum_path says; without it, no match.

    Scores are the sum of those that match. Source: Lucene's CoveringQuery.
    """

    queries: tuple[Query, ...]
    minimum_path: str | None
    minimum: int = 1
    script: BoundScript | None = None

    @property
    def is_late(self) -> bool:  # type: ignore[override]
        """Whether a script says how many have to match."""
        return self.script is not None

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        sums = np.zeros(leaf.segment.size, dtype=np.float64)
        counts = np.zeros(leaf.segment.size, dtype=np.int32)
        for query in self.queries:
            query.accumulate(leaf, searcher, boost * self.boost, sums, counts)
        mask = counts >= np.maximum(1, self._needed(leaf, counts > 0))
        return Matches(mask, np.where(mask, sums, 0).astype(np.float32))

    def _needed(self, leaf: Leaf, matching: Bools) -> Longs:
        """By document. matching: those that any query matches."""
        if self.script is not None:
            needed = np.full(leaf.segment.size, _NEVER, np.int64)
            docs = np.flatnonzero(matching & leaf.live)
            bound = self.script
            found = bound.script.on(leaf, bound.mapping, bound.index_name).numbers(docs)
            needed[docs] = np.clip(found, 0, 2.0**62).astype(np.int64)
            return needed
        if self.minimum_path is None:
            return np.full(leaf.segment.size, self.minimum, np.int64)
        needed, column = np.full(leaf.segment.size, _NEVER, np.int64), column_of(leaf, self.minimum_path)
        if column is None:
            return needed
        if column.starts is None:
            return column.values.astype(np.int64)
        having = np.flatnonzero(column.starts[1:] > column.starts[:-1])
        needed[having] = column.values[column.starts[having]]
        return needed

    def children(self) -> tuple[Query, ...]:
        return self.queries

    def text(self) -> str:
        return f"CoveringQuery({', '.join(map(str, self.queries))})"


def _with_count(bound: BoundScript, count: int) -> BoundScript:
    """With the number of terms as the parameter `num_terms`."""
    script = replace(bound.script, params={**bound.script.params, "num_terms": count})
    return replace(bound, script=script)


def _terms_set(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    path, clause = field_clause("terms_set", body, "terms")
    terms, minimum_path = clause.take("terms"), clause.string("minimum_should_match_field")
    given = clause.take("minimum_should_match_script")
    script = None if given is None else BoundScript.parse(given, SCORE, context)
    minimum = clause.integer("minimum_should_match", 0)
    clause.done()
    if not isinstance(terms, list) or any(term is None or isinstance(term, dict | list) for term in terms):
        raise malformed("[terms_set] requires [terms], an array of values")
    if minimum_path is None and script is None and minimum < 1:
        raise illegal_request("No minimum should match has been specified")
    if not terms:
        return MatchNoneQuery(reason="No terms supplied for terms_set")
    found = None if minimum_path is None else context.mapping.field(minimum_path)
    if minimum_path is not None and found is None:
        raise context.failed(f"failed to find minimum_should_match field [{minimum_path}]")
    return TermsSetQuery(
        queries=tuple(exact(path, term, context) for term in terms),
        minimum_path=None if found is None else found.path,
        minimum=minimum,
        script=None if script is None else _with_count(script, len(terms)),
        boost=clause.boost,
        name=clause.name,
    )


PARSERS: dict[str, ClauseParser] = {
    "exists": _exists,
    "ids": _ids,
    "term": _term,
    "terms": _terms,
    "terms_set": _terms_set,
}
FORMS: dict[str, ClauseForm] = {
    "exists": fixed(_exists),
    "term": _term_form,
    "terms": _terms_form,
}
