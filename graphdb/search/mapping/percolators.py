"""`percolator`: a field that holds a query.

The query is one term of the field, its JSON. Terms of which a document that it matches has at least one are
terms of a field below it.
"""

from collections.abc import Callable
from typing import Any

from graphdb.search.errors import illegal_argument
from graphdb.search.mapping.lookup import FieldLookup

__all__ = [
    "ANY_DOCUMENT",
    "ReadQuery",
    "read_queries_with",
    "read_stored_query",
    "required_code",
    "terms_path",
]

ANY_DOCUMENT = "\x1f"
"""Stands in the place of the terms where none are required."""


def terms_path(path: str) -> str:
    """The field of the terms; no client can name it."""
    return f"{path}..terms"


def required_code(path: str, term: str) -> str:
    """A term of a field as a term of `terms_path`."""
    return f"{path}\x1f{term}"


# The parser of queries knows mappings, so it cannot be imported here: it is handed in where it stands.

ReadQuery = Callable[[Any, FieldLookup, Any], tuple[str, list[str]]]
_readers: list[ReadQuery] = []


def read_queries_with(reader: ReadQuery) -> None:
    """Let all mappings read stored queries with this one."""
    _readers[:] = [reader]


def read_stored_query(value: Any, mapping: FieldLookup, analyzers: Any) -> tuple[str, list[str]]:
    """(the query as it is kept, what it requires as `required_code`s). analyzers: those of the index.

    Errors: those of a query in a search.
    """
    if not _readers:
        raise illegal_argument("a field of type [percolator] needs the parser of queries")
    return _readers[0](value, mapping, analyzers)
