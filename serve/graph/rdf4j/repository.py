"""`/repositories` and what describes a repository: queries and updates, contexts, size, namespaces.

Source: RDF4J's REST API, protocol version 12. Tables that are not of the graph (repositories, namespaces) are
answers to queries of VALUES, so that they come in every format of query results.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode
from starlette.requests import Request
from starlette.responses import Response

from graphdb.access.permissions import Permission
from graphdb.config.limits import GateLimits
from graphdb.errors import InvalidParameter, NotFound, UnsupportedMediaType
from graphdb.model import GraphName
from graphdb.node import QueryRequest
from graphdb.planning.gate import read_query, read_update
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.prebinding import with_values
from graphdb.sparql.results import ResultFormat
from graphdb.store.view import Term
from serve.access.request_scope import principal_of, visibility_of
from serve.backend import GraphReads, Namespaces, Queries
from serve.bodies import content_type, media_type_name, read_body, read_text
from serve.graph.asked_query import AskedQuery, QueryReader
from serve.graph.query_answers import QueryAnswers
from serve.graph.query_parameters import read_as_of, read_query_parameters
from serve.graph.rdf4j.statements import StatementsEndpoint, matching
from serve.graph.rdf4j.wire import Pattern, no_content, read_base, read_contexts, read_value
from serve.graph.sparql import FORM_TYPE, QUERY_TYPE, UPDATE_TYPE, UpdateEndpoint
from serve.graph.writes import read_request_id
from serve.parameters import Parameters, request_iri

__all__ = ["AskedText", "Repository", "RepositoryEndpoint", "Sizes", "read_asked"]

PROTOCOL_VERSION = "12"

_LANGUAGES = frozenset({"sparql", "sparql 1.1", "sparql 1.2"})
_NAME = re.compile(r"\w+")
_NAMESPACE_BYTES_MAX = 10_000
# What changes the answer, and is not offered here.
_NOT_OFFERED = ("limit", "offset", "remove-graph-uri", "insert-graph-uri")
_CONTEXTS = "SELECT ?contextID { GRAPH ?contextID { } FILTER EXISTS { GRAPH ?contextID { ?s ?p ?o } } }"


@dataclass(frozen=True, slots=True)
class Repository:
    """The one repository of this service: its id and title."""

    id: str
    title: str = "graphdb"

    def check(self, request: Request) -> None:
        """Raises NotFound if the path names another."""
        asked: str = request.path_params["id"]
        if asked != self.id:
            raise NotFound("repository", f"{asked[:100]!r}; the repository of this service is {self.id!r}")


@dataclass(frozen=True, slots=True)
class AskedText:
    """A query or update with the parameters that RDF4J's clients send beside it."""

    text: str
    base_iri: str | None
    bindings: Mapping[str, Term]


def read_asked(parameters: Parameters, text: str) -> AskedText:
    """Raises InvalidParameter for what is not offered."""
    language = parameters.one("queryLn")
    if language is not None and language.lower() not in _LANGUAGES:
        raise InvalidParameter("queryLn", f"{language[:100]!r} is not offered; SPARQL is")
    for name in _NOT_OFFERED:
        if name in parameters:
            raise InvalidParameter(name, "is not offered; write it into the request")
    return AskedText(text, read_base(parameters), _bindings(parameters))


def _bindings(parameters: Parameters) -> dict[str, Term]:
    """The values of variables, given as $name=value."""
    found = {}
    for name in parameters.names:
        if name.startswith("$"):
            value = parameters.one(name)
            if not _NAME.fullmatch(name[1:]) or value is None:
                raise InvalidParameter(name[:100], "is not the name of a variable")
            found[name[1:]] = read_value(name, value)
    return found


class RepositoryEndpoint:
    """All of a repository but its statements and transactions."""

    def __init__(
        self,
        repository: Repository,
        queries: Queries,
        namespaces: Namespaces,
        reader: QueryReader,
        answers: QueryAnswers,
        update: UpdateEndpoint,
        statements: StatementsEndpoint,
        sizes: "Sizes",
        limits: GateLimits,
        body_bytes_max: int,
    ) -> None:
        self._repository, self._queries, self._namespaces = repository, queries, namespaces
        self._reader, self._answers, self._update = reader, answers, update
        self._statements, self._sizes, self._limits = statements, sizes, limits
        self._body_bytes_max = body_bytes_max

    async def protocol(self, _request: Request) -> Response:
        """The version of the protocol."""
        return Response(PROTOCOL_VERSION, media_type="text/plain")

    async def list(self, request: Request) -> Response:
        """The repositories: this one."""
        uri = f"{request_iri(request)}/{self._repository.id}"
        principal = principal_of(request.scope)
        row = (
            NamedNode(uri),
            Literal(self._repository.id),
            Literal(self._repository.title),
            Literal(True),
            Literal(principal.permission >= Permission.WRITE),
        )
        return await self._table(request, ("uri", "id", "title", "readable", "writable"), [row])

    async def get(self, request: Request) -> Response:
        """Evaluate the query in the query string."""
        return await self._ask(request, request.scope["query_string"])

    async def post(self, request: Request) -> Response:
        """Evaluate the query that is the body, or a field of a form."""
        media_type = content_type(request, (QUERY_TYPE, FORM_TYPE))
        if media_type.name == QUERY_TYPE:
            text = await read_text(request, self._body_bytes_max)
            return await self._ask(request, request.scope["query_string"], text=text)
        if media_type.name == FORM_TYPE:
            form = await read_body(request, self._body_bytes_max)
            return await self._ask(request, request.scope["query_string"], form)
        raise UnsupportedMediaType(media_type.name, (QUERY_TYPE, FORM_TYPE))

    async def _ask(self, request: Request, *encoded: bytes, text: str | None = None) -> Response:
        asked = await self.read_query(request, *encoded, text=text)
        return await self._answers.answer(asked, unites_graphs=True)

    async def answer(self, asked: AskedQuery, reads: GraphReads) -> Response:
        """The answer to a query, with the union of all graphs as default graph unless it names others."""
        return await self._answers.answer(asked, reads.uniting_graphs())

    async def read_query(self, request: Request, *encoded: bytes, text: str | None = None) -> AskedQuery:
        """The query of a request: the text, or the parameter `query`."""
        parameters = Parameters(*encoded)
        usual = read_query_parameters(*encoded)
        accept = parameters.one("Accept")
        usual = replace(usual, formats=() if accept is None else (accept,), explain=False)
        asked = read_asked(parameters, usual.required_query() if text is None else text)
        worded = asked.text
        if asked.base_iri is not None:
            worded = f"BASE <{asked.base_iri}> {worded}"
        if asked.bindings:
            worded = with_values(read_query(worded, request_iri(request), self._limits), asked.bindings)
        return await self._reader.ask(request, usual, worded)

    async def post_statements(self, request: Request) -> Response:
        """Add the statements of the body, or apply the update that it is."""
        name = media_type_name(request)
        query_string: bytes = request.scope["query_string"]
        if name == UPDATE_TYPE:
            text = await read_text(request, self._body_bytes_max)
            return await self._apply(request, Parameters(query_string), text)
        if name == FORM_TYPE:
            form = await read_body(request, self._body_bytes_max)
            # The update has to be in the form: a link must not be able to change data.
            found = Parameters(form).one("update")
            if found is None:
                raise InvalidParameter("update", "is missing from the form")
            return await self._apply(request, Parameters(query_string, form), found)
        return await self._statements.post(request)

    async def _apply(self, request: Request, parameters: Parameters, text: str) -> Response:
        asked = read_asked(parameters, text)
        if asked.bindings:
            base_iri = asked.base_iri or request_iri(request)
            text = with_values(read_update(text, base_iri, self._limits), asked.bindings)
        confirmation = await self._update.apply(request, parameters, text, asked.base_iri)
        return no_content(confirmation.snapshot_index)

    async def contexts(self, request: Request) -> Response:
        """The graphs that hold statements, and have a name."""
        as_of = read_as_of(Parameters(request.scope["query_string"]))
        parameters = replace(read_query_parameters(b""), as_of=as_of)
        asked = await self._reader.ask(request, parameters, _CONTEXTS)
        return await self._answers.answer(asked)

    async def size(self, request: Request) -> Response:
        """The number of statements, of the contexts or of all."""
        parameters = Parameters(request.scope["query_string"])
        contexts, as_of = read_contexts(parameters), read_as_of(parameters)
        reads = await self._queries.reads(visibility_of(request.scope), as_of, self._sizes.timeout_s)
        return Response(str(await self._sizes.of(reads, contexts)), media_type="text/plain")

    # namespaces

    async def list_namespaces(self, request: Request) -> Response:
        """All prefixes."""
        rows = [(Literal(prefix), Literal(iri)) for prefix, iri in self._namespaces.namespaces().items()]
        return await self._table(request, ("prefix", "namespace"), rows)

    async def clear_namespaces(self, request: Request) -> Response:
        """Remove all prefixes."""
        done = await self._namespaces.remove(None, read_request_id(request, ()))
        return no_content(done.snapshot_index)

    async def get_namespace(self, request: Request) -> Response:
        """The IRI of a prefix."""
        prefix: str = request.path_params["prefix"]
        iri = self._namespaces.namespaces().get(prefix)
        if iri is None:
            raise NotFound("namespace", prefix[:100])
        return Response(iri, media_type="text/plain")

    async def set_namespace(self, request: Request) -> Response:
        """Have a prefix stand for the IRI that is the body."""
        prefix: str = request.path_params["prefix"]
        iri = (await read_text(request, _NAMESPACE_BYTES_MAX)).strip()
        done = await self._namespaces.set(prefix, iri, read_request_id(request, (iri,)))
        return no_content(done.snapshot_index)

    async def remove_namespace(self, request: Request) -> Response:
        """Remove a prefix; no error if there is none."""
        prefix: str = request.path_params["prefix"]
        done = await self._namespaces.remove(prefix, read_request_id(request, ()))
        return no_content(done.snapshot_index)

    async def _table(
        self, request: Request, names: Sequence[str], rows: Iterable[Sequence[NamedNode | Literal]]
    ) -> Response:
        head = " ".join(f"?{name}" for name in names)
        body = " ".join(f"({' '.join(map(str, row))})" for row in rows)
        text = f"SELECT {head} {{ VALUES ({head}) {{ {body} }} }}"
        asked = await self._reader.ask(request, read_query_parameters(b""), text)
        return await self._answers.answer(asked)


class Sizes:
    """Counts statements."""

    def __init__(self, limits: GateLimits, timeout_s: float, *, union_default_graph: bool) -> None:
        """union_default_graph: no query sees the default graph alone, so that its quads are read."""
        self._limits, self.timeout_s, self._unites = limits, timeout_s, union_default_graph

    async def of(self, reads: GraphReads, contexts: Sequence[GraphName] | None) -> int:
        """How many statements there are in these graphs; in all for None. Raises what queries raise."""
        if self._unites or any(isinstance(graph, BlankNode) for graph in contexts or ()):
            pattern = Pattern(None, None, None, None if contexts is None else tuple(contexts))
            return await asyncio.to_thread(lambda: sum(1 for _ in matching(reads, pattern)))
        groups = ["{ ?s ?p ?o }", "{ GRAPH ?g { ?s ?p ?o } }"] if contexts is None else []
        for graph in contexts or ():
            is_default = isinstance(graph, DefaultGraph)
            groups.append("{ ?s ?p ?o }" if is_default else f"{{ GRAPH {graph} {{ ?s ?p ?o }} }}")
        text = f"SELECT (COUNT(*) AS ?n) {{ {' UNION '.join(groups)} }}"
        query = read_query(text, None, self._limits)
        stream = await reads.start_query(QueryRequest(query, Dataset(), ResultFormat.JSON, self.timeout_s))
        try:
            pieces = []
            while (piece := await stream.read()) is not None:
                pieces.append(piece)
        finally:
            stream.close()
        [row] = orjson.loads(b"".join(pieces))["results"]["bindings"]
        return int(row["n"]["value"])
