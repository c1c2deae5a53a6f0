"""`query_string`: a text with operators becomes a query; see query_syntax.py for what may stand in it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from graphdb.search.errors import SearchError
from graphdb.search.fields import Storage
from graphdb.search.query.clause import (
    Clause,
    ClauseParser,
    Parse,
    QueryContext,
    malformed,
)
from graphdb.search.query.compound import BoolQuery, DisMaxQuery
from graphdb.search.query.field_types import on_texts
from graphdb.search.query.full_text import TIE_BREAKERS, Boosts, expand_fields, match_field, multi_match
from graphdb.search.query.multi_terms import (
    check_length,
    normalized_pattern,
    prefix_on,
    regexp_on,
    wildcard_on,
)
from graphdb.search.query.query_syntax import Group, Leafs, Span, Text, parse_query_string, unescaped
from graphdb.search.query.ranges import Bounds, range_on
from graphdb.search.query.rewrites import Rewrite, parse_rewrite, rewritten_by
from graphdb.search.query.term_level import exists_query
from graphdb.search.query.text_queries import MatchOptions, is_wordless, with_minimum, word_query
from graphdb.search.query.tree import MatchAllQuery, MatchNoneQuery, Query, boosted

__all__ = ["PARSERS", "Settings", "read_fields", "text_query"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How the texts in a query string are looked for. options is about words and phrases."""

    boosts: Boosts
    context: QueryContext
    options: MatchOptions
    type_name: str = "best_fields"
    tie_breaker: float | None = None
    phrase_tie_breaker: float | None = None
    fuzziness: str = "AUTO"
    time_zone: str | None = None
    leading_wildcard: bool = True
    quote_field_suffix: str | None = None  # of the fields that phrases are looked for in
    quote_analyzer: str | None = None
    rewrite: Rewrite | None = None
    everything: bool = False  # whether it looks in all fields


def _build(node: Leafs, settings: Settings) -> Query | None:
    """None where a stop word is all there is."""
    match node:
        case Group():
            built = _build_group(node, settings)
        case Span():
            built = _on_fields(node.field, settings, lambda path: _span(path, node, settings))
        case Text():
            built = text_query(node, settings)
    return None if built is None else boosted(built, node.boost)


def _build_group(group: Group, settings: Settings) -> Query | None:
    parts: dict[str, list[Query]] = {"+": [], "-": [], "": []}
    for sign, inner in group.clauses:
        query = _build(inner, settings)
        is_run = isinstance(inner, Text) and inner.kind == "words"
        if is_run and isinstance(query, BoolQuery) and query.boost == 1.0:
            parts["+"] += query.must  # the words stand in the group as though each were a clause
            parts[""] += query.should
        elif query is not None:
            parts[sign].append(query)
    must, must_not, should = parts["+"], parts["-"], parts[""]
    if not (must or must_not or should):
        return None
    if len(must) + len(should) == 1 and not must_not:
        return (must + should)[0]
    if not must and not should:
        return BoolQuery(filter=(MatchAllQuery(),), must_not=tuple(must_not))
    return BoolQuery(must=tuple(must), should=tuple(should), must_not=tuple(must_not))


def _on_fields(field: str | None, settings: Settings, make: Any) -> Query | None:
    """The best of a query on each field; a field that cannot have it is left out where that is allowed."""
    boosts = settings.boosts
    if field is not None:
        boosts, _ = expand_fields([field], settings.context)
    queries: list[Query] = []
    for path, boost in boosts.items():
        try:
            queries.append(boosted(make(path), boost))
        except SearchError:
            if not settings.options.lenient:
                raise
    if not queries:
        return MatchNoneQuery(reason="No fields to match")
    if len(queries) == 1:
        return queries[0]
    return DisMaxQuery(queries=tuple(queries), tie_breaker=settings.tie_breaker or 0.0)


def _span(path: str, node: Span, settings: Settings) -> Query:
    low, high = node.low, node.high
    spec = settings.context.mapping.field(path)
    if spec is not None and spec.storage is Storage.TEXT:  # a `range` clause takes its bounds as they are
        name = settings.options.analyzer or spec.search_analyzer
        normalize = settings.context.analyzers.analyzer(name).normalize
        low, high = (None if bound is None else normalize(bound) for bound in (low, high))
    bounds = Bounds(low, node.with_low, high, node.with_high)
    return range_on(path, bounds, settings.context, settings.time_zone)


def text_query(node: Text, settings: Settings) -> Query | None:
    """The query for a word, phrase, pattern or regular expression."""
    if node.kind == "all":
        return MatchAllQuery()
    if node.field == "_exists_":
        spec = settings.context.mapping.field(node.text)
        found = exists_query((node.text if spec is None else spec.path,))
        return found if spec is None else on_texts(spec, found)
    if node.kind == "pattern":
        return _pattern(node, settings)
    if node.kind == "regexp":
        check_length(node.text, settings.context)
        return _on_fields(node.field, settings, partial(_regexp, node.text, settings))
    boosts = settings.boosts
    if node.field is not None:
        boosts, _ = expand_fields([node.field], settings.context)
    options, type_name, tie = settings.options, settings.type_name, settings.tie_breaker
    if node.kind == "phrase":
        slop = options.slop if not node.suffix else int(float(node.suffix))
        options = replace(options, slop=slop, analyzer=settings.quote_analyzer or options.analyzer)
        boosts, type_name = _quoted(boosts, settings), "phrase"
        tie = settings.phrase_tie_breaker
    elif node.suffix is not None:
        return _on_fields(node.field, settings, partial(_fuzzy, node, settings))
    found = multi_match(boosts, node.text, type_name, options, tie, settings.context)
    return None if is_wordless(found) else found


def _fuzzy(node: Text, settings: Settings, path: str) -> Query:
    """A word that is not analyzed, only written as the field writes words."""
    options = replace(settings.options, fuzziness=node.suffix or settings.fuzziness)
    spec, text = settings.context.mapping.field(path), node.text
    if spec is None or spec.storage is not Storage.TEXT:
        return match_field(path, text, options, settings.context)
    analyzer = settings.context.analyzers.analyzer(options.analyzer or spec.search_analyzer)
    return word_query(spec.path, (analyzer.normalize(text),), options)


def _quoted(boosts: Boosts, settings: Settings) -> Boosts:
    """The fields that a phrase is looked for in: those with the suffix, where they exist."""
    suffix, mapping = settings.quote_field_suffix, settings.context.mapping
    if suffix is None:
        return boosts
    return {path + suffix if mapping.field(path + suffix) else path: boost for path, boost in boosts.items()}


def _regexp(text: str, settings: Settings, path: str) -> Query:
    """As Lucene has it, a text field's analyzer normalizes all of the expression."""
    spec = settings.context.mapping.field(path)
    if spec is not None and spec.storage is Storage.TEXT:
        text = settings.context.analyzers.analyzer(spec.search_analyzer).normalize(text)
    return rewritten_by(regexp_on(path, text, settings.context), settings.rewrite)


def _pattern(node: Text, settings: Settings) -> Query | None:
    if node.text == "*" and node.field is None and settings.everything:
        return MatchAllQuery()
    if node.text[:1] in "*?" and not settings.leading_wildcard and node.text != "*":
        raise settings.context.failed(f"Failed to parse query [{node.text}]")
    context = settings.context

    def on(path: str) -> Query:
        spec = context.mapping.field(path)
        text = node.text
        if spec is not None and spec.storage is Storage.TEXT:
            text = normalized_pattern(text, context.analyzers.analyzer(spec.search_analyzer).normalize)
        stem = text[:-1]
        if text.endswith("*") and stem and not set(stem) & set("*?\\"):
            return rewritten_by(prefix_on(path, unescaped(stem), context), settings.rewrite)
        if spec is not None and node.text == "*":
            return on_texts(spec, exists_query((spec.path,)))
        return rewritten_by(wildcard_on(path, text, context), settings.rewrite)

    return _on_fields(node.field, settings, on)


def read_fields(clause: Clause, context: QueryContext) -> tuple[Boosts, bool]:
    """The fields that a query string names, else the index's; and whether those are all."""
    given = clause.take("fields")
    single = clause.string("default_field") if clause.kind == "query_string" else None
    if given is not None:
        if not isinstance(given, list) or any(isinstance(one, dict | list | None) for one in given):
            raise malformed(f"[{clause.kind}] query does not support [fields]")
        given = [str(one) for one in given]
    if given and single is not None:
        raise context.failed(
            "Validation Failed: 1: [query_string] cannot use [fields] parameter in conjunction with "
            "[default_field];"
        )
    fields = given or ([single] if single else context.default_fields)
    return expand_fields(fields, context)


def _query_string(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("query_string", body)
    text = clause.needed("query") if "query" in clause else None
    if text is None:
        raise malformed("[query_string] must be provided with a [query]")
    boosts, everything = read_fields(clause, context)
    operator = clause.choice("default_operator", "or", ("or", "and"))
    minimum = clause.string("minimum_should_match")
    options = MatchOptions(
        operator=operator,
        analyzer=clause.string("analyzer"),
        prefix_length=clause.integer("fuzzy_prefix_length", 0),
        max_expansions=clause.integer("fuzzy_max_expansions", 50),
        transpositions=clause.flag("fuzzy_transpositions", True),
        fuzzy_rewrite=parse_rewrite(clause.string("fuzzy_rewrite"), context),
        lenient=clause.flag("lenient", everything or context.lenient),
        synonyms_as_phrases=clause.flag("auto_generate_synonyms_phrase_query", True),
        slop=clause.integer("phrase_slop", 0),
    )
    type_name = clause.word("type", "best_fields").lower()
    tie = clause.number("tie_breaker", TIE_BREAKERS.get(type_name, 0.0))
    settings = Settings(
        boosts,
        context,
        options,
        type_name,
        tie,
        tie,
        clause.word("fuzziness", "AUTO"),
        clause.string("time_zone"),
        clause.flag("allow_leading_wildcard", True),
        clause.string("quote_field_suffix"),
        clause.string("quote_analyzer"),
        parse_rewrite(clause.string("rewrite"), context),
        everything,
    )
    clause.ignore("analyze_wildcard", "enable_position_increments", "escape", "max_determinized_states")
    clause.done()
    try:
        query = _build(parse_query_string(str(text), operator == "and"), settings)
    except SearchError as error:
        if error.kind != "parse_exception":
            raise
        raise context.failed(f"Failed to parse query [{text}]", error) from None
    query = with_minimum(query or MatchNoneQuery(reason="empty query string"), minimum)
    return boosted(query, clause.boost, clause.name)


PARSERS: dict[str, ClauseParser] = {"query_string": _query_string}
