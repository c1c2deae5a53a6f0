"""Cuts a SPARQL text into tokens, one regular expression deep, and counts how deep its brackets nest.

Terminals are the W3C's. The longest match wins whatever the grammar expects, as the specification has it, so
`?a<?b&&?c>?d` holds an IRI. Escapes in IRIs and strings are let through here and checked when they are
decoded. Quantifiers are possessive: no text makes the expression go back over what it has read.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from graphdb.errors import QuerySyntaxError
from graphdb.sparql.tables import END, Tables

__all__ = [
    "IRIREF",
    "NESTING_MAX",
    "STRINGS",
    "Token",
    "bound_triple_terms",
    "braces_of_data_block",
    "fault",
    "tokens",
]

NESTING_MAX = 200  # levels of brackets of any kind within each other

_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
# Possessive groups end with an empty alternative: tests/architecture/test_patterns.py says why.
_NAME = f"0-9_\u00b7\u0300-\u036f\u203f-\u2040{_BASE}"  # VARNAME, but for its first character
_LOCAL = rf"[\-:{_NAME}]++|%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?#@%]"
_LOCALS = rf"(?:{_LOCAL})(?:{_LOCAL}|)*+"
_PREFIX = rf"(?:[{_BASE}][\-{_NAME}]*+(?:\.++[\-{_NAME}]++|)*+)?:"
_EXPONENT = "[eE][+-]?[0-9]++"
_SPACE = r"(?:[ \t\r\n]++|\#[^\r\n]*+|)*+"

IRIREF = r'<(?:[^<>"{}|^`\\\x00-\x20]|\\[uU]|)*+>'
STRINGS = {
    "STRING_LITERAL_LONG1": r"'''(?:'{0,2}+(?:[^'\\]++|\\.)|)*+'''",
    "STRING_LITERAL_LONG2": r'"""(?:"{0,2}+(?:[^"\\]++|\\.)|)*+"""',
    "STRING_LITERAL1": r"'(?!'')(?:[^'\\\n\r]++|\\.|)*+'",
    "STRING_LITERAL2": r'"(?!"")(?:[^"\\\n\r]++|\\.|)*+"',
}
BLANK_NODE_LABEL = rf"_:[0-9_{_BASE}][\-{_NAME}]*+(?:\.++[\-{_NAME}]++|)*+"

_TERMINALS = {
    "VAR1": rf"\?[0-9_{_BASE}][{_NAME}]*+",
    "PNAME_LN": rf"{_PREFIX}(?![\-\u00b7\u0300-\u036f\u203f-\u2040]){_LOCALS}(?:\.++{_LOCALS}|)*+",
    "PNAME_NS": _PREFIX,
    "IRIREF": IRIREF,
    "WORD": "[A-Za-z][A-Za-z0-9_]*+",
    **STRINGS,
    "ANON": rf"\[{_SPACE}\]",
    "NIL": rf"\({_SPACE}\)",
    "DOUBLE": rf"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++){_EXPONENT}",
    "DECIMAL": r"[0-9]*+\.[0-9]++",
    "INTEGER": "[0-9]++",
    "DOUBLE_POSITIVE": rf"\+(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++){_EXPONENT}",
    "DECIMAL_POSITIVE": r"\+[0-9]*+\.[0-9]++",
    "INTEGER_POSITIVE": r"\+[0-9]++",
    "DOUBLE_NEGATIVE": rf"-(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++){_EXPONENT}",
    "DECIMAL_NEGATIVE": r"-[0-9]*+\.[0-9]++",
    "INTEGER_NEGATIVE": r"-[0-9]++",
    "LANG_DIR": r"@[a-zA-Z]++(?:-[a-zA-Z0-9]++|)*+(?:--[a-zA-Z]++|)?+",
    "VAR2": rf"\$[0-9_{_BASE}][{_NAME}]*+",
    "BLANK_NODE_LABEL": BLANK_NODE_LABEL,
    "SIGN": r"<<\(|\)>>|<<|>>|\{\||\|\}|\^\^|\|\||&&|!=|<=|>=|[{}()\[\].,;=<>+\-*/|^!?~]",
}
_TOKEN = re.compile(
    _SPACE + "(?:" + "|".join(f"(?P<{name}>{pattern})" for name, pattern in _TERMINALS.items()) + r"|\Z)",
    re.DOTALL,
)
_OPENING = frozenset(("{", "(", "[", "<<", "<<(", "{|"))
_CLOSING = frozenset(("}", ")", "]", ">>", ")>>", "|}"))

# What stands between the braces of a DATA block, as far as it can hide a brace. A lone sign that begins
# nothing stops it.
_BRACELESS = re.compile(
    rf"(?:[^{{}}\"'<#\\]++|{'|'.join(STRINGS.values())}|{IRIREF}|<<\(?|\#[^\r\n]*+|\\.|)*+", re.DOTALL
)

# The same, as far as it can hide the signs around a triple term.
_TERMLESS = re.compile(
    rf"(?:[^\"'<#\\)]++|{'|'.join(STRINGS.values())}|{IRIREF}|<(?!<\()|\)(?!>>)|\#[^\r\n]*+|\\.|)*+",
    re.DOTALL,
)


class Token(NamedTuple):
    """A piece of the text: the name of its terminal, its characters and their place [start, end), from 0."""

    terminal: str
    text: str
    start: int
    end: int


def tokens(tables: Tables, text: str, large_block: int | None = None) -> Iterator[Token]:
    """The tokens of a text, ending with one of the terminal END.

    A block of braces after DATA that is longer than large_block characters comes as one LARGE_BLOCK without
    text; None takes every block apart. Raises QuerySyntaxError at the first place that begins no token, and
    where brackets nest deeper than NESTING_MAX.
    """
    match, keywords, signs = _TOKEN.match, tables.keywords, tables.signs
    place = depth = nots = 0  # nots: the "!" that wait for their operand
    outer: list[int] = []  # the depth around each open bracket
    terminal = ""
    while found := match(text, place):
        kind, place = found.lastgroup, found.end()
        if kind is None:
            yield Token(END, "", len(text), len(text))
            return
        word, start, before = found[kind], found.start(kind), terminal
        terminal = kind
        if kind == "SIGN":
            terminal = signs[word]
            if word in _CLOSING:
                depth, nots = outer.pop() if outer else 0, 0
            elif word == "!":
                nots += 1
            elif word in _OPENING:
                outer.append(depth)
                depth, nots = depth + nots + 1, 0
            else:
                nots = 0
            if depth + nots > NESTING_MAX:
                raise fault(f"nested deeper than {NESTING_MAX} levels", text, start)
            if (
                before == "DATA"
                and word == "{"
                and large_block is not None
                and len(text) - start > large_block
            ):
                *_, last = braces_of_data_block(text, start)
                end = last + 1
                if end - start > large_block:
                    depth, place = outer.pop(), end
                    terminal, word = "LARGE_BLOCK", ""
        elif kind == "WORD":
            terminal = _keyword(keywords, word, text, start)
        yield Token(terminal, word, start, place)
    raise _bad_start(text, _skip_space(text, place))


def braces_of_data_block(text: str, start: int) -> Iterator[int]:
    """The places of all braces from the one at start to the one that closes it, over strings, IRIs and
    comments.
    """
    place, depth = start, 0
    while True:
        yield place
        depth += 1 if text[place] == "{" else -1
        place += 1
        if not depth:
            return
        found = _BRACELESS.match(text, place)
        assert found is not None
        place = found.end()
        if place == len(text):
            raise fault("expected '}', found the end of the text", text, place)
        if text[place] not in "{}":
            raise _bad_start(text, place)


def bound_triple_terms(text: str, start: int, end: int) -> None:
    """Raises QuerySyntaxError where triple terms nest deeper than NESTING_MAX within a DATA block.

    Whoever reads the block otherwise than by `tokens` must call this first: pyoxigraph overflows its stack on
    terms nested many thousand deep.
    """
    if text.count("<<(", start, end) <= NESTING_MAX:
        return
    place, depth = start, 0
    while found := _TERMLESS.match(text, place, end):
        place = found.end()
        if text.startswith("<<(", place):
            depth += 1
        elif text.startswith(")>>", place):
            depth -= 1
        else:
            return
        if depth > NESTING_MAX:
            raise fault(f"nested deeper than {NESTING_MAX} levels", text, place)
        place += 3


def fault(reason: str, text: str, place: int) -> QuerySyntaxError:
    """The error for a place in the text, counted from 0."""
    line_start = text.rfind("\n", 0, place) + 1
    return QuerySyntaxError(reason, text.count("\n", 0, place) + 1, place - line_start + 1)


def _keyword(keywords: dict[str, str], word: str, text: str, start: int) -> str:
    terminal = keywords.get(word) if word == "a" else keywords.get(word.upper())
    if terminal is None:
        raise fault(f"{_shown(word)} is no word of SPARQL; a prefixed name has a colon", text, start)
    return terminal


def _skip_space(text: str, place: int) -> int:
    found = re.compile(_SPACE).match(text, place)
    assert found is not None
    return found.end()


def _bad_start(text: str, place: int) -> QuerySyntaxError:
    """Why nothing can be read at a place."""
    sign = text[place]
    if text.startswith(("'''", '"""'), place):
        return fault(f"the string that begins with {sign * 3} is not closed", text, place)
    if sign in "'\"":
        return fault(f"the string that begins with {sign} is not closed on its line", text, place)
    if sign == "@":
        return fault("'@' is not followed by a language tag", text, place)
    if sign == "<":
        return fault("'<' begins an IRI with a character that IRIs cannot hold", text, place)
    return fault(f"unexpected character {_shown(sign)}", text, place)


def _shown(word: str) -> str:
    """A word of the text for a message: short, and no control characters."""
    return repr(word if len(word) <= 40 else word[:40] + "…")
