"""The permission that each route of both ports requires, and a guard before each route of the graph port.

A permission is found by path, as routes are declared, and method; that of GET holds for HEAD too. A route
without an entry fails when the application is built. The router of the search port reads the table itself.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from graphdb.access.permissions import Permission
from graphdb.access.principal import NOBODY
from graphdb.errors import Forbidden, GraphDBError
from serve.access.audit import note_of
from serve.access.request_scope import principal_of
from serve.errors import failure_response
from serve.routing import ByRawPath, methods_of, refuse_websocket

__all__ = [
    "GRAPH_PERMISSIONS",
    "PUBLIC",
    "SEARCH_PERMISSIONS",
    "WEBSOCKET",
    "PermissionTable",
    "authorized_routes",
    "require",
    "required_permission",
]

PermissionTable: TypeAlias = Mapping[tuple[str, str], Permission]  # by path and method
WEBSOCKET = "WEBSOCKET"
PUBLIC, READ, WRITE, ADMIN = Permission.NONE, Permission.READ, Permission.WRITE, Permission.ADMIN

_HOLONIC = "/holonic/{path:path}"
_METHODS_BEHIND = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_NO_ROLES = "nobody may write holons: there is no section [authorization]"


def required_permission(needs: PermissionTable, path: str, method: str) -> Permission:
    """Raises LookupError for a route without an entry."""
    found = needs.get((path, "GET" if method == "HEAD" else method))
    if found is None:
        raise LookupError(f"serve/access/authorization.py has no permission for {method} {path}")
    return found


def require(scope: Scope, need: Permission) -> None:
    """For a route of which some requests need more than the route does. Raises Forbidden."""
    note = note_of(scope)
    note.permission = need
    try:
        principal_of(scope).require(need)
    except Forbidden as error:
        note.refused(error)
        raise


def _table(*rows: tuple[Permission, str, str]) -> PermissionTable:
    """rows: permission; methods and paths, both separated by spaces. `[/{index}]/x` is two paths."""
    found: dict[tuple[str, str], Permission] = {}
    for permission, methods, paths in rows:
        for path in paths.split():
            optional, closed, rest = path.removeprefix("[").partition("]")
            for one in (rest, optional + rest) if closed else (path,):
                for method in methods.split():
                    assert (one, method) not in found, f"{method} {one} stands twice"
                    found[one, method] = permission
    return found


GRAPH_PERMISSIONS = _table(
    (READ, "GET", "/ /changes /graphql/schema /graphql/playground/{name} /cluster /health /metrics"),
    (READ, "GET", "/history /diff"),
    (WRITE, "POST", "/revert"),
    (ADMIN, "GET POST", "/history/purge"),
    (READ, "GET", "/snapshots /snapshots/{name}"),
    (ADMIN, "PUT DELETE", "/snapshots/{name}"),  # they take disk that the configuration would free
    (READ, "GET", "/openapi.json /docs /docs/{name} /whoami"),
    (PUBLIC, "GET", "/workbench/config.json /workbench/assets/{name}"),
    (PUBLIC, "GET", "/workbench/frames/docs /workbench/frames/docs/{name}"),
    (PUBLIC, "GET", "/workbench/frames/graphql /workbench/frames/graphql/playground/{name}"),
    (PUBLIC, "GET POST", "/workbench/sign-in"),
    # An update needs WRITE, which is known once the body is read.
    (READ, "GET POST", "/sparql"),
    (READ, "POST", "/sparql/check"),
    (WRITE, "POST", "/update"),
    (READ, "GET", "/data /data/{name:path}"),
    (WRITE, "PUT POST DELETE", "/data /data/{name:path}"),
    (READ, "POST", "/shacl/validate /geospatial/evaluate"),
    # A mutation needs WRITE, which is known once the operation is parsed.
    (READ, "GET POST", "/graphql"),
    (WRITE, "POST", "/graphql/schema/refresh"),
    (READ, f"GET {WEBSOCKET}", "/ws /graphql/ws"),
    (READ, "GET", "/alerts /alerts/{path:path}"),
    (WRITE, "POST", "/alerts"),
    (WRITE, "POST PUT PATCH DELETE", "/alerts/{path:path}"),
    (PUBLIC, "GET", "/holonic/health"),
    (READ, "GET", "/holonic/{path:path}"),
    (WRITE, "POST PUT PATCH DELETE", "/holonic/{path:path}"),
    # Of other users only admins see and cancel them: `QueriesEndpoint`.
    (READ, "GET DELETE", "/queries/{id}"),
    (READ, "GET", "/queries"),
    # One's own are for whoever may read; sharing needs WRITE: `saved_queries`.
    (READ, "GET POST", "/saved-queries"),
    (READ, "GET PUT DELETE", "/saved-queries/{id}"),
    # The requests of its tools need what they need elsewhere.
    (READ, "POST", "/mcp"),
    (READ, "GET", "/.well-known/void /{path:path}"),
    (READ, "GET POST", "/$/ping"),
    (READ, "GET", "/$/server /$/datasets /$/datasets/{name} /$/stats /$/stats/{name}"),
    (ADMIN, "POST", "/$/backup/{name} /$/compact/{name}"),
    (ADMIN, "GET", "/$/backups-list /$/tasks /$/tasks/{id}"),
    (READ, "GET POST", "/{dataset}/query /{dataset}/sparql"),
    (READ, "GET", "/{dataset}/data /{dataset}/get"),
    (WRITE, "POST", "/{dataset}/update /{dataset}/patch"),
    (WRITE, "PUT POST DELETE", "/{dataset}/data"),
    # A body that is RDF needs WRITE.
    (READ, "GET POST", "/{dataset}"),
    (WRITE, "PUT DELETE", "/{dataset}"),
    # RDF4J's REST API, and GraphDB's. A transaction may be for reading alone: `TransactionsEndpoint`.
    (READ, "GET", "/protocol /repositories /repositories/{id}/statements /repositories/{id}/contexts"),
    (READ, "GET POST", "/repositories/{id}"),
    (WRITE, "POST PUT DELETE", "/repositories/{id}/statements"),
    (READ, "GET", "/repositories/{id}/size /repositories/{id}/namespaces"),
    (READ, "GET", "/repositories/{id}/namespaces/{prefix} /repositories/{id}/rdf-graphs"),
    (WRITE, "DELETE", "/repositories/{id}/namespaces"),
    (WRITE, "PUT DELETE", "/repositories/{id}/namespaces/{prefix}"),
    (READ, "GET", "/repositories/{id}/rdf-graphs/service /repositories/{id}/rdf-graphs/{name:path}"),
    (WRITE, "PUT POST DELETE", "/repositories/{id}/rdf-graphs/service"),
    (WRITE, "PUT POST DELETE", "/repositories/{id}/rdf-graphs/{name:path}"),
    (READ, "POST", "/repositories/{id}/transactions"),
    (READ, "PUT POST DELETE", "/repositories/{id}/transactions/{transaction}"),
    (READ, "GET", "/rest/repositories /rest/repositories/{id} /rest/repositories/{id}/size /rest/locations"),
    (READ, "GET", "/rest/security/authenticated-user"),
    (ADMIN, "GET", "/api_keys"),
    (ADMIN, "POST", "/cluster/members /cluster/leader"),
    (ADMIN, "DELETE", "/cluster/members/{node_id}"),
)

SEARCH_PERMISSIONS = _table(
    (READ, "GET", "/_capabilities /_info/{target} /_features /_dangling"),
    (READ, "GET", "/_nodes/hot_threads /_nodes/{node_id}/hot_threads"),
    (READ, "GET", "/ /_license /_xpack /_remote/info /_tasks /_resolve/index/{name}"),
    (READ, "GET", "/_resolve/cluster /_resolve/cluster/{name} /_health_report /_health_report/{feature}"),
    (READ, "GET", "/_ingest/pipeline /_ingest/pipeline/{id} /_data_stream /_data_stream/{name}"),
    (READ, "GET", "/_data_stream/_stats /_data_stream/{name}/_stats"),
    (READ, "GET", "/_ilm/policy /_ilm/policy/{name} /{index}/_ilm/explain /_ilm/status"),
    (ADMIN, "PUT DELETE", "/_ilm/policy/{name}"),
    (ADMIN, "POST", "/{index}/_ilm/remove /{index}/_ilm/retry /_ilm/move/{index} /_ilm/start /_ilm/stop"),
    (ADMIN, "PUT DELETE", "/_data_stream/{name} /_data_stream/{name}/_lifecycle"),
    (READ, "GET", "/_data_stream/{name}/_lifecycle /{index}/_lifecycle/explain /_lifecycle/stats"),
    (ADMIN, "POST", "/_data_stream/_modify /_data_stream/_migrate/{name}"),
    # What is not offered: the answer says so.
    (READ, "GET POST", "/_sql /_sql/translate"),
    (READ, "POST", "/_sql/close /_query /_query/async"),
    (READ, "POST", "/_ml/trained_models/{id}/_infer /_ml/trained_models/{id}/deployment/_infer"),
    (READ, "GET", "/_ingest/processor/grok"),
    (WRITE, "GET POST", "/_ingest/pipeline/_simulate /_ingest/pipeline/{id}/_simulate"),
    (WRITE, "GET POST", "/_ingest/_simulate /_ingest/{index}/_simulate"),
    (ADMIN, "PUT DELETE", "/_ingest/pipeline/{id}"),
    (READ, "GET", "/_cat /_cat/allocation /_cat/allocation/{node_id} /_cat/health /_cat/master /_cat/nodes"),
    (READ, "GET", "/_cat/aliases /_cat/aliases/{name} /_cat/component_templates /_cat/nodeattrs /_cat/tasks"),
    (READ, "GET", "/_cat/component_templates/{name} /_cat/templates /_cat/templates/{name} /_cat/plugins"),
    (READ, "GET", "/_cat/count /_cat/count/{index} /_cat/indices /_cat/indices/{index} /_cat/pending_tasks"),
    (READ, "GET", "/_cat/segments /_cat/segments/{index} /_cat/shards /_cat/shards/{index}"),
    (READ, "GET", "/_cat/repositories /_cat/recovery /_cat/recovery/{index}"),
    (READ, "GET", "/_cat/fielddata /_cat/fielddata/{fields}"),
    (READ, "GET", "/_cat/thread_pool /_cat/thread_pool/{thread_pool_patterns}"),
    (READ, "GET", "/_cluster/health /_cluster/health/{index} /_cluster/pending_tasks /_cluster/settings"),
    (READ, "GET", "/_cluster/state /_cluster/state/{metric} /_cluster/state/{metric}/{index}"),
    (READ, "GET", "/_cluster/stats /_cluster/stats/nodes/{node_id}"),
    (READ, "GET POST", "/_cluster/allocation/explain"),
    (ADMIN, "POST", "/_cluster/reroute"),
    (ADMIN, "PUT", "/_cluster/settings"),
    # A snapshot has the documents of all indexes.
    (ADMIN, "GET", "/_snapshot /_snapshot/{repository} /_snapshot/_status /_snapshot/{repository}/_status"),
    (ADMIN, "PUT POST DELETE", "/_snapshot/{repository}"),
    (ADMIN, "GET", "/_cat/snapshots /_cat/snapshots/{repository}"),
    (ADMIN, "POST", "/_snapshot/{repository}/_verify /_snapshot/{repository}/_cleanup"),
    (ADMIN, "GET PUT POST DELETE", "/_snapshot/{repository}/{snapshot}"),
    (ADMIN, "GET", "/_snapshot/{repository}/{snapshot}/_status"),
    (ADMIN, "PUT", "/_snapshot/{repository}/{snapshot}/_clone/{target}"),
    (ADMIN, "GET PUT DELETE", "/_slm/policy/{name}"),
    (ADMIN, "GET", "/_slm/policy /_slm/stats /_slm/status"),
    (ADMIN, "PUT POST", "/_slm/policy/{name}/_execute"),
    (ADMIN, "POST", "/_slm/_execute_retention /_slm/start /_slm/stop"),
    (ADMIN, "POST", "/_snapshot/{repository}/{snapshot}/_restore"),
    (
        READ,
        "GET",
        "/_nodes /_nodes/{node_id} /_nodes/{node_id}/{metric} /_nodes/stats /_nodes/stats/{metric}",
    ),
    (READ, "GET", "/_nodes/stats/{metric}/{index_metric} /_nodes/{node_id}/stats"),
    (READ, "GET", "/_nodes/{node_id}/stats/{metric} /_nodes/{node_id}/stats/{metric}/{index_metric}"),
    (ADMIN, "POST", "/_nodes/reload_secure_settings /_nodes/{node_id}/reload_secure_settings"),
    # Indexes: to read what they are, to make and change them.
    (READ, "GET", "/{index} [/{index}]/_mapping [/{index}]/_mapping/field/{fields} [/{index}]/_settings"),
    (READ, "GET", "[/{index}]/_mappings /{index}/_setting/{name} /_aliases"),
    (READ, "GET", "[/{index}]/_settings/{name} [/{index}]/_alias [/{index}]/_alias/{name}"),
    (READ, "GET", "[/{index}]/_segments [/{index}]/_stats [/{index}]/_stats/{metric}"),
    (READ, "GET", "[/{index}]/_recovery [/{index}]/_shard_stores"),
    (
        READ,
        "GET",
        "/_index_template /_index_template/{name} /_component_template /_component_template/{name}",
    ),
    (READ, "GET", "/_template /_template/{name}"),
    (ADMIN, "PUT DELETE", "/{index}"),
    (ADMIN, "POST", "/{index}/_disk_usage"),
    (ADMIN, "PUT POST", "/{index}/_mapping /{index}/_mappings"),
    (ADMIN, "PUT", "[/{index}]/_settings /{index}/_block/{block}"),
    (ADMIN, "POST", "/_open /_close /{index}/_open /{index}/_close"),
    (ADMIN, "PUT POST", "[/{index}]/_alias/{name} [/{index}]/_aliases/{name}"),
    (ADMIN, "PUT", "[/{index}]/_alias /{index}/_aliases"),
    (ADMIN, "DELETE", "/{index}/_alias/{name} /{index}/_aliases/{name}"),
    (ADMIN, "POST", "/_aliases /{index}/_rollover /{index}/_rollover/{target}"),
    (READ, "POST", "/_index_template/_simulate /_index_template/_simulate/{name}"),
    (READ, "POST", "/_index_template/_simulate_index/{name}"),
    (ADMIN, "PUT POST", "/{index}/_split/{target} /{index}/_shrink/{target} /{index}/_clone/{target}"),
    (ADMIN, "PUT POST DELETE", "/_index_template/{name} /_component_template/{name} /_template/{name}"),
    (READ, "GET", "/_scripts/{id} /_script_language /_script_context"),
    (ADMIN, "PUT POST", "/_scripts/{id} /_scripts/{id}/{context}"),
    (ADMIN, "DELETE", "/_scripts/{id}"),
    (READ, "GET", "/_synonyms /_synonyms/{id} /_synonyms/{id}/{rule}"),
    (ADMIN, "PUT DELETE", "/_synonyms/{id} /_synonyms/{id}/{rule}"),
    (ADMIN, "GET POST", "/{index}/_reload_search_analyzers"),
    (ADMIN, "POST", "[/{index}]/_forcemerge [/{index}]/_cache/clear"),
    (WRITE, "GET POST", "[/{index}]/_refresh [/{index}]/_flush"),
    # Documents.
    (READ, "GET", "/{index}/_doc/{id} /{index}/_source/{id}"),
    (READ, "GET POST", "[/{index}]/_mget"),
    (WRITE, "PUT POST DELETE", "/{index}/_doc/{id}"),
    (WRITE, "PUT POST", "/{index}/_create/{id} [/{index}]/_bulk"),
    (WRITE, "POST", "/{index}/_doc /{index}/_update/{id}"),
    (WRITE, "POST", "/{index}/_delete_by_query /{index}/_update_by_query /_reindex"),
    (WRITE, "POST", "/_delete_by_query/{task_id}/_rethrottle /_update_by_query/{task_id}/_rethrottle"),
    (WRITE, "POST", "/_reindex/{task_id}/_rethrottle"),
    # Each sees and ends its own: `Task.is_shown_to`.
    (READ, "GET", "/_tasks/{task_id}"),
    (READ, "POST", "/_tasks/_cancel /_tasks/{task_id}/_cancel"),
    # Searches.
    (READ, "GET POST", "[/{index}]/_search [/{index}]/_msearch [/{index}]/_count [/{index}]/_field_caps"),
    (READ, "GET POST", "/{index}/_mvt/{field}/{zoom}/{x}/{y}"),
    (READ, "GET POST", "[/{index}]/_search/template [/{index}]/_msearch/template"),
    (READ, "GET POST", "/_render/template /_render/template/{id}"),
    (READ, "GET POST", "[/{index}]/_validate/query [/{index}]/_search_shards [/{index}]/_analyze"),
    (READ, "GET POST", "/{index}/_explain/{id} /{index}/_terms_enum"),
    (READ, "GET POST DELETE", "/_search/scroll /_search/scroll/{scroll_id}"),
    (READ, "POST", "/{index}/_pit"),
    (READ, "DELETE", "/_pit"),
    (READ, "GET POST", "/{index}/_termvectors /{index}/_termvectors/{id} [/{index}]/_mtermvectors"),
    (READ, "GET POST", "[/{index}]/_rank_eval /{index}/_knn_search"),
    (READ, "GET", "/_inference"),
    (READ, "GET POST", "/_inference/{inference_id} /_inference/{task_type}/{inference_id}"),
    (READ, "POST", "[/{index}]/_async_search"),
    (READ, "GET DELETE", "/_async_search/{id}"),
    (READ, "GET", "/_async_search/status/{id}"),
)


def authorized_routes(
    routes: Sequence[BaseRoute], *, enforced: bool, has_roles: bool = True
) -> Sequence[BaseRoute]:
    """The same routes, with a guard before each where permissions are enforced.

    has_roles: the section [authorization] is configured; without it holons cannot be written.
    Raises LookupError for a route without an entry.
    """
    return [_guarded(route, enforced, has_roles) for route in routes]


def _guarded(route: BaseRoute, enforced: bool, has_roles: bool) -> BaseRoute:
    assert isinstance(route, Route | WebSocketRoute)
    guard: _Guard
    if isinstance(route, WebSocketRoute):
        guard = _Guard(
            route.app, route.path, {WEBSOCKET: required_permission(GRAPH_PERMISSIONS, route.path, WEBSOCKET)}
        )
        return WebSocketRoute(route.path, guard) if enforced else route
    methods = _METHODS_BEHIND if isinstance(route.app, ByRawPath) else methods_of(route)
    needs = {method: required_permission(GRAPH_PERMISSIONS, route.path, method) for method in methods}
    closed = route.path == _HOLONIC and not has_roles
    guard = _Guard(route.app, route.path, needs, _NO_ROLES if closed else None)
    return Route(route.path, guard) if enforced else route


class _Guard:
    """Before one route. A method that the route does not have needs READ; the route answers 405."""

    def __init__(
        self, app: ASGIApp, path: str, needs: Mapping[str, Permission], writes_refused: str | None = None
    ) -> None:
        """path: as the route declares it. writes_refused: the reason if writes are forbidden to all."""
        self._app, self._path, self._needs, self._writes_refused = app, path, needs, writes_refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_socket = scope["type"] == "websocket"
        need = self._needs.get(WEBSOCKET if is_socket else scope["method"], Permission.READ)
        note = note_of(scope)
        note.permission, note.route = need, self._path
        principal = principal_of(scope)
        # The client of a socket may sign in by a message; before that it has no principal.
        waits = is_socket and principal is NOBODY and getattr(self._app, "signs_in", False)
        try:
            if not waits:
                principal.require(need)
            if need > Permission.READ and self._writes_refused is not None:
                raise Forbidden(principal.name, need.word, self._writes_refused)
        except GraphDBError as error:
            note.refused(error)
            answer = failure_response(error)
            if is_socket:
                await receive()
                await refuse_websocket(answer, send)
            else:
                await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)
