"""The short form of CONSTRUCT, whose pattern is its template too."""

from graphdb.sparql.lexer import tokens
from graphdb.sparql.syntax import Query
from graphdb.sparql.tables import load_tables
from graphdb.sparql.text_edits import TextEdits

__all__ = ["is_short", "lengthen"]


def is_short(query: Query) -> bool:
    """Whether the query is `CONSTRUCT WHERE { triples }`, with a triple at least."""
    if query.where is None or not query.template:
        return False
    return query.where.span.start <= query.template[0].span.start


def lengthen(query: Query, edits: TextEdits) -> None:
    """Give a query in the short form its pattern as a template, so that the pattern can be changed."""
    assert query.where is not None
    start, end = query.where.span
    before = tokens(load_tables(), query.text[:start])
    keyword = next(token for token in before if token.terminal == "CONSTRUCT")
    edits.after(keyword.end, f" {query.text[start:end]} ")
