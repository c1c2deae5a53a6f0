"""The routes of GraphQL, where it is enabled."""

from collections.abc import Callable

from starlette.routing import BaseRoute, WebSocketRoute

from graphdb.config import Settings
from graphdb.planning.gate import read_query
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat
from serve.backend import GraphNode, GraphReads, QueryRequest
from serve.graph.asked_query import QueryReader
from serve.graph.browser_pages import PLAYGROUND
from serve.graph.graphql.graphql_endpoint import GraphQLEndpoint, Mutator, RowReader, limits_of, read_whole
from serve.graph.graphql.operation_socket import SocketContext, SubscriptionsEndpoint
from serve.graph.graphql.schema_keeper import SchemaEndpoint, SchemaKeepers
from serve.graph.live_outbox import SocketCounts
from serve.graph.query_accounts import QueryAccounts
from serve.graph.query_answers import QueryAnswers
from serve.routing import resource

__all__ = ["graphql_routes"]

# The values of variables become part of one SPARQL query; JSON may take six bytes for a character.
_BODIES_A_TEXT = 8


def graphql_routes(
    node: GraphNode,
    reader: QueryReader,
    answers: QueryAnswers,
    accounts: QueryAccounts,
    settings: Settings,
    sockets: SocketCounts,
    failure_headers: Callable[[], dict[str, str]],
) -> list[BaseRoute]:
    """Empty where GraphQL is switched off."""
    graphql, server, limits = settings.graphql, settings.server, settings.security
    if not graphql.enabled:
        return []

    async def ask(reads: GraphReads, text: str) -> bytes:
        query = read_query(text, None, limits)
        request = QueryRequest(query, Dataset(), ResultFormat.TSV, server.query_timeout_seconds)
        return await read_whole(await reads.start_query(request))

    keepers = SchemaKeepers(node.queries, graphql, ask, server.views)
    rows = RowReader(reader, answers)
    playground = PLAYGROUND if graphql.playground else None
    endpoint = GraphQLEndpoint(
        keepers,
        rows,
        Mutator(node.progress, node.writing, rows, accounts, graphql, limits),
        accounts,
        limits_of(graphql),
        playground,
        min(server.max_body_bytes, _BODIES_A_TEXT * limits.max_query_bytes),
        limits.max_query_bytes,
        server.query_timeout_seconds,
    )
    schema = SchemaEndpoint(node.progress, keepers, graphql.introspection, server.query_timeout_seconds)
    routes: list[BaseRoute] = [
        resource("/graphql", failure_headers, get=endpoint.get, post=endpoint.post),
        resource("/graphql/schema", failure_headers, get=schema.get),
        resource("/graphql/schema/refresh", failure_headers, post=schema.refresh),
    ]
    if graphql.subscriptions:
        limit = limits.max_query_bytes
        context = SocketContext(
            node.changes,
            node.progress,
            keepers,
            endpoint,
            limits_of(graphql),
            settings,
            limit,
            sockets,
        )
        live = SubscriptionsEndpoint(context)
        routes += [WebSocketRoute("/graphql/ws", live), resource("/graphql/ws", get=live.get)]
    if playground is not None:
        routes.append(resource("/graphql/playground/{name}", get=playground.get))
    return routes
