"""`simple_query_string`: as `query_string`, but with few operators, and never a syntax error.

    word  word*  word~1  "a phrase"~2  a + b (and)  a | b (or)  -not  ( )  and a backslash before any of them

Each operator may be switched off by `flags`; its characters then belong to words.

Source: Lucene's SimpleQueryParser.
"""

import re
from collections.abc import Mapping
from typing import Any

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import illegal_request
from graphdb.search.query.clause import (
    Clause,
    ClauseParser,
    Parse,
    QueryContext,
    malformed,
    too_many_clauses,
)
from graphdb.search.query.compound import BoolQuery
from graphdb.search.query.query_string import Settings, read_fields, text_query
from graphdb.search.query.query_syntax import Text, unescaped
from graphdb.search.query.text_queries import MatchOptions, with_minimum
from graphdb.search.query.tree import MatchAllQuery, MatchNoneQuery, Query, boosted

__all__ = ["PARSERS"]

DEPTH_MAX = 30
EDITS_MAX = 2
_SPACES = " \t\n\r"
_FLAGS = {
    "AND", "OR", "NOT", "PREFIX", "PHRASE", "PRECEDENCE", "ESCAPE", "WHITESPACE", "FUZZY", "NEAR",
}  # fmt: skip
_SAME = {"SLOP": "NEAR"}


def _flags(text: str) -> frozenset[str]:
    """Those of a list such as AND|PREFIX. Errors: illegal_argument_exception."""
    found: set[str] = set()
    for name in text.upper().split("|"):
        name = _SAME.get(name, name)
        if name == "ALL":
            found |= _FLAGS
        elif name in _FLAGS:
            found.add(name)
        elif name not in ("", "NONE"):
            raise illegal_request(f"Unknown simple_query_string flag [{name[:100]}]")
    return frozenset(found)


class _Parser:
    def __init__(
        self,
        text: str,
        settings: Settings,
        flags: frozenset[str],
        depth: int = 0,
        read: "_Read | None" = None,
    ) -> None:
        self._text, self._settings, self._flags, self._depth = text, settings, flags, depth
        self._read = read or _Read(settings.context)
        self._place = 0
        signs = {"AND": "+", "OR": "|", "PRECEDENCE": "()", "PHRASE": '"', "WHITESPACE": _SPACES}
        self._ends = "".join(signs[flag] for flag in signs if flag in flags)
        self._closing = self._pairs() if "PRECEDENCE" in flags else {}

    def query(self) -> Query | None:
        """What `|` and `+` join, from left to right."""
        parts: list[Query] = []  # of the result, joined by `joint`; a single one by nothing yet
        asked = joint = None  # the sign before the next operand, and what has joined the result
        negated = False
        while self._place < len(self._text):
            checkpoint()
            character, found = self._text[self._place], None
            if character == "-" and "NOT" in self._flags:
                negated = not negated
                self._place += 1
                continue
            if character not in self._ends:
                found = self._word()
            elif character in "+|":
                asked = asked or character if parts else None
                self._place += 1
            elif character == "(":
                found = self._group()
            elif character == '"':
                found = self._phrase()
            else:
                self._place += 1
            if found is not None:
                self._read.count()
                operator = asked or ("+" if self._settings.options.operator == "and" else "|")
                if len(parts) > 1 and joint != operator:
                    parts = [_joined(parts, joint)]
                joint, asked = operator if parts else None, None
                parts.append(_without(found) if negated else found)
            negated = False
        return _joined(parts, joint) if parts else None

    def _pairs(self) -> dict[int, int]:
        """Where the parenthesis that each one opens is closed."""
        found, opened, place = dict[int, int](), list[int](), 0
        while place < len(self._text):
            character = self._text[place]
            if character == "\\" and "ESCAPE" in self._flags:
                place += 1
            elif character == "(":
                opened.append(place)
            elif character == ")" and opened:
                found[opened.pop()] = place
            place += 1
        return found

    def _group(self) -> Query | None:
        """What stands in parentheses; one that is never closed counts for nothing."""
        start = self._place + 1
        closed = self._closing.get(self._place)
        if closed is None:
            self._place = start
            return None
        self._place = closed + 1
        if self._depth >= DEPTH_MAX:
            return None
        inner = self._text[start:closed]
        return _Parser(inner, self._settings, self._flags, self._depth + 1, self._read).query()

    def _phrase(self) -> Query | None:
        """A phrase, whose end and distance are read; a quote that is never closed counts for nothing."""
        found = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL).match(self._text, self._place)
        if found is None:
            self._place += 1
            return None
        self._place = found.end()
        slop = self._number() if self._is_distance("NEAR") else None
        if not found[1]:
            return None
        suffix = None if slop is None else str(slop)
        return text_query(Text("phrase", self._plain(found[1]), None, suffix), self._settings)

    def _word(self) -> Query | None:
        start, last = self._place, ""
        while self._place < len(self._text):
            character = self._text[self._place]
            if character == "\\" and "ESCAPE" in self._flags:
                self._place += 2
                last = ""
                continue
            if character in self._ends or (self._place > start and self._is_distance("FUZZY")):
                break
            self._place += 1
            last = character
        word = self._text[start : self._place]
        if self._is_distance("FUZZY"):
            edits = str(min(self._number(), EDITS_MAX))
            return text_query(Text("word", self._plain(word), None, edits), self._settings)
        if last == "*" and len(word) > 1 and "PREFIX" in self._flags:
            stem = re.sub(r"(?<!\\)([*?])", r"\\\1", word[:-1])
            return text_query(Text("pattern", stem + "*", None), self._settings)
        return text_query(Text("word", self._plain(word), None), self._settings)

    def _is_distance(self, flag: str) -> bool:
        return flag in self._flags and self._text[self._place : self._place + 1] == "~"

    def _number(self) -> int:
        """What follows `~`: most where nothing does, 0 where it is not a number."""
        start = self._place + 1
        self._place = start
        while self._place < len(self._text) and self._text[self._place] not in self._ends:
            self._place += 1
        digits = self._text[start : self._place]
        if not digits:
            return EDITS_MAX
        return int(digits[:9]) if digits.isdecimal() else 0

    def _plain(self, text: str) -> str:
        return unescaped(text) if "ESCAPE" in self._flags else text


class _Read:
    """How much has been read of a whole query string."""

    def __init__(self, context: QueryContext) -> None:
        self._context, self._operands = context, 0

    def count(self) -> None:
        """One operand more. Errors: too_many_nested_clauses."""
        self._operands += 1
        if self._operands > self._context.max_clause_count:
            raise too_many_clauses(self._context)


def _joined(parts: list[Query], operator: str | None) -> Query:
    """By one operator; a single part by none."""
    if len(parts) == 1:
        return parts[0]
    return BoolQuery(must=tuple(parts)) if operator == "+" else BoolQuery(should=tuple(parts))


def _without(query: Query) -> Query:
    """All others, each with the score of a match of everything."""
    return BoolQuery(should=(MatchAllQuery(),), must_not=(query,))


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
        lenient=clause.flag("lenient", everything or context.lenient),
        synonyms_as_phrases=clause.flag("auto_generate_synonyms_phrase_query", True),
    )
    flags = _flags(clause.word("flags", "ALL"))
    suffix = clause.string("quote_field_suffix")
    clause.ignore("analyze_wildcard")
    clause.done()
    # a document that matches in several fields scores the sum
    settings = Settings(boosts, context, options, tie_breaker=1.0, quote_field_suffix=suffix)
    query = _Parser(text, settings, flags).query() or MatchNoneQuery(reason="empty query string")
    return boosted(with_minimum(query, minimum), clause.boost, clause.name)


PARSERS: dict[str, ClauseParser] = {"simple_query_string": _simple_query_string}
