"""`Suggestion`: what every suggester is to a search; what the suggesters of words share."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec
from graphdb.search.query import QueryContext

__all__ = [
    "MODES",
    "SIZE_MAX",
    "Show",
    "Suggestion",
    "checked_frequencies",
    "checked_size",
    "suggested_field",
]

SIZE_MAX = 1_000  # options of one entry
MODES = ("missing", "popular", "always")


Show: TypeAlias = Callable[[int, float], dict[str, Any]]
"""A document, by its number, as a hit with a score."""


class Suggestion(Protocol):
    """One part of `suggest`. kind: the suggester, by the name that requests use."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    def entries(self, scope: Scope, show: Show) -> list[dict[str, Any]]:
        """The same in every shard."""


def suggested_field(path: str | None, context: QueryContext) -> FieldSpec:
    """Errors: SearchError where a suggester names no field, or one that is not mapped."""
    if path is None:
        raise illegal_request("the required field option is missing")
    spec = context.mapping.field(path)
    if spec is None:
        raise illegal_argument(f"no mapping found for field [{path[:100]}]")
    return spec


def checked_size(size: int) -> int:
    """Errors: SearchError."""
    if not 1 <= size <= SIZE_MAX:
        raise illegal_request(f"size must be positive, and at most [{SIZE_MAX}]")
    return size


def checked_frequencies(*frequencies: float | None) -> list[float]:
    """Of documents: a number of them, or a part of them up to 1."""
    for frequency in frequencies:
        if frequency is None or frequency < 0 or (frequency > 1 and frequency != int(frequency)):
            raise illegal_request(f"a frequency is a part up to 1, or a whole number, not [{frequency}]")
    return [float(frequency or 0) for frequency in frequencies]
