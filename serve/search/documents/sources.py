"""`_source` in requests for documents: which parts of them are shown."""

from dataclasses import replace
from typing import Any

import orjson

from graphdb.search.results.source_filter import EVERYTHING, SourceFilter, parse_source_filter
from serve.search.frame.parameters import Parameters

__all__ = ["SOURCE_PARAMETERS", "asked_source", "shown_source"]

SOURCE_PARAMETERS = "_source _source_includes _source_excludes"


def asked_source(parameters: Parameters, default: SourceFilter | None = EVERYTHING) -> SourceFilter | None:
    """From the query string; default where it says nothing."""
    given = parameters.text("_source")
    includes, excludes = parameters.strings("_source_includes"), parameters.strings("_source_excludes")
    if given is None and not includes and not excludes:
        return default
    if given in (None, "", "true", "false"):
        chosen = parse_source_filter(given != "false")
    else:
        chosen = parse_source_filter(parameters.strings("_source"))
    return replace(chosen, includes=(*chosen.includes, *includes), excludes=(*chosen.excludes, *excludes))


def shown_source(source: bytes, chosen: SourceFilter) -> Any:
    """The document, or what is wanted of it. A whole one is the text that was stored."""
    if not chosen.includes and not chosen.excludes:
        return orjson.Fragment(source)
    return chosen.applied(orjson.loads(source))
