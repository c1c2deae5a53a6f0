"""The abstract syntax of SPARQL 1.2: what the parser makes of a request, with the place of each part in the
text.

It holds what the text says and no algebra: nothing is simplified, evaluated or reordered. IRIs are resolved
against the base and prefixes that hold where they stand. Here are whole queries and updates; terms are in
`terms`, what stands between the braces of a query in `patterns`.
"""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyoxigraph import Quad

from graphdb.sparql.patterns import (
    GroupGraphPattern,
    InlineData,
    SelectClause,
    SolutionModifiers,
    TriplePattern,
)
from graphdb.sparql.terms import (
    AS_OF_SCHEME,
    BlankNodeLabel,
    Iri,
    PatternTerm,
    RdfLiteral,
    Span,
    TripleTerm,
    Variable,
)

__all__ = [
    "AddGraph",
    "BlankNodeLabel",
    "ClearGraph",
    "CopyGraph",
    "CreateGraph",
    "DatasetClause",
    "DeleteData",
    "DeleteWhere",
    "DropGraph",
    "GraphTarget",
    "InsertData",
    "Iri",
    "Load",
    "Modify",
    "MoveGraph",
    "Operation",
    "PatternTerm",
    "Prologue",
    "QuadPattern",
    "Query",
    "RdfLiteral",
    "Span",
    "TripleTerm",
    "Update",
    "Variable",
]


@dataclass(frozen=True, slots=True)
class Prologue:
    """The base IRI and prefixes in force at one operation; prefixes without their colon."""

    base: str | None = None
    prefixes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class QuadPattern:
    """One quad of a template or of data, all shorthand expanded; graph None is the default graph of its
    context.
    """

    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm
    graph: Iri | Variable | None


@dataclass(frozen=True, slots=True)
class DatasetClause:
    """FROM or USING (named False), FROM NAMED or USING NAMED (named True)."""

    graph: Iri
    named: bool

    @property
    def names_state(self) -> bool:
        """Whether it is about a state of the past, and not about a graph."""
        return self.graph.value.startswith(AS_OF_SCHEME)


class _Translated:
    """Has places for what is made of a tree once: its algebra (`translation`), and that as bytes (`packing`).
    They are not parts of the tree.
    """

    __slots__ = ("algebra", "packed")
    algebra: Any
    packed: bytes


@dataclass(frozen=True, slots=True)
class Query(_Translated):
    """A whole query. text is what was parsed, so that spans can be read from it.

    form is "SELECT", "ASK", "CONSTRUCT" or "DESCRIBE"; select, template and described belong to the form of
    their name. described None with DESCRIBE is the star. where is None only with DESCRIBE. The short form of
    CONSTRUCT has its pattern as template too. values is the VALUES after everything else.
    """

    text: str = field(repr=False)
    form: str
    prologue: Prologue
    dataset: tuple[DatasetClause, ...]
    where: GroupGraphPattern | None
    modifiers: SolutionModifiers
    values: InlineData | None
    service_hosts: tuple[Iri | Variable, ...]  # every SERVICE endpoint named anywhere in it
    select: SelectClause | None = None
    template: tuple[TriplePattern, ...] | None = None
    described: tuple[Iri | Variable, ...] | None = None
    base_iri: str | None = None  # as it was passed to the parser

    @property
    def graph_clauses(self) -> tuple[DatasetClause, ...]:
        """The clauses of dataset that name graphs."""
        return tuple(clause for clause in self.dataset if not clause.names_state)


@dataclass(frozen=True, slots=True)
class GraphTarget:
    """What CLEAR, DROP, COPY, MOVE and ADD address: kind is "graph" (then graph is set), "default", "named"
    or "all".
    """

    kind: str
    graph: Iri | None = None


@dataclass(frozen=True, slots=True)
class InsertData:
    """INSERT DATA. quads is None for a block that the grammar did not read, too large for it or plain
    (`plain_data`); read are the quads of a plain one. See `parser.ground_quads`.
    """

    prologue: Prologue
    quads: tuple[QuadPattern, ...] | None
    block: Span  # the braces and what is between
    span: Span
    read: tuple[Quad, ...] | None = None


@dataclass(frozen=True, slots=True)
class DeleteData:
    """DELETE DATA, as InsertData."""

    prologue: Prologue
    quads: tuple[QuadPattern, ...] | None
    block: Span
    span: Span
    read: tuple[Quad, ...] | None = None


@dataclass(frozen=True, slots=True)
class DeleteWhere:
    """DELETE WHERE: the pattern is the template too."""

    prologue: Prologue
    pattern: tuple[QuadPattern, ...]
    block: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Modify:
    """[WITH g] [DELETE {...}] [INSERT {...}] [USING ...]* WHERE {...}; None for a clause that is absent."""

    prologue: Prologue
    with_graph: Iri | None
    delete: tuple[QuadPattern, ...] | None
    insert: tuple[QuadPattern, ...] | None
    using: tuple[DatasetClause, ...]
    pattern: GroupGraphPattern  # of WHERE
    where: Span  # the braces of the group graph pattern and what is between
    span: Span


@dataclass(frozen=True, slots=True)
class Load:
    source: Iri
    into: Iri | None
    silent: bool
    span: Span


@dataclass(frozen=True, slots=True)
class ClearGraph:
    target: GraphTarget
    silent: bool
    span: Span


@dataclass(frozen=True, slots=True)
class DropGraph:
    target: GraphTarget
    silent: bool
    span: Span


@dataclass(frozen=True, slots=True)
class CreateGraph:
    graph: Iri
    silent: bool
    span: Span


@dataclass(frozen=True, slots=True)
class CopyGraph:
    source: GraphTarget
    target: GraphTarget
    silent: bool
    span: Span


@dataclass(frozen=True, slots=True)
class MoveGraph:
    source: GraphTarget
    target: GraphTarget
    silent: bool
    span: Span


@dataclass(frozen=True, slots=True)
class AddGraph:
    source: GraphTarget
    target: GraphTarget
    silent: bool
    span: Span


Operation: TypeAlias = (
    InsertData
    | DeleteData
    | DeleteWhere
    | Modify
    | Load
    | ClearGraph
    | DropGraph
    | CreateGraph
    | CopyGraph
    | MoveGraph
    | AddGraph
)


@dataclass(frozen=True, slots=True)
class Update:
    """A whole update request. text is what was parsed, so that spans can be read from it."""

    text: str = field(repr=False)
    operations: tuple[Operation, ...]
    service_hosts: tuple[Iri | Variable, ...]  # every SERVICE endpoint named anywhere in it
    base_iri: str | None = None  # as it was passed to the parser
