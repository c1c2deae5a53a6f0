"""The application on port 9200: FastAPI over a `SearchBackend`, without Ray or socket."""

from starlette.types import ASGIApp

from graphdb.config import Settings
from serve.access.access_backend import AccessBackend
from serve.access.audit import Audited
from serve.access.authentication import Authenticator
from serve.access.middleware import AuthenticationMiddleware
from serve.access.own_pages import OwnPages
from serve.port.application import PortApplication, QuickChoice
from serve.search.administration import (
    aliases,
    allocation,
    analyze,
    cat,
    cluster,
    data_streams,
    disk_usage,
    health_report,
    index_actions,
    index_stats,
    indices,
    info,
    lifecycles,
    nodes,
    not_offered,
    offered,
    pipelines,
    recovery,
    repositories,
    resizing,
    restoring,
    rollover,
    scripts,
    shown_snapshots,
    snapshot_policies,
    snapshots,
    stream_lifecycles,
    synonyms,
    tasks,
    templates,
)
from serve.search.backend import SearchBackend
from serve.search.documents import bulk, by_query, documents, reading, term_vectors
from serve.search.documents.quick_puts import QuickPuts
from serve.search.frame.exchange import SearchWork
from serve.search.frame.log_index import AtLogIndex, Reach
from serve.search.frame.router import SearchRouter
from serve.search.searching import searching
from serve.search.searching.quick_searches import QuickSearches

__all__ = ["build_search_app"]

MODULES = (
    aliases,
    allocation,
    analyze,
    bulk,
    by_query,
    cat,
    cluster,
    data_streams,
    disk_usage,
    documents,
    health_report,
    index_actions,
    index_stats,
    indices,
    info,
    lifecycles,
    nodes,
    not_offered,
    offered,
    pipelines,
    reading,
    recovery,
    repositories,
    resizing,
    restoring,
    rollover,
    scripts,
    shown_snapshots,
    snapshot_policies,
    snapshots,
    stream_lifecycles,
    synonyms,
    tasks,
    templates,
    term_vectors,
)


def build_search_app(
    node: SearchBackend,
    settings: Settings,
    access: AccessBackend | None = None,
    reach: Reach | None = None,
) -> PortApplication:
    """All operations that the modules of `serve/search/` have. access: see `build_app`. reach: see
    `AtLogIndex`.

    Elasticsearch's rules choose the operation, so FastAPI has no routes here. There is no /docs and no
    /openapi.json: on this port these are names of indexes.
    """
    server = settings.server
    work = SearchWork(server.query_timeout_seconds)
    endpoints = [endpoint for module in MODULES for endpoint in module.routes(node, settings)]
    runner = searching.runner_of(node, settings, work)
    endpoints += searching.routes(runner)
    router = SearchRouter(node, settings, work, [*endpoints, *offered.capability_routes(endpoints)])
    has_audit = access is not None and access.audit is not None
    # Nothing has to see each request, and nothing is added to each answer.
    is_plain = not (settings.authentication.enabled or has_audit or server.cors)

    def around(app: ASGIApp) -> ASGIApp:
        if settings.authentication.enabled:
            app = AuthenticationMiddleware(
                app, Authenticator(settings, access), router.refusal, origins=server.cors
            )
        if access is not None and access.audit is not None:
            app = Audited(app, settings, "search", access.audit)
        app = OwnPages(app, server.port if server.workbench else None, server.cors)
        return app if reach is None else AtLogIndex(app, reach)

    quick = QuickChoice(QuickPuts(node), QuickSearches(runner)) if is_plain else None
    return PortApplication("graphdb search", (), otherwise=router, around=around, quick=quick)
