"""The RDF dataset that a query or an update's WHERE is read against."""

from dataclasses import dataclass

from pyoxigraph import NamedNode

__all__ = ["Dataset"]


@dataclass(frozen=True, slots=True)
class Dataset:
    """Graphs named by the protocol's parameters (SPARQL 1.1 Protocol, section 2.1.4).

    default_graphs are merged into the default graph, named_graphs can be reached by GRAPH. When either is
    given, the other's absence means empty. The protocol's dataset overrides FROM and FROM NAMED of the query.
    """

    default_graphs: tuple[NamedNode, ...] = ()
    named_graphs: tuple[NamedNode, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.default_graphs or self.named_graphs)
