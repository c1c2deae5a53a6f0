"""Terms, paths and triple patterns of a tree written as SPARQL again, and literals as the engine has them."""

from collections.abc import Callable
from typing import Any, TypeAlias

from pyoxigraph import BaseDirection, Literal, NamedNode

from graphdb.sparql.patterns import (
    AlternativePath,
    InversePath,
    NegatedPropertySet,
    RepeatedPath,
    SequencePath,
    TriplePattern,
)
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, TripleTerm, Variable

__all__ = ["Names", "literal_of", "written_term", "written_triple"]

Names: TypeAlias = Callable[[Variable | BlankNodeLabel], str]
"""How a variable or a blank node is written, mark and all."""


def literal_of(literal: RdfLiteral) -> Literal:
    """The engine's literal. Raises ValueError for a language tag that the engine refuses."""
    if literal.language is None:
        return Literal(literal.value, datatype=NamedNode(literal.datatype))
    direction = BaseDirection(literal.direction) if literal.direction else None
    return Literal(literal.value, language=literal.language, direction=direction)


def written_term(term: Any, names: Names) -> str:
    """A term, whole; IRIs in full."""
    match term:
        case Variable() | BlankNodeLabel():
            return names(term)
        case Iri(value=value):
            return str(NamedNode(value))
        case TripleTerm(subject, predicate, object_):
            inner = " ".join(written_term(part, names) for part in (subject, predicate, object_))
            return f"<<( {inner} )>>"
        case RdfLiteral(language=None):
            return str(literal_of(term))
        case RdfLiteral(value=value, language=language, direction=direction):
            # by hand: the tag may be one that the engine refuses, which is for the evaluation to find
            return f"{Literal(value)}@{language}{f'--{direction}' if direction else ''}"
    raise TypeError(f"{term!r} is no term")


def written_triple(triple: TriplePattern, names: Names) -> str:
    """A triple pattern without its dot."""
    ends = [written_term(term, names) for term in (triple.subject, triple.object)]
    return f"{ends[0]} {_written_verb(triple.predicate, names)} {ends[1]}"


def _written_verb(verb: Any, names: Names) -> str:
    match verb:
        case InversePath(path=path):
            return f"(^{_written_verb(path, names)})"
        case SequencePath(steps=parts):
            return f"({'/'.join(_written_verb(part, names) for part in parts)})"
        case AlternativePath(choices=parts):
            return f"({'|'.join(_written_verb(part, names) for part in parts)})"
        case RepeatedPath(path=path, modifier=modifier):
            return f"({_written_verb(path, names)}{modifier})"
        case NegatedPropertySet(members=members):
            return f"!({'|'.join(_written_member(member, names) for member in members)})"
        case _:
            return written_term(verb, names)


def _written_member(member: Iri | InversePath, names: Names) -> str:
    if isinstance(member, Iri):
        return written_term(member, names)
    return f"^{written_term(member.path, names)}"
