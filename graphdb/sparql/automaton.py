"""Drives the LALR(1) tables over the tokens of a text, and says why a token does not fit.
It does not know the tree that is made.

It does by itself what `Lark.parse` would do, because it is the innermost loop of every request: it keeps no
token objects, builds no tree between, hands the builder of one text its values directly (so that parsing is
thread-safe without a lock) and skips the work for rules that only pass a value on.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from graphdb.sparql.lexer import Token, fault
from graphdb.sparql.tables import END, Production, Row, Tables, load_tables

__all__ = ["Action", "run"]

# Takes the values of a rule's symbols, and the start and end of what they cover; gives the rule's value.
Action: TypeAlias = Callable[[list[Any], int, int], Any]


def run(tables: Tables, rule: str, actions: dict[str, Action], text: str, source: Iterator[Token]) -> Any:
    """The value of a start rule for a whole text. Raises QuerySyntaxError where a token does not fit."""
    rows = tables.states
    states = [tables.starts[rule]]
    values: list[Any] = []
    starts: list[int] = []
    end_before = 0
    for terminal, word, start, end in source:
        while not isinstance(entry := rows[states[-1]].get(terminal), int):
            if entry is None:
                raise _misfit(rows, states, Token(terminal, word, start, end), text)
            origin, size, action, passes, single, plan, trailing_nones = entry
            if passes:
                states[-1] = rows[states[-2]][origin]  # type: ignore[assignment]
                continue
            if size:
                children, begin = values[-size:], starts[-size]
                del states[-size:], values[-size:], starts[-size:]
            else:
                children, begin = [], end_before
            if plan is not None:
                children = _arranged(plan, children, trailing_nones)
            if action is None:
                value = children
            elif single and len(children) == 1:
                value = children[0]
            else:
                value = actions[action](children, begin, end_before)
            states.append(rows[states[-1]][origin])  # type: ignore[arg-type]
            values.append(value)
            starts.append(begin)
        states.append(entry)
        values.append(word)
        starts.append(start)
        end_before = end
    return values[0]


def _arranged(plan: tuple[tuple[int, bool, int], ...], children: list[Any], trailing_nones: int) -> list[Any]:
    """The values that an action sees. A list to be spliced that comes first is taken over and grown, not
    copied.
    """
    kept: list[Any] = []
    for index, spliced, nones in plan:
        for _ in range(nones):
            kept.append(None)
        if not spliced:
            kept.append(children[index])
        elif kept:
            kept.extend(children[index])
        else:
            kept = children[index]
    for _ in range(trailing_nones):
        kept.append(None)
    return kept


def _misfit(rows: tuple[Row, ...], states: list[int], token: Token, text: str) -> Exception:
    expected = {symbol for symbol in rows[states[-1]] if _fits(rows, states, symbol)}
    return fault(_misfit_in_words(expected, token), text, token.start)


def _fits(rows: tuple[Row, ...], states: list[int], symbol: str) -> bool:
    """Whether a terminal would be shifted in the end; rows also hold some that fail after reducing."""
    if symbol != END and not symbol.isupper():
        return False
    states = list(states)
    while True:
        entry = rows[states[-1]].get(symbol)
        if not isinstance(entry, Production):
            return entry is not None
        if entry.size:
            del states[-entry.size :]
        following = rows[states[-1]][entry.origin]
        assert isinstance(following, int)
        states.append(following)


# What the grammar's terminals are called in a message to a person.

_NAMES_MAX = 12  # more than these are not listed

_KINDS = {
    END: "the end of the text",
    "ANON": "[]",
    "BLANK_NODE_LABEL": "a blank node",
    "IRIREF": "an IRI",
    "LANG_DIR": "a language tag",
    "LARGE_BLOCK": "'{'",
    "NIL": "()",
    "PNAME_LN": "a prefixed name",
    "PNAME_NS": "a prefix",
    "VAR1": "a variable",
    "VAR2": "a variable",
}
_FUNCTIONS = """
    ABS BNODE BOUND CEIL COALESCE CONCAT CONTAINS DATATYPE DAY ENCODE_FOR_URI EXISTS FLOOR HASLANG
    HASLANGDIR HOURS IF IRI ISBLANK ISIRI ISLITERAL ISNUMERIC ISTRIPLE ISURI LANG LANGDIR
    LANGMATCHES LCASE MD5 MINUTES MONTH NOT NOW OBJECT PREDICATE RAND REGEX REPLACE ROUND SAMETERM
    SECONDS SHA1 SHA256 SHA384 SHA512 STR STRAFTER STRBEFORE STRDT STRENDS STRLANG STRLANGDIR STRLEN
    STRSTARTS STRUUID SUBJECT SUBSTR TIMEZONE TRIPLE TZ UCASE URI UUID YEAR COUNT SUM MIN MAX AVG
    SAMPLE GROUP_CONCAT
"""
_NUMBERS = "INTEGER DECIMAL DOUBLE"
_SIGNED = " ".join(f"{kind}_{sign}" for kind in _NUMBERS.split() for sign in ("POSITIVE", "NEGATIVE"))
_STRINGS = "STRING_LITERAL1 STRING_LITERAL2 STRING_LITERAL_LONG1 STRING_LITERAL_LONG2"
# Terminals that may stand wherever any of them may: one name for all when all are expected, longer lists
# first.
_FAMILIES = tuple(
    (name, frozenset(terminals.split()))
    for name, terminals in (
        ("a function", _FUNCTIONS),
        ("a literal", f"TRUE FALSE {_NUMBERS} {_SIGNED} {_STRINGS}"),
        ("a number", f"{_NUMBERS} {_SIGNED}"),
        ("a string", _STRINGS),
    )
)


def _misfit_in_words(expected: set[str], token: Token) -> str:
    """Why a token does not fit where any of the expected terminals would."""
    if token.text == "<" and "IRIREF" in expected:
        return "'<' begins an IRI that is not closed, or has a character that IRIs cannot hold"
    return f"expected {_describe_expected(expected)}, found {_describe_token(token)}"


def _describe_token(token: Token) -> str:
    """What was found, as the text has it."""
    if token.terminal == END:
        return _KINDS[END]
    text = token.text if len(token.text) <= 40 else token.text[:40] + "…"
    return f"'{text}'" if text.isprintable() else repr(text)


def _describe_expected(terminals: set[str]) -> str:
    """A list in words, such as "one of 'FROM', 'WHERE' or '{'", cut where it grows too long to help."""
    names = set()
    for name, family in _FAMILIES:
        if family <= terminals:
            names.add(name)
            terminals = terminals - family
    names |= {_name(terminal) for terminal in terminals}
    listed = sorted(names, key=lambda name: (name.startswith("'"), name))
    if len(listed) == 1:
        return listed[0]
    if len(listed) > _NAMES_MAX:
        return f"one of {', '.join(listed[:_NAMES_MAX])} or {len(listed) - _NAMES_MAX} others"
    return f"one of {', '.join(listed[:-1])} or {listed[-1]}"


def _name(terminal: str) -> str:
    return _KINDS.get(terminal) or _FIXED.get(terminal) or terminal.lower().replace("_", " ")


_FIXED = {
    terminal: f"'{text}'"
    for texts in (load_tables().keywords, load_tables().signs)
    for text, terminal in texts.items()
}
