"""Every route of both applications says what it needs, and nothing else stands in the table."""

from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from graphdb.access.permissions import Permission
from graphdb.config import Settings
from serve.access.authorization import (
    GRAPH_PERMISSIONS,
    SEARCH_PERMISSIONS,
    WEBSOCKET,
    authorized_routes,
    required_permission,
)
from serve.graph_app import build_app
from serve.routing import ByRawPath, methods_of, resource
from serve.search.frame.exchange import Endpoint, Exchange, SearchWork, endpoint
from serve.search.frame.router import SearchRouter
from serve.search_app import build_search_app
from tests.support.memory_backend import MemoryBackend
from tests.support.memory_search import MemorySearch

SETTINGS = Settings.model_validate(
    {"holonic": {"enabled": True}, "linked_data": {"base_iris": ["http://x/id/"]}}
)


def graph_routes() -> Iterator[tuple[str, str]]:
    """Path and method of every route on 7001, those below /holonic as one, and those of an alert."""
    for route in build_app(MemoryBackend(), SETTINGS).routes:
        if isinstance(route, WebSocketRoute):
            yield route.path, WEBSOCKET
        else:
            assert isinstance(route, Route)
            is_room = isinstance(route.app, ByRawPath)
            methods = ("GET", "POST", "PUT", "PATCH", "DELETE") if is_room else methods_of(route)
            yield from ((route.path, method) for method in methods)


def search_routes() -> Iterator[tuple[str, str]]:
    router = build_search_app(MemorySearch(), SETTINGS).otherwise
    assert isinstance(router, SearchRouter)
    yield from ((one.path, method) for one in router.endpoints for method in one.methods)


def without_head(routes: Iterator[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(path, method) for path, method in routes if method != "HEAD"}


def test_the_table_of_the_graph_port_is_its_routes() -> None:
    assert set(GRAPH_PERMISSIONS) == without_head(graph_routes())


def test_the_table_of_the_search_port_is_its_routes() -> None:
    assert set(SEARCH_PERMISSIONS) == without_head(search_routes())


def test_nothing_but_a_probe_and_the_files_of_the_workbench_is_public() -> None:
    public = {
        key for table in (GRAPH_PERMISSIONS, SEARCH_PERMISSIONS) for key, need in table.items() if not need
    }
    assert public == {
        ("/holonic/health", "GET"),
        ("/workbench/config.json", "GET"),
        ("/workbench/assets/{name}", "GET"),
        ("/workbench/frames/docs", "GET"),
        ("/workbench/frames/docs/{name}", "GET"),
        ("/workbench/frames/graphql", "GET"),
        ("/workbench/frames/graphql/playground/{name}", "GET"),
        ("/workbench/sign-in", "GET"),
        ("/workbench/sign-in", "POST"),
    }


def test_what_changes_something_needs_more_than_reading() -> None:
    reading = {
        "/sparql",
        "/sparql/check",
        "/shacl/validate",
        "/geospatial/evaluate",
        "/graphql",
        "/{index}/_pit",
        "/_pit",
    }
    reading |= {"/_search/scroll", "/_search/scroll/{scroll_id}", "/{index}/_explain/{id}"}
    reading |= {"/{index}/_mvt/{field}/{zoom}/{x}/{y}"}
    reading |= {"/_inference/{inference_id}", "/_inference/{task_type}/{inference_id}"}
    reading |= {"/{index}/_terms_enum", "/_cluster/allocation/explain"}
    reading |= {"/_render/template", "/_render/template/{id}"}
    # what would be made, without making it
    reading |= {
        f"/_index_template/{name}" for name in ("_simulate", "_simulate/{name}", "_simulate_index/{name}")
    }
    # What changes something is known by the body: `test_fuseki.py` and `test_mcp.py` hold it.
    reading |= {"/mcp", "/$/ping", "/{dataset}", "/{dataset}/query", "/{dataset}/sparql"}
    # refused, whoever asks
    reading |= {"/_sql", "/_query", "/_sql/translate", "/_sql/close", "/_query/async"}
    reading |= {f"/_ml/trained_models/{{id}}/{name}" for name in ("_infer", "deployment/_infer")}
    # one's own, which are not data
    reading |= {"/queries/{id}", "/saved-queries", "/saved-queries/{id}", "/workbench/sign-in"}
    reading |= {"/_tasks/_cancel", "/_tasks/{task_id}/_cancel", "/_async_search/{id}", "/{index}/_knn_search"}
    reading |= {
        "/{index}/_termvectors",
        "/{index}/_termvectors/{id}",
        "/_mtermvectors",
        "/{index}/_mtermvectors",
    }
    # a query; a transaction, whose writing actions ask for more
    reading |= {"/repositories/{id}", "/repositories/{id}/transactions"}
    reading |= {"/repositories/{id}/transactions/{transaction}"}
    for name in ("_search", "_msearch", "_count", "_field_caps", "_validate/query", "_search_shards"):
        reading |= {f"/{name}", f"/{{index}}/{name}"}
    for name in ("_async_search", "_rank_eval"):
        reading |= {f"/{name}", f"/{{index}}/{name}"}
    for name in ("_analyze", "_mget", "_search/template", "_msearch/template"):
        reading |= {f"/{name}", f"/{{index}}/{name}"}
    for table in (GRAPH_PERMISSIONS, SEARCH_PERMISSIONS):
        for (path, method), need in table.items():
            if method not in ("GET", WEBSOCKET) and path not in reading:
                assert need >= Permission.WRITE, f"{method} {path}"


async def answer(_request: Request) -> Response:
    return Response()


async def socket(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Never called."""


async def search(_exchange: Exchange) -> None:
    """Never called."""


@pytest.mark.parametrize("enforced", [True, False])
@pytest.mark.parametrize(
    "route",
    [resource("/new", get=answer), resource("/sparql", put=answer), WebSocketRoute("/sparql", socket)],
)
def test_a_route_of_the_graph_port_without_an_entry_is_not_built(
    route: Route | WebSocketRoute, enforced: bool
) -> None:
    with pytest.raises(LookupError, match="has no permission for"):
        authorized_routes([route], enforced=enforced)


@pytest.mark.parametrize("made", [endpoint("GET", "/_new", search), endpoint("PUT", "/_search", search)])
def test_a_route_of_the_search_port_without_an_entry_is_not_built(made: list[Endpoint]) -> None:
    with pytest.raises(LookupError, match="has no permission for"):
        SearchRouter(MemorySearch(), SETTINGS, SearchWork(1), made)


def test_head_needs_what_get_needs() -> None:
    assert required_permission(SEARCH_PERMISSIONS, "/{index}/_doc/{id}", "HEAD") is Permission.READ
