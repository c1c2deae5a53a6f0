"""What a portal may ask, and of which graphs."""

from collections.abc import Iterable

from pyoxigraph import NamedNode

from graphdb.config.limits import GateLimits
from graphdb.errors import InvalidParameter
from graphdb.holonic.names import Layer
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.gate import read_query
from graphdb.sparql.syntax import Query

__all__ = ["check_construct", "read_construct", "source_dataset"]


def read_construct(text: str, limits: GateLimits) -> Query:
    """The query of a portal; IRIs in it are absolute, or it brings a base of its own.

    It is still to be checked by the store's owner. Raises QuerySyntaxError, LimitExceeded, InvalidParameter.
    """
    query = read_query(text, None, limits)
    check_construct(query)
    return query


def check_construct(query: Query) -> None:
    """Raises InvalidParameter for a query that is no CONSTRUCT, or that names graphs to read by itself."""
    if query.form != "CONSTRUCT":
        raise InvalidParameter("construct_query", f"is a {query.form} query; a portal takes CONSTRUCT")
    if query.dataset:
        raise InvalidParameter("construct_query", "has FROM; a portal reads the layers of its source")


def source_dataset(graphs: Iterable[tuple[Layer, str]], interior: NamedNode) -> Dataset:
    """What a portal reads: the graphs of all layers by name, those of the interior as the default graph.

    interior is the graph that the interior has at least, be it empty: a dataset without graphs would be the
    whole store.
    """
    graphs = [(Layer.INTERIOR, interior.value), *graphs]
    return Dataset(
        _named(graph for layer, graph in graphs if layer is Layer.INTERIOR),
        _named(graph for _, graph in graphs),
    )


def _named(graphs: Iterable[str]) -> tuple[NamedNode, ...]:
    return tuple(map(NamedNode, dict.fromkeys(graphs)))
