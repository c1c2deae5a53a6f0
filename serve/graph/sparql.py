"""`/sparql`: queries by the SPARQL 1.1 Protocol, section 2.1, and the service description."""

from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import InvalidParameter, RequestError, UnsupportedMediaType
from serve.bodies import content_type, read_body, read_text
from serve.graph.asked_query import AskedQuery, QueryReader
from serve.graph.query_accounts import QueryAccounts
from serve.graph.query_answers import QueryAnswers
from serve.graph.service_description import describe_service, wants_description
from serve.graph.update import FORM_TYPE, UPDATE_TYPE

__all__ = ["SparqlEndpoint"]

QUERY_TYPE = "application/sparql-query"


class SparqlEndpoint:
    """GET, HEAD and POST of /sparql."""

    def __init__(
        self, reader: QueryReader, answers: QueryAnswers, accounts: QueryAccounts, body_bytes_max: int
    ) -> None:
        self._reader, self._answers, self._accounts = reader, answers, accounts
        self._body_bytes_max = body_bytes_max

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
            return await self._reader.ask(request, parameters, await read_text(request, self._body_bytes_max))
        if media_type.name == FORM_TYPE:
            form = await read_body(request, self._body_bytes_max)
            parameters = self._reader.parameters(query_string, form)
            return await self._reader.ask(request, parameters, parameters.required_query())
        if media_type.name == UPDATE_TYPE:
            raise UnsupportedMediaType(f"{UPDATE_TYPE} here (updates go to /update)", (QUERY_TYPE, FORM_TYPE))
        raise UnsupportedMediaType(media_type.name, (QUERY_TYPE, FORM_TYPE))
