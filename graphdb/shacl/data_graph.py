"""`DataGraph`: the graph of a store that is validated, asked through the engine."""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Final, TypeAlias

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store

from graphdb.model import GraphName
from graphdb.shacl.engine_terms import EngineFunctions
from graphdb.shacl.shacl_names import Term
from graphdb.store.engine_errors import request_failures
from graphdb.store.view import Subject

__all__ = ["UNION_GRAPH", "DataGraph", "DataGraphName", "UnionGraph", "graph_of_quads"]


class UnionGraph(Enum):
    """The name of what has none: all graphs of the store together."""

    UNION = "union"


UNION_GRAPH: Final = UnionGraph.UNION
DataGraphName: TypeAlias = NamedNode | UnionGraph | None
"""A named graph, the union of all graphs, or (None) the default graph."""


def graph_of_quads(name: DataGraphName) -> GraphName | None:
    """The same as `StoreView.quads_matching` wants it: None for the quads of all graphs."""
    return None if name is UNION_GRAPH else name or DefaultGraph()


class DataGraph:
    """Read-only. Everything that may take long is preceded by a call of check, which raises to end it.

    functions are what the texts may name beside what the engine has.
    """

    def __init__(self, store: Store, name: DataGraphName, check: Callable[[], None]) -> None:
        self.store, self.name, self._check = store, name, check
        self.functions = EngineFunctions()

    def instead(self, store: Store) -> "DataGraph":
        """The default graph of another store in the place of this graph."""
        other = DataGraph(store, None, self._check)
        other.functions = self.functions
        return other

    def select(self, text: str, **options: Any) -> Iterator[tuple[Term | None, ...]]:
        """The rows of a SELECT made for the engine. options are further ones of `pyoxigraph.Store.query`.

        Raises EvaluationFailed, and what check raises.
        """
        self._check()
        with request_failures():
            answer = self.store.query(
                text,
                use_default_graph_as_union=self.name is UNION_GRAPH,
                default_graph=self.name if isinstance(self.name, NamedNode) else None,
                custom_functions=dict(self.functions.by_name),
                **options,
            )
            assert isinstance(answer, QuerySolutions)
            for solution in answer:
                yield tuple(solution)

    def number(self, text: str) -> int:
        """The one number that a SELECT gives. Raises as `select`."""
        [[value]] = self.select(text)
        assert isinstance(value, Literal)
        return int(value.value)

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """See `graphdb.store.view.StoreView`."""
        return self.store.quads_for_pattern(subject, predicate, object_, graph)
