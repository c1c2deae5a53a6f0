"""`/sparql/check`: whether a text would be accepted, and how a query would be answered. Evaluates nothing."""

from contextlib import suppress
from dataclasses import asdict

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from graphdb.config.limits import GateLimits
from graphdb.errors import (
    InvalidParameter,
    NotAcceptable,
    QuerySyntaxError,
    RequestError,
    UnavailableError,
    UnsupportedMediaType,
)
from graphdb.planning.gate import SHORT_TEXT_CHARACTERS, read_update
from serve.backend import Queries
from serve.bodies import JSON_TYPE, content_type, read_text
from serve.graph.answer_shapes import QueryCheck
from serve.graph.asked_query import QueryReader
from serve.graph.explanation import Explainer
from serve.graph.query_parameters import QueryParameters
from serve.graph.sparql import QUERY_TYPE, UPDATE_TYPE
from serve.parameters import Parameters, read_flag, request_iri

__all__ = ["QueryCheckEndpoint"]


class QueryCheckEndpoint:
    """POST of /sparql/check. Neither counted nor logged as a query: an editor asks while somebody writes."""

    def __init__(
        self,
        queries: Queries,
        reader: QueryReader,
        explainer: Explainer,
        body_bytes_max: int,
        limits: GateLimits,
    ) -> None:
        self._queries, self._reader, self._explainer = queries, reader, explainer
        self._body_bytes_max, self._limits = body_bytes_max, limits

    async def post(self, request: Request) -> Response:
        """The text is the body. A text that is refused is no error of this request."""
        media_type = content_type(request, (QUERY_TYPE, UPDATE_TYPE))
        if media_type.name not in (QUERY_TYPE, UPDATE_TYPE):
            raise UnsupportedMediaType(media_type.name, (QUERY_TYPE, UPDATE_TYPE))
        query_string: bytes = request.scope["query_string"]
        wants_plan = read_flag(Parameters(query_string), "plan") is True
        parameters = self._reader.parameters(query_string)
        text = await read_text(request, self._body_bytes_max)
        try:
            if media_type.name == UPDATE_TYPE:
                found = await self._check_update(request, text)
            else:
                found = await self._check_query(request, parameters, text, wants_plan)
        except (InvalidParameter, NotAcceptable):
            raise
        except QuerySyntaxError as error:
            found = QueryCheck(False, None, error.reason, error.line, error.column)
        except RequestError as error:
            found = QueryCheck(False, None, str(error))
        headers = {"Cache-Control": "no-store"}
        return Response(orjson.dumps(asdict(found)), headers=headers, media_type=JSON_TYPE)

    async def _check_update(self, request: Request, text: str) -> QueryCheck:
        base_iri = request_iri(request)
        if len(text) <= SHORT_TEXT_CHARACTERS:
            read_update(text, base_iri, self._limits)
        else:
            await run_in_threadpool(read_update, text, base_iri, self._limits)
        return QueryCheck(True, "UPDATE")

    async def _check_query(
        self, request: Request, parameters: QueryParameters, text: str, wants_plan: bool
    ) -> QueryCheck:
        asked = await self._reader.ask(request, parameters, text)
        self._queries.check_query(asked.query)
        found = QueryCheck(True, asked.query.form)
        if wants_plan:
            with suppress(UnavailableError):  # then the text is valid all the same
                reads = await self._queries.reads(asked.visibility, asked.as_of, asked.left_s)
                found.plan = await self._explainer.plan(asked, reads)
        return found
