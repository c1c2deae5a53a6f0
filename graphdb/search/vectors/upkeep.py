"""Which graphs are missing, and making them: work for a background thread of whoever owns the shards."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping import Mapping
from graphdb.search.segment import Floats, Leaf, Segment
from graphdb.search.vectors.building import build_graph
from graphdb.search.vectors.graph import MAGNITUDE_MAX, GraphShape
from graphdb.search.vectors.graph_files import GraphFiles
from graphdb.search.vectors.nearest import GRAPH_KEY

__all__ = ["ROWS_MIN", "GraphJob", "keep_graphs", "missing_graphs", "remove_stale"]

ROWS_MIN = 5_000  # fewer are scored in less than a millisecond


@dataclass(frozen=True, slots=True)
class GraphJob:
    """One graph to make."""

    segment: Segment
    path: str
    shape: GraphShape

    def run(self, files: GraphFiles | None, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Read the graph or build and save it; searches use it from then on. Whether there is one now.

        Safe beside searches, writes, refreshes, flushes and merges; one that is stopped leaves no trace.
        files None: of an index in memory.
        """
        rows = self._rows()
        graph = files and files.load(self.segment.name, self.path, rows, self.shape)
        if graph is None:
            graph = build_graph(rows, self.shape, stopped, _threads())
            if graph is None:
                return False
            if files is not None:
                files.save(self.segment.name, self.path, graph, rows)
        self.segment.derived[GRAPH_KEY, self.path] = graph
        return True

    def _rows(self) -> Floats:
        column = self.segment.vectors(self.path)
        assert column is not None
        return column.rows


def missing_graphs(leaves: Sequence[Leaf], mapping: Mapping, rows_min: int = ROWS_MIN) -> list[GraphJob]:
    """What is to be made for the leaves of a shard, or of a merged segment that is not adopted yet."""
    return [
        GraphJob(leaf.segment, spec.path, _shape(spec))
        for leaf in leaves
        for spec in _vector_fields(mapping)
        if (GRAPH_KEY, spec.path) not in leaf.segment.derived and _worth_it(leaf.segment, spec, rows_min)
    ]


def keep_graphs(
    leaves: Sequence[Leaf],
    mapping: Mapping,
    files: GraphFiles | None,
    stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Make all that is missing; how many were made."""
    made = 0
    for job in missing_graphs(leaves, mapping):
        if stopped() or not job.run(files, stopped):
            break
        made += 1
    return made


def remove_stale(leaves: Sequence[Leaf], files: GraphFiles) -> None:
    """Remove the files of segments that are gone."""
    files.remove_all_but({leaf.segment.name for leaf in leaves})


def _vector_fields(mapping: Mapping) -> Iterator[FieldSpec]:
    """Those that a graph is kept for: indexed, and not of a flat type."""
    for spec in mapping.match("*"):
        if spec.storage is Storage.VECTORS and spec.indexed:
            options = spec.options.get("index_options") or {}
            if not str(options.get("type", "hnsw")).endswith("flat"):
                yield spec


def _shape(spec: FieldSpec) -> GraphShape:
    options = spec.options.get("index_options") or {}
    given = {name: options[name] for name in ("m", "ef_construction") if name in options}
    return GraphShape(spec.options["similarity"], **given)


def _worth_it(segment: Segment, spec: FieldSpec, rows_min: int) -> bool:
    column = segment.vectors(spec.path)
    if column is None or len(column.docs) < rows_min:
        return False
    return bool(max(np.max(column.rows), -np.min(column.rows)) < MAGNITUDE_MAX)


def _threads() -> int:
    """Half of the cores: searches go on meanwhile."""
    return max(1, (os.cpu_count() or 1) // 2)
