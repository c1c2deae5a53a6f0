"""What an aggregation is: it answers for all the buckets that it stands in at once."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from graphdb.search.aggregations.rows import Rows
from graphdb.search.aggregations.scope import Scope
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.segment import Doubles

__all__ = ["Aggregation", "Answer", "Common", "Pipeline", "SingleBucket", "answers_below", "measure_below"]

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Common:
    """What every aggregation has beside its own parameters."""

    name: str
    meta: Mapping[str, Any] | None = None
    children: tuple["Aggregation", ...] = ()
    pipelines: tuple["Pipeline", ...] = ()


class Pipeline(ABC):
    """Works on answers instead of documents. Those beside others come after them, in the order given."""

    name: str
    meta: Mapping[str, Any] | None

    @abstractmethod
    def beside(self, answers: Answer) -> None:
        """Add to, or change, the answers of the aggregations that this one stands beside."""

    @abstractmethod
    def among(self, buckets: list[Answer]) -> list[Answer]:
        """The buckets of the aggregation that this one stands in, changed."""


@dataclass(frozen=True)
class Aggregation(ABC):
    """A node of the tree, parsed and checked against the mapping."""

    common: Common
    leaf_only: ClassVar[bool] = False  # metrics take no aggregations below

    @property
    @abstractmethod
    def typed(self) -> str:
        """The name of the answer's kind, for `typed_keys`."""

    @abstractmethod
    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        """One answer for each of rows.count buckets."""

    def measure(self, scope: Scope, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
        """One number for each bucket, to order buckets by. path leads to an aggregation further below."""
        raise SearchError(
            "aggregation_execution_exception",
            f"Invalid aggregation order path [{'>'.join([*path, metric])}]. Buckets can only be sorted on a "
            "sub-aggregator path that is built out of zero or more single-bucket aggregations within the "
            "path and a final single-bucket or a metrics aggregation at the path end.",
        )


@dataclass(frozen=True)
class SingleBucket(Aggregation):
    """One bucket in each that it stands in: filter, missing, global, nested."""

    @abstractmethod
    def narrowed(self, scope: Scope, rows: Rows) -> Rows:
        """Other documents for the same buckets."""

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        scope.count_buckets(rows.count)
        inner = self.narrowed(scope, rows)
        below = answers_below(scope, self.common, inner)
        return [{"doc_count": size, **sub} for size, sub in zip(inner.sizes().tolist(), below, strict=True)]

    def measure(self, scope: Scope, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
        inner = self.narrowed(scope, rows)
        if not path:
            if metric not in ("", "doc_count", "_count"):
                return super().measure(scope, rows, path, metric)
            return inner.sizes().astype(float)
        return measure_below(scope, self.common, inner, path, metric)


def answers_below(scope: Scope, common: Common, rows: Rows) -> list[Answer]:
    """For each bucket the answers of all aggregations that stand in it, by name."""
    found: list[Answer] = [{} for _ in range(rows.count)]
    if not common.children and not common.pipelines:
        return found
    for child in common.children:
        checkpoint()
        key = f"{child.typed}#{child.common.name}" if scope.typed_keys else child.common.name
        meta = {} if child.common.meta is None else {"meta": child.common.meta}
        for target, answer in zip(found, child.answers(scope, rows), strict=True):
            target[key] = {**meta, **answer}
    for pipeline in common.pipelines:
        for target in found:
            pipeline.beside(target)
    return found


def measure_below(scope: Scope, common: Common, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
    """The numbers of the aggregation that a path names, for each bucket."""
    for child in common.children:
        if child.common.name == path[0]:
            return child.measure(scope, rows, path[1:], metric)
    known = [child.common.name for child in common.children]
    raise illegal_argument(
        f"Invalid aggregator order path [{'>'.join(path)}]. The provided aggregation [{path[0]}] either does "
        f"not exist, or is a pipeline aggregation and cannot be used to sort the buckets. Known: {known}"
    )
