"""`simple_query_string`: as `query_string`, but with few operators, and never a syntax error.

    word  word*  word~1  "a phrase"~2  a + b (and)  a | b (or)  -not  ( )  and a backslash before any of them

Source: Lucene's SimpleQueryParser. Of `flags` only ALL and NONE are known by name; any other list is as ALL.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphdb.search.query.bool_query import BoolQuery
from graphdb.search.query.clause import Clause, malformed
from graphdb.search.query.context import QueryContext
from graphdb.search.query.full_text import MatchOptions
from graphdb.search.query.minimum import minimum_should_match
from graphdb.search.query.parsers import ClauseParser, Parse
from graphdb.search.query.query_string import Settings, read_fields, text_query
from graphdb.search.query.query_syntax import Text, unescaped
from graphdb.search.query.tree import MatchAllQuery, MatchNoneQuery, Query, boosted

__all__ = ["PARSERS"]

DEPTH_MAX = 30
TOKEN = re.compile(
    r'\s*(?:(?P<sign>[()|+])|(?P<not>-)|"(?P<phrase>(?:[^"\\]|\\.)*)"(?:~(?P<slop>\d+))?'
    r'|(?P<word>(?:[^\s()|+"\\]|\\.)+)|(?P<rest>.))',
    re.DOTALL,
)


class _Parser:
    def __init__(self, text: str, settings: Settings) -> None:
        self._tokens = [found for found in TOKEN.finditer(text) if found["rest"] is None]
        self._place = 0
        self._settings = settings

    def group(self, depth: int) -> Query | None:
        """Up to a closing parenthesis, or the end: what `|` and `+` join, from left to right."""
        result: Query | None = None
        operator = None
        negated = False
        while self._place < len(self._tokens):
            token = self._tokens[self._place]
            self._place += 1
            if token["sign"] == ")":
                if depth:
                    break
                continue
            if token["sign"] in ("|", "+"):
                operator = token["sign"]
                continue
            if token["not"]:
                negated = not negated
                continue
            query = self._operand(token, depth)
            if query is not None:
                result = self._joined(result, _without(query) if negated else query, operator)
            operator, negated = None, False
        return result

    def _operand(self, token: re.Match[str], depth: int) -> Query | None:
        if token["sign"] == "(":
            return self.group(depth + 1) if depth < DEPTH_MAX else None
        if token["phrase"] is not None:
            return text_query(Text("phrase", unescaped(token["phrase"]), None, token["slop"]), self._settings)
        word = token["word"]
        found = re.fullmatch(r"(.+?)~(\d*)", word, re.DOTALL)
        if found is not None:
            edits = str(min(2, int(found[2]))) if found[2] else self._settings.fuzziness
            return text_query(Text("word", unescaped(found[1]), None, edits), self._settings)
        if word.endswith("*") and not word.endswith("\\*"):
            stem = re.sub(r"(?<!\\)([*?])", r"\\\1", word[:-1])
            return text_query(Text("pattern", stem + "*", None), self._settings)
        return text_query(Text("word", unescaped(word), None), self._settings)

    def _joined(self, left: Query | None, right: Query, operator: str | None) -> Query:
        if left is None:
            return right
        operator = operator or ("+" if self._settings.options.operator == "and" else "|")
        if operator == "+":
            before = left.must if isinstance(left, BoolQuery) and left.must and not left.should else (left,)
            return BoolQuery(must=(*before, right))
        before = left.should if isinstance(left, BoolQuery) and left.should and not left.must else (left,)
        return BoolQuery(should=(*before, right))


def _without(query: Query) -> Query:
    return BoolQuery(filter=(MatchAllQuery(),), must_not=(query,))


def _simple_query_string(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("simple_query_string", body)
    text = clause.string("query")
    if text is None:
        raise malformed("[simple_query_string] query text missing")
    boosts, everything = read_fields(clause, context)
    minimum = clause.string("minimum_should_match")
    options = MatchOptions(
        operator=clause.choice("default_operator", "or", ("or", "and")),
        analyzer=clause.string("analyzer"),
        prefix_length=clause.integer("fuzzy_prefix_length", 0),
        max_expansions=clause.integer("fuzzy_max_expansions", 50),
        transpositions=clause.flag("fuzzy_transpositions", True),
        lenient=clause.flag("lenient", everything),
    )
    plain = clause.word("flags", "ALL").upper() == "NONE"
    clause.ignore("analyze_wildcard", "auto_generate_synonyms_phrase_query", "quote_field_suffix")
    clause.done()
    settings = Settings(boosts, context, options)
    query = text_query(Text("word", text, None), settings) if plain else _Parser(text, settings).group(0)
    if isinstance(query, BoolQuery) and query.should and not query.must and minimum is not None:
        query = replace(query, minimum=minimum_should_match(len(query.should), minimum))
    return boosted(query or MatchNoneQuery(reason="empty query string"), clause.boost, clause.name)


PARSERS: dict[str, ClauseParser] = {"simple_query_string": _simple_query_string}
