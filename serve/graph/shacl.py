"""`/shacl/validate`: validates a graph of the store against SHACL shapes; the report is JSON or RDF."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TypeAlias

from pyoxigraph import NamedNode
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from graphdb.access.visibility import Visibility
from graphdb.errors import BodyTooLarge, InvalidParameter, RequestError, UnsupportedMediaType
from graphdb.history.moments import Moment
from graphdb.node import Consistency, MergedGraphs, ShapesDocument, ValidationRequest
from graphdb.rdf.formats import RdfSyntax
from serve.access.request_scope import visibility_of
from serve.backend import AnswerStream, Progress, Queries
from serve.bodies import JSON_TYPE, JsonBody, media_type_name, parse_json, read_body
from serve.graph.metrics import Outcome
from serve.graph.query_accounts import Account, QueryAccounts, outcome_of
from serve.graph.query_parameters import (
    consistency_of,
    read_as_of,
    read_consistency,
    read_min_index,
    read_timeout,
    refuse_as_of,
)
from serve.graph.responses import Delivery, Head, Limits, StreamedAnswer
from serve.negotiation import MediaType, Offer, choose
from serve.parameters import Parameters, read_graph_iri

__all__ = ["ShaclEndpoint", "ValidationBody", "ValidationReader", "read_data_graph", "read_shapes_source"]

_WITHOUT_NAME = ("default", "union")
_ESCAPES = 6  # bytes that JSON may write for one of the shapes
_OTHER_MEMBERS_BYTES = 65_536
_REPORT_SYNTAXES = (None, RdfSyntax.TURTLE, RdfSyntax.N_TRIPLES, RdfSyntax.JSON_LD, RdfSyntax.RDF_XML)
_REPORTS = tuple(
    Offer(MediaType(syntax.media_type if syntax is not None else JSON_TYPE), syntax)
    for syntax in _REPORT_SYNTAXES
)
_REPORT_NAMES: dict[str, RdfSyntax | None] = {
    "json": None,
    "turtle": RdfSyntax.TURTLE,
    "ttl": RdfSyntax.TURTLE,
    "ntriples": RdfSyntax.N_TRIPLES,
    "nt": RdfSyntax.N_TRIPLES,
    "jsonld": RdfSyntax.JSON_LD,
    "rdfxml": RdfSyntax.RDF_XML,
    "rdf": RdfSyntax.RDF_XML,
}


@dataclass(slots=True)
class AskedValidation:
    """A request for a validation. Times are those of perf_counter()."""

    shapes: ShapesDocument | NamedNode | MergedGraphs
    data_graph: str | MergedGraphs
    report_syntax: RdfSyntax | None  # None: the report of the interface, in JSON
    timeout_s: float  # from the request's arrival to the last byte of the report
    min_index: int
    consistency: Consistency
    visibility: Visibility  # what of the graph is validated
    as_of: Moment | None  # the state of the past that is validated; None: the present
    account: Account

    @property
    def left_s(self) -> float:
        """The rest of the time limit, in seconds."""
        return max(0.0, self.account.began + self.timeout_s - perf_counter())

    def for_reader(self) -> ValidationRequest:
        """The request to a reader, with the rest of the time limit."""
        return ValidationRequest(
            self.shapes, self.data_graph, self.report_syntax, self.left_s, self.account.principal
        )


class ValidationBody(JsonBody):
    """The members of a JSON body."""

    shapes: str | None = None  # Turtle
    graph: str | None = None
    shapes_graph: str | None = None


_Details: TypeAlias = tuple[RdfSyntax | None, float, int, Consistency, Visibility, Moment | None]

"""Of an `AskedValidation`: report_syntax, timeout_s, min_index, consistency, visibility, as_of."""


class ValidationReader:
    """Parses requests."""

    def __init__(
        self, timeout_s: float, body_bytes_max: int, shapes_bytes_max: int, *, union_default_graph: bool
    ) -> None:
        """timeout_s: the time limit, unless the client sets a lower one."""
        self._timeout_s = timeout_s
        self._body_bytes_max, self._shapes_bytes_max = body_bytes_max, shapes_bytes_max
        self._usual_graph = "union" if union_default_graph else "default"

    async def ask(self, request: Request) -> AskedValidation:
        """The validation in its request, whose arrival is now.

        Raises InvalidParameter, LimitExceeded, NotAcceptable, UnsupportedMediaType, BodyTooLarge.
        """
        began = perf_counter()
        parameters = Parameters(request.scope["query_string"])
        details = self._details(request, parameters)
        given, document = await self._read_body(request)
        graph = _either("graph", parameters, given.graph)
        shapes_graph = _either("shapes_graph", parameters, given.shapes_graph)
        shapes = read_shapes_source(document, shapes_graph)
        data_graph = self._usual_graph if graph is None else read_data_graph(graph)
        return _asked(began, shapes, data_graph, details)

    def ask_about(self, request: Request, shapes: MergedGraphs, data: MergedGraphs) -> AskedValidation:
        """The same for a request without a body, whose path determines the graphs."""
        began = perf_counter()
        parameters = Parameters(request.scope["query_string"])
        refuse_as_of(parameters, "which graphs belong together is known of the present")
        details = self._details(request, parameters)
        return _asked(began, shapes, data, details)

    def _details(self, request: Request, parameters: Parameters) -> _Details:
        return (
            _report_syntax(request, parameters.one("format")),
            min(self._timeout_s, read_timeout(parameters) or self._timeout_s),
            read_min_index(parameters),
            consistency_of(request, read_consistency(parameters)),
            visibility_of(request.scope),
            read_as_of(parameters),
        )

    async def _read_body(self, request: Request) -> tuple[ValidationBody, ShapesDocument | None]:
        """The members of a JSON body, and the shapes in a body of any type."""
        if media_type_name(request) == JSON_TYPE:
            bytes_max = min(self._body_bytes_max, _ESCAPES * self._shapes_bytes_max + _OTHER_MEMBERS_BYTES)
            given = parse_json(await read_body(request, bytes_max), ValidationBody)
            if given.shapes is None:
                return given, None
            return given, ShapesDocument(self._checked(given.shapes.encode()), RdfSyntax.TURTLE)
        content_type = request.headers.get("content-type", "")
        body = await read_body(request, min(self._body_bytes_max, self._shapes_bytes_max))
        if not body and not content_type:
            return ValidationBody(), None
        return ValidationBody(), ShapesDocument(body, _syntax(content_type)) if body else None

    def _checked(self, shapes: bytes) -> bytes:
        if len(shapes) > self._shapes_bytes_max:
            raise BodyTooLarge(self._shapes_bytes_max)
        return shapes


def _asked(
    began: float,
    shapes: ShapesDocument | NamedNode | MergedGraphs,
    data_graph: str | MergedGraphs,
    details: _Details,
) -> AskedValidation:
    account = Account("", "VALIDATE", began)
    asked = AskedValidation(shapes, data_graph, *details, account)
    account.text = asked.for_reader().text
    return asked


def read_data_graph(name: str) -> str:
    """A graph's IRI, "default" or "union". Raises InvalidParameter."""
    return name if name in _WITHOUT_NAME else read_graph_iri("graph", name).value


def read_shapes_source(
    document: ShapesDocument | None, shapes_graph: str | None
) -> ShapesDocument | NamedNode:
    """The given source. Raises InvalidParameter for both, for neither, and for an invalid IRI."""
    if document is not None and shapes_graph is not None:
        raise InvalidParameter("shapes_graph", "there are shapes already; give one of the two")
    if document is not None:
        return document
    if shapes_graph is None:
        raise InvalidParameter("shapes", "are missing: give them, or name a graph as shapes_graph")
    return read_graph_iri("shapes_graph", shapes_graph)


def _syntax(content_type: str) -> RdfSyntax:
    """Raises UnsupportedMediaType, which names JSON too."""
    try:
        return RdfSyntax.from_media_type(content_type)
    except UnsupportedMediaType as error:
        raise UnsupportedMediaType(error.media_type, (JSON_TYPE, *error.accepted)) from None


def _either(name: str, parameters: Parameters, member: str | None) -> str | None:
    """The value in the query string or the body. Raises InvalidParameter for both."""
    parameter = parameters.one(name)
    if parameter is not None and member is not None:
        raise InvalidParameter(name, "given in the query string and in the body")
    return member if parameter is None else parameter


def _report_syntax(request: Request, name: str | None) -> RdfSyntax | None:
    """By the parameter `format` (a short name or a media type), else by Accept."""
    if name is None:
        return choose(", ".join(request.headers.getlist("accept")), _REPORTS).value
    if "/" in name:
        return choose(name, _REPORTS).value
    if name.lower() not in _REPORT_NAMES:
        raise InvalidParameter("format", f"{name!r} is not known; known are {', '.join(_REPORT_NAMES)}")
    return _REPORT_NAMES[name.lower()]


class ShaclEndpoint:
    """POST of /shacl/validate."""

    def __init__(
        self, queries: Queries, progress: Progress, reader: ValidationReader, accounts: QueryAccounts
    ) -> None:
        self._queries, self._progress, self._reader, self._accounts = queries, progress, reader, accounts

    async def post(self, request: Request) -> Response:
        """The report, which a reader makes while it is sent."""
        try:
            asked = await self._reader.ask(request)
        except RequestError:
            self._accounts.refuse_validation()
            raise
        return await self.answer(asked)

    async def answer(
        self, asked: AskedValidation, wrap: Callable[[AnswerStream], AnswerStream] = lambda stream: stream
    ) -> Response:
        """The report of a validation. wrap may change the reader's answer."""
        try:
            if asked.consistency is not Consistency.LOCAL:
                await self._progress.reach(asked.consistency, asked.left_s)
            if asked.min_index:
                await self._progress.wait_for_index(asked.min_index, asked.left_s)
        except Exception as error:
            self._accounts.close_validation(asked.account, outcome_of(error))
            raise
        return self._streamed(asked, wrap)

    def _streamed(self, asked: AskedValidation, wrap: Callable[[AnswerStream], AnswerStream]) -> Response:
        async def start() -> AnswerStream:
            reads = await self._queries.reads(asked.visibility, asked.as_of, asked.left_s)
            return wrap(await reads.start_validation(asked.for_reader()))

        def head(stream: AnswerStream) -> Head:
            return _report_head(asked.report_syntax, stream.snapshot_index)

        def ended(delivery: Delivery, failure: BaseException | None) -> None:
            self._close(asked, delivery, failure)

        deadline = asyncio.get_running_loop().time() + asked.left_s
        limits = Limits(asked.timeout_s, deadline, keep_bytes_max=0, work="validation")
        return StreamedAnswer(start, head, limits, ended)

    def _close(self, asked: AskedValidation, delivery: Delivery, failure: BaseException | None) -> None:
        account, stream = asked.account, delivery.stream
        account.size = delivery.size
        outcome = _outcome(delivery, failure)
        if stream is not None:
            account.where, account.query_id = stream.where, stream.query_id
            account.snapshot_index = stream.snapshot_index
            self._accounts.count_kill(outcome)
        self._accounts.close_validation(account, outcome)


def _report_head(syntax: RdfSyntax | None, snapshot_index: int) -> Head:
    media_type = syntax.media_type if syntax is not None else "application/json"
    return [
        (b"content-type", media_type.encode()),
        (b"vary", b"Accept"),
        (b"cache-control", b"no-store"),
        (b"x-snapshot-index", b"%d" % snapshot_index),
    ]


def _outcome(delivery: Delivery, failure: BaseException | None) -> Outcome:
    if failure is None:
        return "ok"
    if isinstance(failure, ClientDisconnect):
        return "disconnected"
    outcome = outcome_of(failure)
    return "broken" if outcome == "failed" and delivery.head_sent else outcome
