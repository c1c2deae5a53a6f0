"""The abstract syntax of SPARQL 1.2: what the parser makes of a request, with the place of each part in the text.

It holds what the text says and no algebra: nothing is simplified, evaluated or reordered. IRIs are resolved against
the base and prefixes that hold where they stand.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = [
    "AddGraph",
    "ClearGraph",
    "CopyGraph",
    "CreateGraph",
    "DeleteData",
    "DeleteWhere",
    "DropGraph",
    "GraphTarget",
    "InsertData",
    "Load",
    "Modify",
    "MoveGraph",
    "Operation",
    "Prologue",
    "Span",
    "Update",
]


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of the text, counted from 0."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Prologue:
    """The base IRI and prefixes in force at one operation; prefixes without their colon."""

    base: str | None = None
    prefixes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Iri:
    """An IRI, resolved and complete."""

    value: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, named without its mark."""

    name: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class BlankNodeLabel:
    """A blank node of the text: its label, or one made up by the parser for [] and for lists and reifiers."""

    label: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class RdfLiteral:
    """A literal. language is as written; direction is "ltr", "rtl" or None."""

    value: str
    datatype: str
    language: str | None
    direction: str | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class TripleTerm:
    """<<( s p o )>>, in a pattern or in data."""

    subject: "PatternTerm"
    predicate: "PatternTerm"
    object: "PatternTerm"
    span: Span = field(compare=False)


PatternTerm: TypeAlias = Iri | Variable | BlankNodeLabel | RdfLiteral | TripleTerm


@dataclass(frozen=True, slots=True)
class QuadPattern:
    """One quad of a template or of data, all shorthand expanded; graph None is the default graph of its context."""

    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm
    graph: Iri | Variable | None


@dataclass(frozen=True, slots=True)
class DatasetClause:
    """FROM or USING (named False), FROM NAMED or USING NAMED (named True)."""

    graph: Iri
    named: bool


@dataclass(frozen=True, slots=True)
class GraphTarget:
    """What CLEAR, DROP, COPY, MOVE and ADD address: kind is "graph" (then graph is set), "default", "named" or "all"."""

    kind: str
    graph: Iri | None = None


@dataclass(frozen=True, slots=True)
class InsertData:
    """INSERT DATA. quads is None for a block that was too large for the grammar; see `parser.ground_quads`."""

    prologue: Prologue
    quads: tuple[QuadPattern, ...] | None
    block: Span  # the braces and what is between
    span: Span


@dataclass(frozen=True, slots=True)
class DeleteData:
    """DELETE DATA, as InsertData."""

    prologue: Prologue
    quads: tuple[QuadPattern, ...] | None
    block: Span
    span: Span


@dataclass(frozen=True, slots=True)
class DeleteWhere:
    """DELETE WHERE: the pattern is the template too."""

    prologue: Prologue
    pattern: tuple[QuadPattern, ...]
    block: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Modify:
    """[WITH g] [DELETE {...}] [INSERT {...}] [USING ...]* WHERE {...}; None for a clause that is not there."""

    prologue: Prologue
    with_graph: Iri | None
    delete: tuple[QuadPattern, ...] | None
    insert: tuple[QuadPattern, ...] | None
    using: tuple[DatasetClause, ...]
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
