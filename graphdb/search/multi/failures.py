"""Whose fault it is: the request's, which no index could answer, or one index's, with another mapping."""

from graphdb.search.errors import SearchError

__all__ = ["is_of_request"]

# Elasticsearch reads a body before it knows which indexes are asked; then shards meet their mappings.
_OF_REQUEST = frozenset(
    {
        "action_request_validation_exception",
        "parsing_exception",
        "search_phase_execution_exception",
        "security_exception",
        "sparql_exception",
        "x_content_parse_exception",
    }
)


def is_of_request(error: SearchError) -> bool:
    """Whether an error would be the same for every index."""
    return error.of_request or error.kind in _OF_REQUEST or error.status >= 500
