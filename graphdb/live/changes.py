"""The changes of the log as they are handed on: what each is, which part of it a client asked for, and the
lines that a client gets.
"""

from dataclasses import dataclass
from typing import Any

import orjson
from pyoxigraph import BlankNode, Quad

from graphdb.model import ChangeSet, GraphName, NamedGraph
from graphdb.timestamps import iso_timestamp

__all__ = ["ChangeFilter", "LoggedChange", "change_json", "change_members", "position_json"]


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """What one entry of the log changed, or a piece of it: a large change comes in several."""

    index: int
    timestamp_ms: int  # Unix epoch, the writer's clock; nothing is ordered by it
    change: ChangeSet
    is_last: bool = True  # of the entry at index


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which quads of a change are asked for; None: all."""

    graphs: frozenset[GraphName] | None = None
    predicates: frozenset[str] | None = None

    def part_of(self, change: ChangeSet) -> ChangeSet:
        """The change as far as it is asked for; one by predicate has no graphs."""
        if self.graphs is None and self.predicates is None:
            return change
        return change.part(self._takes, self._takes_graph)

    def _takes(self, quad: Quad) -> bool:
        return (self.predicates is None or quad.predicate.value in self.predicates) and (
            self.graphs is None or quad.graph_name in self.graphs
        )

    def _takes_graph(self, name: NamedGraph) -> bool:
        return self.predicates is None and (self.graphs is None or name in self.graphs)


def change_json(logged: LoggedChange) -> bytes:
    """One object: index, timestamp, removed and added (N-Quads statements), dropped_graphs, created_graphs;
    where more pieces of the same entry follow, `more` is true.
    """
    found: dict[str, Any] = {
        "index": logged.index,
        "timestamp": iso_timestamp(logged.timestamp_ms),
        **change_members(logged.change),
    }
    if not logged.is_last:
        found["more"] = True
    return orjson.dumps(found)


def change_members(change: ChangeSet) -> dict[str, list[str]]:
    """What a change has, as JSON has it: statements of N-Quads, and names of graphs."""
    return {
        "removed": [f"{quad} ." for quad in change.removed],
        "added": [f"{quad} ." for quad in change.added],
        "dropped_graphs": [_graph_name(graph) for graph in change.dropped_graphs],
        "created_graphs": [_graph_name(graph) for graph in change.created_graphs],
    }


def position_json(index: int) -> bytes:
    """The object that says: up to here nothing more was asked for."""
    return b'{"index":%d}' % index


def _graph_name(graph: NamedGraph) -> str:
    return f"_:{graph.value}" if isinstance(graph, BlankNode) else graph.value
