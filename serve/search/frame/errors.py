"""Errors as Elasticsearch's clients know them: one envelope, whatever went wrong."""

import logging
from collections.abc import Sequence
from secrets import token_hex
from typing import Any

from graphdb.errors import (
    BodyTooLarge,
    Forbidden,
    GraphDBError,
    LimitExceeded,
    LockedOut,
    NotAuthenticated,
    NotLeader,
    OutcomeUnknown,
    Overloaded,
    ProviderUnavailable,
    QueryTimeout,
    RequestError,
    StorageFull,
    UnavailableError,
    UnsupportedMediaType,
)
from graphdb.public_text import public_text
from graphdb.search.errors import SearchError
from serve.errors import challenges
from serve.search.frame.answer import Answer

__all__ = ["envelope", "error_json", "failure", "internal", "query_failed", "search_error"]

log = logging.getLogger(__name__)

CAUSES_MAX = 20
_SHARD_FAILURES = "failed_shards"

# Nearest ancestor first: type and status of what the node behind says, in Elasticsearch's words.
_KINDS: dict[type[GraphDBError], tuple[str, int]] = {
    RequestError: ("illegal_argument_exception", 400),
    BodyTooLarge: ("content_too_long_exception", 413),
    LimitExceeded: ("illegal_argument_exception", 400),
    NotAuthenticated: ("security_exception", 401),
    Forbidden: ("security_exception", 403),
    LockedOut: ("security_exception", 429),
    UnsupportedMediaType: ("illegal_argument_exception", 415),
    UnavailableError: ("unavailable_shards_exception", 503),
    NotLeader: ("master_not_discovered_exception", 503),
    OutcomeUnknown: ("process_cluster_event_timeout_exception", 503),
    ProviderUnavailable: ("security_exception", 503),
    Overloaded: ("es_rejected_execution_exception", 429),
    QueryTimeout: ("timeout_exception", 503),
    StorageFull: ("cluster_block_exception", 429),
}
# Errors that are Java's, not Elasticsearch's: a failed search shows them again as its cause.
_JAVA = {"illegal_argument_exception", "illegal_state_exception", "number_format_exception"}


def search_error(error: Exception) -> SearchError:
    """The same as clients know it. A mistake of ours is logged, and answered with the log's id."""
    if isinstance(error, SearchError):
        return error
    found = next((_KINDS[kind] for kind in type(error).__mro__ if kind in _KINDS), None)
    return internal(error) if found is None else SearchError(found[0], public_text(error), found[1])


def internal(error: Exception) -> SearchError:
    """For what nobody foresaw: the log has it, under an id that is all the client is told."""
    error_id = token_hex(8)
    log.error("a search request failed [%s]", error_id, exc_info=error)
    return SearchError("exception", f"internal server error [{error_id}]", 500)


def failure(error: GraphDBError) -> Answer:
    """The answer to a request that met this error."""
    known = search_error(error)
    headers = {}
    if isinstance(error, NotAuthenticated):
        headers["WWW-Authenticate"] = challenges(str(error))
    if isinstance(error, UnavailableError | LockedOut):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, BodyTooLarge):
        # The rest of the body is not read, so the connection cannot carry another request.
        headers["Connection"] = "close"
    return Answer(envelope(known), known.status, headers)


def envelope(error: SearchError) -> dict[str, Any]:
    """The body of a failed request."""
    return {"error": {"root_cause": _root_causes(error), **error_json(error)}, "status": error.status}


def error_json(error: SearchError) -> dict[str, Any]:
    """The error without its envelope, as it stands in the items of a `_bulk` or `_msearch`."""
    top: dict[str, Any] = {}
    into, current = top, error
    for _ in range(CAUSES_MAX):
        into |= _alone(current)
        if current.cause is None:
            break
        into["caused_by"] = {}
        into, current = into["caused_by"], current.cause
    return top


def _alone(error: SearchError) -> dict[str, Any]:
    return {"type": error.kind, "reason": error.reason, **error.metadata}


def _root_causes(error: SearchError) -> list[dict[str, Any]]:
    failures = error.metadata.get(_SHARD_FAILURES)
    if not failures:
        return [_alone(error)]
    causes = []
    for one in failures:
        reason = {name: value for name, value in one["reason"].items() if name != "caused_by"}
        if reason not in causes:
            causes.append(reason)
    return causes


def query_failed(failures: Sequence[tuple[str, SearchError]], node: str, phase: str = "query") -> SearchError:
    """All shards of a search failed: the names of their indexes, each with what went wrong there.

    Errors of the request itself (what does not parse) are raised as they are, not through this.
    """
    shards = [
        {"shard": 0, "index": index, "node": node, "reason": error_json(error)} for index, error in failures
    ]
    first = failures[0][1]
    cause = None
    if first.kind in _JAVA:
        cause = SearchError(first.kind, first.reason, first.status, None, first)
    metadata = {"phase": phase, "grouped": True, _SHARD_FAILURES: shards}
    status = max(error.status for _, error in failures)
    return SearchError("search_phase_execution_exception", "all shards failed", status, metadata, cause)
