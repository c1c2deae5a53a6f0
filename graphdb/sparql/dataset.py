"""The RDF dataset that a query or an update's WHERE is read against."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode

if TYPE_CHECKING:
    from graphdb.sparql.algebra import AbstractQuery
    from graphdb.sparql.syntax import Query

__all__ = ["Dataset", "own_dataset"]


@dataclass(frozen=True, slots=True)
class Dataset:
    """Graphs named by the protocol's parameters (SPARQL 1.1 Protocol, section 2.1.4).

    default_graphs are merged into the default graph, named_graphs can be reached by GRAPH. When either is
    given, the other's absence means empty. The protocol's dataset overrides FROM and FROM NAMED of the query.
    """

    default_graphs: tuple[NamedNode, ...] = ()
    named_graphs: tuple[NamedNode, ...] = ()

    @property
    def graphs(self) -> tuple[NamedNode, ...]:
        return self.default_graphs + self.named_graphs

    def __bool__(self) -> bool:
        return bool(self.default_graphs or self.named_graphs)


def own_dataset(query: "Query | AbstractQuery") -> Dataset:
    """The FROM and FROM NAMED clauses of a query that name graphs, as a dataset."""
    return Dataset(
        tuple(NamedNode(clause.graph.value) for clause in query.graph_clauses if not clause.named),
        tuple(NamedNode(clause.graph.value) for clause in query.graph_clauses if clause.named),
    )
