"""Everything that searches: the operations that share one `SearchRunner`."""

from graphdb.config import Settings
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Endpoint, SearchWork
from serve.search.graph.extension_stage import extension_stages
from serve.search.searching import (
    async_search,
    explaining,
    field_caps,
    inference,
    rank_eval,
    search,
    search_contexts,
    search_templates,
    tiles,
)
from serve.search.searching.search_runner import SearchRunner

__all__ = ["routes", "runner_of"]


def runner_of(node: SearchBackend, settings: Settings, work: SearchWork) -> SearchRunner:
    """What runs the searches of a port."""
    return SearchRunner(node, settings, work, extension_stages(node, settings, work))


def routes(runner: SearchRunner) -> list[Endpoint]:
    with_runner = (async_search, explaining, rank_eval, search, search_contexts, search_templates, tiles)
    return [one for module in with_runner for one in module.endpoints(runner)] + [
        *field_caps.endpoints(),
        *inference.endpoints(),
    ]
