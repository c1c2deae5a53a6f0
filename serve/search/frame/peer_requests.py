"""Requests that the search port of one node makes of that of another, for what only that one has: a scroll, a
point in time. They come in through the application, as those of clients do.

    request: method, path, query and principal as JSON, a line each way, then the body
    answer: the status, a line, then the body
"""

from collections.abc import Mapping
from typing import Any

import httpx
import orjson
from starlette.types import ASGIApp

from graphdb.access.principal import Principal
from graphdb.errors import UnavailableError
from graphdb.raft.messages import MESSAGE_BYTES_MAX
from graphdb.search.errors import SearchError, illegal_argument
from serve.access.request_scope import PRINCIPAL_HEADER, InternalApplication
from serve.search.backend import SearchBackend
from serve.search.frame.answer import error_json

__all__ = ["PeerRequests", "ask_peer"]

_HEADERS = {"Content-Type": "application/json"}
_ANSWER_BYTES_MAX = MESSAGE_BYTES_MAX - 1024  # what nodes can send each other


class PeerRequests:
    """Performs them. For one event loop."""

    def __init__(self, app: ASGIApp) -> None:
        transport = httpx.ASGITransport(InternalApplication(app))
        self._http = httpx.AsyncClient(transport=transport, base_url="http://node", timeout=None)

    async def perform(self, request: bytes) -> bytes:
        """Raises UnavailableError for an invalid request."""
        head, _, body = request.partition(b"\n")
        try:
            method, path, query, principal = orjson.loads(head)
            headers = _HEADERS | {PRINCIPAL_HEADER: str(principal)}
        except ValueError as error:
            raise UnavailableError(f"no request of a search port: {head[:100]!r}") from error
        answer = await self._http.request(method, path, params=query, content=body, headers=headers)
        if len(answer.content) > _ANSWER_BYTES_MAX:
            problem = error_json(_too_large(len(answer.content)))
            return b"400\n" + orjson.dumps({"error": problem, "status": 400})
        return b"%d\n%s" % (answer.status_code, answer.content)


async def ask_peer(
    node: SearchBackend,
    number: int,
    method: str,
    path: str,
    query: Mapping[str, str],
    body: Mapping[str, Any] | None,
    timeout_s: float,
    principal: Principal,
) -> tuple[int, dict[str, Any]]:
    """Status and answer, which is an object. Raises SearchError as that node does, UnavailableError."""
    head = orjson.dumps([method, path, dict(query), principal.to_json()])
    answer = await node.ask_other(
        number, head + b"\n" + (b"" if body is None else orjson.dumps(body)), timeout_s
    )
    status, _, content = answer.partition(b"\n")
    value = orjson.loads(content)
    if int(status) >= 400 and "error" in value:
        raise _error(value["error"], int(status))
    return int(status), value


def _too_large(size: int) -> SearchError:
    return illegal_argument(
        f"an answer of [{size}] bytes cannot come from another node, [{_ANSWER_BYTES_MAX}] is the most: "
        "ask for fewer hits at a time, or ask the node that has the search context"
    )


def _error(shown: Mapping[str, Any], status: int) -> SearchError:
    """As it was before it was shown."""
    cause = shown.get("caused_by")
    rest = {name: shown[name] for name in shown if name not in ("type", "reason", "root_cause", "caused_by")}
    return SearchError(
        str(shown.get("type", "exception")),
        str(shown.get("reason", "")),
        status,
        rest,
        None if cause is None else _error(cause, status),
    )
