"""Requests about a transaction at another node than the one that it lives on: passed on to that one.

request: method, path, headers and principal as JSON, a line; then the body
answer: status, headers and whether it is complete as JSON, a line; then the body
"""

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from graphdb.access.principal import Principal
from graphdb.errors import LimitExceeded, UnavailableError
from serve.access.request_scope import PRINCIPAL, principal_of
from serve.backend import Transactions
from serve.inner_requests import ask_within

__all__ = ["ANSWER_BYTES_MAX", "PeerRequests", "ask_peer"]

ANSWER_BYTES_MAX = 64 << 20
_PASSED_ON = frozenset({"accept", "content-type", "host"})
_NOT_RETURNED = frozenset({b"content-length", b"transfer-encoding", b"date", b"server", b"connection"})


class PeerRequests:
    """Performs them. On the application's event loop."""

    def __init__(self, application: ASGIApp, scheme: str, answer_bytes_max: int = ANSWER_BYTES_MAX) -> None:
        """application takes the requests of principals that are known. scheme is that of this port."""
        self._application, self._scheme, self._bytes_max = application, scheme, answer_bytes_max

    async def perform(self, request: bytes) -> bytes:
        """Raises UnavailableError for an invalid request."""
        head, _, body = request.partition(b"\n")
        try:
            method, path, query, headers, caller = orjson.loads(head)
            principal = Principal.from_json(caller)
            pairs = [(str(name).encode(), str(value).encode("latin-1")) for name, value in headers]
        except ValueError as error:
            raise UnavailableError(f"no request of a graph port: {head[:100]!r}") from error
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": self._scheme,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode("latin-1"),
            "headers": [*pairs, (b"content-length", b"%d" % len(body))],
            "client": None,
            "server": None,
            PRINCIPAL: principal,
        }
        answer = await ask_within(self._application, scope, body, self._bytes_max)
        kept = [
            (name.decode(), value.decode("latin-1"))
            for name, value in answer.headers
            if name not in _NOT_RETURNED
        ]
        return orjson.dumps([answer.status, kept, answer.is_complete]) + b"\n" + answer.body


async def ask_peer(transactions: Transactions, node_id: int, request: Request, body: bytes) -> Response:
    """That node's answer. Raises LimitExceeded if it is too long to come from there, UnavailableError."""
    scope = request.scope
    headers = [(name, value) for name, value in request.headers.items() if name in _PASSED_ON]
    head = orjson.dumps(
        [
            scope["method"],
            scope["path"],
            scope["query_string"].decode("latin-1"),
            headers,
            principal_of(scope).to_json(),
        ]
    )
    answer = await transactions.ask_other(node_id, head + b"\n" + body)
    head, _, content = answer.partition(b"\n")
    status, pairs, is_complete = orjson.loads(head)
    if not is_complete:
        raise LimitExceeded(
            f"bytes of an answer from node {node_id}, on which the transaction lives",
            len(content) + 1,
            len(content),
        )
    response = Response(content, status)
    if status == 204:
        del response.headers["content-length"]
    for name, value in pairs:
        response.headers[name] = value
    return response
