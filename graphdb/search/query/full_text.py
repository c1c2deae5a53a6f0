"""The clauses for analyzed text on one field: `match`, `match_bool_prefix`, and those for phrases."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphdb.search.errors import SearchError
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.query.clause import (
    Clause,
    ClauseParser,
    Parse,
    QueryContext,
    field_clause,
    malformed,
    minimum_should_match,
)
from graphdb.search.query.compound import BoolQuery
from graphdb.search.query.dictionary_queries import FuzzyQuery, PrefixQuery, edits_of
from graphdb.search.query.phrase import PhrasePrefixQuery, PhraseQuery
from graphdb.search.query.term_level import exact, index_query, unmapped
from graphdb.search.query.term_queries import SynonymQuery, TermQuery
from graphdb.search.query.tree import MatchAllQuery, MatchNoneQuery, Query, boosted

__all__ = ["PARSERS", "MatchOptions", "combined", "match_field", "places_of", "read_options"]


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """How a text becomes a query. kind: boolean, phrase, phrase_prefix or bool_prefix."""

    kind: str = "boolean"
    operator: str = "or"
    minimum: str | None = None
    analyzer: str | None = None
    fuzziness: str | None = None
    prefix_length: int = 0
    max_expansions: int = 50
    transpositions: bool = True
    slop: int = 0
    lenient: bool = False
    zero_terms: str = "none"


Places = list[tuple[int, tuple[str, ...]]]
"""Positions, ascending, with the terms that stand there."""


def places_of(text: str, spec: FieldSpec, context: QueryContext, analyzer: str | None) -> Places:
    """Analyze a text as a field's queries are."""
    terms, positions = context.analyzers.analyzer(analyzer or spec.search_analyzer).tokens(text)
    places: dict[int, dict[str, None]] = {}
    for term, position in zip(terms, positions, strict=True):
        places.setdefault(position, {})[term] = None
    return [(position, tuple(at)) for position, at in sorted(places.items())]


def match_field(path: str, value: Any, options: MatchOptions, context: QueryContext) -> Query:
    """The query for a value on one field, analyzed if the field is of text."""
    spec = context.mapping.field(path)
    if spec is None:
        return unmapped(path)
    path = spec.path
    if spec.storage is not Storage.TEXT:
        return _match_exact(spec, value, options, context)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    places = places_of(text, spec, context, options.analyzer)
    if not places:
        return _nothing_left(options)
    if options.kind == "phrase":
        return _phrase(path, places, options)
    if options.kind == "phrase_prefix":
        return _phrase_prefix(path, places, options)
    return _words(path, places, options)


def _nothing_left(options: MatchOptions) -> Query:
    """Every word was a stop word."""
    return MatchAllQuery() if options.zero_terms == "all" else MatchNoneQuery(reason="Matching no documents")


def _match_exact(spec: FieldSpec, value: Any, options: MatchOptions, context: QueryContext) -> Query:
    try:
        if spec.type == "_index" and options.kind.endswith("prefix"):
            return index_query(f"{value}*", context)
        if spec.storage is Storage.TERMS and spec.type != "ip" and options.kind.endswith("prefix"):
            return PrefixQuery(path=spec.path, prefix=str(value))
        if spec.type == "keyword" and options.fuzziness is not None:
            return _word(spec.path, (str(value),), options, Storage.TERMS)
        return exact(spec.path, value, context)
    except SearchError as error:
        if options.lenient:
            return MatchNoneQuery(reason=f"failed [{spec.path}] query, caused by {error.kind}")
        raise


def _word(path: str, terms: tuple[str, ...], options: MatchOptions, storage: Storage = Storage.TEXT) -> Query:
    """The query for one place in the text."""
    if len(terms) > 1:
        return SynonymQuery(path=path, terms=terms)
    edits = 0 if options.fuzziness is None else edits_of(options.fuzziness, terms[0])
    if edits or storage is not Storage.TEXT:
        return FuzzyQuery(
            path=path,
            term=terms[0],
            edits=edits,
            prefix_length=options.prefix_length,
            max_expansions=options.max_expansions,
            transpositions=options.transpositions,
        )
    return TermQuery(path=path, term=terms[0])


def _words(path: str, places: Places, options: MatchOptions) -> Query:
    words = [_word(path, terms, options) for _, terms in places]
    if options.kind == "bool_prefix":
        words[-1] = PrefixQuery(path=path, prefix=places[-1][1][0])
    return combined(words, options)


def combined(words: list[Query], options: MatchOptions) -> Query:
    """Join the queries of the words by operator and minimum_should_match."""
    if len(words) == 1:
        return words[0]
    if options.operator == "and":
        return BoolQuery(must=tuple(words))
    minimum = 0 if options.minimum is None else minimum_should_match(len(words), options.minimum)
    return BoolQuery(should=tuple(words), minimum=minimum)


def _phrase(path: str, places: Places, options: MatchOptions) -> Query:
    if len(places) == 1:
        return _word(path, places[0][1], replace(options, fuzziness=None))
    first = places[0][0]
    return PhraseQuery(
        path=path,
        places=tuple(terms for _, terms in places),
        offsets=tuple(position - first for position, _ in places),
        slop=options.slop,
    )


def _phrase_prefix(path: str, places: Places, options: MatchOptions) -> Query:
    first, last = places[0][0], places[-1]
    return PhrasePrefixQuery(
        path=path,
        places=tuple(terms for _, terms in places[:-1]),
        offsets=tuple(position - first for position, _ in places[:-1]),
        prefix=last[1][0],
        prefix_offset=last[0] - first,
        slop=options.slop,
        max_expansions=options.max_expansions,
    )


def read_options(clause: Clause, kind: str) -> MatchOptions:
    """Read what the clauses here and `multi_match` have in common, as far as a kind has it."""
    given: dict[str, Any] = {"kind": kind, "analyzer": clause.string("analyzer")}
    if kind in ("boolean", "bool_prefix"):
        given["operator"] = clause.choice("operator", "or", ("or", "and"))
        given["minimum"] = clause.string("minimum_should_match")
        given["fuzziness"] = clause.string("fuzziness")
        given["prefix_length"] = clause.integer("prefix_length", 0)
        given["transpositions"] = clause.flag("fuzzy_transpositions", True)
        clause.ignore("fuzzy_rewrite")
    if kind == "boolean":
        given["lenient"] = clause.flag("lenient", False)
        clause.ignore("auto_generate_synonyms_phrase_query", "cutoff_frequency")
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


def _parser(name: str, kind: str) -> ClauseParser:
    def parse_it(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
        path, clause = field_clause(name, body, "query")
        value = clause.take("query")
        if isinstance(value, dict | list):
            clause.refuse("query", value)
        options = read_options(clause, kind)
        clause.done()
        if value is None:
            raise malformed("No text specified for text query")
        if options.analyzer is not None:
            context.analyzers.analyzer(options.analyzer)
        return boosted(match_field(path, value, options, context), clause.boost, clause.name)

    return parse_it


PARSERS: dict[str, ClauseParser] = {
    "match": _parser("match", "boolean"),
    "match_bool_prefix": _parser("match_bool_prefix", "bool_prefix"),
    "match_phrase": _parser("match_phrase", "phrase"),
    "match_phrase_prefix": _parser("match_phrase_prefix", "phrase_prefix"),
}
