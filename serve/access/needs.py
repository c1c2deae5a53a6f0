"""Which permission each route of both ports needs; one that does not stand here is not built.

A need is found by path, as routes are declared, and method; that of GET holds for HEAD too.
"""

from collections.abc import Mapping
from typing import TypeAlias

from graphdb.access.permissions import Permission

__all__ = ["GRAPH_NEEDS", "PUBLIC", "SEARCH_NEEDS", "WEBSOCKET", "Needs", "needed"]

Needs: TypeAlias = Mapping[tuple[str, str], Permission]  # by path and method

WEBSOCKET = "WEBSOCKET"
PUBLIC, READ, WRITE, ADMIN = Permission.NONE, Permission.READ, Permission.WRITE, Permission.ADMIN


def needed(needs: Needs, path: str, method: str) -> Permission:
    """Raises LookupError where nobody has said it."""
    found = needs.get((path, "GET" if method == "HEAD" else method))
    if found is None:
        raise LookupError(f"serve/access/needs.py does not say what {method} {path} needs")
    return found


def _table(*rows: tuple[Permission, str, str]) -> Needs:
    """Of permission, methods, paths: the latter two words apart by spaces. `[/{index}]/x` is two paths."""
    found: dict[tuple[str, str], Permission] = {}
    for permission, methods, paths in rows:
        for path in paths.split():
            optional, closed, rest = path.removeprefix("[").partition("]")
            for one in (rest, optional + rest) if closed else (path,):
                for method in methods.split():
                    assert (one, method) not in found, f"{method} {one} stands twice"
                    found[one, method] = permission
    return found


GRAPH_NEEDS = _table(
    (READ, "GET", "/ /changes /graphql/schema /graphql/playground/{name} /cluster /health /metrics"),
    (READ, "GET", "/openapi.json /docs /docs/{name}"),
    (READ, "GET POST", "/sparql"),
    (WRITE, "POST", "/update"),
    (READ, "GET", "/data /data/{name:path}"),
    (WRITE, "PUT POST DELETE", "/data /data/{name:path}"),
    (READ, "POST", "/shacl/validate /geospatial/evaluate"),
    # A mutation needs more, which is known once the operation is read.
    (READ, "GET POST", "/graphql"),
    (WRITE, "POST", "/graphql/schema/refresh"),
    (READ, f"GET {WEBSOCKET}", "/ws /graphql/ws"),
    (READ, "GET", "/alerts /alerts/{path:path}"),
    (WRITE, "POST", "/alerts"),
    (WRITE, "POST PUT PATCH DELETE", "/alerts/{path:path}"),
    (PUBLIC, "GET", "/holonic/health"),
    (READ, "GET", "/holonic/{path:path}"),
    (WRITE, "POST PUT PATCH DELETE", "/holonic/{path:path}"),
    (ADMIN, "GET", "/queries /queries/{id}"),  # others ask these
    (ADMIN, "DELETE", "/queries/{id}"),
    (ADMIN, "POST", "/cluster/members /cluster/leader"),
    (ADMIN, "DELETE", "/cluster/members/{node_id}"),
)

SEARCH_NEEDS = _table(
    (READ, "GET", "/ /_license /_xpack /_remote/info /_tasks /_resolve/index/{name}"),
    (READ, "GET", "/_ingest/pipeline /_ingest/pipeline/{id} /_data_stream /_data_stream/{name}"),
    (READ, "GET", "/_cat /_cat/allocation /_cat/allocation/{node_id} /_cat/health /_cat/master /_cat/nodes"),
    (READ, "GET", "/_cat/aliases /_cat/aliases/{name} /_cat/component_templates /_cat/nodeattrs /_cat/tasks"),
    (READ, "GET", "/_cat/component_templates/{name} /_cat/templates /_cat/templates/{name} /_cat/plugins"),
    (READ, "GET", "/_cat/count /_cat/count/{index} /_cat/indices /_cat/indices/{index} /_cat/pending_tasks"),
    (READ, "GET", "/_cat/segments /_cat/segments/{index} /_cat/shards /_cat/shards/{index}"),
    (READ, "GET", "/_cat/repositories"),
    (READ, "GET", "/_cluster/health /_cluster/health/{index} /_cluster/pending_tasks /_cluster/settings"),
    (READ, "GET", "/_cluster/state /_cluster/state/{metric} /_cluster/state/{metric}/{index}"),
    (READ, "GET", "/_cluster/stats /_cluster/stats/nodes/{node_id}"),
    (ADMIN, "PUT", "/_cluster/settings"),
    (
        READ,
        "GET",
        "/_nodes /_nodes/{node_id} /_nodes/{node_id}/{metric} /_nodes/stats /_nodes/stats/{metric}",
    ),
    (READ, "GET", "/_nodes/stats/{metric}/{index_metric} /_nodes/{node_id}/stats"),
    (READ, "GET", "/_nodes/{node_id}/stats/{metric} /_nodes/{node_id}/stats/{metric}/{index_metric}"),
    # Indexes: to read what they are, to make and change them.
    (READ, "GET", "/{index} [/{index}]/_mapping [/{index}]/_mapping/field/{fields} [/{index}]/_settings"),
    (READ, "GET", "[/{index}]/_mappings /{index}/_setting/{name} /_aliases"),
    (READ, "GET", "[/{index}]/_settings/{name} [/{index}]/_alias [/{index}]/_alias/{name}"),
    (READ, "GET", "[/{index}]/_segments [/{index}]/_stats [/{index}]/_stats/{metric}"),
    (
        READ,
        "GET",
        "/_index_template /_index_template/{name} /_component_template /_component_template/{name}",
    ),
    (READ, "GET", "/_template /_template/{name}"),
    (ADMIN, "PUT DELETE", "/{index}"),
    (ADMIN, "PUT POST", "/{index}/_mapping /{index}/_mappings"),
    (ADMIN, "PUT", "[/{index}]/_settings /{index}/_block/{block}"),
    (ADMIN, "PUT POST", "[/{index}]/_alias/{name} [/{index}]/_aliases/{name}"),
    (ADMIN, "PUT", "[/{index}]/_alias /{index}/_aliases"),
    (ADMIN, "DELETE", "/{index}/_alias/{name} /{index}/_aliases/{name}"),
    (ADMIN, "POST", "/_aliases"),
    (ADMIN, "PUT POST DELETE", "/_index_template/{name} /_component_template/{name}"),
    (ADMIN, "POST", "[/{index}]/_forcemerge [/{index}]/_cache/clear"),
    (WRITE, "GET POST", "[/{index}]/_refresh [/{index}]/_flush"),
    # Documents.
    (READ, "GET", "/{index}/_doc/{id} /{index}/_source/{id}"),
    (READ, "GET POST", "[/{index}]/_mget"),
    (WRITE, "PUT POST DELETE", "/{index}/_doc/{id}"),
    (WRITE, "PUT POST", "/{index}/_create/{id} [/{index}]/_bulk"),
    (WRITE, "POST", "/{index}/_doc /{index}/_update/{id}"),
    (WRITE, "POST", "/{index}/_delete_by_query /{index}/_update_by_query /_reindex"),
    # Searches.
    (READ, "GET POST", "[/{index}]/_search [/{index}]/_msearch [/{index}]/_count [/{index}]/_field_caps"),
    (READ, "GET POST", "[/{index}]/_validate/query [/{index}]/_search_shards [/{index}]/_analyze"),
    (READ, "GET POST", "/{index}/_explain/{id} /{index}/_terms_enum"),
    (READ, "GET POST DELETE", "/_search/scroll /_search/scroll/{scroll_id}"),
    (READ, "POST", "/{index}/_pit"),
    (READ, "DELETE", "/_pit"),
)
