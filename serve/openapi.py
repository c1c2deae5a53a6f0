"""The OpenAPI document of a port, made by FastAPI of a table of operations.

Nothing of it is on the way of a request: routes are plain ASGI (`serve.port_application`), and this module is
imported when the document is first asked for.
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
_DESCRIPTION = """Queries and updates by SPARQL, whole graphs, GraphQL, SHACL, GeoSPARQL, holons, alerts, \
and how the service is.

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
    """What every error is answered with; some have a code or a report beside."""

    error: str
    status: int
    code: str | None = None
    first_index: int | None = None
    report: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """One that a request may have; those in the path it has always."""

    name: str
    says: str
    schema: Schema = field(default_factory=lambda: TEXT)
    place: Literal["query", "path", "header"] = "query"
    is_required: bool = False

    def described(self) -> dict[str, Any]:
        """As OpenAPI has it."""
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
    """What one method of one path takes and answers."""

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
    is_public: bool = False


def openapi_document(
    title: str,
    version: str,
    operations: Sequence[tuple[str, str, Operation]],
    rooms: Mapping[str, str],
    needs_credentials: bool,
) -> dict[str, Any]:
    """The document, of path (as a route has it), method and operation each. rooms: tags, explained."""
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
    """A route that answers nothing, for FastAPI to describe."""
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
        responses=_responses(operation, needs_credentials and not operation.is_public),
        openapi_extra=extra,
    )


def _endpoint(operation: Operation) -> Any:
    """Whatever FastAPI finds in a signature: the body, if it is JSON."""

    def endpoint() -> None: ...

    body = inspect.Parameter("body", inspect.Parameter.KEYWORD_ONLY, annotation=operation.body)
    signature = inspect.Signature([] if operation.body is None else [body])
    endpoint.__signature__ = signature  # type: ignore[attr-defined]
    return endpoint


def _responses(operation: Operation, needs_credentials: bool) -> dict[int | str, dict[str, Any]]:
    content = {name: {"schema": dict(schema)} for name, schema in operation.answer_types.items()}
    success: dict[str, Any] = {"description": "success", "content": content}
    if operation.answer is not None:
        success["model"] = operation.answer
    statuses = {*operation.fails, *((401, 403, 429) if needs_credentials else ())}
    failures = {status: {"description": _REASONS[status], "model": Failure} for status in sorted(statuses)}
    return {200: success, **failures, "default": {"description": "any other error", "model": Failure}}


def _operation_id(path: str, method: str) -> str:
    words = re.findall(r"\w+", re.sub(r":\w+}", "}", path))
    return "_".join([method.lower(), *words]) if words else f"{method.lower()}_root"
