"""The clauses that stand for many terms: `prefix`, `wildcard`, `regexp`, `fuzzy`."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from graphdb.search.analysis import PREFIX_LENGTH_MAX
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.value_formats import term_of
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, field_clause
from graphdb.search.query.dictionary_queries import (
    FuzzyQuery,
    PrefixQuery,
    RegexpQuery,
    WildcardQuery,
    edits_of,
)
from graphdb.search.query.field_types import on_texts
from graphdb.search.query.regexp import Regexp
from graphdb.search.query.rewrites import parse_rewrite, rewritten_by
from graphdb.search.query.term_level import exists_query, index_query, unmapped
from graphdb.search.query.term_queries import KeywordQuery, TermQuery, TermsQuery
from graphdb.search.query.tree import Query, boosted

__all__ = ["PARSERS", "check_length", "normalized_pattern", "prefix_on", "regexp_on", "wildcard_on"]


_KEPT = re.compile(r"(\\.|[*?]+)", re.DOTALL)  # of a pattern: what is not text


def normalized_pattern(pattern: str, normalize: Callable[[str], str]) -> str:
    """A pattern whose texts are as a field keeps them; wildcards, and what a backslash takes, stay."""
    parts = enumerate(_KEPT.split(pattern))
    return "".join(part if place % 2 else normalize(part) if part else "" for place, part in parts)


def _texts_only(spec: FieldSpec, kind: str, context: QueryContext, but: tuple[str, ...] = ()) -> None:
    """but: types with texts that such a query is not for."""
    but = but if kind != "fuzzy" or not spec.options.get("runtime") else (*but, spec.type)
    is_text = spec.storage in (Storage.TEXT, Storage.TERMS) and spec.type not in ("ip", "_index", *but)
    if not is_text:
        raise context.failed(
            f"Can only use {kind} queries on keyword, text and wildcard fields - not on [{spec.path}] "
            f"which is of type [{spec.type}]"
        )


def _normalized(spec: FieldSpec, value: str) -> str:
    """As a keyword's normalizer writes it."""
    is_plain = spec.storage is Storage.TEXT or spec.type in ("constant_keyword", "version")
    return value if is_plain else str(term_of(spec, value))


def prefix_on(path: str, value: str, context: QueryContext, case_insensitive: bool = False) -> Query:
    """Terms of a field that begin with a value."""
    spec = context.mapping.field(path)
    if spec is None:
        return unmapped(path)
    if path == "_index":
        value = value.lower() if case_insensitive else value
        return index_query(value + "*", context)
    _texts_only(spec, "prefix", context)
    if spec.type == "search_as_you_type" and not case_insensitive and 1 <= len(value) <= PREFIX_LENGTH_MAX:
        # The beginnings of its shingles are terms of this field. So a prefix may span several words.
        beginnings = context.mapping.field(f"{spec.path}._index_prefix")
        if beginnings is not None:
            return on_texts(beginnings, TermsQuery(path=beginnings.path, terms=(value,)))
    context.check_expensive(
        "[prefix] queries", " For optimised prefix queries on text fields please enable [index_prefixes]."
    )
    path = spec.path
    value = _normalized(spec, value)
    if case_insensitive:
        return on_texts(spec, WildcardQuery.literal(path, value, then_any=True))
    return on_texts(spec, PrefixQuery(path=path, prefix=value))


def wildcard_on(
    path: str, value: str, context: QueryContext, case_insensitive: bool = False, is_scored: bool = False
) -> Query:
    """Terms of a field that a pattern matches; `*` alone means that the field exists, unless terms score."""
    spec = context.mapping.field(path)
    if spec is None:
        return unmapped(path)
    if path == "_index":
        value = value.lower() if case_insensitive else value
        return index_query(value, context, any_character=True)
    _texts_only(spec, "wildcard", context)
    context.check_expensive("[wildcard] queries")
    path = spec.path
    if value and not value.strip("*") and not is_scored:
        return on_texts(spec, exists_query((path,)))
    if spec.storage is not Storage.TEXT:
        value = normalized_pattern(value, lambda text: _normalized(spec, text))
    return on_texts(spec, WildcardQuery.of(path, value, case_insensitive))


def check_length(pattern: str, context: QueryContext) -> None:
    """Errors: illegal_argument_exception for a regular expression that is too long."""
    if len(pattern) > context.max_regex_length:
        raise illegal_argument(
            f"The length of regex [{len(pattern)}] used in the Regexp Query request has exceeded the allowed "
            f"maximum of [{context.max_regex_length}]. This maximum can be set by changing the "
            "[index.max_regex_length] index level setting."
        )


def regexp_on(
    path: str, value: str, context: QueryContext, case_insensitive: bool = False, all_syntax: bool = True
) -> Query:
    """Terms of a field that a regular expression matches; fails where it is too long or none."""
    check_length(value, context)
    spec = context.mapping.field(path)
    if spec is None:
        return unmapped(path)
    _texts_only(spec, "regexp", context)
    context.check_expensive("[regexp] queries")
    value = _normalized(spec, value)
    Regexp(value, case_insensitive, all_syntax)
    query = RegexpQuery(
        path=spec.path, pattern=value, case_insensitive=case_insensitive, all_syntax=all_syntax
    )
    return on_texts(spec, query)


_REGEXP_FLAGS = ("ALL", "ANYSTRING", "AUTOMATON", "COMPLEMENT", "EMPTY", "INTERSECTION", "INTERVAL", "NONE")


def _read(kind: str, body: Mapping[str, Any]) -> tuple[str, str, Clause]:
    path, clause = field_clause(kind, body, "value")
    old_name = clause.take("wildcard") if kind == "wildcard" else clause.take("prefix")
    value = clause.take("value", old_name)
    if value is None:
        raise illegal_request("value cannot be null")
    if isinstance(value, dict | list):
        clause.refuse("value", value)
    return path, str(value).lower() if isinstance(value, bool) else str(value), clause


def _prefix(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    path, value, clause = _read("prefix", body)
    fold = clause.flag("case_insensitive", False)
    rewrite = parse_rewrite(clause.string("rewrite"), context)
    clause.done()
    query = rewritten_by(prefix_on(path, value, context, fold), rewrite)
    return boosted(query, clause.boost, clause.name)


def _wildcard(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    path, value, clause = _read("wildcard", body)
    fold = clause.flag("case_insensitive", False)
    rewrite = parse_rewrite(clause.string("rewrite"), context)
    clause.done()
    query = rewritten_by(wildcard_on(path, value, context, fold, rewrite is not None), rewrite)
    return boosted(query, clause.boost, clause.name)


def _regexp(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    path, value, clause = _read("regexp", body)
    fold = clause.flag("case_insensitive", False)
    flags = clause.word("flags", "ALL").upper().split("|")
    for flag in flags:
        if flag and flag not in _REGEXP_FLAGS:
            raise illegal_request(f"Unknown regexp flag [{flag[:100]}]")
    rewrite = parse_rewrite(clause.string("rewrite"), context)
    clause.ignore("max_determinized_states", "flags_value")
    clause.done()
    query = rewritten_by(regexp_on(path, value, context, fold, "NONE" not in flags), rewrite)
    return boosted(query, clause.boost, clause.name)


def _fuzzy(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    path, value, clause = _read("fuzzy", body)
    fuzziness = clause.word("fuzziness", "AUTO")
    prefix_length = clause.integer("prefix_length", 0)
    max_expansions = clause.integer("max_expansions", 50)
    transpositions = clause.flag("transpositions", True)
    rewrite = parse_rewrite(clause.string("rewrite"), context)
    clause.done()
    if prefix_length < 0:
        raise illegal_request("prefixLength cannot be negative")
    if not 0 < max_expansions <= context.max_clause_count:
        raise illegal_argument(f"maxExpansions must be between 1 and {context.max_clause_count}")
    spec = context.mapping.field(path)
    if spec is None:
        return boosted(unmapped(path), clause.boost, clause.name)
    _texts_only(spec, "fuzzy", context, ("constant_keyword", "version"))
    context.check_expensive("[fuzzy] queries")
    path, value = spec.path, _normalized(spec, value)
    query: Query
    edits = edits_of(fuzziness, value)
    if edits:
        query = FuzzyQuery(
            path=path,
            term=value,
            edits=edits,
            prefix_length=prefix_length,
            max_expansions=max_expansions,
            transpositions=transpositions,
        )
        query = rewritten_by(query, rewrite)
    else:
        kind = TermQuery if spec.storage is Storage.TEXT else KeywordQuery
        query = kind(path=path, term=value)
    return boosted(query, clause.boost, clause.name)


PARSERS: dict[str, ClauseParser] = {
    "fuzzy": _fuzzy,
    "prefix": _prefix,
    "regexp": _regexp,
    "wildcard": _wildcard,
}
