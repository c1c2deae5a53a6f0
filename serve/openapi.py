"""The OpenAPI document of a port, which FastAPI makes from a table of operations.

Requests do not pass through it: routes are plain ASGI (`serve.port.application`). This module is imported
when the document is first requested.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.responses import Response

__all__ = ["TEXT", "Failure", "Operation", "Parameter", "Schema", "openapi_document"]

Schema: TypeAlias = Mapping[str, Any]  # a JSON Schema

TEXT: Schema = {"type": "string"}
_REASONS = {
    400: "an invalid query, update, body or parameter, or one beyond a limit",
    401: "credentials are missing or wrong",
    403: "the roles do not give the permission, or a host is not allowed",
    404: "what the request names does not exist",
    406: "no available format matches Accept",
    409: "the request is at odds with what is stored",
    410: "changes that the log does not have any more",
    413: "the body is too large",
    415: "the Content-Type or Content-Encoding is not supported",
    422: "the Idempotency-Key was used for a different request",
    426: "this path takes WebSockets",
    429: "too many failed attempts to authenticate",
    503: "try again: the time limit, a full disk, a service that is starting, or a cluster without a leader",
}
_HEADERS = {
    401: {"WWW-Authenticate": "the ways to authenticate"},
    429: {"Retry-After": "seconds until the next attempt is accepted"},
    503: {"Retry-After": "seconds"},
}
_INDEX_HEADER = {"X-Snapshot-Index": "log index of the state that was read, or at which a write is visible"}
_TAG_HEADER = {"ETag": "for If-None-Match; absent if a change was being applied during the request"}
_DESCRIPTION = """Queries and updates by SPARQL, whole graphs, GraphQL, SHACL, GeoSPARQL, holons, alerts, \
and the state of the service.

HEAD is answered wherever GET is, and OPTIONS everywhere. Errors have one shape, `Failure`. WebSockets \
(`/ws`, `/graphql/ws`) are not part of OpenAPI: docs/live.md and docs/graphql.md describe them.

Port 9200 has the API of Elasticsearch 8, which Elasticsearch describes."""
_SCHEMES = {
    "password": {"type": "http", "scheme": "basic"},
    "token": {"type": "http", "scheme": "bearer", "description": "of OpenID Connect, or of the service"},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


@dataclass(frozen=True, slots=True)
class Failure:
    """The body of every error; some have a code or a report too."""

    error: str
    status: int
    code: str | None = None
    first_index: int | None = None
    report: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a request. Those in the path are always required."""

    name: str
    says: str
    schema: Schema = field(default_factory=lambda: TEXT)
    place: Literal["query", "path", "header"] = "query"
    is_required: bool = False

    def described(self) -> dict[str, Any]:
        """The Parameter Object of OpenAPI."""
        is_required = self.is_required or self.place == "path"
        return {
            "name": self.name,
            "in": self.place,
            "description": self.says,
            "required": is_required,
            "schema": dict(self.schema),
        }


@dataclass(frozen=True, slots=True)
class Operation:
    """The parameters, bodies and answers of one method of one path."""

    room: str  # one of the document's tags
    summary: str
    answer: Any = None  # the type of the JSON that a 200 has; None: no JSON, or of any kind
    answer_types: Mapping[str, Schema] = field(default_factory=dict)  # other media types of a 200
    parameters: tuple[Parameter, ...] = ()
    body: Any = None  # the type of a JSON body
    body_types: Mapping[str, Schema] = field(default_factory=dict)  # other media types of a body
    needs_body: bool = True  # where it may have one
    says: str | None = None
    fails: tuple[int, ...] = ()  # of `_REASONS`; others are possible
    other_answers: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)  # as FastAPI takes them
    has_index: bool = False  # X-Snapshot-Index is a header of the answer
    is_public: bool = False
    status: int = 200  # of success; 201 and 204 have no body


def openapi_document(
    title: str,
    version: str,
    operations: Sequence[tuple[str, str, Operation]],
    rooms: Mapping[str, str],
    needs_credentials: bool,
) -> dict[str, Any]:
    """operations: path (as the route declares it), method, operation. rooms: tags with descriptions."""
    document = get_openapi(
        title=title,
        version=version,
        description=_DESCRIPTION,
        routes=[
            _api_route(path, method, operation, needs_credentials) for path, method, operation in operations
        ],
        tags=[{"name": name, "description": says} for name, says in rooms.items()],
        separate_input_output_schemas=False,  # a member with a default need not be in an answer either
    )
    if needs_credentials:
        document["components"]["securitySchemes"] = _SCHEMES
        document["security"] = [{name: []} for name in _SCHEMES]
    return document


def _api_route(path: str, method: str, operation: Operation, needs_credentials: bool) -> APIRoute:
    """A route that FastAPI describes; it is never called."""
    extra: dict[str, Any] = {}
    if operation.parameters:
        extra["parameters"] = [parameter.described() for parameter in operation.parameters]
    if operation.body is not None or operation.body_types:
        extra["requestBody"] = {
            "required": operation.needs_body,
            "content": {name: {"schema": dict(schema)} for name, schema in operation.body_types.items()},
        }
    if operation.is_public:
        extra["security"] = []
    return APIRoute(
        path,
        _endpoint(operation),
        methods=[method],
        name=operation.summary,
        operation_id=_operation_id(path, method),
        summary=operation.summary,
        description=operation.says,
        tags=[operation.room],
        response_class=Response,
        status_code=426 if operation.fails == (426,) else operation.status,
        responses=_responses(operation, needs_credentials and not operation.is_public),
        openapi_extra=extra,
    )


def _endpoint(operation: Operation) -> Any:
    """A function whose signature tells FastAPI the type of a JSON body."""

    def endpoint() -> None: ...

    body = inspect.Parameter("body", inspect.Parameter.KEYWORD_ONLY, annotation=operation.body)
    signature = inspect.Signature([] if operation.body is None else [body])
    endpoint.__signature__ = signature  # type: ignore[attr-defined]
    return endpoint


def _responses(operation: Operation, needs_credentials: bool) -> dict[int | str, dict[str, Any]]:
    content = {name: {"schema": dict(schema)} for name, schema in operation.answer_types.items()}
    has_tag = any(parameter.name == "If-None-Match" for parameter in operation.parameters)
    headers = {**(_INDEX_HEADER if operation.has_index else {}), **(_TAG_HEADER if has_tag else {})}
    success: dict[str, Any] = {"description": "success", "content": content, **_headers(headers)}
    if operation.answer is not None:
        success["model"] = operation.answer
    statuses = {*operation.fails, *((401, 403, 429) if needs_credentials else ())}
    responses: dict[int | str, dict[str, Any]] = (
        {} if operation.fails == (426,) else {operation.status: success}
    )
    if has_tag:
        responses[304] = {"description": "the data are unchanged", **_headers(headers)}
    for status in sorted(statuses):
        failure = {"description": _REASONS[status], "model": Failure}
        responses[status] = failure | _headers(_HEADERS.get(status, {}))
    responses |= {status: dict(answer) for status, answer in operation.other_answers.items()}
    return {**responses, "default": {"description": "any other error", "model": Failure}}


def _headers(described: Mapping[str, str]) -> dict[str, Any]:
    """The member `headers` of a Response Object; nothing without headers."""
    headers = {name: {"description": says, "schema": dict(TEXT)} for name, says in described.items()}
    return {"headers": headers} if headers else {}


def _operation_id(path: str, method: str) -> str:
    words = re.findall(r"\w+", re.sub(r":\w+}", "}", path))
    return "_".join([method.lower(), *words]) if words else f"{method.lower()}_root"
