"""Aggregations over the answers of others.

Beside a list of buckets: avg_bucket, sum_bucket, min_bucket, max_bucket, stats_bucket, extended_stats_bucket,
percentiles_bucket.
Inside each bucket of one: cumulative_sum, serial_diff, moving_fn, normalize, bucket_sort.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from graphdb.search.aggregations.aggregation import Answer, Pipeline
from graphdb.search.aggregations.buckets_path import answer_of, in_bucket
from graphdb.search.aggregations.moving_functions import moving_function
from graphdb.search.aggregations.options import Options, required
from graphdb.search.aggregations.value_sources import DecimalPattern, json_number
from graphdb.search.errors import SearchError, illegal_argument, illegal_request, parsing

__all__ = [
    "OF_BUCKETS",
    "OF_NEIGHBOURS",
    "PIPELINES",
    "Meta",
    "OfValues",
    "formatted",
    "gaps_as_zeros",
    "path_and_gaps",
]

Meta = Mapping[str, Any] | None
WINDOW_MAX = 100_000  # buckets


@dataclass(frozen=True)
class Sibling(Pipeline):
    """One number, or several, of the buckets of an aggregation beside it.

    pattern: how the numbers are written beside, None: they are not.
    """

    name: str
    meta: Meta
    path: str
    summary: Callable[[list[tuple[Any, float]]], Answer]
    zeros: bool = False  # in the place of gaps
    kind: str = "simple_value"
    pattern: DecimalPattern | None = None

    @property
    def typed(self) -> str:
        return self.kind

    def beside(self, answers: Answer) -> None:
        first, _, rest = self.path.partition(">")
        if answer_of(answers, first) is None and ">" not in self.path:
            first, _, rest = self.path.partition(".")
        buckets = (answer_of(answers, first) or {}).get("buckets")
        if buckets is None:
            raise SearchError(
                "action_request_validation_exception",
                f"Validation Failed: 1: No aggregation found for path [{self.path}];",
            )
        keyed = buckets.items() if isinstance(buckets, dict) else ((None, bucket) for bucket in buckets)
        path = rest or "_count"
        found = [(_name(bucket, key), in_bucket(bucket, path, self.zeros)) for key, bucket in keyed]
        summary = self.summary([(key, value) for key, value in found if value is not None])
        if self.pattern is not None:
            summary = _with_texts(summary, self.pattern)
        answers[self.name] = summary if self.meta is None else {"meta": self.meta, **summary}

    def among(self, buckets: list[Answer]) -> list[Answer]:
        return buckets


def _with_texts(summary: Answer, pattern: DecimalPattern) -> Answer:
    """Each number of a summary, but its counts, with its text after it."""
    shown: Answer = {}
    for name, value in summary.items():
        shown[name] = value
        if isinstance(value, float) or (name == "value" and isinstance(value, int)):
            shown[f"{name}_as_string"] = pattern.write(value)
        elif name == "std_deviation_bounds":
            texts = {key: number for key, number in value.items() if isinstance(number, float)}
            shown[f"{name}_as_string"] = {key: pattern.write(number) for key, number in texts.items()}
        elif name == "values" and isinstance(value, dict):
            shown[name] = _with_texts({key: _float(number) for key, number in value.items()}, pattern)
        elif name == "values":
            shown[name] = [{**one, **_with_texts({"value": _float(one["value"])}, pattern)} for one in value]
    return shown


def _float(number: Any) -> Any:
    return float(number) if isinstance(number, int) else number


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
    least, most = float(min(values)), float(max(values))
    return {"count": len(values), "min": least, "max": most, "avg": total / len(values), "sum": total}


def _extended_stats(sigma: float) -> Callable[[list[tuple[Any, float]]], Answer]:
    def summary(found: list[tuple[Any, float]]) -> Answer:
        answer, count = _stats(found), len(found)
        if not count:
            none = dict.fromkeys(_SPREAD)
            bounds = dict.fromkeys(f"{side}{kind}" for kind in _KINDS for side in ("upper", "lower"))
            return {**answer, "sum_of_squares": None, **none, "std_deviation_bounds": bounds}
        mean, squares = answer["avg"], math.fsum(value * value for _, value in found)
        spread = math.fsum((value - mean) ** 2 for _, value in found)
        variances = [spread / count, spread / count, spread / (count - 1) if count > 1 else math.nan]
        deviations = list(map(math.sqrt, variances))
        bounds = {}
        for kind, deviation in zip(_KINDS, deviations, strict=True):
            bounds[f"upper{kind}"] = json_number(mean + sigma * deviation)
            bounds[f"lower{kind}"] = json_number(mean - sigma * deviation)
        numbers = zip(_SPREAD, map(json_number, (*variances, *deviations)), strict=True)
        return {**answer, "sum_of_squares": squares, **dict(numbers), "std_deviation_bounds": bounds}

    return summary


_KINDS = ("", "_population", "_sampling")
_SPREAD = tuple(f"{name}{kind}" for name in ("variance", "std_deviation") for kind in _KINDS)


def _percentiles(percents: list[float], keyed: bool) -> Callable[[list[tuple[Any, float]]], Answer]:
    """Each is one of the values: no interpolation."""

    def summary(found: list[tuple[Any, float]]) -> Answer:
        values = sorted(value for _, value in found)
        last = len(values) - 1
        shown = {
            percent: values[min(max(0, round_half_up(percent / 100 * last)), last)] if values else None
            for percent in percents
        }
        if keyed:
            return {"values": {str(percent): value for percent, value in shown.items()}}
        return {"values": [{"key": percent, "value": value} for percent, value in shown.items()]}

    return summary


def round_half_up(number: float) -> int:
    """As Java rounds."""
    return math.floor(number + 0.5)


@dataclass(frozen=True)
class InBuckets(Pipeline):
    """Works among the buckets that it stands in. zeros: in the place of gaps."""

    name: str
    meta: Meta
    zeros: bool

    def beside(self, answers: Answer) -> None:
        """Nothing."""


@dataclass(frozen=True)
class OfValues(InBuckets):
    """Adds a value to buckets, by what stands at a path in each."""

    path: str
    pattern: DecimalPattern | None = field(default=None, kw_only=True)  # as of Sibling

    def _values(self, buckets: list[Answer]) -> list[float | None]:
        """None for a gap."""
        return [in_bucket(bucket, self.path, self.zeros) for bucket in buckets]

    def _put(
        self, bucket: Answer, value: float | str | None, more: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        shown: Answer = {}
        for member, number in {"value": value, **more}.items():
            shown[member] = number
            if self.pattern is not None and isinstance(number, float):
                shown[f"{member}_as_string"] = self.pattern.write(number)
        bucket[self.name] = shown if self.meta is None else {"meta": self.meta, **shown}


@dataclass(frozen=True)
class Normalize(OfValues):
    """The values of all buckets, put in relation to one another."""

    method: str

    def among(self, buckets: list[Answer]) -> list[Answer]:
        found = self._values(buckets)
        values = [value for value in found if value is not None]
        if values:
            scaled = iter(_NORMALIZED[self.method](values))
            for bucket, value in zip(buckets, found, strict=True):
                if value is not None:
                    self._put(bucket, json_number(next(scaled)))
        return buckets


def _rescaled(values: list[float], top: float) -> list[float]:
    least, reach = min(values), max(values) - min(values)
    return [top * (value - least) / reach if reach else math.nan for value in values]


def _from_mean(values: list[float]) -> list[float]:
    mean, reach = math.fsum(values) / len(values), max(values) - min(values)
    return [(value - mean) / reach if reach else math.nan for value in values]


def _z_scores(values: list[float]) -> list[float]:
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    return [(value - mean) / deviation if deviation else math.nan for value in values]


def _parts(values: list[float]) -> list[float]:
    total = math.fsum(values)
    return [value / total if total else math.nan for value in values]


def _softmax(values: list[float]) -> list[float]:
    powers = [math.exp(value - max(values)) for value in values]
    return [power / math.fsum(powers) for power in powers]


_NORMALIZED: dict[str, Callable[[list[float]], list[float]]] = {
    "rescale_0_1": lambda values: _rescaled(values, 1.0),
    "rescale_0_100": lambda values: _rescaled(values, 100.0),
    "percent_of_sum": _parts,
    "mean": _from_mean,
    "z-score": _z_scores,
    "softmax": _softmax,
}


@dataclass(frozen=True)
class MovingFunction(OfValues):
    """A function of the values in the buckets before each; shift 1 lets its own value in."""

    function: Callable[[list[float]], float | None]
    window: int
    shift: int

    def among(self, buckets: list[Answer]) -> list[Answer]:
        found = self._values(buckets)
        values = [value for value in found if value is not None]
        place = 0
        for bucket, value in zip(buckets, found, strict=True):
            if value is None:
                continue
            first, end = place - self.window + self.shift, place + self.shift
            result = self.function(values[max(0, first) : max(0, end)])
            self._put(bucket, None if result is None or math.isnan(result) else result)
            place += 1
        return buckets


@dataclass(frozen=True)
class CumulativeSum(OfValues):
    """The sum of the buckets up to each; a gap adds nothing."""

    def among(self, buckets: list[Answer]) -> list[Answer]:
        total = 0.0
        for bucket, value in zip(buckets, self._values(buckets), strict=True):
            total += value or 0.0
            self._put(bucket, total)
        return buckets


@dataclass(frozen=True)
class SerialDiff(OfValues):
    """The difference to the bucket that stands lag buckets before; nothing where one of the two is a gap."""

    lag: int

    def among(self, buckets: list[Answer]) -> list[Answer]:
        values = self._values(buckets)
        for bucket, value, before in zip(buckets[self.lag :], values[self.lag :], values, strict=False):
            if value is not None and before is not None:
                self._put(bucket, float(value - before))
        return buckets


@dataclass(frozen=True)
class BucketSort(InBuckets):
    """Another order, and only some of the buckets."""

    keys: tuple[tuple[str, bool], ...]  # path, descending
    start: int
    size: int | None

    def among(self, buckets: list[Answer]) -> list[Answer]:
        for path, descending in reversed(self.keys):
            valued = [(self._value(bucket, path), bucket) for bucket in buckets]
            known = [pair for pair in valued if pair[0] is not None]
            known.sort(key=lambda pair: pair[0], reverse=descending)
            buckets = [bucket for _, bucket in known]
        return buckets[self.start :][: self.size]

    def _value(self, bucket: Answer, path: str) -> Any:
        return bucket.get("key") if path == "_key" else in_bucket(bucket, path, self.zeros)


def path_and_gaps(options: Options) -> tuple[str, bool]:
    """(`buckets_path`, whether gaps are 0)."""
    path = required(options.text("buckets_path"), "buckets_path")
    zeros = gaps_as_zeros(options)
    options.done()
    return path, zeros


def formatted(pipeline: Pipeline, pattern: str | None) -> Pipeline:
    """With its numbers written as `format` says. Errors: illegal_argument_exception."""
    if pattern is None or not isinstance(pipeline, Sibling | OfValues):
        return pipeline
    return replace(pipeline, pattern=DecimalPattern.of(pattern))


def gaps_as_zeros(options: Options) -> bool:
    """What `gap_policy` says."""
    policy = options.text("gap_policy", "skip")
    if policy not in ("skip", "insert_zeros", "keep_values"):
        known = "accepted values: [insert_zeros, skip]"
        raise illegal_request(f"Invalid gap policy: [{str(policy)[:100]}], {known}")
    return policy == "insert_zeros"


def _sibling(
    summary: Callable[[list[tuple[Any, float]]], Answer], kind: str = "simple_value"
) -> Callable[[str, Meta, Options], Pipeline]:
    def made(name: str, meta: Meta, options: Options) -> Pipeline:
        path, zeros = path_and_gaps(options)
        return Sibling(name, meta, path, summary, zeros, kind)

    return made


def _cumulative_sum(name: str, meta: Meta, options: Options) -> Pipeline:
    path, zeros = path_and_gaps(options)
    return CumulativeSum(name, meta, zeros, path)


def _serial_diff(name: str, meta: Meta, options: Options) -> Pipeline:
    lag = options.integer("lag", 1)
    if lag < 1:
        raise illegal_request(
            f"Lag must be a positive, non-zero integer.  Value supplied was[{lag}] for [{name}]."
        )
    path, zeros = path_and_gaps(options)
    return SerialDiff(name, meta, zeros, path, lag)


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
    zeros = gaps_as_zeros(options)
    options.done()
    if not keys and size < 0 and not start:
        raise illegal_request(
            f"[{name}] is configured to perform nothing. Please set either of [sort, size, from]"
        )
    return BucketSort(name, meta, zeros, tuple(keys), start, None if size < 0 else size)


def _extended(name: str, meta: Meta, options: Options) -> Pipeline:
    sigma = options.number("sigma", 2.0)
    path, zeros = path_and_gaps(options)
    if sigma is None or sigma < 0:
        raise illegal_request(f"[sigma] must be a non-negative double in [{name}]")
    return Sibling(name, meta, path, _extended_stats(sigma), zeros, "extended_stats_bucket")


def _percentiles_bucket(name: str, meta: Meta, options: Options) -> Pipeline:
    given, keyed = options.items("percents") or list(_PERCENTS), options.flag("keyed", True)
    path, zeros = path_and_gaps(options)
    try:
        percents = [float(percent) for percent in given]
    except (TypeError, ValueError) as error:
        raise options.unreadable("percents") from error
    if len(percents) > 1_000 or not all(0 <= percent <= 100 for percent in percents):
        raise illegal_request("percents must only contain non-null doubles from 0.0-100.0 inclusive")
    return Sibling(name, meta, path, _percentiles(percents, keyed), zeros, "percentiles_bucket")


_PERCENTS = (1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0)


def _normalize(name: str, meta: Meta, options: Options) -> Pipeline:
    method = required(options.text("method"), "method")
    if method not in _NORMALIZED:
        known = ", ".join(sorted(_NORMALIZED))
        raise illegal_argument(f"invalid method [{method[:100]}], expected one of [{known}]")
    path, zeros = path_and_gaps(options)
    return Normalize(name, meta, zeros, path, method)


def _moving(name: str, meta: Meta, options: Options) -> Pipeline:
    window, shift = options.integer("window", 0), options.integer("shift", 0)
    script = options.take("script")
    source = script.get("source") if isinstance(script, Mapping) else script
    path, zeros = path_and_gaps(options)
    if not 0 < window <= WINDOW_MAX:
        raise illegal_request("[window] must be a positive, non-zero integer.")
    if not isinstance(source, str):
        raise illegal_request("Required one of fields [script], but none were specified. ")
    return MovingFunction(name, meta, zeros, path, moving_function(source), window, shift)


OF_NEIGHBOURS = frozenset(
    {"cumulative_cardinality", "cumulative_sum", "derivative", "moving_fn", "serial_diff"}
)
"""Those that compare a bucket with the ones before it."""

OF_BUCKETS = frozenset({"bucket_script", "bucket_selector", "bucket_sort", "normalize"})
"""The others that stand in each bucket."""

PIPELINES: dict[str, Callable[[str, Meta, Options], Pipeline]] = {
    "avg_bucket": _sibling(_avg),
    "bucket_sort": _bucket_sort,
    "cumulative_sum": _cumulative_sum,
    "extended_stats_bucket": _extended,
    "max_bucket": _sibling(_extreme(max), "bucket_metric_value"),
    "min_bucket": _sibling(_extreme(min), "bucket_metric_value"),
    "moving_fn": _moving,
    "normalize": _normalize,
    "percentiles_bucket": _percentiles_bucket,
    "serial_diff": _serial_diff,
    "stats_bucket": _sibling(_stats, "stats_bucket"),
    "sum_bucket": _sibling(_sum),
}
