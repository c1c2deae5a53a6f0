"""The parameters of SHACL's own constraint components, to constraints; one function a family of them."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.shacl.engine_terms import pattern_fault
from graphdb.shacl.shacl_names import Node, Term, sh
from graphdb.shacl.shape_tree import (
    AllOf,
    ClassConstraint,
    ClosedConstraint,
    Constraint,
    CountConstraint,
    DatatypeConstraint,
    EqualsConstraint,
    ExactlyOneOf,
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
    UniqueLangConstraint,
)
from graphdb.shacl.shapes_graph import ShapesGraph, short_name
from graphdb.store.stored_form import stored_term

__all__ = ["PARAMETERS", "SHAPE_LISTS", "SHAPE_VALUES", "read_parameters"]

Reader: TypeAlias = Callable[[ShapesGraph, Node], Iterator[Constraint]]

SHAPE_VALUES = ("property", "node", "not", "qualifiedValueShape")
"""The parameters whose values are shapes."""
SHAPE_LISTS = ("and", "or", "xone")
"""Those whose values are lists of shapes."""
_OF_PROPERTY_SHAPES = (
    "minCount",
    "maxCount",
    "uniqueLang",
    "lessThan",
    "lessThanOrEquals",
    "qualifiedValueShape",
)
_KINDS = {
    "IRI": {"IRI"},
    "BlankNode": {"BlankNode"},
    "Literal": {"Literal"},
    "BlankNodeOrIRI": {"BlankNode", "IRI"},
    "BlankNodeOrLiteral": {"BlankNode", "Literal"},
    "IRIOrLiteral": {"IRI", "Literal"},
}
_RANGES = {"minExclusive": ">", "minInclusive": ">=", "maxExclusive": "<", "maxInclusive": "<="}


def read_parameters(graph: ShapesGraph, shape: Node, is_property: bool) -> Iterator[Constraint]:
    """The constraints that a shape makes of them. Raises MalformedShapes."""
    if not is_property:
        for name in _OF_PROPERTY_SHAPES:
            if graph.objects(shape, sh(name)):
                raise graph.malformed(shape, name, "is for property shapes, and this one has no sh:path")
    for reader in _READERS:
        yield from reader(graph, shape)


def _value_types(graph: ShapesGraph, shape: Node) -> Iterator[Constraint]:
    for cls in graph.iris(shape, "class"):
        yield ClassConstraint(cls)
    datatype = graph.only(shape, "datatype")
    if datatype is not None:
        yield DatatypeConstraint(graph.expect(datatype, NamedNode, shape, "datatype", "an IRI"))
    kind = graph.only(shape, "nodeKind")
    if kind is not None:
        name = next((name for name in _KINDS if sh(name) == kind), None)
        if name is None:
            names = ", ".join(f"sh:{name}" for name in _KINDS)
            raise graph.malformed(shape, "nodeKind", f"must be one of {names}, not {short_name(kind)}")
        yield NodeKindConstraint(sh(name), frozenset(_KINDS[name]))


def _counts(graph: ShapesGraph, shape: Node) -> Iterator[Constraint]:
    least, most = graph.count(shape, "minCount"), graph.count(shape, "maxCount")
    if least is not None:
        yield CountConstraint(sh("MinCountConstraintComponent"), least=least)
    if most is not None:
        yield CountConstraint(sh("MaxCountConstraintComponent"), most=most)


def _ranges(graph: ShapesGraph, shape: Node) -> Iterator[Constraint]:
    for name, operator in _RANGES.items():
        bound = graph.only(shape, name)
        if bound is not None:
            component = sh(f"{name[0].upper()}{name[1:]}ConstraintComponent")
            literal = graph.expect(bound, Literal, shape, name, "a literal")
            yield RangeConstraint(component, operator, literal)


def _strings(graph: ShapesGraph, shape: Node) -> Iterator[Constraint]:
    least, most = graph.count(shape, "minLength"), graph.count(shape, "maxLength")
    if least is not None:
        yield LengthConstraint(sh("MinLengthConstraintComponent"), least=least)
    if most is not None:
        yield LengthConstraint(sh("MaxLengthConstraintComponent"), most=most)
    flags = graph.text(shape, "flags") or ""
    for pattern in graph.strings(shape, "pattern"):
        fault = pattern_fault(pattern.value, flags)
        if fault is not None:
            raise graph.malformed(shape, "pattern", fault)
        yield PatternConstraint(pattern.value, flags)
    ranges = graph.only(shape, "languageIn")
    if ranges is not None:
        members = graph.members(ranges, shape, "languageIn")
        tags = [graph.as_text(each, shape, "languageIn", "a list of strings") for each in members]
        yield LanguageInConstraint(tuple(dict.fromkeys(tags)))
    if graph.boolean(shape, "uniqueLang"):
        yield UniqueLangConstraint()


def _pairs(graph: ShapesGraph, shape: Node) -> Iterator[Constraint]:
    for predicate in graph.iris(shape, "equals"):
        yield EqualsConstraint(sh("EqualsConstraintComponent"), predicate, disjoint=False)
    for predicate in graph.iris(shape, "disjoint"):
        yield EqualsConstraint(sh("DisjointConstraintComponent"), predicate, disjoint=True)
    for predicate in graph.iris(shape, "lessThan"):
        yield LessThanConstraint(sh("LessThanConstraintComponent"), predicate, "<")
    for predicate in graph.iris(shape, "lessThanOrEquals"):
        yield LessThanConstraint(sh("LessThanOrEqualsConstraintComponent"), predicate, "<=")


def _logic(graph: ShapesGraph, shape: Node) -> Iterator[Constraint]:
    for inner in graph.nodes(shape, "not"):
        yield NotConstraint(inner)
    for name, kind in (("and", AllOf), ("or", OneOf), ("xone", ExactlyOneOf)):
        for value in graph.objects(shape, sh(name)):
            members = graph.members(value, shape, name)
            if not members:
                raise graph.malformed(shape, name, "must be a list of one shape at least")
            yield kind(tuple(graph.node(member, shape, name) for member in members))


def _shapes(graph: ShapesGraph, shape: Node) -> Iterator[Constraint]:
    for inner in graph.nodes(shape, "node"):
        if graph.objects(inner, sh("path")):
            raise graph.malformed(shape, "node", "must be a node shape, and this one has a sh:path")
        yield NodeConstraint(inner)
    for inner in graph.nodes(shape, "property"):
        if not graph.objects(inner, sh("path")):
            raise graph.malformed(
                shape, "property", f"must be a property shape, and {graph.place(inner)} has no sh:path"
            )
        yield PropertyConstraint(inner)


def _qualified(graph: ShapesGraph, shape: Node) -> Iterator[Constraint]:
    inner = graph.nodes(shape, "qualifiedValueShape")
    least, most = graph.count(shape, "qualifiedMinCount"), graph.count(shape, "qualifiedMaxCount")
    disjoint = graph.boolean(shape, "qualifiedValueShapesDisjoint")
    if inner and least is None and most is None:
        reason = "needs a sh:qualifiedMinCount or a sh:qualifiedMaxCount beside it"
        raise graph.malformed(shape, "qualifiedValueShape", reason)
    for each in inner:
        siblings = _siblings(graph, shape, each) if disjoint else ()
        if least is not None:
            component = sh("QualifiedMinCountConstraintComponent")
            yield QualifiedConstraint(component, each, siblings, least=least)
        if most is not None:
            component = sh("QualifiedMaxCountConstraintComponent")
            yield QualifiedConstraint(component, each, siblings, most=most)


def _siblings(graph: ShapesGraph, shape: Node, inner: Node) -> tuple[Node, ...]:
    """The qualified shapes beside one: of the property shapes of each shape that has this property shape."""
    found: dict[Node, None] = {}
    for parent in graph.subjects(sh("property"), shape):
        for neighbour in graph.nodes(parent, "property"):
            found |= dict.fromkeys(graph.nodes(neighbour, "qualifiedValueShape"))
    return tuple(sibling for sibling in found if sibling != inner)


def _others(graph: ShapesGraph, shape: Node) -> Iterator[Constraint]:
    ignored = graph.only(shape, "ignoredProperties")
    if graph.boolean(shape, "closed"):
        listed = graph.members(ignored, shape, "ignoredProperties") if ignored is not None else []
        allowed = [
            graph.expect(each, NamedNode, shape, "ignoredProperties", "a list of IRIs") for each in listed
        ]
        for inner in graph.nodes(shape, "property"):
            allowed += [path for path in graph.objects(inner, sh("path")) if isinstance(path, NamedNode)]
        yield ClosedConstraint(tuple(dict.fromkeys(allowed)))
    for value in graph.objects(shape, sh("hasValue")):
        yield HasValueConstraint(_constant(graph, value, shape, "hasValue"))
    members = graph.only(shape, "in")
    if members is not None:
        listed = graph.members(members, shape, "in")
        yield InConstraint(tuple(dict.fromkeys(_constant(graph, each, shape, "in") for each in listed)))


def _constant(graph: ShapesGraph, value: Term, shape: Node, name: str) -> Term:
    """A term that means the same in the data: no blank node, and no triple term."""
    if isinstance(value, BlankNode | Triple):
        raise graph.malformed(shape, name, f"must be IRIs and literals, not {short_name(value)}")
    return stored_term(value)


_READERS: tuple[Reader, ...] = (
    _value_types,
    _counts,
    _ranges,
    _strings,
    _pairs,
    _logic,
    _shapes,
    _qualified,
    _others,
)
PARAMETERS = (
    *("class", "datatype", "nodeKind", "minCount", "maxCount", *_RANGES, "minLength", "maxLength", "pattern"),
    *("languageIn", "uniqueLang", "equals", "disjoint", "lessThan", "lessThanOrEquals", *SHAPE_LISTS),
    *(*SHAPE_VALUES, "closed", "hasValue", "in", "sparql", "expression"),
)
"""Every parameter that makes a node that has it a shape, by its local name."""
