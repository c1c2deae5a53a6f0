"""`cardinality`: how many distinct values there are. Exact, whatever `precision_threshold` allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphdb.search.aggregations.base import Aggregation, Answer
from graphdb.search.aggregations.definition import Definition
from graphdb.search.aggregations.rows import Rows, cells_of
from graphdb.search.aggregations.scope import Scope
from graphdb.search.aggregations.sources import COMPARABLE, Source
from graphdb.search.errors import illegal_request
from graphdb.search.segment import Doubles

__all__ = ["Cardinality", "parse_cardinality"]


@dataclass(frozen=True)
class Cardinality(Aggregation):
    """Distinct values by bucket."""

    source: Source
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "cardinality"

    def measure(self, scope: Scope, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
        if path or metric not in ("", "value"):
            return super().measure(scope, rows, path, metric)
        members, numbers, _ = self.source.keyed(scope, rows.docs)
        found = cells_of(rows, members, numbers)
        return np.bincount(found.owners, minlength=rows.count).astype(np.float64)

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        return [{"value": int(number)} for number in self.measure(scope, rows, (), "").tolist()]


def parse_cardinality(definition: Definition) -> Aggregation:
    options = definition.options
    threshold = options.integer("precision_threshold", 3000)
    if threshold < 0:
        raise illegal_request(
            f"[precisionThreshold] must be greater than or equal to 0. Found [{threshold}] in "
            f"[{definition.name}]"
        )
    options.ignore("execution_hint", "rehash")
    source = Source.parse(definition, COMPARABLE)
    options.done()
    return Cardinality(definition.common, source)
