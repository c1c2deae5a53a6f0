"""Vectors: the nearest ones of a segment, exactly or by a graph. See DESIGN.md."""

from graphdb.search.vectors.graph import Graph, GraphShape, build_graph
from graphdb.search.vectors.metric import Metric, of_usual_length
from graphdb.search.vectors.nearest import (
    Sought,
    VectorRows,
    attach_graph,
    graph_of,
    graphs_of,
    nearest_in,
    nearest_ns_max,
)
from graphdb.search.vectors.row_set import RowSet
from graphdb.search.vectors.sizes import VectorSizes, vector_sizes
from graphdb.search.vectors.upkeep import (
    GraphFiles,
    GraphJob,
    graph_bytes,
    keep_graphs,
    missing_graphs,
    read_graph,
    remove_stale,
)

__all__ = [
    "Graph",
    "GraphFiles",
    "GraphJob",
    "GraphShape",
    "Metric",
    "RowSet",
    "Sought",
    "VectorRows",
    "VectorSizes",
    "attach_graph",
    "build_graph",
    "graph_bytes",
    "graph_of",
    "graphs_of",
    "keep_graphs",
    "missing_graphs",
    "nearest_in",
    "nearest_ns_max",
    "of_usual_length",
    "read_graph",
    "remove_stale",
    "vector_sizes",
]
