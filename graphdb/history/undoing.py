"""Making the store of a state of the past from that of a later one."""

from collections.abc import Iterable

from pyoxigraph import Store

from graphdb.model import ChangeSet
from graphdb.store.apply import apply_changes
from graphdb.store.net_change import NetChange

__all__ = ["undo"]

_QUADS_AT_ONCE = 100_000  # that are held in memory, about 1 kB each


def undo(store: Store, changes: Iterable[ChangeSet], quads_at_once: int = _QUADS_AT_ONCE) -> None:
    """Take changes back, the last of which has led to the present state of the store, and comes first.

    Where it fails, some of them are taken back. Raises StorageFull, CorruptionError, and what changes raises.
    """
    net, quads = NetChange(), 0
    for change in changes:
        net.push(change.inverse)
        quads += change.affected_triples + len(change.created_graphs) + len(change.dropped_graphs)
        if quads >= quads_at_once:
            _apply(store, net)
            net, quads = NetChange(), 0
    _apply(store, net)


def _apply(store: Store, net: NetChange) -> None:
    if net:
        apply_changes(store, (net.to_change_set(),))
