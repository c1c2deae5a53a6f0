"""What parsing a query needs to know about the index that is asked, and how far a query may go."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphdb.search.analysis import Analyzers
from graphdb.search.errors import SearchError, illegal_request, parsing
from graphdb.search.mapping.lookup import FieldLookup

__all__ = ["QueryContext", "TermsLookup"]

TermsLookup = Callable[[str, str, str, str | None], Sequence[Any]]
"""(index, id, path, routing) -> the values there; none where the document is missing."""


@dataclass(frozen=True, slots=True)
class QueryContext:
    """One for a request and an index; `deeper` and `within` make those of the clauses inside."""

    mapping: FieldLookup
    analyzers: Analyzers
    now_ms: int = 0
    index_name: str = ""
    terms_lookup: TermsLookup | None = None
    max_clause_count: int = 4096  # clauses of one query, those that `fuzzy` makes too
    max_depth: int = 30  # indices.query.bool.max_nested_depth
    max_terms_count: int = 65_536
    max_regex_length: int = 1_000
    max_analyzed_offset: int = 1_000_000  # characters that highlighting reads of a value
    default_fields: tuple[str, ...] = ("*",)  # index.query.default_field
    size: int = 10  # how many hits the request wants
    depth: int = 0
    nested_path: str | None = None  # the nested objects that are being matched, None: documents
    index_names: tuple[
        tuple[str, bool], ...
    ] = ()  # names and aliases of the index, and whether each is hidden
    parts: "tuple[QueryContext, ...]" = ()  # of each index, where several are searched

    def deeper(self) -> "QueryContext":
        """One level down; parsing fails at max_depth."""
        if self.depth >= self.max_depth:
            raise illegal_request(
                "The nested depth of the query exceeds the maximum nested depth for queries set in "
                "[indices.query.bool.max_nested_depth]"
            )
        return replace(self, depth=self.depth + 1)

    def within(self, nested_path: str) -> "QueryContext":
        """For the query inside a `nested` one."""
        parts = tuple(part.within(nested_path) for part in self.parts)
        return replace(self, nested_path=nested_path, parts=parts)

    def failed(self, reason: str, cause: SearchError | None = None) -> SearchError:
        """A query that parses, but not for this index: Elasticsearch's query_shard_exception."""
        metadata = {"index": self.index_name} if self.index_name else {}
        return SearchError("query_shard_exception", f"failed to create query: {reason}", 400, metadata, cause)

    def shape(self, reason: str) -> SearchError:
        """A body of the wrong shape."""
        return parsing(reason, line=1, col=1)
