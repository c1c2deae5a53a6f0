"""The routes of RDF4J's REST API, and of GraphDB's as far as its clients need them."""

from collections.abc import Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphdb.config import Settings
from serve.answers import Workers
from serve.backend import GraphNode
from serve.graph.asked_query import QueryReader
from serve.graph.query_answers import QueryAnswers
from serve.graph.rdf4j.graphdb_rest import GraphDBEndpoint
from serve.graph.rdf4j.repository import Repository, RepositoryEndpoint, Sizes
from serve.graph.rdf4j.statements import StatementsEndpoint
from serve.graph.rdf4j.transactions import TransactionsEndpoint
from serve.graph.rdf4j.wire import failure_text
from serve.graph.sparql import UpdateEndpoint
from serve.routing import Handler, resource

__all__ = ["rdf4j_routes"]

_ROOT = "/repositories/{id}"


def rdf4j_routes(
    node: GraphNode,
    reader: QueryReader,
    answers: QueryAnswers,
    update: UpdateEndpoint,
    workers: Workers,
    settings: Settings,
    index: Callable[[], dict[str, str]],
) -> list[Route]:
    """index makes headers of the responses to failed requests."""
    server, limits = settings.server, settings.security
    repository = Repository(settings.repository.id)
    timeout_s = server.query_timeout_seconds
    sizes = Sizes(limits, timeout_s, union_default_graph=server.union_default_graph)
    statements = StatementsEndpoint(node.queries, node.writing, workers, limits, server.max_body_bytes)
    own = RepositoryEndpoint(
        repository,
        node.queries,
        node.namespaces,
        reader,
        answers,
        update,
        statements,
        sizes,
        limits,
        server.max_body_bytes,
    )
    transactions = TransactionsEndpoint(
        node.transactions, node.writing, own, update, workers, sizes, limits, server.max_body_bytes
    )
    graphdb = GraphDBEndpoint(repository, node.queries, sizes)
    at = partial(_resource, repository, index)
    return [
        resource("/protocol", index, failure_text, get=own.protocol),
        resource("/repositories", index, failure_text, get=own.list),
        at("", get=own.get, post=own.post),
        at(
            "/statements",
            get=statements.get,
            post=own.post_statements,
            put=statements.put,
            delete=statements.delete,
        ),
        at("/contexts", get=own.contexts),
        at("/size", get=own.size),
        at("/namespaces", get=own.list_namespaces, delete=own.clear_namespaces),
        at(
            "/namespaces/{prefix}",
            get=own.get_namespace,
            put=own.set_namespace,
            delete=own.remove_namespace,
        ),
        at("/transactions", post=transactions.begin),
        at(
            "/transactions/{transaction}",
            put=transactions.act,
            post=transactions.act,
            delete=transactions.rollback,
        ),
        at("/rdf-graphs", get=own.contexts),
        *(
            at(
                path,
                get=statements.get_graph,
                post=statements.post_graph,
                put=statements.put_graph,
                delete=statements.delete_graph,
            )
            for path in ("/rdf-graphs/service", "/rdf-graphs/{name:path}")
        ),
        resource("/rest/repositories", get=graphdb.list),
        resource("/rest/repositories/{id}", get=_checked(repository, graphdb.show)),
        resource("/rest/repositories/{id}/size", get=_checked(repository, graphdb.size)),
        resource("/rest/locations", get=graphdb.locations),
        resource("/rest/security/authenticated-user", get=graphdb.principal),
    ]


def _resource(
    repository: Repository, index: Callable[[], dict[str, str]], path: str, **handlers: Handler
) -> Route:
    """A path below a repository. One below any other is not found."""
    checked = {method: _checked(repository, handler) for method, handler in handlers.items()}
    return resource(_ROOT + path, index, failure_text, **checked)


def _checked(repository: Repository, handler: Handler) -> Handler:
    async def handle(request: Request) -> Response:
        repository.check(request)
        return await handler(request)

    return handle
