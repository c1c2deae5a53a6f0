"""GraphQL over HTTP: reads requests strictly, and writes results (the draft's sections 5.3, 5.4 and 6).

A request that is not GraphQL raises `MalformedOperation`. Errors in its GraphQL are found later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson
from graphql import ExecutionResult, GraphQLError
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import GraphDBError, InvalidParameter, LimitExceeded, TextTooLarge, UnavailableError
from graphdb.graphql.failures import SPARQL_ERROR, VALIDATION_FAILED, failure, too_large
from graphdb.public_text import public_text
from serve.bodies import JSON_TYPE, check_is_json, read_body
from serve.errors import status_of
from serve.negotiation import MediaType, Offer, choose
from serve.parameters import Parameters

__all__ = [
    "AskedOperation",
    "MalformedOperation",
    "ResultMedia",
    "choose_media",
    "failed",
    "malformed",
    "not_shown",
    "not_stored",
    "read_get",
    "read_members",
    "read_post",
    "refused",
    "result",
]

_NAME_CHARACTERS_MAX = 1000


class MalformedOperation(InvalidParameter):
    """A request that is not a GraphQL request."""


@dataclass(frozen=True, slots=True)
class AskedOperation:
    """The members of a request; text is the document."""

    text: str
    variables: Mapping[str, Any] | None
    operation_name: str | None
    extensions: Mapping[str, Any] | None = None

    @property
    def as_of(self) -> Any:
        """The state of the past that it asks for, as it was sent; None for the present."""
        return (self.extensions or {}).get("as_of")


async def read_post(request: Request, body_bytes_max: int, text_bytes_max: int) -> AskedOperation:
    """Read the body of a POST.

    Raises UnsupportedMediaType, BodyTooLarge, TextTooLarge, MalformedOperation.
    """
    check_is_json(request)
    members = _json("body", await read_body(request, body_bytes_max))
    if isinstance(members, list):
        raise MalformedOperation("body", "is an array: several operations in one request are not offered")
    if not isinstance(members, dict):
        raise MalformedOperation("body", "is no JSON object")
    return read_members(members, text_bytes_max)


def read_get(parameters: Parameters, text_bytes_max: int) -> AskedOperation:
    """Read the query string of a GET. Raises TextTooLarge, MalformedOperation, InvalidParameter."""
    members: dict[str, Any] = {name: parameters.one(name) for name in ("query", "operationName")}
    for name in ("variables", "extensions"):
        text = parameters.one(name)
        members[name] = _json(name, text.encode()) if text else None
    return read_members(members, text_bytes_max)


def read_members(members: Mapping[str, Any], text_bytes_max: int) -> AskedOperation:
    """Read the members of a request. Raises TextTooLarge, MalformedOperation."""
    text = members.get("query")
    if text is None:
        raise MalformedOperation("query", "is missing")
    if not isinstance(text, str):
        raise MalformedOperation("query", "is no text")
    size = len(text.encode(errors="surrogatepass"))
    if size > text_bytes_max:
        raise TextTooLarge("query bytes (security.max_query_bytes)", size, text_bytes_max)
    name = members.get("operationName")
    if name is not None and (not isinstance(name, str) or len(name) > _NAME_CHARACTERS_MAX):
        raise MalformedOperation("operationName", "is no name")
    for member in ("variables", "extensions"):
        if not isinstance(members.get(member), dict | None):
            raise MalformedOperation(member, "is no JSON object")
    # GraphQL clients send "" for no name
    return AskedOperation(text, members.get("variables"), name or None, members.get("extensions"))


def _json(name: str, encoded: bytes) -> Any:
    try:
        return orjson.loads(encoded)
    except orjson.JSONDecodeError as error:
        raise MalformedOperation(name, f"is no JSON: {error.msg} at character {error.pos}") from None


class ResultMedia(Enum):
    """The media type of a result: GraphQL's own, or JSON for older clients."""

    JSON = JSON_TYPE
    GRAPHQL = "application/graphql-response+json"
    HTML = "text/html"  # the playground instead of a result

    @property
    def content_type(self) -> str:
        return f"{self.value}; charset=utf-8"


_OFFERS = tuple(Offer(MediaType(one.value), one) for one in ResultMedia)

_RESULTS = _OFFERS[:2]


def choose_media(request: Request, playground: bool = False) -> ResultMedia:
    """By the Accept header; HTML only with playground. Raises NotAcceptable, InvalidParameter."""
    accept = ", ".join(request.headers.getlist("accept"))
    return choose(accept, _OFFERS if playground else _RESULTS).value


def result(media: ResultMedia, made: ExecutionResult, snapshot_index: int) -> Response:
    """The response to an operation that was executed, perhaps with errors."""
    return _response(media, 200, made.formatted, {"X-Snapshot-Index": str(snapshot_index)})


def not_stored(media: ResultMedia, errors: Sequence[GraphQLError]) -> Response:
    """The response to a valid mutation that the present graph does not permit."""
    return _response(media, 200, ExecutionResult(None, list(errors)).formatted)


def not_shown(
    media: ResultMedia, error: GraphDBError, stored: ExecutionResult, snapshot_index: int
) -> Response:
    """The response to a mutation that was stored, but whose selection cannot be read."""
    message = f"The change is stored, but what it selects cannot be read: {public_text(error)}"
    made = ExecutionResult(None, [failure(SPARQL_ERROR, message)], stored.extensions)
    return result(media, made, snapshot_index)


def refused(
    media: ResultMedia,
    errors: Sequence[GraphQLError],
    status: int = 400,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The response to an operation that was refused.

    As plain JSON it is 200 and has the member `data`, because clients of that type ignore the body of other
    responses.
    """
    body: dict[str, Any] = {"errors": [one.formatted for one in errors]}
    if media is ResultMedia.JSON:
        return _response(media, 200 if status == 400 else status, {"data": None, **body}, headers)
    return _response(media, status, body, headers)


def malformed(media: ResultMedia, error: GraphDBError) -> Response:
    """The response to a request that is not GraphQL: never 200."""
    body = {"errors": [failure(VALIDATION_FAILED, str(error)).formatted]}
    return _response(media, status_of(error), body)


def failed(media: ResultMedia, error: GraphDBError) -> Response:
    """The response to an operation whose SPARQL query has failed."""
    if isinstance(error, UnavailableError):
        headers = {"Retry-After": str(error.retry_after_s)}
        return refused(media, [failure(SPARQL_ERROR, public_text(error))], status_of(error), headers)
    if isinstance(error, LimitExceeded):
        return refused(media, [too_large(error)])
    return refused(media, [failure(SPARQL_ERROR, public_text(error))])


def _response(
    media: ResultMedia, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    always = {"Vary": "Accept", "Cache-Control": "no-cache"}
    encoded = orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS)
    return Response(encoded, status, {**always, **(headers or {})}, media_type=media.content_type)
