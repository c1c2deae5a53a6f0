"""Pipelines that run a script for each bucket: `bucket_script` computes, `bucket_selector` chooses."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphdb.search.aggregations.aggregation import Answer, Pipeline
from graphdb.search.aggregations.buckets_path import in_bucket
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.pipelines import gaps_as_zeros
from graphdb.search.aggregations.value_sources import DecimalPattern, json_number
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import illegal_request, parsing
from graphdb.search.scripts.faults import class_cast
from graphdb.search.scripts.script import VALUES, Script, parse_script

__all__ = ["BUCKET_SCRIPTS"]

Meta = Mapping[str, Any] | None
_PATHS_MAX = 100


@dataclass(frozen=True)
class _Inputs:
    """paths: what the script finds in `params`, by name."""

    script: Script
    paths: Mapping[str, str]
    zeros: bool

    def run(self, bucket: Answer) -> Any:
        """What the script returns; None where a value is a gap."""
        values = {name: in_bucket(bucket, path, self.zeros) for name, path in self.paths.items()}
        if None in values.values():
            return None
        checkpoint()
        numbers = {name: float(value) for name, value in values.items() if value is not None}
        return self.script.run({"params": {**self.script.params, **numbers}})


@dataclass(frozen=True)
class BucketScript(Pipeline):
    """A number of each bucket."""

    name: str
    meta: Meta
    inputs: _Inputs
    pattern: DecimalPattern | None = None

    def beside(self, answers: Answer) -> None:
        """Nothing: it works among buckets."""

    def among(self, buckets: list[Answer]) -> list[Answer]:
        for bucket in buckets:
            value = self.inputs.run(bucket)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise self.inputs.script.error(class_cast("series_arithmetic script must return a number"))
            shown: dict[str, Any] = {} if self.meta is None else {"meta": self.meta}
            shown["value"] = json_number(float(value))
            if self.pattern is not None and math.isfinite(value):
                shown["value_as_string"] = self.pattern.write(float(value))
            bucket[self.name] = shown
        return buckets


@dataclass(frozen=True)
class BucketSelector(Pipeline):
    """The buckets for which the script is true. One with a gap is none of them."""

    name: str
    meta: Meta
    inputs: _Inputs

    def beside(self, answers: Answer) -> None:
        """Nothing: it works among buckets."""

    def among(self, buckets: list[Answer]) -> list[Answer]:
        return [bucket for bucket in buckets if self._keeps(bucket)]

    def _keeps(self, bucket: Answer) -> bool:
        value = self.inputs.run(bucket)
        if self.inputs.script.lang == "expression" and isinstance(value, float):
            return value == 1.0
        if value is not None and not isinstance(value, bool):
            raise self.inputs.script.error(class_cast("bucket_selector script must return a boolean"))
        return bool(value)


def _inputs(name: str, options: Options) -> _Inputs:
    given, script = options.take("buckets_path"), options.take("script")
    if given is None or script is None:
        missing = "buckets_path" if given is None else "script"
        raise illegal_request(f"Missing required field [{missing}] for aggregation [{name}]")
    if isinstance(given, str):
        given = {"_value": given}
    elif isinstance(given, list):
        given = {f"_value{place}": path for place, path in enumerate(given)}
    if not isinstance(given, Mapping) or not all(isinstance(path, str) for path in given.values()):
        raise parsing(f"[buckets_path] of [{name}] must be an object of paths")
    if len(given) > _PATHS_MAX:
        raise illegal_request(f"[buckets_path] of [{name}] takes at most [{_PATHS_MAX}] paths")
    return _Inputs(parse_script(script, VALUES), dict(given), gaps_as_zeros(options))


def _bucket_script(name: str, meta: Meta, options: Options) -> Pipeline:
    shape = options.text("format")
    inputs = _inputs(name, options)
    options.done()
    return BucketScript(name, meta, inputs, None if shape is None else DecimalPattern.of(shape))


def _bucket_selector(name: str, meta: Meta, options: Options) -> Pipeline:
    inputs = _inputs(name, options)
    options.done()
    return BucketSelector(name, meta, inputs)


BUCKET_SCRIPTS: dict[str, Callable[[str, Meta, Options], Pipeline]] = {
    "bucket_script": _bucket_script,
    "bucket_selector": _bucket_selector,
}
