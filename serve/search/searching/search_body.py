"""The body of a search with its URL parameters, and the envelope around its hits."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphdb.search.aggregations.aggregation import Common, Measured
from graphdb.search.errors import illegal_argument
from graphdb.search.multi import Failure, Prepared, Target
from serve.search.frame.answer import error_json
from serve.search.frame.parameters import Parameters, time_value_ms

__all__ = [
    "NOTHING",
    "QUERY_TEXT",
    "SEARCH_PARAMETERS",
    "body_with",
    "enveloped",
    "profiled",
    "query_of",
    "shard_count",
    "shards_json",
    "timeout_ms",
    "totals_as_int",
]

# Writes the parameters of a search into its body, where they take precedence.

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
    suggest = _suggestion_of(parameters)
    if suggest is not None:
        whole["suggest"] = suggest
    return whole


def _suggestion_of(parameters: Parameters) -> dict[str, Any] | None:
    """The `suggest` of `suggest_field` and its options."""
    field = parameters.text("suggest_field")
    given = [name for name in ("suggest_text", "suggest_size", "suggest_mode") if name in parameters]
    if field is None:
        if given:
            raise illegal_argument(f"parameters {given} are there, but not [suggest_field]")
        return None
    term: dict[str, Any] = {"field": field, "size": parameters.integer("suggest_size", 5)}
    if "suggest_mode" in parameters:
        term["suggest_mode"] = parameters.text("suggest_mode")
    return {field: {"text": parameters.text("suggest_text") or parameters.text("q"), "term": term}}


def query_of(parameters: Parameters) -> dict[str, Any] | None:
    """The query of `q` and its options; None without `q`."""
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
    """The client's time limit of the search."""
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


# The envelope around the hits: `took`, `_shards`, totals, and the format of `profile`.

NOTHING: dict[str, Any] = {
    "timed_out": False,
    "hits": {"total": {"value": 0, "relation": "eq"}, "max_score": 0.0, "hits": []},
}
"""The answer to a search without an index."""


def enveloped(answer: Mapping[str, Any], took_ms: int, shards: Mapping[str, Any]) -> dict[str, Any]:
    """In Elasticsearch's order."""
    whole: dict[str, Any] = {"took": took_ms, "timed_out": answer["timed_out"]}
    if "terminated_early" in answer:
        whole["terminated_early"] = answer["terminated_early"]
    whole["_shards"] = shards
    whole |= answer
    return whole


def shard_count(parts: Iterable[Target | Failure]) -> int:
    """How many shards were asked."""
    return sum(len(one.shards) for one in parts)


def shards_json(total: int, failures: Sequence[Failure], node_id: str) -> dict[str, Any]:
    """`_shards`. Where an index cannot be searched, all its shards fail; equal failures are shown once, as in
    Elasticsearch.
    """
    if not failures:
        return {"total": total, "successful": total, "skipped": 0, "failed": 0}
    failed = shard_count(failures)
    shown = [
        {
            "shard": one.shards[0],
            "index": one.index,
            "node": one.node_id(node_id),
            "reason": error_json(one.error),
        }
        for one in failures
    ]
    counts = {"total": total, "successful": total - failed, "skipped": 0, "failed": failed}
    return {**counts, "failures": shown}


def totals_as_int(answer: dict[str, Any]) -> dict[str, Any]:
    """With every `total` of hits as a number, as it was before version 7; -1 where hits are not counted."""
    return {**answer, "hits": _as_int(answer["hits"])}


def _as_int(hits: dict[str, Any]) -> dict[str, Any]:
    total = hits.get("total", {"value": -1})
    inside = [
        {
            **hit,
            "inner_hits": {name: {"hits": _as_int(one["hits"])} for name, one in hit["inner_hits"].items()},
        }
        if "inner_hits" in hit
        else hit
        for hit in hits["hits"]
    ]
    return {**hits, "total": total["value"], "hits": inside}


def profiled(prepared: Prepared, took_ns: int, node_id: str) -> dict[str, Any]:
    """In the shape that clients read. Only the whole is measured, and each aggregation, of some the steps:
    each shard is given an equal part of that.
    """
    shards = max(1, shard_count(prepared.targets))
    each = took_ns // shards
    query = {
        "type": type(prepared.request.query).__name__,
        "description": str(prepared.request.query),
        "time_in_nanos": each,
        "breakdown": {**_NOT_MEASURED, "score": each, "score_count": 1},
    }
    collector = {"name": "SimpleTopScoreDocCollector", "reason": "search_top_hits", "time_in_nanos": 0}
    search = {"query": [query], "rewrite_time": 0, "collector": [collector]}
    aggregations = _profiled(prepared.request.aggregations, prepared.scope.measured, shards)
    return {
        "shards": [
            {
                "id": f"[{node_id}][{target.name}][{number}]",
                "node_id": node_id,
                "shard_id": number,
                "index": target.name,
                "cluster": "(local)",
                "searches": [search],
                "aggregations": aggregations,
            }
            for target in prepared.targets
            for number in target.shards
        ]
    }


_NOT_MEASURED = {
    name: 0
    for step in (
        "advance", "build_scorer", "compute_max_score", "count_weight", "create_weight", "match", "next_doc",
        "score", "set_min_competitive_score", "shallow_advance",
    )
    for name in (step, f"{step}_count")
}  # fmt: skip
_STEPS = ("build_aggregation", "build_leaf_collector", "initialize", "post_collection")


_STRATEGIES = {"dterms": "double_terms", "lterms": "long_terms", "sterms": "terms"}


def _profiled(level: Common | None, measured: Mapping[int, Measured], shards: int) -> list[dict[str, Any]]:
    """The aggregations of a level, each with those below it."""
    found = []
    for one in () if level is None else level.children:
        taken = measured.get(id(one), Measured())
        each = taken.nanoseconds // shards
        # what is not told apart is in `collect`
        told = {step: taken.steps.get(step, 0) // shards for step in _STEPS}
        collected = taken.steps.get("collect", taken.nanoseconds - taken.steps.get("initialize", 0)) // shards
        breakdown = {"collect": collected, "collect_count": taken.documents // shards}
        for step, nanoseconds in told.items():
            breakdown |= {step: nanoseconds, f"{step}_count": int(step in taken.steps)}
        shown: dict[str, Any] = {
            "type": one.profiled,
            "description": one.common.name,
            "time_in_nanos": each,
            "breakdown": breakdown,
        }
        if taken.buckets is not None:
            strategy = _STRATEGIES.get(one.typed)
            named = {} if strategy is None else {"result_strategy": strategy}
            shown["debug"] = {**named, "total_buckets": taken.buckets}
        elif taken.debug:
            shown["debug"] = {name: count // shards for name, count in taken.debug.items()}
        below = _profiled(one.common, measured, shards)
        found.append(shown | ({"children": below} if below else {}))
    return found
