"""The messages of a client of `/ws`, read strictly."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from graphdb.config.limits import GateLimits
from graphdb.errors import (
    ChangesForgotten,
    Forbidden,
    GraphDBError,
    InvalidParameter,
    LimitExceeded,
    LockedOut,
    NotAuthenticated,
    QuerySyntaxError,
    RequestError,
    UnavailableError,
)
from graphdb.live.live_queries import read_live_query
from graphdb.live.matcher import LiveQuery
from serve.parameters import Parameters

__all__ = ["LiveRequest", "Refused", "code_of", "read_index", "read_request", "read_since"]

_METHODS = ("query", "kill", "ping", "signin")
_INDEX_MAX = (1 << 63) - 1
_CODES: dict[type[GraphDBError], str] = {
    ChangesForgotten: "resnapshot",
    QuerySyntaxError: "syntax",
    LimitExceeded: "limit",
    NotAuthenticated: "unauthorized",
    Forbidden: "forbidden",
    LockedOut: "locked_out",
    RequestError: "invalid",
    UnavailableError: "unavailable",
    GraphDBError: "internal",
}


class Refused(Exception):
    """A message that asks for nothing; answered, and the socket goes on."""

    def __init__(self, request_id: Any, code: str, message: str) -> None:
        super().__init__(message)
        self.request_id, self.code = request_id, code


def code_of(error: GraphDBError) -> str:
    """The word by which a program tells errors apart."""
    return next(_CODES[kind] for kind in type(error).__mro__ if kind in _CODES)


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """A message that names a method and says what for."""

    id: Any  # the client's, text, a number or null
    method: str
    params: list[Any]

    def live_query(self, limits: GateLimits) -> tuple[LiveQuery, int | None]:
        """The statement, and the index from which to go on. Raises Refused, RequestError."""
        statement, options = self.params[0] if self.params else None, self.params[1:]
        if not isinstance(statement, str) or len(options) > 1:
            raise self._invalid('params of "query" are [statement] or [statement, {"since": index}]')
        since = None
        if options and options[0] is not None:
            if not isinstance(options[0], dict) or options[0].keys() - {"since"}:
                raise self._invalid('the second of params is {"since": index}')
            if options[0].get("since") is not None:
                since = read_index(options[0]["since"])
        return read_live_query(statement, limits), since

    def credentials(self) -> Mapping[str, Any]:
        """What a client signs in with; nothing where it says nothing."""
        given = self.params[0] if self.params else {}
        return given if isinstance(given, dict) and len(self.params) < 2 else {}

    def subscription(self) -> str:
        """Which one to end. Raises Refused."""
        if len(self.params) != 1 or not isinstance(self.params[0], str):
            raise self._invalid('params of "kill" are [subscription]')
        return self.params[0]

    def _invalid(self, message: str) -> Refused:
        return Refused(self.id, "invalid", message)


def read_index(value: Any) -> int:
    """A log index. Raises InvalidParameter."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _INDEX_MAX:
        raise InvalidParameter("since", f"{str(value)[:100]!r} is not a log index")
    return value


def read_since(parameters: Parameters) -> int | None:
    """The parameter `since` of a handshake. Raises InvalidParameter."""
    text = parameters.one("since")
    if text is None:
        return None
    return read_index(int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else text)


def read_request(message: str | bytes) -> LiveRequest:
    """Raises Refused."""
    try:
        body = orjson.loads(message)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise Refused(None, "invalid", f"a message is one JSON object: {error}") from None
    if not isinstance(body, dict):
        raise Refused(None, "invalid", "a message is one JSON object")
    request_id = body.get("id")
    if not isinstance(request_id, str | int | float | None) or len(str(request_id)) > 1_000:
        raise Refused(None, "invalid", "id is text or a number, of 1000 characters at most")
    method, params = body.get("method"), body.get("params", [])
    if method not in _METHODS:
        raise Refused(request_id, "invalid", f"method is one of {', '.join(_METHODS)}")
    if not isinstance(params, list):
        raise Refused(request_id, "invalid", "params is a list")
    return LiveRequest(request_id, method, params)
