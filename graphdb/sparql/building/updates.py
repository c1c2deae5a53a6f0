"""Update operations, and the rules on what data and templates may hold."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from graphdb.sparql.building.queries import QueryBuilder
from graphdb.sparql.building.terms import RDF
from graphdb.sparql.syntax import (
    AddGraph,
    ClearGraph,
    CopyGraph,
    CreateGraph,
    DatasetClause,
    DeleteData,
    DeleteWhere,
    DropGraph,
    GraphTarget,
    InsertData,
    Load,
    Modify,
    MoveGraph,
    Operation,
    QuadPattern,
    Update,
)
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm, RdfLiteral, Span, TripleTerm, Variable

__all__ = ["UpdateBuilder"]

_TAGGED = frozenset((RDF + "langString", RDF + "dirLangString"))


class Block(NamedTuple):
    """Quads between braces, and where the braces are; None for a block that the grammar did not see."""

    quads: tuple[QuadPattern, ...] | None
    span: Span


def _terms(quads: Sequence[QuadPattern]) -> Iterator[PatternTerm]:
    """All terms of the quads, those within triple terms too."""
    for quad in quads:
        waiting: list[PatternTerm | None] = [quad.subject, quad.predicate, quad.object, quad.graph]
        while waiting:
            term = waiting.pop()
            if isinstance(term, TripleTerm):
                waiting.extend((term.subject, term.predicate, term.object))
            elif term is not None:
                yield term


def _subjects(quads: Sequence[QuadPattern]) -> Iterator[PatternTerm]:
    """All subjects of the quads and of the triple terms that are their objects."""
    for quad in quads:
        triple: QuadPattern | PatternTerm = quad
        while isinstance(triple, QuadPattern | TripleTerm):
            yield triple.subject
            triple = triple.object


class UpdateBuilder(QueryBuilder):
    def __init__(self, text: str, base_iri: str | None) -> None:
        super().__init__(text, base_iri)
        self.operations: list[Operation] = []
        self._data_labels: set[str] = set()

    def update_unit(self, parts: list[Any], start: int, end: int) -> Update:
        return Update(self.text, tuple(self.operations), tuple(self.service_hosts), base_iri=self.passed_base)

    def update(self, parts: list[Any], start: int, end: int) -> None:
        """Operations are gathered as they end, for the rule nests as deep as there are operations."""

    def operation(self, parts: list[Any], start: int, end: int) -> None:
        """Note the operation; a label of INSERT DATA belongs to it alone (SPARQL 1.1 Query, section 19.6)."""
        operation = parts[1]
        self.operations.append(operation)
        if isinstance(operation, InsertData):
            for place, label in self.labels:
                if label in self._data_labels:
                    raise self.fault(f"_:{label} stands in two operations", place)
            self._data_labels.update(label for _, label in self.labels)
        self.labels.clear()
        self.label_owners.clear()
        self.graph_variables.clear()

    # Data and patterns

    def quad_pattern(self, parts: list[Any], start: int, end: int) -> Block:
        return Block(tuple(parts[0]), Span(start, end))

    def large_block(self, parts: list[Any], start: int, end: int) -> Block:
        return Block(None, Span(start, end))

    def insert_data(self, parts: list[Any], start: int, end: int) -> InsertData:
        block: Block = parts[0]
        self._check_data(block.quads or ())
        return InsertData(self.in_force, block.quads, block.span, Span(start, end))

    def delete_data(self, parts: list[Any], start: int, end: int) -> DeleteData:
        block: Block = parts[0]
        self._check_data(block.quads or ())
        self._refuse_blank_nodes(block.quads or (), "DELETE DATA")
        return DeleteData(self.in_force, block.quads, block.span, Span(start, end))

    def delete_where(self, parts: list[Any], start: int, end: int) -> DeleteWhere:
        block: Block = parts[0]
        assert block.quads is not None
        self._refuse_blank_nodes(block.quads, "DELETE WHERE")
        return DeleteWhere(self.in_force, block.quads, block.span, Span(start, end))

    def modify(self, parts: list[Any], start: int, end: int) -> Modify:
        with_graph, *clauses, using, where = parts
        templates = dict(clause for clause in clauses if clause is not None)
        return Modify(
            prologue=self.in_force,
            with_graph=with_graph,
            delete=templates.get("DELETE"),
            insert=templates.get("INSERT"),
            using=using,
            pattern=where,
            where=where.span,
            span=Span(start, end),
        )

    def delete_clause(self, parts: list[Any], start: int, end: int) -> tuple[str, tuple[QuadPattern, ...]]:
        quads: tuple[QuadPattern, ...] = parts[0].quads
        self._refuse_blank_nodes(quads, "DELETE")
        return "DELETE", quads

    def insert_clause(self, parts: list[Any], start: int, end: int) -> tuple[str, tuple[QuadPattern, ...]]:
        quads: tuple[QuadPattern, ...] = parts[0].quads
        return "INSERT", quads

    def using_clauses(self, parts: list[Any], start: int, end: int) -> tuple[DatasetClause, ...]:
        return tuple(parts)

    def using_clause(self, parts: list[Any], start: int, end: int) -> DatasetClause:
        return DatasetClause(parts[1], parts[0] is not None)

    def _check_data(self, quads: Sequence[QuadPattern]) -> None:
        for term in chain(self.graph_variables, _terms(quads)):
            if isinstance(term, Variable):
                raise self.fault(f"data cannot hold a variable, here ?{term.name}", term.span.start)
            if isinstance(term, RdfLiteral) and term.language is None and term.datatype in _TAGGED:
                raise self.fault("a literal of this datatype has a language tag", term.span.start)
        for subject in _subjects(quads):
            if isinstance(subject, RdfLiteral):
                raise self.fault("data cannot have a literal as a subject", subject.span.start)
            if isinstance(subject, TripleTerm):
                raise self.fault("data cannot have a triple term as a subject", subject.span.start)

    def _refuse_blank_nodes(self, quads: Sequence[QuadPattern], where: str) -> None:
        for term in _terms(quads):
            if isinstance(term, BlankNodeLabel):
                raise self.fault(f"{where} cannot hold a blank node", term.span.start)

    # Graph management

    def load(self, parts: list[Any], start: int, end: int) -> Load:
        silent, source, into = parts
        return Load(source, into, silent is not None, Span(start, end))

    def clear(self, parts: list[Any], start: int, end: int) -> ClearGraph:
        return ClearGraph(parts[1], parts[0] is not None, Span(start, end))

    def drop(self, parts: list[Any], start: int, end: int) -> DropGraph:
        return DropGraph(parts[1], parts[0] is not None, Span(start, end))

    def create(self, parts: list[Any], start: int, end: int) -> CreateGraph:
        return CreateGraph(parts[1], parts[0] is not None, Span(start, end))

    def add(self, parts: list[Any], start: int, end: int) -> AddGraph:
        return AddGraph(parts[1], parts[2], parts[0] is not None, Span(start, end))

    def move(self, parts: list[Any], start: int, end: int) -> MoveGraph:
        return MoveGraph(parts[1], parts[2], parts[0] is not None, Span(start, end))

    def copy(self, parts: list[Any], start: int, end: int) -> CopyGraph:
        return CopyGraph(parts[1], parts[2], parts[0] is not None, Span(start, end))

    def graph_or_default(self, parts: list[Any], start: int, end: int) -> GraphTarget:
        graph = parts[0]
        return GraphTarget("graph", graph) if isinstance(graph, Iri) else GraphTarget("default")

    def graph_ref_all(self, parts: list[Any], start: int, end: int) -> GraphTarget:
        graph = parts[0]
        return GraphTarget("graph", graph) if isinstance(graph, Iri) else GraphTarget(graph.lower())
