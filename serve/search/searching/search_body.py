"""What the parameters of a search say, put into its body: they win over what stands there."""

from collections.abc import Mapping
from typing import Any

from graphdb.search.errors import illegal_argument
from serve.search.frame.parameters import Parameters
from serve.search.frame.time_values import time_value_ms

__all__ = ["QUERY_TEXT", "SEARCH_PARAMETERS", "body_with", "query_of", "timeout_ms"]

QUERY_TEXT = "q df analyzer analyze_wildcard default_operator lenient"
SEARCH_PARAMETERS = (
    f"{QUERY_TEXT} index from size sort _source _source_includes _source_excludes stored_fields "
    "docvalue_fields track_total_hits track_scores timeout terminate_after search_type preference routing "
    "request_cache batched_reduce_size typed_keys rest_total_hits_as_int seq_no_primary_term version explain "
    "scroll ignore_unavailable ignore_throttled allow_no_indices expand_wildcards ccs_minimize_roundtrips "
    "max_concurrent_shard_requests pre_filter_shard_size allow_partial_search_results stats suggest_field "
    "suggest_mode suggest_size suggest_text min_compatible_shard_node include_named_queries_score "
    "force_synthetic_source"
)
_FLAGS = ("explain", "version", "seq_no_primary_term", "track_scores")
_LISTS = ("stored_fields", "docvalue_fields")


def body_with(parameters: Parameters, body: Mapping[str, Any] | None) -> dict[str, Any]:
    """The whole request. Errors: illegal_argument_exception."""
    whole = dict(body or {})
    for name in ("from", "size", "terminate_after"):
        number = parameters.integer(name, None)
        if number is not None:
            whole[name] = number
    for name in _FLAGS:
        if name in parameters:
            whole[name] = parameters.boolean(name, False)
    for name in _LISTS:
        if name in parameters:
            whole[name] = parameters.strings(name)
    if "sort" in parameters:
        whole["sort"] = [_sort_key(part) for part in parameters.strings("sort")]
    if "timeout" in parameters:
        whole["timeout"] = parameters.text("timeout")
    if "track_total_hits" in parameters:
        whole["track_total_hits"] = _tracked(parameters)
    _put_source(parameters, whole)
    query = query_of(parameters)
    if query is not None:
        whole["query"] = query
    return whole


def query_of(parameters: Parameters) -> dict[str, Any] | None:
    """The query that `q` and what goes with it make, None where there is no `q`."""
    text = parameters.text("q")
    if text is None:
        return None
    inner: dict[str, Any] = {"query": text}
    for name, member in (
        ("df", "default_field"),
        ("analyzer", "analyzer"),
        ("default_operator", "default_operator"),
    ):
        if name in parameters:
            inner[member] = parameters.text(name)
    for name in ("lenient", "analyze_wildcard"):
        if name in parameters:
            inner[name] = parameters.boolean(name, False)
    return {"query_string": inner}


def timeout_ms(body: Mapping[str, Any]) -> int | None:
    """How long the client would have the search take at most."""
    value = body.get("timeout")
    if value is None or value == -1 or value == "-1":
        return None
    if not isinstance(value, str):
        raise illegal_argument(
            f"failed to parse setting [timeout] with value [{str(value)[:100]}] as a time value: unit is "
            "missing or unrecognized"
        )
    return time_value_ms(value, "timeout")


def _sort_key(text: str) -> Any:
    """`price:desc`; a name may hold colons itself."""
    name, colon, order = text.rpartition(":")
    if colon and order in ("asc", "desc"):
        return {name: {"order": order}}
    return text


def _tracked(parameters: Parameters) -> Any:
    text = parameters.text("track_total_hits") or "true"
    if text in ("true", "false"):
        return text == "true"
    return parameters.integer("track_total_hits", None)


def _put_source(parameters: Parameters, whole: dict[str, Any]) -> None:
    value = parameters.text("_source")
    includes, excludes = parameters.strings("_source_includes"), parameters.strings("_source_excludes")
    if value is not None:
        whole["_source"] = (
            value == "true" if value in ("true", "false", "") else parameters.strings("_source")
        )
    if includes or excludes:
        listed = whole.get("_source") if value not in (None, "true", "false", "") else None
        both = {"includes": includes or listed or [], "excludes": excludes}
        whole["_source"] = both
