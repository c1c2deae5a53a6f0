"""`top_hits`: the best documents of each bucket. How hits are sorted and shown is the caller's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from graphdb.search.aggregations.base import Aggregation, Answer
from graphdb.search.aggregations.definition import Definition
from graphdb.search.aggregations.rows import Rows
from graphdb.search.aggregations.scope import Scope
from graphdb.search.errors import illegal_argument, illegal_request

__all__ = ["TopHits", "parse_top_hits"]

SIZE_MAX = 100  # index.max_inner_result_window


@dataclass(frozen=True)
class TopHits(Aggregation):
    """body is a search request without a query."""

    body: Mapping[str, Any]
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "top_hits"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        assert scope.top_hits is not None, "whoever runs aggregations says how hits are made"
        return [{"hits": hits} for hits in scope.top_hits(self.body, rows, scope)]


def parse_top_hits(definition: Definition) -> Aggregation:
    body = {"size": 3, **definition.options.rest()}
    window = _whole(body.get("from", 0)) + _whole(body["size"])
    if window > SIZE_MAX:
        raise illegal_argument(
            f"Top hits result window is too large, the top hits aggregator [{definition.name}]'s from + size "
            f"must be less than or equal to: [{SIZE_MAX}] but was [{window}]. This limit can be set by "
            "changing the [index.max_inner_result_window] index level setting."
        )
    return TopHits(definition.common, body)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise illegal_request("[from] and [size] must be whole numbers, not negative")
    return value
