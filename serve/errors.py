"""The one table from error class to HTTP status, and the one format of an error's body."""

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from starlette.responses import Response

from graphdb.errors import (
    AlreadyExists,
    BodyTooLarge,
    ChangesForgotten,
    CorruptionError,
    Forbidden,
    GraphDBError,
    HistoryForgotten,
    HostNotAllowed,
    KeyReused,
    LockedOut,
    MembershipLoop,
    MembershipRefused,
    NotAcceptable,
    NotAuthenticated,
    NotClustered,
    NotFound,
    RequestError,
    ShapesViolated,
    TextTooLarge,
    TransactionConflict,
    UnavailableError,
    UnknownGraph,
    UnsupportedMediaType,
)
from graphdb.public_text import public_text

__all__ = ["STATUS", "challenges", "error_response", "failure_response", "status_of", "unread_response"]

log = logging.getLogger(__name__)

REALM = "graphdb"
_DAMAGED = "files of this node are damaged; its log says which, and the operations guide what to do"

# A class that is not listed has the status of its nearest listed ancestor.
STATUS: dict[type[GraphDBError], int] = {
    GraphDBError: 500,
    RequestError: 400,
    UnknownGraph: 404,
    NotFound: 404,
    MembershipLoop: 409,
    AlreadyExists: 409,
    ShapesViolated: 409,
    TransactionConflict: 409,
    NotAcceptable: 406,
    UnsupportedMediaType: 415,
    BodyTooLarge: 413,
    NotAuthenticated: 401,
    Forbidden: 403,
    LockedOut: 429,
    HostNotAllowed: 403,
    KeyReused: 422,
    ChangesForgotten: 410,
    HistoryForgotten: 410,
    NotClustered: 409,
    MembershipRefused: 409,
    UnavailableError: 503,
}


def status_of(error: GraphDBError) -> int:
    """The HTTP status for an error, by its class or the nearest ancestor in the table."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def error_response(
    status: int, message: str, headers: dict[str, str] | None = None, **members: Any
) -> Response:
    """The response to a failure on this port; some have further members."""
    body = orjson.dumps({"error": message, "status": status, **members})
    return Response(body, status, headers, media_type="application/json")


def challenges(description: str) -> str:
    """The header WWW-Authenticate of a 401: both schemes (RFC 6750, section 3; RFC 7617)."""
    text = re.sub(r"[^ !#-\[\]-~]", "?", description)
    return (
        f'Bearer realm="{REALM}", error="invalid_token", error_description="{text}", '
        f'Basic realm="{REALM}", charset="UTF-8"'
    )


def unread_response(app: Any, status: int, message: str) -> Response:
    """The response to input that is refused before it is a request. An application that has
    `malformed(message, status)` uses its own format.
    """
    malformed: Callable[[str, int], Response] | None = getattr(app, "malformed", None)
    return error_response(status, message) if malformed is None else malformed(message, status)


def failure_response(error: GraphDBError, beside: Mapping[str, str] | None = None) -> Response:
    """The response to a request that failed before its answer began; beside: further headers."""
    status = status_of(error)
    if status == 500:
        # The log has the details, which are of no use to the client.
        log.error("a request met %s", error, exc_info=error)
        is_damaged = isinstance(error, CorruptionError)
        return error_response(500, _DAMAGED if is_damaged else "internal server error")
    headers = dict(beside or {})
    if isinstance(error, NotAuthenticated):
        headers["WWW-Authenticate"] = challenges(str(error))
    if isinstance(error, UnavailableError | LockedOut):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, BodyTooLarge | TextTooLarge):
        # The rest of the body is not read, so the connection cannot carry another request.
        headers["Connection"] = "close"
    if isinstance(error, ChangesForgotten):
        return error_response(status, str(error), headers, code="resnapshot", first_index=error.first_index)
    if isinstance(error, HistoryForgotten):
        return error_response(status, str(error), headers, oldest_index=error.oldest_index)
    if isinstance(error, ShapesViolated) and error.report is not None:
        return error_response(status, str(error), headers, report=error.report)
    return error_response(status, public_text(error), headers)
