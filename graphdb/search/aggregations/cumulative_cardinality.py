"""`cumulative_cardinality`: how many distinct values there are in the buckets up to each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.search.aggregations.aggregation import Aggregation, Answer, SingleBucket
from graphdb.search.aggregations.approximate import Cardinality, DistinctCount
from graphdb.search.aggregations.buckets_path import answer_of
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.pipelines import Meta, OfValues, path_and_gaps
from graphdb.search.errors import SearchError

__all__ = ["CumulativeCardinality", "parse_cumulative_cardinality"]


@dataclass(frozen=True)
class CumulativeCardinality(OfValues):
    """Exact, as `cardinality` is: it reads which values each bucket has."""

    @property
    def typed(self) -> str:
        return "simple_long_value"

    def counting(self, children: Sequence[Aggregation]) -> tuple[Aggregation, ...]:
        """The aggregations beside it, where the one that it names keeps its values.

        Errors: aggregation_execution_exception where it names no cardinality.
        """
        return self._counting(children, self.path.split(">"))

    def _counting(self, children: Sequence[Aggregation], path: Sequence[str]) -> tuple[Aggregation, ...]:
        found = next((child for child in children if child.common.name == path[0]), None)
        if isinstance(found, Cardinality) and len(path) == 1:
            changed: Aggregation = replace(found, keeps_values=True)
        elif isinstance(found, SingleBucket) and len(path) > 1:
            below = self._counting(found.common.children, path[1:])
            changed = replace(found, common=replace(found.common, children=below))
        else:
            raise SearchError(
                "aggregation_execution_exception",
                f"buckets_path must reference a cardinality aggregation, got: [{self.path[:200]}] at "
                f"aggregation [{self.name}]",
                400,
            )
        return tuple(changed if child is found else child for child in children)

    def among(self, buckets: list[Answer]) -> list[Answer]:
        values: list[Any] = list(self._values(buckets))
        kept = [value.values for value in values if isinstance(value, DistinctCount)]
        seen = np.zeros(max((int(one.max(initial=-1)) for one in kept), default=-1) + 1, np.bool_)
        count = 0
        for bucket, value in zip(buckets, values, strict=True):
            if isinstance(value, DistinctCount):
                count += int(np.count_nonzero(~seen[value.values]))
                seen[value.values] = True
            self._put(bucket, count)
        return buckets

    def forget(self, buckets: list[Answer]) -> None:
        """Answers may be kept, and the values take more room than their count."""
        for bucket in buckets:
            counted: Any = bucket
            for name in self.path.split(">"):
                counted = answer_of(counted, name) if isinstance(counted, dict) else None
            if isinstance(counted, dict) and isinstance(counted.get("value"), DistinctCount):
                counted["value"] = int(counted["value"])


def parse_cumulative_cardinality(name: str, meta: Meta, options: Options) -> CumulativeCardinality:
    """Errors: SearchError."""
    path, zeros = path_and_gaps(options)
    return CumulativeCardinality(name, meta, zeros, path)
