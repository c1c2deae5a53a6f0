"""`Finding`: a violation before it is a result: most are looked at for their focus node only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyoxigraph import Literal

from graphdb.shacl.messages import messages_of
from graphdb.shacl.paths import Path
from graphdb.shacl.report import ValidationResult
from graphdb.shacl.shape_tree import Constraint, Shape, SparqlConstraint
from graphdb.shacl.vocabulary import Term

__all__ = ["Finding"]


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
