"""Everything that searches: the operations that share one `SearchRunner`."""

from graphdb.config import Settings
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Endpoint, SearchWork
from serve.search.graph.extension_stage import extension_stages
from serve.search.searching import (
    async_search,
    explaining,
    field_caps,
    rank_eval,
    search,
    search_contexts,
    search_templates,
)
from serve.search.searching.search_runner import SearchRunner

__all__ = ["routes"]


def routes(node: SearchBackend, settings: Settings, work: SearchWork) -> list[Endpoint]:
    runner = SearchRunner(node, settings, work, extension_stages(node, settings, work))
    with_runner = (async_search, explaining, rank_eval, search, search_contexts, search_templates)
    return [one for module in with_runner for one in module.endpoints(runner)] + field_caps.endpoints()
