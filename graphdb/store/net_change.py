"""Composing ChangeSets: the net effect of one change after another."""

from typing import TypeVar

from pyoxigraph import Quad

from graphdb.model import ChangeSet, NamedGraph

__all__ = ["NetChange", "compose"]

T = TypeVar("T")


class NetChange:
    """The net effect of the changes pushed so far, each real after those before it.

    What is removed and added again, or added and removed again, is in neither. Order of first appearance is
    kept.
    """

    def __init__(self) -> None:
        # dictionaries, because a set has no order that is the same in every run
        self.removed: dict[Quad, None] = {}
        self.added: dict[Quad, None] = {}
        self.dropped_graphs: dict[NamedGraph, None] = {}
        self.created_graphs: dict[NamedGraph, None] = {}

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.dropped_graphs or self.created_graphs)

    def push(self, change: ChangeSet) -> None:
        """Take in the next change. A push costs as much as the change has quads."""
        for quad in change.removed:
            _note(quad, self.removed, self.added)
        for quad in change.added:
            _note(quad, self.added, self.removed)
        for graph in change.dropped_graphs:
            _note(graph, self.dropped_graphs, self.created_graphs)
        for graph in change.created_graphs:
            _note(graph, self.created_graphs, self.dropped_graphs)

    def push_quad(self, quad: Quad, *, removes: bool) -> None:
        """Take in the next change, which is of one quad."""
        if removes:
            _note(quad, self.removed, self.added)
        else:
            _note(quad, self.added, self.removed)

    def to_change_set(self) -> ChangeSet:
        """The net effect as it stands."""
        return ChangeSet(
            tuple(self.removed), tuple(self.added), tuple(self.dropped_graphs), tuple(self.created_graphs)
        )


def compose(*changes: ChangeSet) -> ChangeSet:
    """The one change that does what these do one after the other."""
    net = NetChange()
    for change in changes:
        net.push(change)
    return net.to_change_set()


def _note(item: T, doing: dict[T, None], undoing: dict[T, None]) -> None:
    """Record one effect, unless it takes back an earlier one."""
    if item in undoing:
        del undoing[item]
    else:
        doing[item] = None
