"""Making the store of a state from that of another one, by the changes between the two."""

from collections.abc import Iterable

from pyoxigraph import Store

from graphdb.history.past_log import PastLog
from graphdb.model import ChangeSet
from graphdb.store.apply import apply_changes
from graphdb.store.net_change import NetChange

__all__ = ["lead"]

_QUADS_AT_ONCE = 100_000  # that are held in memory, about 1 kB each


def lead(
    store: Store, log: PastLog, from_index: int, to_index: int, quads_at_once: int = _QUADS_AT_ONCE
) -> None:
    """Lead a store from the state at one log index to that at another, an earlier or a later one.

    Where it fails, it may be between the two. Raises HistoryForgotten, StorageFull, CorruptionError,
    LogUnavailable.
    """
    is_back = to_index < from_index
    first, last = (to_index + 1, from_index) if is_back else (from_index + 1, to_index)
    changes = (past.change for past in log.changes_between(first, last, newest_first=is_back))
    # change sets are exact: so the inverse of the last one leads to the state before it
    _apply(store, (change.inverse for change in changes) if is_back else changes, quads_at_once)


def _apply(store: Store, changes: Iterable[ChangeSet], quads_at_once: int) -> None:
    """The net effect of some at a time."""
    net, quads = NetChange(), 0
    for change in changes:
        net.push(change)
        quads += change.affected_triples + len(change.created_graphs) + len(change.dropped_graphs)
        if quads >= quads_at_once:
            _apply_net(store, net)
            net, quads = NetChange(), 0
    _apply_net(store, net)


def _apply_net(store: Store, net: NetChange) -> None:
    if net:
        apply_changes(store, (net.to_change_set(),))
