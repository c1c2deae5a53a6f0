"""`Shape`: what every kind of shape can tell about the documents of its index."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pyoxigraph import Quad

from graphdb.search.following.plans import Plan

__all__ = ["Documents", "Selection", "Shape"]

Documents: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By `_id`."""


@dataclass(frozen=True, slots=True)
class Selection:
    """All documents that there are to be: their ids, and themselves where they came along with these."""

    ids: Sequence[str]
    documents: Documents | None = None


class Shape(Protocol):
    """It keeps nothing of what it was told."""

    def everything(self) -> Plan[Selection]:
        """All documents of the graph as it is."""

    def owners(self, quads: Iterable[Quad]) -> Plan[set[str] | None]:
        """Ids of all documents that may be other, new or gone since these quads were added or removed; those
        of none may be among them. None: perhaps all. To be asked of the graph after the change.
        """

    def documents(self, ids: Sequence[str]) -> Plan[Documents]:
        """Those of the ids that there is a document for."""
