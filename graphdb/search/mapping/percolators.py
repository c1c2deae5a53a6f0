"""`percolator`: a field that holds a query.

The query is one term of the field, its JSON. Terms of which a document that it matches has at least one are
terms of a field below it.
"""

from typing import Any

import orjson

from graphdb.search.errors import illegal_argument
from graphdb.search.mapping.lookup import FieldLookup

__all__ = ["ANY_DOCUMENT", "read_stored_query", "required_code", "terms_path"]

QUERY_LENGTH_MAX = 100_000
"""Characters of a stored query."""

ANY_DOCUMENT = "\x1f"
"""Stands in the place of the terms where none are required."""


def terms_path(path: str) -> str:
    """The field of the terms; no client can name it."""
    return f"{path}..terms"


def required_code(path: str, term: str) -> str:
    """A term of a field as a term of `terms_path`."""
    return f"{path}\x1f{term}"


def read_stored_query(value: Any, mapping: FieldLookup, analyzers: Any) -> tuple[str, list[str]]:
    """(the query as it is kept, what it requires as `required_code`s). analyzers: those of the index.

    Errors: those of a query in a search.
    """
    # The parser of queries knows mappings, so it is not there yet when this module is imported.
    from graphdb.search.query.parse import parse_query
    from graphdb.search.query.percolate import required_terms, stored_query

    if not isinstance(value, dict):
        raise illegal_argument("query malformed, must start with start_object")
    text = orjson.dumps(value).decode()
    if len(text) > QUERY_LENGTH_MAX:
        raise illegal_argument(f"a stored query has at most {QUERY_LENGTH_MAX} characters, got [{len(text)}]")
    terms = required_terms(stored_query(value, mapping, analyzers, parse_query))
    codes = [ANY_DOCUMENT] if terms is None else sorted(required_code(path, term) for path, term in terms)
    return text, codes
