"""`/sparql` and `/update`: the SPARQL 1.1 Protocol, sections 2.1 and 2.2, and the service description.

`/sparql` takes updates too, as many clients send them.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from time import perf_counter

from pyoxigraph import BlankNode, Literal, NamedNode, Quad
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from graphdb.access.permissions import Permission
from graphdb.config.limits import GateLimits
from graphdb.errors import (
    BodyTooLarge,
    GraphDBError,
    InvalidParameter,
    QuerySyntaxError,
    RequestError,
    TextTooLarge,
    UnavailableError,
    UnsupportedMediaType,
)
from graphdb.model import Confirmation, Interface
from graphdb.planning.gate import SHORT_TEXT_CHARACTERS, read_update
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.prefixes import WELL_KNOWN
from graphdb.rdf.writing import write_quads
from graphdb.sparql.syntax import Update
from serve.access.audit import note_of
from serve.access.authorization import require
from serve.backend import Namespaces, Writing
from serve.bodies import content_type, read_body, read_text
from serve.graph.asked_query import AskedQuery, Mend, QueryReader
from serve.graph.query_accounts import Account, QueryAccounts, outcome_of
from serve.graph.query_answers import QueryAnswers
from serve.graph.query_parameters import refuse_as_of
from serve.graph.writes import confirm, read_request_id, writes_of
from serve.negotiation import MediaType, Offer, choose
from serve.parameters import Parameters, read_dataset, request_iri

__all__ = ["FORM_TYPE", "QUERY_TYPE", "UPDATE_TYPE", "SparqlEndpoint", "UpdateEndpoint"]

QUERY_TYPE = "application/sparql-query"
_OTHER_FIELDS_BYTES = 65_536

UPDATE_TYPE = "application/sparql-update"
FORM_TYPE = "application/x-www-form-urlencoded"
_TYPES = (QUERY_TYPE, FORM_TYPE, UPDATE_TYPE)
_USING, _USING_NAMED = "using-graph-uri", "using-named-graph-uri"

SD = "http://www.w3.org/ns/sparql-service-description#"
FORMATS = "http://www.w3.org/ns/formats/"
RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
SH, XSD, VOID = (WELL_KNOWN[name] for name in ("sh", "xsd", "void"))
_PREFIXES = {"sd": SD, "formats": FORMATS, "sh": SH, "void": VOID}
_OFFERS = tuple(
    Offer(MediaType(syntax.media_type), syntax)
    for syntax in (RdfSyntax.TURTLE, RdfSyntax.N_TRIPLES, RdfSyntax.RDF_XML, RdfSyntax.JSON_LD)
)
# With */* a client gets the error that the query is missing.
_ANYTHING_ELSE = Offer(MediaType("application/json"), RdfSyntax.TURTLE)
_LANGUAGES = ("SPARQL10Query", "SPARQL11Query", "SPARQL11Update")
_FEATURES = ("EmptyGraphs",)
_INPUT_FORMATS = ("Turtle", "N-Triples", "N-Quads", "TriG", "RDF_XML", "JSON-LD")
_RESULT_FORMATS = (
    "SPARQL_Results_JSON",
    "SPARQL_Results_XML",
    "SPARQL_Results_CSV",
    "SPARQL_Results_TSV",
    *_INPUT_FORMATS,
)


class SparqlEndpoint:
    """GET, HEAD and POST of /sparql."""

    def __init__(
        self,
        reader: QueryReader,
        answers: QueryAnswers,
        accounts: QueryAccounts,
        updates: "UpdateEndpoint",
        describe_data: Callable[[Request], Awaitable[list[Quad]]],
        namespaces: Namespaces,
        body_bytes_max: int,
        query_bytes_max: int,
    ) -> None:
        """updates: for the updates that are sent here. describe_data: what stands of the data in the service
        description, beside the prefixes of namespaces. body_bytes_max: of any body. query_bytes_max: of the
        text of a query, and a third of a form's.
        """
        self._describe_data, self._namespaces = describe_data, namespaces
        self._reader, self._answers, self._accounts, self._updates = reader, answers, accounts, updates
        self._body_bytes_max, self._query_bytes_max = body_bytes_max, query_bytes_max

    async def get(self, request: Request) -> Response:
        """The query in the query string. Without parameters: the service description, if Accept names RDF."""
        query_string: bytes = request.scope["query_string"]
        if not query_string and wants_description(request):
            return await self._describe(request)
        try:
            parameters = self._reader.parameters(query_string)
            asked = await self._reader.ask(request, parameters, parameters.required_query())
        except RequestError:
            self._accounts.refuse()
            raise
        return await self._answers.answer(asked)

    async def _describe(self, request: Request) -> Response:
        """The service description in the RDF syntax that the client prefers."""
        syntax = choose(_accept(request), _OFFERS).value
        try:
            declared = self._namespaces.namespaces()
        except UnavailableError:
            declared = {}
        quads = _description(NamedNode(request_iri(request)), declared)
        quads += await self._describe_data(request)
        prefixes = {} if syntax is RdfSyntax.N_TRIPLES else _PREFIXES
        body = await run_in_threadpool(lambda: b"".join(write_quads(quads, syntax, prefixes=prefixes)))
        return Response(body, headers={"Content-Type": syntax.media_type, "Vary": "Accept"})

    async def post(self, request: Request) -> Response:
        """The query or the update as the body, or as a field of a form."""
        try:
            media_type = content_type(request, _TYPES)
            form = await self._read_form(request) if media_type.name == FORM_TYPE else b""
            is_update = media_type.name == UPDATE_TYPE or _is_update(form)
            asked = None if is_update else await self._read_query(request, media_type, form)
        except RequestError:
            self._accounts.refuse()
            raise
        if asked is not None:
            return await self._answers.answer(asked)
        require(request.scope, Permission.WRITE)
        return await (self._updates.apply_form(request, form) if form else self._updates.post(request))

    async def _read_query(self, request: Request, media_type: MediaType, form: bytes) -> AskedQuery:
        query_string: bytes = request.scope["query_string"]
        if media_type.name == QUERY_TYPE:
            parameters = self._reader.parameters(query_string)
            if parameters.query is not None:
                raise InvalidParameter("query", "given in the query string, but the body is the query")
            return await self._reader.ask(request, parameters, await self._read_text(request))
        if media_type.name == FORM_TYPE:
            parameters = self._reader.parameters(query_string, form)
            return await self._reader.ask(request, parameters, parameters.required_query())
        raise UnsupportedMediaType(media_type.name, _TYPES)

    async def _read_text(self, request: Request) -> str:
        with self._too_large(request, self._query_bytes_max) as bytes_max:
            return await read_text(request, bytes_max)

    async def _read_form(self, request: Request) -> bytes:
        """A form may take three bytes for each byte of the query, and has other fields."""
        with self._too_large(request, 3 * self._query_bytes_max + _OTHER_FIELDS_BYTES) as bytes_max:
            return await read_body(request, bytes_max)

    @contextmanager
    def _too_large(self, request: Request, bytes_max: int) -> Iterator[int]:
        """The number of bytes to read; a longer body is refused, because the text in it is too long."""
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


class UpdateEndpoint:
    """POST of /update."""

    def __init__(
        self, writing: Writing, accounts: QueryAccounts, body_bytes_max: int, limits: GateLimits, mend: Mend
    ) -> None:
        self._writing, self._accounts, self._mend = writing, accounts, mend
        self._body_bytes_max, self._limits = body_bytes_max, limits

    async def post(self, request: Request) -> Response:
        """The update as the body, or as a field of a form."""
        media_type = content_type(request, (UPDATE_TYPE, FORM_TYPE))
        if media_type.name == UPDATE_TYPE:
            parameters = Parameters(request.scope["query_string"])
            if "update" in parameters:
                raise InvalidParameter("update", "given in the query string, but the body is the update")
            return await self._apply(request, parameters, await read_text(request, self._body_bytes_max))
        if media_type.name == FORM_TYPE:
            return await self.apply_form(request, await read_body(request, self._body_bytes_max))
        raise UnsupportedMediaType(media_type.name, (UPDATE_TYPE, FORM_TYPE))

    async def apply_form(self, request: Request, form: bytes) -> Response:
        """The update of a form that has been read. It is not taken from the query string: a link must not be
        able to change data.
        """
        parameters, fields = Parameters(request.scope["query_string"], form), Parameters(form)
        return await self._apply(request, parameters, _required(fields))

    async def _apply(self, request: Request, parameters: Parameters, text: str) -> Response:
        return confirm(await self.apply(request, parameters, text))

    async def apply(
        self, request: Request, parameters: Parameters, text: str, base_iri: str | None = None
    ) -> Confirmation:
        """Apply the update of a request; base_iri: None for the address of the request."""
        refuse_as_of(parameters, "the past cannot be changed")
        account = Account(text, "UPDATE", perf_counter())
        using = read_dataset(parameters, _USING, _USING_NAMED)
        named = ((name, value) for name in (_USING, _USING_NAMED) for value in parameters.many(name))
        request_id = read_request_id(request, (text, *chain.from_iterable(named)))
        update = await self.read(request, text, base_iri or request_iri(request))
        note = note_of(request.scope)
        note.syntax = update
        note.add_graphs(graph.value for graph in using.graphs)
        try:
            writes = writes_of(self._writing, request, Interface.SPARQL_UPDATE)
            confirmation = await writes.update(update, using, request_id)
        except GraphDBError as error:
            self._accounts.close_update(account, outcome_of(error))
            raise
        account.snapshot_index = confirmation.snapshot_index
        self._accounts.close_update(account, "ok")
        return confirmation

    async def read(self, request: Request, text: str, base_iri: str) -> Update:
        """Parse the update of a request. Raises QuerySyntaxError, LimitExceeded."""
        try:
            if len(text) <= SHORT_TEXT_CHARACTERS:
                return read_update(text, base_iri, self._limits)
            return await run_in_threadpool(read_update, text, base_iri, self._limits)
        except QuerySyntaxError as error:
            raise await self._mend(request, error) from None


def _is_update(form: bytes) -> bool:
    """Whether a form has an update and no query."""
    if b"update=" not in form:
        return False
    fields = Parameters(form)
    return "update" in fields and "query" not in fields


def _required(fields: Parameters) -> str:
    if "query" in fields:
        raise InvalidParameter("query", "this path takes updates; send queries to /sparql")
    text = fields.one("update")
    if text is None:
        raise InvalidParameter("update", "is missing from the form")
    return text


def wants_description(request: Request) -> bool:
    """Whether the Accept header names RDF, not only */*."""
    try:
        return choose(_accept(request), (_ANYTHING_ELSE, *_OFFERS)) is not _ANYTHING_ELSE
    except RequestError:
        return False


def _accept(request: Request) -> str:
    return ", ".join(request.headers.getlist("accept"))


def _description(endpoint: NamedNode, declared: Mapping[str, str]) -> list[Quad]:
    """declared: the IRIs of prefixes."""
    service, dataset, graph = BlankNode(), BlankNode(), BlankNode()
    found = [
        Quad(service, RDF_TYPE, _sd("Service")),
        Quad(service, _sd("endpoint"), endpoint),
        *(Quad(service, _sd("supportedLanguage"), _sd(language)) for language in _LANGUAGES),
        *(Quad(service, _sd("resultFormat"), NamedNode(FORMATS + name)) for name in _RESULT_FORMATS),
        *(Quad(service, _sd("inputFormat"), NamedNode(FORMATS + name)) for name in _INPUT_FORMATS),
        *(Quad(service, _sd("feature"), _sd(feature)) for feature in _FEATURES),
        Quad(service, _sd("defaultDataset"), dataset),
        Quad(dataset, RDF_TYPE, _sd("Dataset")),
        Quad(dataset, _sd("defaultGraph"), graph),
        Quad(graph, RDF_TYPE, _sd("Graph")),
    ]
    for prefix, iri in declared.items():
        declaration = BlankNode()
        found += [
            Quad(service, NamedNode(SH + "declare"), declaration),
            Quad(declaration, NamedNode(SH + "prefix"), Literal(prefix)),
            Quad(declaration, NamedNode(SH + "namespace"), Literal(iri, datatype=NamedNode(XSD + "anyURI"))),
        ]
    return found


def _sd(name: str) -> NamedNode:
    return NamedNode(SD + name)
