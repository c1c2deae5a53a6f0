"""`GraphQLGraph`: a store in memory with the schema of a Turtle text, asked in GraphQL through the gate."""

from collections.abc import Mapping
from typing import Any

from pyoxigraph import QueryResultsFormat, QuerySolutions, RdfFormat, Store, parse

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded
from graphdb.graphql.failures import Limits, Refused, too_large
from graphdb.graphql.model import Model
from graphdb.graphql.modelling import combined, model_of
from graphdb.graphql.planning import plan, read_operation
from graphdb.graphql.schema import schema_of
from graphdb.graphql.schema_sources import read_ontology, read_shapes
from graphdb.planning.gate import check, read_query
from graphdb.shacl.shapes_graph import ShapesGraph

__all__ = ["PREFIXES", "GraphQLGraph", "model_from"]

PREFIXES = """
PREFIX : <http://e/>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX sh: <http://www.w3.org/ns/shacl#>
"""


def model_from(turtle: str) -> Model:
    """The model of an ontology and shapes; the prefixes are those above."""
    triples = [quad.triple for quad in parse(PREFIXES + turtle, format=RdfFormat.TURTLE)]
    graph = ShapesGraph(triples)
    return model_of(combined(read_ontology(graph), read_shapes(graph)))


class GraphQLGraph:
    """Keeps the SPARQL that it asked in `asked`."""

    def __init__(self, turtle: str, data: str = "", limits: Limits | None = None) -> None:
        self.model = model_from(turtle)
        self.schema = schema_of(self.model)
        self.limits = limits or Limits()
        self.store = Store()
        self.asked: list[str] = []
        if data:
            self.store.update(f"{PREFIXES} INSERT DATA {{ {data} }}")

    def ask(
        self, text: str, variables: Mapping[str, Any] | None = None, operation_name: str | None = None
    ) -> dict[str, Any]:
        """The answer as JSON has it."""
        try:
            made = plan(read_operation(self.schema, text, variables, operation_name, self.limits))
        except Refused as refused:
            return {"errors": [one.formatted for one in refused.errors]}
        try:
            rows = self._rows(made.query)
        except LimitExceeded as error:
            return {"errors": [too_large(error).formatted]}
        return dict(made.answer(rows).formatted)

    def data(self, text: str, variables: Mapping[str, Any] | None = None) -> Any:
        """The answer's data; there must be no errors."""
        found = self.ask(text, variables)
        assert "errors" not in found, found["errors"]
        return found["data"]

    def codes(self, text: str, variables: Mapping[str, Any] | None = None) -> list[str | None]:
        """The codes of an answer's errors."""
        found = self.ask(text, variables)
        return [one.get("extensions", {}).get("code") for one in found.get("errors", [])]

    def _rows(self, query: str | None) -> bytes:
        if query is None:
            return b""
        self.asked.append(query)
        limits = GateLimits()
        check(read_query(query, None, limits), limits)
        found = self.store.query(query)
        assert isinstance(found, QuerySolutions)
        return found.serialize(format=QueryResultsFormat.TSV) or b""
