"""Which queries give the same answer again on the same state of the store."""

from graphdb.sparql.algebra import Service
from graphdb.sparql.patterns import BuiltInCall
from graphdb.sparql.syntax import Query
from graphdb.sparql.translation import abstract_query
from graphdb.sparql.tree_walk import nodes_of

__all__ = ["is_repeatable"]

_DIFFERS_EACH_TIME = frozenset({"BNODE", "NOW", "RAND", "STRUUID", "UUID"})


def is_repeatable(query: Query) -> bool:
    """Whether an answer stays right for as long as the state does, so that it may be kept.

    It does not where a function of the clock, of chance or of fresh blank nodes is called, or another
    service is. The labels of blank nodes, and the order of rows where none is asked for, may differ.
    """
    for node in nodes_of(abstract_query(query)):
        match node:
            case Service():
                return False
            case BuiltInCall(name=name) if name in _DIFFERS_EACH_TIME:
                return False
    return True
