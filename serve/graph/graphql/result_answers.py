"""Results of GraphQL as answers of HTTP, by the draft of GraphQL over HTTP, section 6."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import orjson
from graphql import ExecutionResult, GraphQLError
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import GraphDBError, LimitExceeded, UnavailableError
from graphdb.graphql.failures import SPARQL_ERROR, VALIDATION_FAILED, failure, too_large
from graphdb.public_text import public_text
from serve.errors import status_of
from serve.json_bodies import JSON_TYPE
from serve.negotiation import MediaType, Offer, choose

__all__ = [
    "ResultMedia",
    "choose_media",
    "failed",
    "malformed",
    "not_shown",
    "not_stored",
    "refused",
    "result",
]


class ResultMedia(Enum):
    """How a result is sent: as GraphQL's own type says, or as clients older than that type expect it."""

    JSON = JSON_TYPE
    GRAPHQL = "application/graphql-response+json"
    HTML = "text/html"  # none: the playground in its place

    @property
    def content_type(self) -> str:
        return f"{self.value}; charset=utf-8"


_OFFERS = tuple(Offer(MediaType(one.value), one) for one in ResultMedia)
_RESULTS = _OFFERS[:2]


def choose_media(request: Request, playground: bool = False) -> ResultMedia:
    """By the Accept header; with playground that may say HTML. Raises NotAcceptable, InvalidParameter."""
    accept = ", ".join(request.headers.getlist("accept"))
    return choose(accept, _OFFERS if playground else _RESULTS).value


def result(media: ResultMedia, made: ExecutionResult, snapshot_index: int) -> Response:
    """The answer to an operation that was carried out, if not altogether."""
    return _response(media, 200, made.formatted, {"X-Snapshot-Index": str(snapshot_index)})


def not_stored(media: ResultMedia, errors: Sequence[GraphQLError]) -> Response:
    """The answer to a mutation that was understood, but met a graph that does not allow it."""
    return _response(media, 200, ExecutionResult(None, list(errors)).formatted)


def not_shown(
    media: ResultMedia, error: GraphDBError, stored: ExecutionResult, snapshot_index: int
) -> Response:
    """The answer to a mutation that was stored, where what it selects cannot be read."""
    message = f"The change is stored, but what it selects cannot be read: {public_text(error)}"
    made = ExecutionResult(None, [failure(SPARQL_ERROR, message)], stored.extensions)
    return result(media, made, snapshot_index)


def refused(
    media: ResultMedia,
    errors: Sequence[GraphQLError],
    status: int = 400,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The answer to an operation that was not carried out.

    As plain JSON that is 200, for clients of that type take no notice of the body of anything else, and has
    the member `data` always.
    """
    body: dict[str, Any] = {"errors": [one.formatted for one in errors]}
    if media is ResultMedia.JSON:
        return _response(media, 200 if status == 400 else status, {"data": None, **body}, headers)
    return _response(media, status, body, headers)


def malformed(media: ResultMedia, error: GraphDBError) -> Response:
    """The answer to what is no request of GraphQL: never 200."""
    body = {"errors": [failure(VALIDATION_FAILED, str(error)).formatted]}
    return _response(media, status_of(error), body)


def failed(media: ResultMedia, error: GraphDBError) -> Response:
    """The answer to an operation whose SPARQL query has failed."""
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
