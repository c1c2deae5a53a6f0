"""The clauses for analyzed text: `match`, `match_bool_prefix`, those for phrases, and `multi_match`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.query.clause import (
    Clause,
    ClauseParser,
    Parse,
    QueryContext,
    field_clause,
    malformed,
    number_format,
)
from graphdb.search.query.compound import DisMaxQuery
from graphdb.search.query.dictionary_queries import PrefixQuery
from graphdb.search.query.field_types import on_texts
from graphdb.search.query.forms import ClauseForm, Form, Make
from graphdb.search.query.rewrites import parse_rewrite
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_level import exact, index_query, unmapped
from graphdb.search.query.term_queries import TermQuery
from graphdb.search.query.text_queries import (
    Leaves,
    MatchOptions,
    Places,
    combined,
    graph_of,
    graph_words,
    is_wordless,
    phrase_query,
    places_of,
    query_of_text,
    word_query,
)
from graphdb.search.query.tree import SCORE_MAX, MatchNoneQuery, Query, RewrittenQuery, boosted

__all__ = [
    "FORMS",
    "PARSERS",
    "TIE_BREAKERS",
    "BlendedQuery",
    "Boosts",
    "expand_fields",
    "match_field",
    "multi_match",
    "read_options",
]


def match_field(path: str, value: Any, options: MatchOptions, context: QueryContext) -> Query:
    """The query for a value on one field, analyzed if the field is of text."""
    spec = context.mapping.field(path)
    if spec is None:
        return unmapped(path)
    if spec.storage is not Storage.TEXT:
        return _match_exact(spec, value, options, context)
    return _match_text(spec, options, context)(value)


def _match_text(spec: FieldSpec, options: MatchOptions, context: QueryContext) -> Callable[[Any], Query]:
    """What makes the query for a value on a field of text."""
    of_text = query_of_text(spec, options, context)
    return lambda value: of_text(str(value).lower() if isinstance(value, bool) else str(value))


def _match_exact(spec: FieldSpec, value: Any, options: MatchOptions, context: QueryContext) -> Query:
    try:
        if options.kind == "phrase_prefix":
            reason = "Can only use phrase prefix queries on text fields - not on "
            reason += f"[{spec.path}] which is of type [{spec.type}]"
            raise context.failed(reason, illegal_argument(reason))
        if spec.type == "_index" and options.kind == "bool_prefix":
            return index_query(f"{value}*", context)
        if spec.storage is Storage.TERMS and spec.type != "ip" and options.kind == "bool_prefix":
            return on_texts(spec, PrefixQuery(path=spec.path, prefix=str(value)))
        is_indexed = not spec.options.get("runtime")
        if spec.type == "keyword" and options.fuzziness is not None and is_indexed:
            return word_query(spec.path, (str(value),), options, Storage.TERMS)
        return exact(spec.path, value, context)
    except SearchError as error:
        if options.lenient:
            return MatchNoneQuery(reason=f"failed [{spec.path}] query, caused by {error.kind}")
        raise


def read_options(clause: Clause, kind: str, context: QueryContext) -> MatchOptions:
    """Read what the clauses here and `multi_match` have in common, as far as a kind has it."""
    given: dict[str, Any] = {"kind": kind, "analyzer": clause.string("analyzer")}
    if kind in ("boolean", "bool_prefix"):
        given["operator"] = clause.choice("operator", "or", ("or", "and"))
        given["minimum"] = clause.string("minimum_should_match")
        given["fuzziness"] = clause.string("fuzziness")
        given["prefix_length"] = clause.integer("prefix_length", 0)
        given["transpositions"] = clause.flag("fuzzy_transpositions", True)
        given["fuzzy_rewrite"] = parse_rewrite(clause.string("fuzzy_rewrite"), context)
    if kind == "boolean":
        given["lenient"] = clause.flag("lenient", False)
        given["synonyms_as_phrases"] = clause.flag("auto_generate_synonyms_phrase_query", True)
        clause.ignore("cutoff_frequency")
    if kind in ("phrase", "phrase_prefix"):
        given["slop"] = clause.integer("slop", 0)
    if kind != "phrase":
        given["max_expansions"] = clause.integer("max_expansions", 50)
    if kind != "bool_prefix":
        given["zero_terms"] = clause.choice("zero_terms_query", "none", ("none", "all"))
    if given.get("slop", 0) < 0:
        raise malformed("No negative slop allowed.")
    if given.get("max_expansions", 1) <= 0:
        raise malformed(f"[{clause.kind}] requires maxExpansions to be positive.")
    return MatchOptions(**given)


@dataclass(frozen=True, slots=True)
class _OfField:
    """A clause for a text on one field. value: the text, or its slot."""

    path: str
    value: Any
    options: MatchOptions
    boost: float
    name: str | None

    @classmethod
    def read(cls, name: str, kind: str, body: Mapping[str, Any], context: QueryContext) -> "_OfField":
        path, clause = field_clause(name, body, "query")
        value = clause.sought("query")
        if isinstance(value, dict | list):
            clause.refuse("query", value)
        options = read_options(clause, kind, context)
        clause.done()
        if value is None:
            raise malformed("No text specified for text query")
        if options.analyzer is not None:
            context.analyzers.analyzer(options.analyzer)
        return cls(path, value, options, clause.boost, clause.name)

    def query(self, value: Any, context: QueryContext) -> Query:
        return boosted(match_field(self.path, value, self.options, context), self.boost, self.name)


def _parser(name: str, kind: str) -> ClauseParser:
    def parse_it(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
        found = _OfField.read(name, kind, body, context)
        return found.query(found.value, context)

    return parse_it


def _form(name: str, kind: str) -> ClauseForm:
    def read_it(body: Mapping[str, Any], context: QueryContext, form: Form) -> Make:
        found = _OfField.read(name, kind, body, context)
        number = form.open(found.value)
        spec = context.mapping.field(found.path)
        if spec is None or spec.storage is not Storage.TEXT:
            return lambda values, context: found.query(values[number], context)
        match = _match_text(spec, found.options, context)
        return lambda values, context: boosted(match(values[number]), found.boost, found.name)

    return read_it


# `multi_match`: several fields, and the blended statistics of its type cross_fields.

# A term looked for in several fields as though they were one, as `cross_fields` does.
#
# Every field counts the documents of the field where the term is most frequent, and one more for each field
# where it is rarer, so that where a word happens to be rare does not decide. Source: Elasticsearch's
# BlendedTermQuery.


@dataclass(frozen=True, kw_only=True)
class BlendedQuery(RewrittenQuery):
    """The best score of a term in a field, and tie_breaker of the others'. fields are (path, boost)."""

    fields: tuple[tuple[str, float], ...]
    terms: tuple[str, ...]
    tie_breaker: float = 0.0

    def boost_max(self) -> float:
        return self.boost * max(boost for _, boost in self.fields)

    def rewritten(self, searcher: Searcher) -> Query:
        """The terms with their blended numbers of documents, in this searcher."""
        return searcher.keep(("blended", self), lambda: self._blend(searcher))

    def _blend(self, searcher: Searcher) -> Query:
        own = {(path, term): searcher.doc_freq(path, term) for path, _ in self.fields for term in self.terms}
        statistics = {path: searcher.statistics(path) for path, _ in self.fields}
        limit = min(searcher.doc_count, *(of_field.total_terms for of_field in statistics.values()))
        blended = dict(own)
        shared = previous = max(own.values())
        for one in sorted(own, key=lambda one: -own[one]):
            if not own[one]:
                break
            shared += own[one] < previous
            blended[one] = min(statistics[one[0]].doc_count, limit, shared)
            previous = own[one]
        terms = tuple(
            TermQuery(path=path, term=term, boost=boost, doc_freq=blended[path, term])
            for path, boost in self.fields
            for term in self.terms
        )
        return DisMaxQuery(queries=terms, tie_breaker=self.tie_breaker) if len(terms) > 1 else terms[0]

    def text(self) -> str:
        terms = [
            f"{path}:{term}" + (f"^{boost}" if boost != 1 else "")
            for path, boost in self.fields
            for term in self.terms
        ]
        return f"blended(terms:[{', '.join(terms)}])"


# `multi_match`: one text on several fields, and how their scores are joined.

TYPES = ("best_fields", "most_fields", "cross_fields", "phrase", "phrase_prefix", "bool_prefix")
KINDS = {"phrase": "phrase", "phrase_prefix": "phrase_prefix", "bool_prefix": "bool_prefix"}
TIE_BREAKERS = {"most_fields": 1.0, "bool_prefix": 1.0}
FIELDS_MAX = 1024

Boosts = dict[str, float]
"""Boosts by field."""


def expand_fields(fields: Iterable[str], context: QueryContext) -> tuple[Boosts, bool]:
    """Fields such as `title^2` or `*_name` less those that cannot be asked, and whether they name all (`*`).

    A field that no mapping has stays: it matches nothing.
    """
    boosts: Boosts = {}
    everything = False
    for given in fields:
        pattern, caret, text = given.partition("^")
        try:
            boost = float(text) if caret else 1.0
        except ValueError:
            raise number_format(text) from None
        if not 0 <= boost <= SCORE_MAX:
            raise illegal_request(
                f"negative [boost] are not allowed in [{given}], use a value between 0 and 1 to deboost"
            )
        everything |= pattern == "*"
        paths = [pattern]
        if "*" in pattern:
            paths = [spec.path for spec in context.mapping.match(pattern) if _may_be_asked(spec)]
        for path in paths:
            boosts[path] = boosts.get(path, 1.0) * boost
    if len(boosts) > FIELDS_MAX:
        raise illegal_argument(
            f"field expansion matches too many fields, got: {len(boosts)}. Limit: {FIELDS_MAX}"
        )
    return boosts, everything


def _may_be_asked(spec: FieldSpec) -> bool:
    return spec.indexed and spec.storage not in (Storage.NONE, Storage.CODES, Storage.POINTS, Storage.VECTORS)


def multi_match(
    boosts: Boosts,
    value: Any,
    type_name: str,
    options: MatchOptions,
    tie_breaker: float | None,
    context: QueryContext,
) -> Query:
    """The query for a value on several fields."""
    tie = TIE_BREAKERS.get(type_name, 0.0) if tie_breaker is None else tie_breaker
    if type_name == "cross_fields":
        queries = _cross_fields(boosts, value, options, context, tie)
    else:
        options = replace(options, kind=KINDS.get(type_name, "boolean"))
        queries = [
            boosted(match_field(path, value, options, context), boost) for path, boost in boosts.items()
        ]
    if not queries:
        return MatchNoneQuery(reason="No fields to match")
    asked = [query for query in queries if not is_wordless(query)] or queries[:1]
    return asked[0] if len(asked) == 1 else DisMaxQuery(queries=tuple(asked), tie_breaker=tie)


def _cross_fields(
    boosts: Boosts, value: Any, options: MatchOptions, context: QueryContext, tie: float
) -> list[Query]:
    """One query for each group of fields with the same analyzer, whose terms are those of one large field."""
    groups: dict[str, list[tuple[str, float]]] = {}
    queries: list[Query] = []
    for path, boost in boosts.items():
        spec = context.mapping.field(path)
        if spec is None or spec.storage is not Storage.TEXT:
            queries.append(boosted(match_field(path, value, options, context), boost))
        else:
            groups.setdefault(options.analyzer or spec.search_analyzer, []).append((spec.path, boost))
    for fields in groups.values():
        spec = context.mapping.field(fields[0][0])
        assert spec is not None
        if len(fields) == 1:
            queries.append(boosted(match_field(spec.path, value, options, context), fields[0][1]))
            continue
        leaves = _BlendedLeaves(tuple(fields), options, tie)
        graph = graph_of(context.analyzers.analyzer(options.analyzer or spec.search_analyzer), str(value))
        if graph is not None:
            made = Leaves(leaves.word, leaves.phrase)
            queries.append(graph_words(graph, options, context.max_clause_count, made))
            continue
        places = places_of(str(value), spec, context, options.analyzer)
        if places:
            queries.append(combined([leaves.word(terms) for _, terms in places], options))
    return queries


@dataclass(frozen=True, slots=True)
class _BlendedLeaves:
    """What a place and a phrase become in fields that are one."""

    fields: tuple[tuple[str, float], ...]
    options: MatchOptions
    tie: float

    def word(self, terms: tuple[str, ...]) -> Query:
        return BlendedQuery(fields=self.fields, terms=terms, tie_breaker=self.tie)

    def phrase(self, places: Places) -> Query:
        if len(places) == 1:
            return self.word(places[0][1])
        found = [boosted(phrase_query(path, places, self.options), boost) for path, boost in self.fields]
        return found[0] if len(found) == 1 else DisMaxQuery(queries=tuple(found), tie_breaker=self.tie)


@dataclass(frozen=True, slots=True)
class _Request:
    value: Any
    type_name: str
    tie_breaker: float | None
    options: MatchOptions


def _read(clause: Clause, context: QueryContext) -> _Request:
    value = clause.take("query")
    if value is None:
        raise malformed("No text specified for multi_match query")
    if isinstance(value, dict | list):
        clause.refuse("query", value)
    type_name = clause.word("type", "best_fields").lower()
    if type_name not in TYPES:
        raise malformed(f"failed to parse [multi_match] query type [{type_name}]. unknown type.")
    tie_breaker = clause.number("tie_breaker", 0.0) if "tie_breaker" in clause else None
    if type_name == "bool_prefix" and "slop" in clause:
        raise malformed(f"[slop] not allowed for type [{type_name}]")
    slop = clause.integer("slop", 0)
    if type_name == "cross_fields" and "fuzziness" in clause:
        raise malformed(f"Fuzziness not allowed for type [{type_name}]")
    options = replace(read_options(clause, "boolean", context), slop=slop)
    return _Request(value, type_name, tie_breaker, options)


def _fields(given: Any, context: QueryContext) -> Sequence[str]:
    fields = [given] if isinstance(given, str) else given
    if fields is None:
        return context.default_fields
    if not isinstance(fields, list) or any(isinstance(field, dict | list | None) for field in fields):
        raise malformed("[multi_match] query does not support [fields]")
    return [str(field) for field in fields]


def _multi_match(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("multi_match", body)
    fields = _fields(clause.take("fields"), context)
    request = _read(clause, context)
    clause.done()
    boosts, everything = expand_fields(fields, context)
    options = replace(request.options, lenient=True) if everything else request.options
    query = multi_match(boosts, request.value, request.type_name, options, request.tie_breaker, context)
    return boosted(query, clause.boost, clause.name)


_KINDS = {
    "match": "boolean",
    "match_bool_prefix": "bool_prefix",
    "match_phrase": "phrase",
    "match_phrase_prefix": "phrase_prefix",
}
PARSERS: dict[str, ClauseParser] = {
    **{name: _parser(name, kind) for name, kind in _KINDS.items()},
    "multi_match": _multi_match,
}
FORMS: dict[str, ClauseForm] = {name: _form(name, kind) for name, kind in _KINDS.items()}
