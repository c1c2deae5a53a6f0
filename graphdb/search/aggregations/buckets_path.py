"""`buckets_path`: the number that it names in a bucket.

A path leads through names of aggregations, with `>` between them. At its end, `.metric` or `[metric]` names
one number of an aggregation that has several.

Source: Elasticsearch 8's `AggregationPath`, and `getProperty` of its aggregations.
"""

import re
from typing import Any

from graphdb.search.aggregations.aggregation import Answer
from graphdb.search.errors import SearchError

__all__ = ["answer_of", "in_bucket", "value_at"]

_BRACKETS = re.compile(r"([^\[\]]+)\[([^\[\]]+)\]")  # `terms['key']`, `percentiles[99.9]`
_QUOTES = ("'", '"')


def value_at(answer: Answer, path: str) -> float | None:
    """What a path names in a bucket: `_count`, `a`, `a.avg`, `a[99.9]`, `a>b.value`, `a['key']>b`,
    `a._bucket_count`.

    None for a gap. Errors: aggregation_execution_exception where it leads to no single number.
    """
    found: Any = answer
    for name in path.split(">"):
        found = _named(found, name)
        if found is None:
            return None
        if isinstance(found, dict) and "buckets" in found:
            raise _unresolved(f"got: [Object[]] at aggregation [{name}]")
        if isinstance(found, dict) and "values" in found and "value" not in found:
            raise _unresolved(f"but [{name}] contains multiple values. Please specify which to use.")
    number = found.get("value", found.get("doc_count")) if isinstance(found, dict) else found
    return number if isinstance(number, (int, float)) else None


def in_bucket(bucket: Answer, path: str, zeros: bool = False) -> float | None:
    """As value_at, but in a bucket without documents there is only their count. zeros: gaps are 0."""
    empty = bucket.get("doc_count") == 0 and path != "_count"
    value = None if empty else value_at(bucket, path)
    return 0.0 if value is None and zeros else value


def answer_of(answers: Answer, name: str) -> Any:
    """The answer of an aggregation; with `typed_keys` its type stands before its name."""
    if name in answers:
        return answers[name]
    return next((value for key, value in answers.items() if key.partition("#")[2] == name), None)


def _named(found: Any, name: str) -> Any:
    """What one element of a path names."""
    if not isinstance(found, dict):
        return None
    if (bracketed := _BRACKETS.fullmatch(name)) is not None:
        owner, inner = answer_of(found, bracketed[1]), bracketed[2]
        is_key = len(inner) > 1 and inner[0] == inner[-1] and inner[0] in _QUOTES
        return _bucket_of(owner, inner[1:-1]) if is_key else _metric(owner, inner)
    if name == "_count":
        return found.get("doc_count")
    if (whole := answer_of(found, name)) is not None:
        return whole
    end = name.rfind(".")
    while end > 0:  # `a.b.99.9`: the longest name of an aggregation, for names may have dots too
        if (owner := answer_of(found, name[:end])) is not None:
            return _metric(owner, name[end + 1 :])
        end = name.rfind(".", 0, end)
    return None


def _metric(owner: Any, metric: str) -> Any:
    """A number of an aggregation, by the names that Elasticsearch has for it."""
    if not isinstance(owner, dict):
        return None
    if metric == "_count":
        return owner.get("doc_count")
    if metric == "_bucket_count":
        return len(owner["buckets"]) if "buckets" in owner else None
    if (found := answer_of(owner, metric)) is not None:
        return found
    if "values" in owner:
        return _percentile(owner["values"], metric)
    if owner.get("top"):
        return owner["top"][0]["metrics"].get(metric)
    bounds = owner.get("std_deviation_bounds")
    return bounds.get(metric.removeprefix("std_")) if isinstance(bounds, dict) else None


def _percentile(values: Any, percent: str) -> Any:
    """Only one that was asked for. values: by percent, or a list."""
    try:
        wanted = float(percent)
    except ValueError:
        return None
    if isinstance(values, dict):
        return values.get(str(wanted))
    return next((one["value"] for one in values if one["key"] == wanted), None)


def _bucket_of(answer: Any, key: str) -> Answer | None:
    """The bucket with a key, as it is or as it is written."""
    buckets = answer.get("buckets") if isinstance(answer, dict) else None
    if isinstance(buckets, dict):
        return buckets.get(key)
    found = (one for one in buckets or () if key in (str(one.get("key")), one.get("key_as_string")))
    return next(found, None)


def _unresolved(what: str) -> SearchError:
    """A `buckets_path` that leads to no number."""
    return SearchError(
        "aggregation_execution_exception",
        "buckets_path must reference either a number value or a single value numeric metric aggregation, "
        f"{what}",
        400,
    )
