"""What may stand between the steps of a search: the members of a request that are not Elasticsearch's."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from graphdb.access.principal import Principal
from graphdb.search.multi import Prepared, Target
from graphdb.search.results.selection import Found

__all__ = ["SearchStage", "StageOf"]


class SearchStage(Protocol):
    """For one request; called in this order, on the event loop. Raises SearchError."""

    async def expand(self, body: Mapping[str, Any], targets: Sequence[Target]) -> Mapping[str, Any]:
        """The request to parse instead of this one."""

    async def narrow(self, prepared: Prepared, found: Found) -> Found:
        """The candidates without those that do not count, or with other scores."""

    async def enrich(self, prepared: Prepared, answer: dict[str, Any]) -> None:
        """Add to the answer."""


StageOf: TypeAlias = Callable[[Mapping[str, Any], Principal], SearchStage | None]
"""The stage that the body of a request asks for, None for most."""
