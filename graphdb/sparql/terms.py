"""RDF terms as SPARQL texts write them: IRIs resolved, literals unescaped, each with its place."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

__all__ = [
    "AS_OF_SCHEME",
    "NOWHERE",
    "BlankNodeLabel",
    "Iri",
    "PatternTerm",
    "RdfLiteral",
    "Span",
    "TripleTerm",
    "Variable",
]

AS_OF_SCHEME = "as-of:"  # FROM <as-of:INDEX or TIME> names a state (`graphdb.history.moments`), and no graph


class Span(NamedTuple):
    """Characters [start, end) of the text, counted from 0."""

    start: int
    end: int


NOWHERE = Span(0, 0)
"""The place of what no text has."""


@dataclass(frozen=True, slots=True)
class Iri:
    """An IRI, resolved and complete."""

    value: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, named without its mark."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class BlankNodeLabel:
    """A blank node of the text: its label, or one made up by the parser for [] and for lists and reifiers.

    A made-up label is valid SPARQL and differs from every label that the text writes.
    """

    label: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class RdfLiteral:
    """A literal. language is as written; direction is "ltr", "rtl" or None."""

    value: str
    datatype: str
    language: str | None
    direction: str | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class TripleTerm:
    """<<( s p o )>>, in a pattern, in an expression or in data."""

    subject: "PatternTerm"
    predicate: "PatternTerm"
    object: "PatternTerm"
    span: Span = field(default=NOWHERE, compare=False)


PatternTerm: TypeAlias = Iri | Variable | BlankNodeLabel | RdfLiteral | TripleTerm
