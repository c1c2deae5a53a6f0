"""Everything that searches: the operations that share one `SearchRunner`."""

from graphdb.config import Settings
from serve.search.backend import SearchBackend
from serve.search.frame.endpoint import Endpoint
from serve.search.frame.search_work import SearchWork
from serve.search.graph.extension_stage import extension_stages
from serve.search.searching import (
    explaining,
    field_caps,
    multi_search,
    search,
    search_contexts,
    terms_enum,
)
from serve.search.searching.search_runner import SearchRunner

__all__ = ["routes"]

_WITH_RUNNER = (
    explaining,
    multi_search,
    search,
    search_contexts,
)
_WITHOUT = (field_caps, terms_enum)


def routes(node: SearchBackend, settings: Settings, work: SearchWork) -> list[Endpoint]:
    runner = SearchRunner(node, settings, work, extension_stages(node, settings, work))
    made = [one for module in _WITH_RUNNER for one in module.endpoints(runner)]
    return made + [one for module in _WITHOUT for one in module.endpoints()]
