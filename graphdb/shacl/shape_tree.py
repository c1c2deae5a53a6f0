"""Shapes as a tree: targets and constraints of each, other shapes by their nodes. Nothing here looks at data.

A constraint is what SHACL makes of one value of one parameter (two `sh:class` are two constraints), or of
several parameters that belong together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from pyoxigraph import Literal, NamedNode

from graphdb.shacl.paths import Path
from graphdb.shacl.shacl_names import Node, Term, sh
from graphdb.sparql.syntax import Query

__all__ = [
    "AllOf",
    "ClassConstraint",
    "ClassTarget",
    "ClosedConstraint",
    "ComponentConstraint",
    "Constraint",
    "CountConstraint",
    "DatatypeConstraint",
    "EqualsConstraint",
    "ExactlyOneOf",
    "ExpressionConstraint",
    "HasValueConstraint",
    "InConstraint",
    "LanguageInConstraint",
    "LengthConstraint",
    "LessThanConstraint",
    "NodeConstraint",
    "NodeKindConstraint",
    "NodeTarget",
    "NotConstraint",
    "ObjectsTarget",
    "OneOf",
    "PatternConstraint",
    "PropertyConstraint",
    "QualifiedConstraint",
    "RangeConstraint",
    "Shape",
    "ShapeQuery",
    "SparqlConstraint",
    "SparqlTarget",
    "SubjectsTarget",
    "Target",
    "UniqueLangConstraint",
    "Validator",
    "query_of",
]


@dataclass(frozen=True, slots=True)
class NodeTarget:
    """sh:targetNode; the node need not be in the data."""

    node: Term


@dataclass(frozen=True, slots=True)
class ClassTarget:
    """sh:targetClass, or a shape that is a class itself: the instances of it and of its subclasses."""

    cls: Node


@dataclass(frozen=True, slots=True)
class SubjectsTarget:
    """sh:targetSubjectsOf."""

    predicate: NamedNode


@dataclass(frozen=True, slots=True)
class ObjectsTarget:
    """sh:targetObjectsOf."""

    predicate: NamedNode


@dataclass(frozen=True, slots=True)
class ShapeQuery:
    """SPARQL that stands in a shapes graph.

    query has the path in the place of $PATH. bindings are the variables that are constants of the shape, such
    as the parameters of a component; $this and $value come on top.
    calls_declared: it calls functions that the shapes graph itself declares (SHACL-AF section 5), which only
    pySHACL knows.
    """

    query: Query
    bindings: tuple[tuple[str, Term], ...] = ()
    calls_declared: bool = False


@dataclass(frozen=True, slots=True)
class SparqlTarget:
    """sh:target with a sh:select that binds ?this (SHACL-AF section 3)."""

    query: ShapeQuery


Target: TypeAlias = NodeTarget | ClassTarget | SubjectsTarget | ObjectsTarget | SparqlTarget


# Constraints. component is the IRI that results name.


@dataclass(frozen=True, slots=True)
class ClassConstraint:
    component: ClassVar = sh("ClassConstraintComponent")
    cls: Node


@dataclass(frozen=True, slots=True)
class DatatypeConstraint:
    component: ClassVar = sh("DatatypeConstraintComponent")
    datatype: NamedNode


@dataclass(frozen=True, slots=True)
class NodeKindConstraint:
    """kinds holds some of "IRI", "BlankNode" and "Literal"."""

    component: ClassVar = sh("NodeKindConstraintComponent")
    kind: NamedNode
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class CountConstraint:
    """sh:minCount, sh:maxCount; the other bound is None."""

    component: NamedNode
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class RangeConstraint:
    """sh:minInclusive and the like: `value operator bound` must hold; operator is one of < <= > >=."""

    component: NamedNode
    operator: str
    bound: Literal


@dataclass(frozen=True, slots=True)
class LengthConstraint:
    """sh:minLength, sh:maxLength, in characters; the other bound is None."""

    component: NamedNode
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class PatternConstraint:
    component: ClassVar = sh("PatternConstraintComponent")
    pattern: str
    flags: str


@dataclass(frozen=True, slots=True)
class LanguageInConstraint:
    component: ClassVar = sh("LanguageInConstraintComponent")
    ranges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UniqueLangConstraint:
    component: ClassVar = sh("UniqueLangConstraintComponent")


@dataclass(frozen=True, slots=True)
class EqualsConstraint:
    """sh:equals, sh:disjoint."""

    component: NamedNode
    predicate: NamedNode
    disjoint: bool


@dataclass(frozen=True, slots=True)
class LessThanConstraint:
    """sh:lessThan, sh:lessThanOrEquals; operator is < or <=."""

    component: NamedNode
    predicate: NamedNode
    operator: str


@dataclass(frozen=True, slots=True)
class NotConstraint:
    component: ClassVar = sh("NotConstraintComponent")
    shape: Node


@dataclass(frozen=True, slots=True)
class AllOf:
    """sh:and."""

    component: ClassVar = sh("AndConstraintComponent")
    shapes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """sh:or: one at least."""

    component: ClassVar = sh("OrConstraintComponent")
    shapes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ExactlyOneOf:
    """sh:xone; a shape that is listed twice counts twice."""

    component: ClassVar = sh("XoneConstraintComponent")
    shapes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class NodeConstraint:
    """sh:node."""

    component: ClassVar = sh("NodeConstraintComponent")
    shape: Node


@dataclass(frozen=True, slots=True)
class PropertyConstraint:
    """sh:property: has no results of its own, those of the property shape stand for it."""

    component: ClassVar = sh("PropertyConstraintComponent")
    shape: Node


@dataclass(frozen=True, slots=True)
class QualifiedConstraint:
    """sh:qualifiedValueShape with one of its counts.

    Those values count that conform to shape and to none of siblings, which is empty unless they are to be
    disjoint.
    """

    component: NamedNode
    shape: Node
    siblings: tuple[Node, ...]
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class ClosedConstraint:
    """sh:closed: allowed are the properties of the shape's own property shapes and the ignored ones."""

    component: ClassVar = sh("ClosedConstraintComponent")
    allowed: tuple[NamedNode, ...]


@dataclass(frozen=True, slots=True)
class HasValueConstraint:
    component: ClassVar = sh("HasValueConstraintComponent")
    value: Term


@dataclass(frozen=True, slots=True)
class InConstraint:
    component: ClassVar = sh("InConstraintComponent")
    members: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class SparqlConstraint:
    """sh:sparql; node is what results name as their source constraint."""

    component: ClassVar = sh("SPARQLConstraintComponent")
    node: Node
    query: ShapeQuery
    messages: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Validator:
    """How a component validates: by sh:ask, which is asked of each value, or (ask False) by sh:select."""

    ask: bool
    query: ShapeQuery
    messages: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class ComponentConstraint:
    """One use of a component that the shapes graph declares itself (SHACL section 6)."""

    component: NamedNode
    validator: Validator


@dataclass(frozen=True, slots=True)
class ExpressionConstraint:
    """sh:expression (SHACL-AF section 5), which only pySHACL evaluates.

    It looks along these paths from the value node; and, unless is_bounded, elsewhere.
    """

    component: ClassVar = sh("ExpressionConstraintComponent")
    expression: Term
    paths: tuple[Path, ...]
    is_bounded: bool


Constraint: TypeAlias = (
    ClassConstraint
    | DatatypeConstraint
    | NodeKindConstraint
    | CountConstraint
    | RangeConstraint
    | LengthConstraint
    | PatternConstraint
    | LanguageInConstraint
    | UniqueLangConstraint
    | EqualsConstraint
    | LessThanConstraint
    | NotConstraint
    | AllOf
    | OneOf
    | ExactlyOneOf
    | NodeConstraint
    | PropertyConstraint
    | QualifiedConstraint
    | ClosedConstraint
    | HasValueConstraint
    | InConstraint
    | SparqlConstraint
    | ComponentConstraint
    | ExpressionConstraint
)


def query_of(constraint: Constraint) -> ShapeQuery | None:
    """The SPARQL of a constraint that has some."""
    match constraint:
        case SparqlConstraint():
            return constraint.query
        case ComponentConstraint():
            return constraint.validator.query
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Shape:
    """A node shape, or with a path a property shape. path_node is the path in the shapes graph.

    Of a recursive shape there is a copy, which leads around no more (`nesting.py`): written is the shape that
    it is a copy of, and originals tells this for all copies that constraints refer to.
    """

    node: Node
    path: Path | None
    path_node: Node | None
    targets: tuple[Target, ...]
    constraints: tuple[Constraint, ...]
    severity: NamedNode
    messages: tuple[Literal, ...]
    deactivated: bool
    written: Node | None = None
    originals: Mapping[Node, Node] = field(default_factory=dict, compare=False, repr=False)

    @property
    def source(self) -> Node:
        """The shape in the shapes graph."""
        return self.written or self.node
