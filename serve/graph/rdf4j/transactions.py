"""`/repositories/{id}/transactions`: transactions over several requests.

Source: RDF4J's REST API, protocol version 12. Every isolation level is served by the same transactions, which
are serializable. What reads only needs the permission Read, and what changes anything Write.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import IO

from pyoxigraph import DefaultGraph, NamedNode, Quad
from starlette.requests import Request
from starlette.responses import Response

from graphdb.access.permissions import Permission
from graphdb.config.limits import GateLimits
from graphdb.errors import InvalidParameter
from graphdb.model import Confirmation, GraphName, Interface
from graphdb.planning.gate import read_update
from graphdb.sparql.prebinding import with_values
from graphdb.store.stored_form import stored_term
from graphdb.store.view import Term
from graphdb.transactions.changes import TransactionCommit
from graphdb.transactions.read_pattern import ReadPattern
from serve.access.audit import note_of
from serve.access.request_scope import principal_of
from serve.answers import Workers
from serve.backend import Transaction, Transactions, Writing
from serve.bodies import body_chunks, media_type_name, read_body, read_text
from serve.graph.query_parameters import refuse_as_of
from serve.graph.rdf4j.peer_requests import ask_peer
from serve.graph.rdf4j.repository import RepositoryEndpoint, Sizes, read_asked
from serve.graph.rdf4j.statements import placed, read_document, statements_answer
from serve.graph.rdf4j.wire import (
    Pattern,
    choose_written,
    read_base,
    read_contexts,
    read_pattern,
    syntax_of_body,
)
from serve.graph.sparql import FORM_TYPE, UpdateEndpoint
from serve.graph.writes import writes_of
from serve.parameters import Parameters, read_dataset, read_flag, request_iri
from serve.spooled_bodies import spooled_body

__all__ = ["TransactionsEndpoint"]

_LEVELS = frozenset(
    {"NONE", "READ_UNCOMMITTED", "READ_COMMITTED", "SNAPSHOT_READ", "SNAPSHOT", "SERIALIZABLE"}
)
# Terms by which a body of DELETE stands for many statements.
_WILDCARD = NamedNode("http://www.openrdf.org/schema/sesame#wildcard")
_NO_CONTEXT = frozenset(
    {NamedNode("http://rdf4j.org/schema/rdf4j#nil"), NamedNode("http://www.openrdf.org/schema/sesame#nil")}
)


class TransactionsEndpoint:
    """Begins transactions, and performs their actions."""

    def __init__(
        self,
        transactions: Transactions,
        writing: Writing,
        repository: RepositoryEndpoint,
        update: UpdateEndpoint,
        workers: Workers,
        sizes: Sizes,
        limits: GateLimits,
        body_bytes_max: int,
    ) -> None:
        self._transactions, self._writing = transactions, writing
        self._repository, self._update, self._workers, self._sizes = repository, update, workers, sizes
        self._limits, self._body_bytes_max = limits, body_bytes_max
        self._actions: dict[str, Callable[[Request, Parameters, Transaction], Awaitable[Response]]] = {
            "ADD": self._add,
            "DELETE": self._delete,
            "GET": self._get,
            "SIZE": self._size,
            "QUERY": self._query,
            "UPDATE": self._apply,
            "PREPARE": self._prepare,
            "COMMIT": self._commit,
            "PING": self._ping,
        }

    async def begin(self, request: Request) -> Response:
        """A new transaction; its address is in the header Location."""
        parameters = Parameters(request.scope["query_string"], await self._form(request))
        _check_levels(parameters)
        transaction = await self._transactions.begin(principal_of(request.scope))
        location = f"{request_iri(request)}/{transaction.id}"
        return Response(status_code=201, headers={"Location": location})

    async def _form(self, request: Request) -> bytes:
        name = media_type_name(request)
        body = await read_body(request, 65_536)
        return body if name == FORM_TYPE else b""

    async def act(self, request: Request) -> Response:
        """PUT and POST: what the parameter `action` says."""
        parameters = Parameters(request.scope["query_string"])
        name = parameters.one("action") or ""
        action = self._actions.get(name)
        if action is None:
            raise InvalidParameter("action", f"{name[:50]!r} is none of {', '.join(self._actions)}")
        home = self._home_of(request)
        if home is not None:
            return await self._passed_on(request, home)
        transaction = self._found(request)
        transaction.touch()  # its body may take a while
        if name in ("ADD", "DELETE", "UPDATE"):
            principal_of(request.scope).require(Permission.WRITE)
        return await action(request, parameters, transaction)

    async def rollback(self, request: Request) -> Response:
        """DELETE: end it, with nothing stored."""
        home = self._home_of(request)
        if home is not None:
            return await self._passed_on(request, home)
        await self._found(request).rollback()
        response = Response(status_code=204)
        del response.headers["content-length"]
        return response

    def _home_of(self, request: Request) -> int | None:
        return self._transactions.home_of(request.path_params["transaction"])

    async def _passed_on(self, request: Request, home: int) -> Response:
        """The answer of the node that a transaction lives on."""
        chunks = [chunk async for chunk in body_chunks(request, self._body_bytes_max)]
        return await ask_peer(self._transactions, home, request, b"".join(chunks))

    def _found(self, request: Request) -> Transaction:
        transaction_id: str = request.path_params["transaction"]
        return self._transactions.find(transaction_id, principal_of(request.scope))

    # actions

    async def _add(self, request: Request, parameters: Parameters, transaction: Transaction) -> Response:
        contexts = read_contexts(parameters)
        await self._with_body(
            request, parameters, lambda quads: transaction.add(lambda: placed(quads(), contexts))
        )
        return Response(status_code=200)

    async def _delete(self, request: Request, parameters: Parameters, transaction: Transaction) -> Response:
        contexts = read_contexts(parameters)
        await self._with_body(
            request, parameters, lambda quads: transaction.remove(lambda: _patterns(quads(), contexts)), True
        )
        return Response(status_code=200)

    async def _with_body(
        self,
        request: Request,
        parameters: Parameters,
        perform: Callable[[Callable[[], Iterator[Quad]]], Awaitable[None]],
        keeps_blank_nodes: bool = False,
    ) -> None:
        """Call perform with what reads the quads of the body, on any thread."""
        syntax = syntax_of_body(request)
        base_iri = read_base(parameters) or request_iri(request)
        keeps = keeps_blank_nodes or read_flag(parameters, "preserveNodeId") is True
        document: IO[bytes]
        with await spooled_body(body_chunks(request, self._body_bytes_max)) as document:

            def quads() -> Iterator[Quad]:
                document.seek(0)
                return read_document(document, syntax, base_iri, keep_blank_nodes=keeps)

            await perform(quads)

    async def _get(self, request: Request, parameters: Parameters, transaction: Transaction) -> Response:
        refuse_as_of(parameters, "a transaction reads the state at its begin")
        pattern = read_pattern(parameters)
        written = choose_written(request, parameters)
        reads = await transaction.reads()
        for one in _read_patterns(pattern):
            transaction.note_pattern(one)
        return statements_answer(request, self._workers, reads, pattern, written)

    async def _size(self, request: Request, parameters: Parameters, transaction: Transaction) -> Response:
        contexts = read_contexts(parameters)
        reads = await transaction.reads()
        for one in _read_patterns(Pattern(None, None, None, contexts)):
            transaction.note_pattern(one)
        return Response(str(await self._sizes.of(reads, contexts)), media_type="text/plain")

    async def _query(self, request: Request, parameters: Parameters, transaction: Transaction) -> Response:
        query_string: bytes = request.scope["query_string"]
        name = media_type_name(request)
        text, form = None, b""
        if name == FORM_TYPE:
            form = await read_body(request, self._body_bytes_max)
        elif not parameters.one("query"):  # Java's client sends it without a value, beside the body
            text = await read_text(request, self._body_bytes_max)
        asked = await self._repository.read_query(request, query_string, form, text=text)
        if asked.as_of is not None:
            raise InvalidParameter("as_of", "a transaction reads the state at its begin")
        reads = await transaction.reads()
        transaction.note_query(asked.query, has_dataset=bool(asked.dataset))
        return await self._repository.answer(asked, reads)

    async def _apply(self, request: Request, parameters: Parameters, transaction: Transaction) -> Response:
        name = media_type_name(request)
        if name == FORM_TYPE:
            parameters = Parameters(
                request.scope["query_string"], await read_body(request, self._body_bytes_max)
            )
        text = parameters.one("update")
        if not text:
            text = await read_text(request, self._body_bytes_max)
        asked = read_asked(parameters, text)
        base_iri = asked.base_iri or request_iri(request)
        if asked.bindings:
            text = with_values(read_update(text, base_iri, self._limits), asked.bindings)
        update = await self._update.read(request, text, base_iri)
        using = read_dataset(parameters, "using-graph-uri", "using-named-graph-uri")
        note = note_of(request.scope)
        note.syntax = update
        note.add_graphs(graph.value for graph in using.graphs)
        await transaction.update(update, using)
        return Response(status_code=200)

    async def _prepare(self, request: Request, parameters: Parameters, transaction: Transaction) -> Response:
        """Nothing is promised: only a commit finds out whether it can be."""
        return Response(status_code=200)

    async def _commit(self, request: Request, parameters: Parameters, transaction: Transaction) -> Response:
        writes = writes_of(self._writing, request, Interface.RDF4J)
        principal = principal_of(request.scope)

        async def commit(made: TransactionCommit, request_id: bytes) -> Confirmation:
            principal.require(Permission.WRITE)
            return await writes.commit(made, request_id)

        done = await transaction.commit(commit)
        return Response(status_code=200, headers={"X-Snapshot-Index": str(done.snapshot_index)})

    async def _ping(self, request: Request, parameters: Parameters, transaction: Transaction) -> Response:
        """The time until it is rolled back, in milliseconds."""
        transaction.touch()
        return Response(str(round(self._transactions.timeout_s * 1000)), media_type="text/plain")


def _check_levels(parameters: Parameters) -> None:
    """Raises InvalidParameter for an isolation level that does not exist."""
    for name in parameters.names:
        if name == "isolation-level" or name.lower().endswith("isolationlevel"):
            for value in parameters.many(name):
                level = value.rpartition("#")[2].upper()
                if level not in _LEVELS:
                    raise InvalidParameter(
                        name[:100], f"{value[:100]!r} is none of {', '.join(sorted(_LEVELS))}"
                    )


def _patterns(quads: Iterable[Quad], contexts: tuple[GraphName, ...] | None) -> Iterator[ReadPattern]:
    """What the statements in a body of DELETE stand for. One without a context stands for all of them."""
    for quad in quads:
        subject, predicate = _given(quad.subject), _given(quad.predicate)
        object_ = _given(quad.object)
        graphs: Iterable[GraphName | None]
        if contexts is not None:
            graphs = contexts
        elif isinstance(quad.graph_name, DefaultGraph):
            graphs = (None,)
        else:
            graphs = (DefaultGraph() if quad.graph_name in _NO_CONTEXT else quad.graph_name,)
        for graph in graphs:
            yield ReadPattern(
                subject,  # type: ignore[arg-type] # a term of its place, or None
                predicate,  # type: ignore[arg-type]
                None if object_ is None else stored_term(object_),
                graph,
            )


def _given(term: Term) -> Term | None:
    return None if term == _WILDCARD else term


def _read_patterns(pattern: Pattern) -> Iterator[ReadPattern]:
    object_ = None if pattern.object is None else stored_term(pattern.object)
    for graph in pattern.contexts or (None,):
        yield ReadPattern(pattern.subject, pattern.predicate, object_, graph)
