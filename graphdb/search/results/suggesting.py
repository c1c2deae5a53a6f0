"""`suggest` of a search: its parts, each of which asks one suggester.

Source: Elasticsearch's documentation of suggesters.
"""

from collections.abc import Callable, Mapping
from typing import Any

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.aggregations.options import Options
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.query import QueryContext
from graphdb.search.results.completion_suggester import parse_completion
from graphdb.search.results.phrase_suggester import parse_phrase
from graphdb.search.results.suggestion import Show, Suggestion
from graphdb.search.results.term_suggester import parse_term

__all__ = ["parse_suggestions", "suggestions"]

_SUGGESTIONS_MAX = 100  # of one search
_OF_TEXT: Mapping[str, Callable[[str, str, Options, QueryContext], Suggestion]] = {
    "term": parse_term,
    "phrase": parse_phrase,
}


def parse_suggestions(body: Any, context: QueryContext) -> tuple[Suggestion, ...]:
    """Errors: SearchError."""
    options = Options("suggest", body)
    text = options.text("text")
    parts = options.rest()
    if len(parts) > _SUGGESTIONS_MAX:
        raise illegal_request(f"[suggest] takes at most [{_SUGGESTIONS_MAX}] suggestions")
    return tuple(_one(name, part, text, context) for name, part in parts.items())


def _one(name: str, body: Any, text: str | None, context: QueryContext) -> Suggestion:
    options = Options("suggest", body)
    text, prefix, regex = options.text("text", text), options.text("prefix"), options.text("regex")
    kinds = options.rest()
    if len(kinds) != 1:
        raise illegal_request(f"suggestion [{name[:100]}] needs one suggester, and has {sorted(kinds)[:5]}")
    ((kind, inner),) = kinds.items()
    if kind == "completion":
        if prefix is None and regex is None:
            prefix = text
        return parse_completion(name, prefix, regex, Options("completion", inner), context)
    if kind not in _OF_TEXT:
        raise SearchError("named_object_not_found_exception", f"unknown field [{kind[:100]}]")
    for key, given in (("prefix", prefix), ("regex", regex)):
        if given is not None:
            raise illegal_argument(f"[{key}] is only for the suggester [completion]")
    if text is None:
        raise illegal_request("The required text option is missing")
    return _OF_TEXT[kind](name, text, Options(kind, inner), context)


def suggestions(
    parts: tuple[Suggestion, ...], scope: Scope, show: Show, typed_keys: bool
) -> Mapping[str, list[dict[str, Any]]]:
    """What stands under `suggest` in the answer: the entries of each part."""
    return {
        f"{part.kind}#{part.name}" if typed_keys else part.name: part.entries(scope, show) for part in parts
    }
