"""The application on port 7001: FastAPI over a `GraphNode`, without Ray and without a socket."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Scope

from graphdb.config import Settings
from graphdb.errors import UnavailableError
from serve.access.access_backend import AccessBackend
from serve.access.audit import Audited
from serve.access.authentication import Authenticator
from serve.access.authorization import authorized_routes
from serve.access.middleware import AuthenticationMiddleware
from serve.answers import Workers
from serve.backend import GraphNode, Progress
from serve.errors import failure_response
from serve.graph.administration import (
    ClusterEndpoint,
    HealthEndpoint,
    QueriesEndpoint,
    list_of_keys,
    tell_principal,
)
from serve.graph.alerts import alert_routes
from serve.graph.asked_query import QueryReader
from serve.graph.browser_pages import docs_routes
from serve.graph.caching import EntityTags, ResultCache
from serve.graph.changes import ChangesEndpoint
from serve.graph.explanation import Explainer
from serve.graph.fuseki.administration import FusekiAdministration
from serve.graph.fuseki.fuseki_routes import fuseki_routes
from serve.graph.fuseki.tasks import Backups, Tasks
from serve.graph.geospatial import GeospatialEndpoint
from serve.graph.graph_store import GraphStoreEndpoint
from serve.graph.graphql.graphql_endpoint import RowReader
from serve.graph.graphql.graphql_routes import graphql_routes
from serve.graph.hints import Hints
from serve.graph.history import HistoryEndpoint
from serve.graph.holonic.holonic_routes import holonic_routes
from serve.graph.holonic.holonic_service import HolonicService
from serve.graph.holonic.holons import MembraneEndpoint
from serve.graph.holonic.portals import PortalsEndpoint
from serve.graph.linked_data.resources import ResourceEndpoint
from serve.graph.linked_data.void import VoidEndpoint
from serve.graph.live_outbox import SocketCounts
from serve.graph.live_socket import LiveSocketEndpoint
from serve.graph.local_search import LocalSearch
from serve.graph.mcp_endpoint import McpEndpoint
from serve.graph.metrics import (
    AccessMetrics,
    HostMetrics,
    LiveMetrics,
    Metrics,
    MetricsEndpoint,
    PurgeMetrics,
    TransactionMetrics,
)
from serve.graph.named_states import named_state_routes
from serve.graph.purges import PURGED_HEADER, PurgeMark, purge_routes
from serve.graph.query_accounts import QueryAccounts, SlowQueryLog
from serve.graph.query_answers import QueryAnswers
from serve.graph.query_check import QueryCheckEndpoint
from serve.graph.quick_answers import QUERY_PATH, QuickAnswers
from serve.graph.quick_updates import UPDATE_PATH, QuickUpdates
from serve.graph.rdf4j.peer_requests import PeerRequests
from serve.graph.rdf4j.rdf4j_routes import rdf4j_routes
from serve.graph.saved_queries import saved_query_routes
from serve.graph.shacl import ShaclEndpoint, ValidationReader
from serve.graph.sparql import SparqlEndpoint, UpdateEndpoint
from serve.port.application import PortApplication, QuickPaths
from serve.routing import ByRawPath, Handler, methods_of, not_found, resource, responding
from serve.workbench.pages import Workbench

__all__ = ["build_app", "described"]

# More than cores, because a worker waits while its client reads slowly, and takes only its stack.
WORKER_THREADS = 64
SLOW_QUERIES, BACKUPS = "slow-queries.log", "backups"  # in the data directory

PUBLIC_PATHS = frozenset({"/holonic/health"})
PROBES = frozenset({"/health", "/metrics"})
# Not in the OpenAPI document: the document, its page, and files that pages load.
PAGES = frozenset(
    {
        *("/openapi.json", "/docs", "/docs/{name}", "/graphql/playground/{name}"),
        *("/workbench/config.json", "/workbench/assets/{name}", "/workbench/sign-in"),
        *("/workbench/frames/docs", "/workbench/frames/docs/{name}"),
        *("/workbench/frames/graphql", "/workbench/frames/graphql/playground/{name}"),
    }
)

ENDPOINTS = {
    "/sparql": "SPARQL queries, GET and POST",
    "/sparql/check": "whether a query or an update would be accepted, POST; nothing is evaluated",
    "/update": "SPARQL updates, POST",
    "/data": "whole graphs: GET, PUT, POST, DELETE, ?graph=IRI or ?default; GET ?dataset=all for everything",
    "/graphql": "GraphQL, GET and POST; in a browser a playground; /graphql/schema is its schema",
    "/graphql/ws": "operations of GraphQL over a WebSocket, including subscriptions",
    "/shacl/validate": "validation of a graph against SHACL shapes, POST",
    "/holonic/health": "whether holons, their layers and portals are at /holonic/holons and /holonic/portals",
    "/geospatial/evaluate": "one call of a GeoSPARQL function, POST",
    "/changes": "the changes of every write, GET, as lines of JSON or Server-Sent Events; ?since=INDEX",
    "/history": "what changed, by whom and when, GET; ?resource=IRI, ?graph=IRI or a triple pattern",
    "/diff": "the net change from one state to another, GET; ?from=INDEX&to=INDEX, or times",
    "/revert": "back to an earlier state, POST; ?to=INDEX, &graph=IRI or &resource=IRI",
    "/snapshots": "named states of the past, GET; /snapshots/{name}: GET, PUT (?at=INDEX or a time), DELETE",
    "/ws": "live queries, a WebSocket",
    "/alerts": "scheduled queries that call webhooks: GET, POST, DELETE",
    "/queries": "the running queries, GET; DELETE /queries/{id} cancels one",
    "/saved-queries": "queries that users keep, GET, POST; /saved-queries/{id}: GET, PUT, DELETE",
    "/repositories": "the REST API of RDF4J, for its clients and those of GraphDB",
    "/cluster": "the members and the leader, GET; /cluster/members and /cluster/leader change them",
    "/whoami": "the principal of the request: name, roles, permission",
    "/api_keys": "the names, roles and expiry of the API keys",
    "/health": "the state of this node",
    "/metrics": "counters for Prometheus",
    "/.well-known/void": "what the data are about: counts by predicate, class and graph, as RDF",
    "/mcp": "tools for agents, by the Model Context Protocol over streamable HTTP",
    "/$/server": "the server and its dataset as Fuseki shows them; the dataset itself is at /ds",
    "/openapi.json": "a description of these paths for programs, in OpenAPI 3.1",
    "/docs": "the same in a browser, where each can be tried",
}


def build_app(
    node: GraphNode,
    settings: Settings,
    access: AccessBackend | None = None,
    search_word: Callable[[], str] | None = None,
    search: LocalSearch | None = None,
) -> PortApplication:
    """The application. It owns threads and gives them back when the server shuts it down (lifespan).

    access: the components of authentication, for this application only; search_word: see `HealthEndpoint`;
    search: None without a search port.
    """
    workers = Workers(WORKER_THREADS, settings.server.query_timeout_seconds)
    slow_queries = SlowQueryLog(settings.server.data_dir / SLOW_QUERIES)
    tasks = Tasks()
    mcp = McpEndpoint(settings.server.cors, search, may_update=settings.mcp.updates)

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            workers.stop()
            tasks.stop()
            await mcp.stop()
            slow_queries.close()

    workbench = Workbench(settings)
    routes, quick = _routes(
        node, workers, slow_queries, settings, access or AccessBackend(), search_word, workbench, tasks, mcp
    )
    has_audit = access is not None and access.audit is not None
    # Nothing has to see each request, and nothing is added to each answer.
    is_plain = not (settings.authentication.enabled or has_audit or settings.server.cors)

    def around(app: ASGIApp) -> ASGIApp:
        app = PurgeMark(app, node.purges.last_index)
        mcp.application = app
        scheme = "http" if settings.server.tls_cert_file is None else "https"
        node.transactions.serve_others(PeerRequests(app, scheme).perform)
        app = _with_authentication(app, settings, access, workbench)
        if access is not None and access.audit is not None:
            app = Audited(app, settings, "graph", access.audit)
        return _with_cors(app, settings.server.cors)

    def describe(title: str, version: str) -> dict[str, Any]:
        from serve.graph.operations import OPERATIONS, ROOMS  # imported on demand: few clients ask
        from serve.openapi import openapi_document

        operations = [(path, method, OPERATIONS[path, method]) for path, method in described(routes)]
        return openapi_document(title, version, operations, ROOMS, settings.authentication.enabled)

    return PortApplication(
        "graphdb",
        authorized_routes(
            routes,
            # The guard also writes the route to the audit log. Without authentication it permits everything.
            enforced=settings.authentication.enabled or settings.audit.enabled,
            has_roles=settings.authorization is not None or not settings.authentication.enabled,
        ),
        otherwise=not_found,
        around=around,
        lifespan=lifespan,
        describe=describe,
        quick=quick if is_plain else None,
    )


def described(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Path and method of each operation in the OpenAPI document: all but sockets, HEAD and PAGES."""
    for route in routes:
        if isinstance(route, Route) and isinstance(route.app, ByRawPath):
            yield from described(route.app.routes)
        elif isinstance(route, Route) and route.path not in PAGES:
            yield from ((route.path, method) for method in methods_of(route) if method != "HEAD")


def _routes(
    node: GraphNode,
    workers: Workers,
    slow_queries: SlowQueryLog,
    settings: Settings,
    access: AccessBackend,
    search_word: Callable[[], str] | None,
    workbench: Workbench,
    tasks: Tasks,
    mcp: McpEndpoint,
) -> tuple[list[BaseRoute], QuickPaths]:
    server, limits = settings.server, settings.security
    cache, tags = ResultCache(settings.readers.result_cache_mb << 20), EntityTags()
    metrics = Metrics(node.running, node.admin, cache)
    accounts = QueryAccounts(metrics, slow_queries, server.slow_query_seconds)
    hints = Hints(node.namespaces, node.progress)
    by_names = settings.columns.plans_kept
    reader = QueryReader(limits, server.query_timeout_seconds, hints.worded, by_names=by_names)
    explainer = Explainer(limits, hints.of_patterns, accounts, keeps_answers=cache.answer_bytes_max > 0)
    answers = QueryAnswers(node.queries, node.progress, cache, tags, explainer, metrics, accounts)
    hints.rows = rows = RowReader(reader, answers)
    update = UpdateEndpoint(node.writing, accounts, server.max_body_bytes, limits, hints.worded)
    void = VoidEndpoint(
        node.queries,
        node.changes,
        node.progress,
        rows,
        union_default_graph=server.union_default_graph,
    )
    sparql = SparqlEndpoint(
        reader,
        answers,
        accounts,
        update,
        void.within_service_description,
        node.namespaces,
        server.max_body_bytes,
        limits.max_query_bytes,
    )
    check = QueryCheckEndpoint(node.queries, reader, explainer, server.max_body_bytes, limits)
    data = GraphStoreEndpoint(
        node.queries,
        node.progress,
        node.writing,
        workers,
        tags,
        server.max_body_bytes,
        server.max_load_bytes,
    )
    validations = ValidationReader(
        server.query_timeout_seconds,
        server.max_body_bytes,
        settings.shacl.max_shapes_bytes,
        union_default_graph=server.union_default_graph,
    )
    shacl = ShaclEndpoint(node.queries, node.progress, validations, accounts)
    geospatial = GeospatialEndpoint(node.functions, server.query_timeout_seconds, server.max_body_bytes)
    holonic = HolonicService(node.queries, node.writing, workers, settings)
    portals = PortalsEndpoint(holonic, reader, answers)
    membrane = MembraneEndpoint(holonic, validations, shacl)
    queries = QueriesEndpoint(node.running)
    sockets = SocketCounts()
    live = LiveSocketEndpoint(node.changes, settings, sockets)
    changes = ChangesEndpoint(node.progress, node.changes, server.query_timeout_seconds)
    history = HistoryEndpoint(
        node.history, node.writing, node.purges, node.progress, server.query_timeout_seconds
    )
    metrics.registry.register(LiveMetrics(node.changes, sockets, changes))
    metrics.registry.register(TransactionMetrics(node.transactions))
    metrics.registry.register(PurgeMetrics(node.purges))
    metrics.registry.register(AccessMetrics(access))
    metrics.registry.register(HostMetrics(server.data_dir))
    cluster = ClusterEndpoint(node.admin)
    backups = Backups(server.data_dir / BACKUPS)
    fuseki = FusekiAdministration(server.dataset_name, node.queries, node.admin, metrics, backups, tasks)

    def index() -> dict[str, str]:
        return _index_header(node.progress)

    routes: list[BaseRoute] = [
        resource("/sparql", index, get=sparql.get, post=sparql.post),
        resource("/sparql/check", post=check.post),
        resource("/update", index, post=update.post),
        *(
            resource(path, index, get=data.get, put=data.put, post=data.post, delete=data.delete)
            for path in ("/data", "/data/{name:path}")
        ),
        resource("/shacl/validate", index, post=shacl.post),
        *graphql_routes(node, reader, answers, accounts, settings, sockets, index),
        *holonic_routes(holonic, portals, membrane, index),
        resource("/geospatial/evaluate", post=geospatial.post),
        resource("/changes", index, get=changes.get),
        resource("/history", index, get=history.get),
        resource("/diff", index, get=history.diff),
        resource("/revert", index, post=history.revert),
        *purge_routes(node.purges, index, server.query_timeout_seconds),
        *named_state_routes(node.named_states, history, index),
        WebSocketRoute("/ws", live),
        resource("/ws", get=live.get),
        *alert_routes(node.alerts, server.max_body_bytes),
        *saved_query_routes(node.saved_queries),
        *rdf4j_routes(node, reader, answers, update, workers, settings, index),
        resource("/queries", get=queries.get),
        resource("/queries/{id}", get=queries.get_one, delete=queries.delete),
        resource("/cluster", get=cluster.get),
        resource("/cluster/members", post=cluster.add),
        resource("/cluster/members/{node_id}", delete=cluster.remove),
        resource("/cluster/leader", post=cluster.lead),
        resource("/whoami", get=tell_principal),
        resource("/api_keys", get=list_of_keys(settings.authentication.api_keys)),
        resource("/health", get=HealthEndpoint(node.changes, node.admin, node.purges, search_word).get),
        resource("/metrics", get=MetricsEndpoint(metrics).get),
        resource("/", get=workbench.root(_list_of(_enabled(settings)))),
        *workbench.routes(),
        *docs_routes(),
        resource("/.well-known/void", index, get=void.get),
        *([resource("/mcp", post=mcp.handle)] if settings.mcp.enabled else ()),
    ]
    taken = {route.path.split("/")[1] for route in routes if isinstance(route, Route | WebSocketRoute)}
    routes += fuseki_routes(server.dataset_name, taken, sparql, update, data, fuseki, index)
    if bases := settings.linked_data.base_iris:
        has_workbench = workbench.is_enabled
        resources = ResourceEndpoint(bases, node.queries, reader, answers, has_workbench=has_workbench)
        routes.append(resource("/{path:path}", index, get=resources.get))
    quick_updates = QuickUpdates(node.writing, accounts, server.max_body_bytes, limits, index)
    quick = QuickPaths(
        {
            QUERY_PATH: QuickAnswers(node.queries, reader, answers, responding(index)),
            UPDATE_PATH: quick_updates,
        }
    )
    return routes, quick


def _index_header(progress: Progress) -> dict[str, str]:
    """The applied log index, as a header of failures; nothing while the node is starting."""
    try:
        return {"X-Snapshot-Index": str(progress.snapshot_index())}
    except UnavailableError:
        return {}


def _enabled(settings: Settings) -> dict[str, bool]:
    graphql = settings.graphql
    return {
        "/mcp": settings.mcp.enabled,
        "/graphql": graphql.enabled,
        "/graphql/ws": graphql.enabled and graphql.subscriptions,
    }


def _list_of(enabled: dict[str, bool]) -> Handler:
    """The list of endpoints at /, without those that are switched off."""
    endpoints = {path: purpose for path, purpose in ENDPOINTS.items() if enabled.get(path, True)}
    body = orjson.dumps({"service": "graphdb", "endpoints": endpoints}, option=orjson.OPT_INDENT_2)

    async def list_endpoints(_request: Request) -> Response:
        return Response(body, media_type="application/json")

    return list_endpoints


def _with_authentication(
    app: ASGIApp, settings: Settings, access: AccessBackend | None, workbench: Workbench
) -> ASGIApp:
    """Require authentication, if it is on."""
    server = settings.server
    if not settings.authentication.enabled:
        return app
    paths = PUBLIC_PATHS | (PROBES if server.public_probes else frozenset())

    def is_public(scope: Scope) -> bool:
        is_read = scope["method"] in ("GET", "HEAD")
        return (is_read and scope["path"] in paths) or workbench.is_public(scope)

    return AuthenticationMiddleware(
        app, Authenticator(settings, access), failure_response, is_public, server.cors
    )


def _with_cors(app: ASGIApp, origins: tuple[str, ...]) -> ASGIApp:
    """Answer cross-origin requests, if origins are configured."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=["GET", "HEAD", "PUT", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=[
            "ETag",
            "Location",
            "Retry-After",
            "WWW-Authenticate",
            "X-Evaluated",
            PURGED_HEADER,
            "X-Snapshot-Index",
        ],
    )
