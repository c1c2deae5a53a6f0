"""Query text made fit for the engine, where SPARQL allows what pyoxigraph does not read."""

import re

from graphdb.sparql.lexer import tokens
from graphdb.sparql.tables import load_tables

__all__ = ["engine_text"]

_LARGE_BOOLEAN = re.compile(r"\b(?!true\b|false\b)(?i:true|false)\b")


def engine_text(text: str) -> str:
    """The same text with TRUE and FALSE in small letters, which SPARQL does not ask for but pyoxigraph does.

    The text has been through our parser. Every character stays in its place.
    """
    if not _LARGE_BOOLEAN.search(text):
        return text
    pieces, end = [], 0
    for token in tokens(load_tables(), text):
        if token.terminal in ("TRUE", "FALSE"):
            pieces += [text[end : token.start], token.text.lower()]
            end = token.end
    return "".join(pieces) + text[end:]
