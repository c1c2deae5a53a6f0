"""One aggregation of a request, taken apart as far as all kinds have it in common."""

from dataclasses import dataclass, replace

from graphdb.search.aggregations.base import Common
from graphdb.search.aggregations.options import Options
from graphdb.search.query import QueryContext

__all__ = ["Definition"]


@dataclass(frozen=True, slots=True)
class Definition:
    """kind is what the request calls it; options are its own parameters."""

    kind: str
    common: Common
    options: Options
    context: QueryContext

    @property
    def name(self) -> str:
        return self.common.name

    def with_options(self, options: Options) -> "Definition":
        """The same for a part that names a field of its own."""
        return replace(self, options=options)
