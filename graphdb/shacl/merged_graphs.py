"""Several named graphs as the one graph that is validated, or that the shapes are in.

Those that do not exist hold nothing, so a name that nothing was written to yet is no error.
"""

from collections.abc import Iterable, Iterator

from pyoxigraph import NamedNode, Quad, Store, Triple

from graphdb.shacl.data_graph import DataGraphName

__all__ = ["merged_graphs", "merged_triples"]


def merged_graphs(graphs: Iterable[NamedNode], store: Store) -> tuple[Store, DataGraphName]:
    """A store, and the graph of it that holds what the graphs hold together, each triple once.

    Where more than one exists it is a copy in memory: of a triple in two the engine would find two.
    """
    found = [graph for graph in graphs if store.contains_named_graph(graph)]
    if len(found) == 1:
        return store, found[0]
    merged = Store()
    merged.bulk_extend(Quad(*triple) for triple in merged_triples(found, store))
    return merged, None


def merged_triples(graphs: Iterable[NamedNode], store: Store) -> Iterator[Triple]:
    """The triples of the graphs; one that stands in two comes twice."""
    for graph in graphs:
        for quad in store.quads_for_pattern(None, None, None, graph):
            yield quad.triple
