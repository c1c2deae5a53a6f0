"""The shapes graph as pySHACL gets it: focus nodes in the place of targets, stored types beside derived."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.shacl.derived_types import DERIVED_TYPES, ZONED, DerivedType
from graphdb.shacl.shape_tree import (
    AllOf,
    ClassTarget,
    Constraint,
    DatatypeConstraint,
    ExactlyOneOf,
    NodeConstraint,
    OneOf,
    Shape,
)
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.vocabulary import RDF_FIRST, RDF_NIL, RDF_REST, RDF_TYPE, SH, XSD, Node, Term, sh
from graphdb.store.stored_form import stored_term

__all__ = ["PyshaclShapes"]

_DROPPED = frozenset(
    sh(name)
    for name in ("targetNode", "targetClass", "targetSubjectsOf", "targetObjectsOf", "target", "rule", "js")
)


_STAND_INS: dict[str, type[OneOf | ExactlyOneOf | NodeConstraint | AllOf]] = {
    "or": OneOf,
    "xone": ExactlyOneOf,
    "node": NodeConstraint,
    "and": AllOf,
}
_ONE = Literal("1", datatype=NamedNode(XSD + "boolean"))


class PyshaclShapes:
    """triples are what pySHACL gets."""

    def __init__(self, shapes: Shapes, focus: Mapping[Node, Iterable[Term]]) -> None:
        self._shapes = shapes
        self._stand_ins: dict[tuple[Node, NamedNode], Constraint] = {}
        self._numbers = count(1)
        self._labels = {
            term.value
            for triple in shapes.triples
            for term in (triple.subject, triple.object)
            if isinstance(term, BlankNode)
        }
        self.triples = [
            *(new for triple in shapes.triples for new in self._rewritten(triple)),
            *(Triple(node, sh("targetNode"), each) for node, nodes in focus.items() for each in nodes),
        ]

    def constraint(self, shape: Shape, component: NamedNode) -> Constraint | None:
        """The constraint, of the shapes as they are, that a result names; the first, if there are several."""
        stand_in = self._stand_ins.get((shape.node, component))
        if stand_in is not None:
            return stand_in
        return next((each for each in shape.constraints if each.component == component), None)

    def _rewritten(self, triple: Triple) -> Iterator[Triple]:
        subject, predicate, object_ = triple.subject, triple.predicate, stored_term(triple.object)
        if triple.object == _ONE and predicate.value.startswith(SH) and predicate != sh("hasValue"):
            object_ = Literal(False)  # see `ShapesGraph`
        shape = self._shapes.by_node.get(subject)  # type: ignore[arg-type]
        if predicate in _DROPPED or (
            predicate == RDF_TYPE
            and shape is not None
            and isinstance(subject, NamedNode)
            and ClassTarget(subject) in shape.targets
            and object_ not in (sh("NodeShape"), sh("PropertyShape"))
        ):
            return
        derived = DERIVED_TYPES.get(object_.value) if isinstance(object_, NamedNode) else None
        if shape is not None and predicate == sh("datatype") and derived is not None:
            yield from self._either(shape, object_, derived)
        else:
            yield Triple(subject, predicate, object_)

    def _either(self, shape: Shape, datatype: Term, derived: DerivedType) -> Iterator[Triple]:
        """The datatype itself, or the type that its values are stored with, within bounds.

        That it stands for sh:datatype is told by a component that the shape does not use otherwise.
        """
        assert isinstance(datatype, NamedNode)
        used = {type(constraint) for constraint in shape.constraints}
        name = next((name for name, kind in _STAND_INS.items() if kind not in used), None)
        if name is None:
            yield Triple(shape.node, sh("datatype"), datatype)
            return
        self._stand_ins[shape.node, _STAND_INS[name].component] = DatatypeConstraint(datatype)
        itself, stored = self._fresh(), self._fresh()
        yield Triple(itself, sh("datatype"), datatype)
        yield Triple(stored, sh("datatype"), NamedNode(derived.stored))
        if derived.least is not None:
            yield Triple(stored, sh("minInclusive"), _integer(derived.least))
        if derived.most is not None:
            yield Triple(stored, sh("maxInclusive"), _integer(derived.most))
        if derived.zoned:
            yield Triple(stored, sh("pattern"), Literal(ZONED))
        if name in ("or", "xone"):
            yield from self._list(shape.node, sh(name), (itself, stored))
            return
        both = self._fresh()
        yield from self._list(both, sh("or"), (itself, stored))
        if name == "node":
            yield Triple(shape.node, sh("node"), both)
        else:
            yield from self._list(shape.node, sh("and"), (both,))

    def _list(self, subject: Node, predicate: NamedNode, members: tuple[Node, ...]) -> Iterator[Triple]:
        for member in members:
            node = self._fresh()
            yield Triple(subject, predicate, node)
            yield Triple(node, RDF_FIRST, member)
            subject, predicate = node, RDF_REST
        yield Triple(subject, predicate, RDF_NIL)

    def _fresh(self) -> BlankNode:
        label = next(label for n in self._numbers if (label := f"stored{n}") not in self._labels)
        return BlankNode(label)


def _integer(value: int) -> Literal:
    return Literal(str(value), datatype=NamedNode(XSD + "integer"))
