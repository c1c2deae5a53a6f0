"""`/sparql`: queries by the SPARQL 1.1 Protocol, section 2.1, and the service description.

How an answer is made, on the event loop or on a worker, is decided here; `serve/DESIGN.md` says why.
"""

from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import GraphDBError, InvalidParameter, NotAcceptable, UnsupportedMediaType
from graphdb.rdf.pieces import CHUNK_BYTES
from graphdb.sparql.cheap import is_cheap
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.gate import GateLimits, read_query
from graphdb.sparql.parser import Query
from graphdb.sparql.results import ResultFormat, formats_for, write_answer
from serve.addresses import request_iri
from serve.answers import Pipe, WorkerAnswer, Workers
from serve.backend import Backend
from serve.bodies import content_type, read_body, read_text
from serve.graph.metrics import Metrics
from serve.graph.service_description import describe_service, wants_description
from serve.graph.update import FORM_TYPE, UPDATE_TYPE
from serve.negotiation import MediaType, Offer, choose
from serve.parameters import Parameters, read_dataset
from serve.routing import without_body

__all__ = ["SparqlEndpoint"]

QUERY_TYPE = "application/sparql-query"
# A longer text is parsed on a thread, and not kept.
SHORT_TEXT_CHARACTERS = 4_000

_BY_NAME = {fmt.value: fmt for fmt in ResultFormat} | {
    "ttl": ResultFormat.TURTLE,
    "n3": ResultFormat.TURTLE,
    "nt": ResultFormat.N_TRIPLES,
    "rdf": ResultFormat.RDF_XML,
    "rdf-xml": ResultFormat.RDF_XML,
    "json-ld": ResultFormat.JSON_LD,
    "nq": ResultFormat.N_QUADS,
}


@dataclass(frozen=True, slots=True)
class _Understood:
    """A query text and what follows from it alone."""

    query: Query
    is_cheap: bool


class _TooLong(Exception):
    """Raised by a sink on the event loop: this answer belongs on a worker."""


class SparqlEndpoint:
    """GET, HEAD and POST of /sparql."""

    def __init__(
        self, backend: Backend, workers: Workers, metrics: Metrics, body_bytes_max: int, limits: GateLimits
    ) -> None:
        self._backend, self._workers, self._metrics = backend, workers, metrics
        self._body_bytes_max, self._limits = body_bytes_max, limits
        self._understand_short = lru_cache(maxsize=1024)(self._read)

    async def get(self, request: Request) -> Response:
        """The query in the query string; without parameters the service description, if RDF is asked for."""
        query_string: bytes = request.scope["query_string"]
        if not query_string and wants_description(request):
            return describe_service(request)
        parameters = Parameters(query_string)
        return await self._answer(request, parameters, _required(parameters))

    async def post(self, request: Request) -> Response:
        """The query as the body, or as a field of a form."""
        media_type = content_type(request, (QUERY_TYPE, FORM_TYPE))
        if media_type.name == QUERY_TYPE:
            parameters = Parameters(request.scope["query_string"])
            if "query" in parameters:
                raise InvalidParameter("query", "given in the query string, but the body is the query")
            return await self._answer(request, parameters, await read_text(request, self._body_bytes_max))
        if media_type.name == FORM_TYPE:
            form = await read_body(request, self._body_bytes_max)
            parameters = Parameters(request.scope["query_string"], form)
            return await self._answer(request, parameters, _required(parameters))
        if media_type.name == UPDATE_TYPE:
            raise UnsupportedMediaType(f"{UPDATE_TYPE} here (updates go to /update)", (QUERY_TYPE, FORM_TYPE))
        raise UnsupportedMediaType(media_type.name, (QUERY_TYPE, FORM_TYPE))

    async def _answer(self, request: Request, parameters: Parameters, text: str) -> Response:
        understood = await self._understand(text, request_iri(request))
        dataset = read_dataset(parameters, "default-graph-uri", "named-graph-uri")
        fmt = _choose_format(request, parameters.many("format"), understood.query.form)
        if request.method == "HEAD":
            return without_body({"Content-Type": fmt.content_type, "Vary": "Accept"})
        if understood.is_cheap and not dataset and fmt is not ResultFormat.CANONICAL_N_TRIPLES:
            answer = self._answer_here(understood.query, fmt)
            if answer is not None:
                return answer
        return self._answer_on_worker(understood.query, dataset, fmt)

    async def _understand(self, text: str, base_iri: str) -> _Understood:
        if len(text) <= SHORT_TEXT_CHARACTERS:
            return self._understand_short(text, base_iri)
        query = await run_in_threadpool(read_query, text, base_iri, self._limits)
        return _Understood(query, is_cheap=False)

    def _read(self, text: str, base_iri: str) -> _Understood:
        query = read_query(text, base_iri, self._limits)
        return _Understood(query, is_cheap(query))

    def _answer_here(self, query: Query, fmt: ResultFormat) -> Response | None:
        """Evaluate on the event loop; None once the answer turns out to be longer than one chunk."""
        body = b""

        def sink(chunk: bytes) -> None:
            nonlocal body
            if len(chunk) >= CHUNK_BYTES:
                raise _TooLong
            body = chunk

        started = perf_counter()
        try:
            evaluated = self._backend.query(query, Dataset())
            write_answer(evaluated.answer, fmt, sink)
        except _TooLong:
            return None  # the worker that begins anew counts it
        except GraphDBError:
            self._metrics.count_query(started)
            raise
        self._metrics.count_query(started)
        return Response(body, headers=_head(fmt, evaluated.snapshot_index))

    def _answer_on_worker(self, query: Query, dataset: Dataset, fmt: ResultFormat) -> Response:
        def produce(pipe: Pipe) -> None:
            with self._metrics.query():
                evaluated = self._backend.query(query, dataset)
                pipe.headers.update(_head(fmt, evaluated.snapshot_index))
                write_answer(evaluated.answer, fmt, pipe.write)

        return WorkerAnswer(self._workers, produce)


def _head(fmt: ResultFormat, snapshot_index: int) -> dict[str, str]:
    return {"Content-Type": fmt.content_type, "Vary": "Accept", "X-Snapshot-Index": str(snapshot_index)}


def _required(parameters: Parameters) -> str:
    if "update" in parameters:
        raise InvalidParameter("update", "this path answers queries; POST updates to /update")
    text = parameters.one("query")
    if text is None:
        raise InvalidParameter("query", "is missing")
    return text


def _offers(form: str) -> tuple[Offer[ResultFormat], ...]:
    return tuple(
        Offer(
            MediaType(fmt.media_type, frozenset({("profile", fmt.profile)} if fmt.profile else ())),
            fmt,
        )
        for fmt in formats_for(form)
    )


_OFFERS = {form: _offers(form) for form in ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")}


def _choose_format(request: Request, names: list[str], form: str) -> ResultFormat:
    """By the parameter `format` (a short name or a media type) where it is given, else by Accept.

    SPARQLWrapper gives one format in several spellings, for the server to find one that it knows.
    """
    if not names:
        return _by_accept(", ".join(request.headers.getlist("accept")), form)
    name = next((name for name in names if "/" in name or name.lower() in _BY_NAME), None)
    if name is None:
        raise InvalidParameter("format", f"{names[0]!r} is not known; known are {', '.join(_BY_NAME)}")
    if "/" in name:
        return _by_accept(name, form)
    fmt = _BY_NAME[name.lower()]
    if fmt is ResultFormat.XML and fmt not in formats_for(form):
        fmt = ResultFormat.RDF_XML  # what SPARQLWrapper means by xml, unless told otherwise
    if fmt not in formats_for(form):
        raise NotAcceptable(f"format={name}", tuple(offer.value for offer in formats_for(form)))
    return fmt


@lru_cache(maxsize=512)
def _by_accept(accept: str, form: str) -> ResultFormat:
    return choose(accept, _OFFERS[form]).value
