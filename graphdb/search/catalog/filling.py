"""Indexes that a node fills with the documents of another: half of one looks like a whole one.

Which node fills an index is one of its settings (`index_settings.FILLED_BY`), made and taken away by log
entries. Which ones it fills now, only the node knows; it has forgotten them when it starts again. What a node
had begun that does not come back, the node that leads ends after a while.
"""

from collections.abc import Iterable, Set

from graphdb.search.catalog.index_settings import FILLED_BY
from graphdb.search.catalog.state import CatalogState, Index

__all__ = ["AwayNodes", "filling_nodes", "is_filled", "left_unfilled", "left_working"]


def is_filled(index: Index) -> bool:
    """Whether it has all documents that it was made for."""
    return FILLED_BY not in index.settings


def left_unfilled(state: CatalogState, node_id: int, filling: Set[str]) -> list[Index]:
    """Those that the node began to fill and does not any more. filling: uuids of what it fills now."""
    return [
        index
        for uuid, index in state.by_uuid.items()
        if index.settings.get(FILLED_BY) == str(node_id) and uuid not in filling
    ]


def left_working(state: CatalogState, node_id: int, filling: Set[str]) -> list[str]:
    """Of work on snapshots that the node began and does not do any more. filling: uuids of what it does."""
    return [
        uuid for uuid, work in state.snapshot_work.items() if work["node"] == node_id and uuid not in filling
    ]


def filling_nodes(state: CatalogState) -> set[int]:
    """The numbers of all nodes that fill an index or work on a snapshot, as the log has it."""
    filled_by = (index.settings.get(FILLED_BY) for index in state.by_uuid.values())
    nodes = {int(node) for node in filled_by if node is not None}
    return nodes | {work["node"] for work in state.snapshot_work.values()}


class AwayNodes:
    """Which nodes have not been reached for a time. It counts from the first look that misses one."""

    def __init__(self, away_s: float) -> None:
        self._away_s = away_s
        self._since_s: dict[int, float] = {}

    def look(self, meant: Iterable[int], reached: Set[int], now_s: float) -> list[int]:
        """Those of the nodes meant that are away so long, ascending. now_s: of a monotonic clock."""
        missed = sorted(set(meant) - reached)
        self._since_s = {node: self._since_s.get(node, now_s) for node in missed}
        return [node for node in missed if now_s - self._since_s[node] >= self._away_s]
