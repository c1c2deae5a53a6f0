"""Vectors: the nearest ones of a segment, exactly or by a graph. See DESIGN.md."""

from graphdb.search.vectors.graph import Graph, GraphShape
from graphdb.search.vectors.graph_files import GraphFiles
from graphdb.search.vectors.metric import Metric
from graphdb.search.vectors.nearest import Sought, nearest_in
from graphdb.search.vectors.upkeep import GraphJob, keep_graphs, missing_graphs, remove_stale

__all__ = [
    "Graph",
    "GraphFiles",
    "GraphJob",
    "GraphShape",
    "Metric",
    "Sought",
    "keep_graphs",
    "missing_graphs",
    "nearest_in",
    "remove_stale",
]
