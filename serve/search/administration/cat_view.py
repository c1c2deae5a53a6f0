"""`CatView`: what the listings of `_cat` are made of, and `Listing`: one of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from graphdb.node import NodeStatus
from graphdb.search.catalog.index import Index
from serve.search.administration.cat_table import Column, Row
from serve.search.administration.shard_health import nodes_reached
from serve.search.backend import SearchBackend
from serve.search.frame.identity import Identity
from serve.search.frame.parameters import Parameters

__all__ = ["CatView", "Listing"]


@dataclass(frozen=True)
class CatView:
    """One request to list something. names: what stands behind the listing's name in the path."""

    node: SearchBackend
    identity: Identity
    indexes: Sequence[Index]  # that the request names; all where it names none
    names: str | None
    parameters: Parameters

    @cached_property
    def status(self) -> NodeStatus:
        return self.node.status()

    @cached_property
    def nodes(self) -> int:
        """That can be reached."""
        return nodes_reached(self.status)


@dataclass(frozen=True, slots=True)
class Listing:
    """name as in the path. by: what may stand behind it, as the specification says; parameters: its own."""

    name: str
    columns: Sequence[Column]
    rows: Callable[[CatView], Iterable[Row]]
    by: str | None = None
    parameters: str = ""
