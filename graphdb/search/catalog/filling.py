"""Indexes that a node fills with the documents of another: half of one looks like a whole one.

Which node fills an index is one of its settings (`index_settings.FILLED_BY`), made and taken away by log
entries. Which ones it fills now, only the node knows; it has forgotten them when it starts again.
"""

from collections.abc import Set

from graphdb.search.catalog.index_settings import FILLED_BY
from graphdb.search.catalog.state import CatalogState, Index

__all__ = ["is_filled", "left_unfilled", "left_working"]


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
