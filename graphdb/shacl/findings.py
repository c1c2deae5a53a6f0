"""What a validation finds, and the messages that say it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyoxigraph import Literal, NamedNode

from graphdb.shacl.engine_terms import term_text
from graphdb.shacl.paths import Path, path_text
from graphdb.shacl.report import ValidationResult
from graphdb.shacl.shacl_names import Node, Term
from graphdb.shacl.shape_tree import (
    AllOf,
    ClassConstraint,
    ClosedConstraint,
    ComponentConstraint,
    Constraint,
    CountConstraint,
    DatatypeConstraint,
    EqualsConstraint,
    ExactlyOneOf,
    ExpressionConstraint,
    HasValueConstraint,
    InConstraint,
    LanguageInConstraint,
    LengthConstraint,
    LessThanConstraint,
    NodeConstraint,
    NodeKindConstraint,
    NotConstraint,
    OneOf,
    PatternConstraint,
    PropertyConstraint,
    QualifiedConstraint,
    RangeConstraint,
    Shape,
    SparqlConstraint,
    UniqueLangConstraint,
)
from graphdb.shacl.shapes_graph import short_name

__all__ = ["Finding", "messages_of"]

# What a result says: the shapes graph's own words with their placeholders filled in, or the usual ones.

_PLACEHOLDER = re.compile(r"\{[?$](\w+)\}")
_LISTED_MAX = 10


def messages_of(
    shape: Shape, constraint: Constraint, bindings: Mapping[str, Term], own: Iterable[Literal] = ()
) -> tuple[Literal, ...]:
    """The messages of one result: the shape's, else own (those of the SPARQL behind it), else the usual one.

    bindings are what placeholders such as {?value} stand for: the focus node is "this".
    """
    path = {} if shape.path is None else {"path": Literal(path_text(shape.path))}
    known = {**path, **bindings}
    given = shape.messages or tuple(own)
    if not given:
        return (Literal(usual_message(constraint, shape.originals)),)
    return tuple(_filled(message, known) for message in given)


def _filled(message: Literal, bindings: Mapping[str, Term]) -> Literal:
    """Source: SHACL section 5.2.2; a placeholder without a value stays as it is."""

    def value(found: re.Match[str]) -> str:
        term = bindings.get(found[1])
        return found[0] if term is None else _plain(term)

    text = _PLACEHOLDER.sub(value, message.value)
    if text == message.value:
        return message
    return Literal(text, language=message.language) if message.language else Literal(text)


def _plain(term: Term) -> str:
    return term.value if isinstance(term, NamedNode | Literal) else term_text(term)


def usual_message(constraint: Constraint, originals: Mapping[Node, Node] | None = None) -> str:
    """What the constraint asks for, as a sentence; originals are those of its shape."""
    match constraint:
        case ClassConstraint():
            return f"must be an instance of {_named(constraint.cls)}"
        case DatatypeConstraint():
            return f"must be a literal of type {_named(constraint.datatype)}"
        case NodeKindConstraint():
            return f"must be of kind {_named(constraint.kind)}"
        case CountConstraint(most=None):
            return f"must have {_values(constraint.least)} at least"
        case CountConstraint():
            return f"must have {_values(constraint.most)} at most"
        case RangeConstraint():
            return f"must be {constraint.operator} {short_name(constraint.bound)}"
        case LengthConstraint(most=None):
            return f"must be {constraint.least} characters long at least"
        case LengthConstraint():
            return f"must be {constraint.most} characters long at most"
        case PatternConstraint():
            flags = f" with flags {constraint.flags}" if constraint.flags else ""
            return f"must match the pattern {short_name(Literal(constraint.pattern))}{flags}"
        case LanguageInConstraint():
            return f"must be in one of these languages: {', '.join(constraint.ranges[:_LISTED_MAX])}"
        case UniqueLangConstraint():
            return "must not have two values in the same language"
        case EqualsConstraint(disjoint=True):
            return f"must not be a value of {_named(constraint.predicate)} too"
        case EqualsConstraint():
            return f"must have the same values as {_named(constraint.predicate)}"
        case LessThanConstraint():
            return f"must be {constraint.operator} every value of {_named(constraint.predicate)}"
        case _:
            return _message_about_shapes(constraint, originals or {})


def _message_about_shapes(constraint: Constraint, originals: Mapping[Node, Node]) -> str:
    def named(node: Node) -> str:
        return _named(originals.get(node, node))

    match constraint:
        case NotConstraint():
            return f"must not conform to {named(constraint.shape)}"
        case AllOf():
            return f"must conform to all of {_shapes(constraint.shapes, originals)}"
        case OneOf():
            return f"must conform to one at least of {_shapes(constraint.shapes, originals)}"
        case ExactlyOneOf():
            return f"must conform to exactly one of {_shapes(constraint.shapes, originals)}"
        case NodeConstraint() | PropertyConstraint():
            return f"must conform to {named(constraint.shape)}"
        case QualifiedConstraint(most=None):
            return f"must have {_values(constraint.least)} at least that conform to {named(constraint.shape)}"
        case QualifiedConstraint():
            return f"must have {_values(constraint.most)} at most that conform to {named(constraint.shape)}"
        case ClosedConstraint():
            return "must not have other properties than the shape allows"
        case HasValueConstraint():
            return f"must have the value {short_name(constraint.value)}"
        case InConstraint():
            return f"must be one of {_listed(constraint.members)}"
        case SparqlConstraint() | ExpressionConstraint():
            return "must not violate the constraint"
        case ComponentConstraint():
            return f"must not violate {_named(constraint.component)}"
        case _:
            raise AssertionError(constraint)


def _named(node: Node) -> str:
    return short_name(node) if isinstance(node, NamedNode) else "the shape within"


def _shapes(given: tuple[Node, ...], originals: Mapping[Node, Node]) -> str:
    """Their names, or how many, where some have none."""
    nodes = tuple(originals.get(node, node) for node in given)
    if all(isinstance(node, NamedNode) for node in nodes):
        return _listed(nodes)
    return f"the {len(nodes)} shapes within" if len(nodes) > 1 else "the shape within"


def _listed(terms: tuple[Term, ...]) -> str:
    shown = [short_name(term) for term in terms[:_LISTED_MAX]]
    return ", ".join(shown) + (", ..." if len(terms) > _LISTED_MAX else "")


def _values(count: int | None) -> str:
    return f"{count} value" if count == 1 else f"{count} values"


# `Finding`: a violation before it is a result: most are looked at for their focus node only.


@dataclass(frozen=True, slots=True)
class Finding:
    """constraint of shape does not hold at focus. path is that of the result, where it is not the shape's
    own.

    bindings and messages are what SPARQL adds: values for placeholders, and what is said instead of the
    usual.
    """

    shape: Shape
    constraint: Constraint
    focus: Term
    value: Term | None
    path: Path | None = None
    bindings: Mapping[str, Term] = field(default_factory=dict)
    messages: tuple[Literal, ...] = ()

    def result(self) -> ValidationResult:
        """As the report has it."""
        bindings = {"this": self.focus, **self.bindings}
        if self.value is not None:
            bindings["value"] = self.value
        return ValidationResult(
            focus_node=self.focus,
            path=self.path or self.shape.path,
            value=self.value,
            severity=self.shape.severity,
            messages=messages_of(self.shape, self.constraint, bindings, self.messages),
            source_shape=self.shape.source,
            component=self.constraint.component,
            source_constraint=self.constraint.node if isinstance(self.constraint, SparqlConstraint) else None,
        )
