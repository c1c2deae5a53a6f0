"""`/sparql`: queries by the SPARQL 1.1 Protocol, section 2.1, and the service description."""

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import (
    BodyTooLarge,
    InvalidParameter,
    RequestError,
    TextTooLarge,
    UnsupportedMediaType,
)
from serve.bodies import content_type, read_body, read_text
from serve.graph.asked_query import AskedQuery, QueryReader
from serve.graph.query_accounts import QueryAccounts
from serve.graph.query_answers import QueryAnswers
from serve.graph.service_description import describe_service, wants_description
from serve.graph.update import FORM_TYPE, UPDATE_TYPE

__all__ = ["QUERY_TYPE", "SparqlEndpoint"]

QUERY_TYPE = "application/sparql-query"
_OTHER_FIELDS_BYTES = 65_536


class SparqlEndpoint:
    """GET, HEAD and POST of /sparql."""

    def __init__(
        self,
        reader: QueryReader,
        answers: QueryAnswers,
        accounts: QueryAccounts,
        body_bytes_max: int,
        query_bytes_max: int,
    ) -> None:
        """body_bytes_max holds for any body, query_bytes_max for the text of a query."""
        self._reader, self._answers, self._accounts = reader, answers, accounts
        self._body_bytes_max, self._query_bytes_max = body_bytes_max, query_bytes_max

    async def get(self, request: Request) -> Response:
        """The query in the query string; without parameters the service description, if RDF is asked for."""
        query_string: bytes = request.scope["query_string"]
        if not query_string and wants_description(request):
            return describe_service(request)
        try:
            parameters = self._reader.parameters(query_string)
            asked = await self._reader.ask(request, parameters, parameters.required_query())
        except RequestError:
            self._accounts.refuse()
            raise
        return await self._answers.answer(asked)

    async def post(self, request: Request) -> Response:
        """The query as the body, or as a field of a form."""
        try:
            asked = await self._read_body(request)
        except RequestError:
            self._accounts.refuse()
            raise
        return await self._answers.answer(asked)

    async def _read_body(self, request: Request) -> AskedQuery:
        query_string: bytes = request.scope["query_string"]
        media_type = content_type(request, (QUERY_TYPE, FORM_TYPE))
        if media_type.name == QUERY_TYPE:
            parameters = self._reader.parameters(query_string)
            if parameters.query is not None:
                raise InvalidParameter("query", "given in the query string, but the body is the query")
            return await self._reader.ask(request, parameters, await self._read_text(request))
        if media_type.name == FORM_TYPE:
            form = await self._read_form(request)
            parameters = self._reader.parameters(query_string, form)
            return await self._reader.ask(request, parameters, parameters.required_query())
        if media_type.name == UPDATE_TYPE:
            raise UnsupportedMediaType(f"{UPDATE_TYPE} here (updates go to /update)", (QUERY_TYPE, FORM_TYPE))
        raise UnsupportedMediaType(media_type.name, (QUERY_TYPE, FORM_TYPE))

    async def _read_text(self, request: Request) -> str:
        with self._too_large(request, self._query_bytes_max) as bytes_max:
            return await read_text(request, bytes_max)

    async def _read_form(self, request: Request) -> bytes:
        """A form may write each byte of the query as three, and has other fields."""
        with self._too_large(request, 3 * self._query_bytes_max + _OTHER_FIELDS_BYTES) as bytes_max:
            return await read_body(request, bytes_max)

    @contextmanager
    def _too_large(self, request: Request, bytes_max: int) -> Iterator[int]:
        """What may be read of a body; one that is longer is refused, for the text in it is too long."""
        if bytes_max >= self._body_bytes_max:
            yield self._body_bytes_max
            return
        try:
            yield bytes_max
        except BodyTooLarge:
            announced = request.headers.get("content-length", "")
            size = int(announced) if announced.isdecimal() else bytes_max + 1
            if size > self._body_bytes_max:
                raise
            raise TextTooLarge(
                "query bytes (security.max_query_bytes)", max(size, bytes_max + 1), self._query_bytes_max
            ) from None
