"""What the grammar's terminals are called in a message to a person."""

from graphdb.sparql.lexer import Token
from graphdb.sparql.tables import END, load_tables

__all__ = ["describe_misfit"]

NAMES_MAX = 12  # more than these are not listed

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


def describe_misfit(expected: set[str], token: Token) -> str:
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
    if len(listed) > NAMES_MAX:
        return f"one of {', '.join(listed[:NAMES_MAX])} or {len(listed) - NAMES_MAX} others"
    return f"one of {', '.join(listed[:-1])} or {listed[-1]}"


def _name(terminal: str) -> str:
    return _KINDS.get(terminal) or _FIXED.get(terminal) or terminal.lower().replace("_", " ")


_FIXED = {
    terminal: f"'{text}'"
    for texts in (load_tables().keywords, load_tables().signs)
    for text, terminal in texts.items()
}
