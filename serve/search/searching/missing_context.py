"""What is answered for a scroll or a point in time that is not there any more, or never was one."""

import re

from graphdb.search.errors import SearchError, illegal_argument
from serve.search.frame.errors import error_json

__all__ = ["checked_id", "missing_context"]

_ID = re.compile(r"[A-Za-z0-9_=-]{8,4096}")


def checked_id(context_id: str) -> str:
    """An id as this service makes them. Errors: illegal_argument_exception."""
    if not _ID.fullmatch(context_id):
        raise illegal_argument(f"Cannot parse scroll id [{context_id[:100]}]")
    return context_id


def missing_context(error: SearchError) -> SearchError:
    """As a search says it whose shards have all lost their contexts."""
    if error.kind != "search_context_missing_exception":
        return error
    shards = [{"shard": -1, "index": None, "reason": error_json(error)}]
    metadata = {"phase": "query", "grouped": True, "failed_shards": shards}
    cause = SearchError(error.kind, error.reason, error.status)
    return SearchError("search_phase_execution_exception", "all shards failed", 404, metadata, cause)
