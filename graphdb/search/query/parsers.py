"""How the parsers of the clauses are called, and how they call for those of the clauses inside."""

from collections.abc import Callable, Mapping
from typing import Any

from graphdb.search.query.context import QueryContext
from graphdb.search.query.tree import Query

__all__ = ["ClauseParser", "Parse"]

Parse = Callable[[object, QueryContext], Query]
"""Parses any query, whatever its kind."""

ClauseParser = Callable[[Mapping[str, Any], QueryContext, Parse], Query]
"""Parses the body of one kind of clause, the object under its name."""
