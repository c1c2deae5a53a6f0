"""Aggregations over the answers of others.

Beside a list of buckets: avg_bucket, sum_bucket, min_bucket, max_bucket, stats_bucket.
Inside each bucket of one: cumulative_sum, derivative, serial_diff, bucket_sort.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphdb.search.aggregations.aggregation import Answer, Pipeline
from graphdb.search.aggregations.options import Options, required
from graphdb.search.errors import SearchError, illegal_request, parsing

__all__ = ["PIPELINES", "value_at"]

Meta = Mapping[str, Any] | None


def value_at(answer: Answer, path: str) -> float | None:
    """What `buckets_path` names in a bucket: `_count`, `a`, `a.avg`, `a>b.value`; None for a gap."""
    found: Any = answer
    for name in path.split(">"):
        if name == "_count":
            found = found.get("doc_count")
        elif name in found:
            found = found[name]
        else:
            inner, _, metric = name.rpartition(".")
            found = found.get(inner, {}).get(metric)
        if found is None:
            return None
    number = found.get("value", found.get("doc_count")) if isinstance(found, dict) else found
    return number if isinstance(number, (int, float)) else None


def in_bucket(bucket: Answer, path: str, zeros: bool = False) -> float | None:
    """As value_at, but in a bucket without documents there is only their count. zeros: gaps are 0."""
    empty = bucket.get("doc_count") == 0 and path != "_count"
    value = None if empty else value_at(bucket, path)
    return 0.0 if value is None and zeros else value


@dataclass(frozen=True)
class Sibling(Pipeline):
    """One number, or several, of the buckets of an aggregation beside it."""

    name: str
    meta: Meta
    path: str
    summary: Callable[[list[tuple[Any, float]]], Answer]
    zeros: bool = False  # in the place of gaps

    def beside(self, answers: Answer) -> None:
        first, _, rest = self.path.partition(">")
        if first not in answers and ">" not in self.path:
            first, _, rest = self.path.partition(".")
        buckets = answers.get(first, {}).get("buckets")
        if buckets is None:
            raise SearchError(
                "action_request_validation_exception",
                f"Validation Failed: 1: No aggregation found for path [{self.path}];",
            )
        keyed = buckets.items() if isinstance(buckets, dict) else ((None, bucket) for bucket in buckets)
        path = rest or "_count"
        found = [(_name(bucket, key), in_bucket(bucket, path, self.zeros)) for key, bucket in keyed]
        summary = self.summary([(key, value) for key, value in found if value is not None])
        answers[self.name] = summary if self.meta is None else {"meta": self.meta, **summary}

    def among(self, buckets: list[Answer]) -> list[Answer]:
        return buckets


def _name(bucket: Answer, key: str | None) -> str:
    return str(bucket.get("key_as_string", bucket.get("key", key)))


def _avg(found: list[tuple[Any, float]]) -> Answer:
    return {"value": sum(value for _, value in found) / len(found) if found else None}


def _sum(found: list[tuple[Any, float]]) -> Answer:
    return {"value": float(sum(value for _, value in found))}


def _extreme(best: Callable[[list[float]], float]) -> Callable[[list[tuple[Any, float]]], Answer]:
    def summary(found: list[tuple[Any, float]]) -> Answer:
        value = best([value for _, value in found]) if found else None
        return {"value": value, "keys": [key for key, each in found if each == value]}

    return summary


def _stats(found: list[tuple[Any, float]]) -> Answer:
    values = [value for _, value in found]
    if not values:
        return {"count": 0, "min": None, "max": None, "avg": None, "sum": 0.0}
    total = float(sum(values))
    return {
        "count": len(values), "min": min(values), "max": max(values), "avg": total / len(values), "sum": total
    }  # fmt: skip


@dataclass(frozen=True)
class Running(Pipeline):
    """cumulative_sum, or the difference to the bucket before (derivative)."""

    name: str
    meta: Meta
    path: str
    difference: bool
    zeros: bool = False  # in the place of gaps

    def beside(self, answers: Answer) -> None:
        """Nothing: it works among buckets."""

    def among(self, buckets: list[Answer]) -> list[Answer]:
        total, before = 0.0, None
        for bucket in buckets:
            value = in_bucket(bucket, self.path, self.zeros)
            if not self.difference:
                total += value or 0.0
                self._put(bucket, total)
            elif before is not None and value is not None:
                self._put(bucket, float(value - before))
            before = before if value is None else value
        return buckets

    def _put(self, bucket: Answer, value: float) -> None:
        bucket[self.name] = {"value": value} if self.meta is None else {"meta": self.meta, "value": value}


@dataclass(frozen=True)
class SerialDiff(Pipeline):
    """The difference to the bucket that stands lag buckets before; nothing where one of the two is a gap."""

    name: str
    meta: Meta
    path: str
    lag: int
    zeros: bool = False  # in the place of gaps

    def beside(self, answers: Answer) -> None:
        """Nothing: it works among buckets."""

    def among(self, buckets: list[Answer]) -> list[Answer]:
        values = [in_bucket(bucket, self.path, self.zeros) for bucket in buckets]
        for bucket, value, before in zip(buckets[self.lag :], values[self.lag :], values, strict=False):
            if value is not None and before is not None:
                found = {"value": float(value - before)}
                bucket[self.name] = found if self.meta is None else {"meta": self.meta, **found}
        return buckets


@dataclass(frozen=True)
class BucketSort(Pipeline):
    """Another order, and only some of the buckets."""

    name: str
    meta: Meta
    keys: tuple[tuple[str, bool], ...]  # path, descending
    start: int
    size: int | None
    zeros: bool = False  # in the place of gaps

    def beside(self, answers: Answer) -> None:
        """Nothing: it works among buckets."""

    def among(self, buckets: list[Answer]) -> list[Answer]:
        for path, descending in reversed(self.keys):
            valued = [(self._value(bucket, path), bucket) for bucket in buckets]
            known = [pair for pair in valued if pair[0] is not None]
            known.sort(key=lambda pair: pair[0], reverse=descending)
            buckets = [bucket for _, bucket in known]
        return buckets[self.start :][: self.size]

    def _value(self, bucket: Answer, path: str) -> Any:
        return bucket.get("key") if path == "_key" else in_bucket(bucket, path, self.zeros)


def _path(options: Options) -> tuple[str, bool]:
    """(`buckets_path`, whether gaps are 0)."""
    path = required(options.text("buckets_path"), "buckets_path")
    zeros = _zeros(options)
    options.ignore("format", "unit")
    options.done()
    return path, zeros


def _zeros(options: Options) -> bool:
    policy = options.text("gap_policy", "skip")
    if policy not in ("skip", "insert_zeros", "keep_values"):
        known = "accepted values: [insert_zeros, skip]"
        raise illegal_request(f"Invalid gap policy: [{str(policy)[:100]}], {known}")
    return policy == "insert_zeros"


def _sibling(
    summary: Callable[[list[tuple[Any, float]]], Answer],
) -> Callable[[str, Meta, Options], Pipeline]:
    def made(name: str, meta: Meta, options: Options) -> Pipeline:
        path, zeros = _path(options)
        return Sibling(name, meta, path, summary, zeros)

    return made


def _running(difference: bool) -> Callable[[str, Meta, Options], Pipeline]:
    def made(name: str, meta: Meta, options: Options) -> Pipeline:
        path, zeros = _path(options)
        return Running(name, meta, path, difference, zeros)

    return made


def _serial_diff(name: str, meta: Meta, options: Options) -> Pipeline:
    lag = options.integer("lag", 1)
    if lag < 1:
        raise illegal_request(
            f"Lag must be a positive, non-zero integer.  Value supplied was[{lag}] for [{name}]."
        )
    path, zeros = _path(options)
    return SerialDiff(name, meta, path, lag, zeros)


def _bucket_sort(name: str, meta: Meta, options: Options) -> Pipeline:
    keys = []
    for entry in options.items("sort"):
        if isinstance(entry, str):
            entry = {entry: "asc"}
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise parsing(f"[bucket_sort] malformed [sort] in [{name}]")
        ((path, how),) = entry.items()
        keys.append((path, (how.get("order") if isinstance(how, Mapping) else how) == "desc"))
    start, size = options.integer("from", 0, 0), options.integer("size", -1)
    zeros = _zeros(options)
    options.done()
    if not keys and size < 0 and not start:
        raise illegal_request(
            f"[{name}] is configured to perform nothing. Please set either of [sort, size, from]"
        )
    return BucketSort(name, meta, tuple(keys), start, None if size < 0 else size, zeros)


PIPELINES: dict[str, Callable[[str, Meta, Options], Pipeline]] = {
    "avg_bucket": _sibling(_avg),
    "bucket_sort": _bucket_sort,
    "cumulative_sum": _running(False),
    "derivative": _running(True),
    "max_bucket": _sibling(_extreme(max)),
    "min_bucket": _sibling(_extreme(min)),
    "serial_diff": _serial_diff,
    "stats_bucket": _sibling(_stats),
    "sum_bucket": _sibling(_sum),
}
