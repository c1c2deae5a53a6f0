"""The shapes of a store, whichever of its graphs they stand in, data among them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pyoxigraph import BlankNode, NamedNode, Quad, Triple

from graphdb.errors import LimitExceeded
from graphdb.model import GraphName
from graphdb.shacl.parameter_reading import PARAMETERS
from graphdb.shacl.shacl_names import (
    OWL,
    RDF_FIRST,
    RDF_REST,
    RDF_TYPE,
    RDFS_CLASS,
    RDFS_SUBCLASS_OF,
    SH,
    Node,
    Term,
    sh,
)
from graphdb.shacl.shapes import TARGETS

__all__ = ["ScatteredShapes", "scattered_shapes"]

# `StoreView.quads_matching`
Matching = Callable[
    [NamedNode | BlankNode | Triple | None, NamedNode | None, Term | None, GraphName | None], Iterable[Quad]
]

_TRIPLES_MAX = 200_000
_IMPORTS = NamedNode(OWL + "imports")
_BESIDE = frozenset({RDF_TYPE, RDF_FIRST, RDF_REST, _IMPORTS})
# What these lead to is data, and no part of a shape, where it has an IRI.
_TO_DATA = frozenset(
    {
        RDF_TYPE,
        *map(sh, ("targetNode", "targetClass", "targetSubjectsOf", "targetObjectsOf", "class", "datatype")),
        *map(sh, ("hasValue", "equals", "disjoint", "lessThan", "lessThanOrEquals", "nodeKind", "severity")),
    }
)


@dataclass(frozen=True, slots=True)
class ScatteredShapes:
    """is_plain: they are the same until a triple changes that has a property of SHACL, or one of lists, or
    tells of a class; else components of their own, or imports, make what belongs to them hard to tell.
    """

    triples: tuple[Triple, ...]
    is_plain: bool


def scattered_shapes(matching: Matching) -> ScatteredShapes:
    """Every shape, and what it is made of: what has targets or parameters, and what that leads to.

    Raises LimitExceeded.
    """
    found: dict[Triple, None] = {}
    components = _subjects(matching, RDF_TYPE, sh("ConstraintComponent"))
    own = frozenset(_own_parameters(matching, components))
    for triple in _triples(matching, [*components, *_beginnings(matching, own)], own):
        found[triple] = None
        if len(found) > _TRIPLES_MAX:
            raise LimitExceeded("triples of shapes", len(found), _TRIPLES_MAX)
    imports = any(triple.predicate == _IMPORTS for triple in found)
    return ScatteredShapes(tuple(found), is_plain=not components and not imports)


def _beginnings(matching: Matching, own: Iterable[NamedNode]) -> Iterator[Node]:
    for predicate in (*map(sh, (*TARGETS, *PARAMETERS)), *own):
        yield from _subjects(matching, predicate, None)
    for kind in ("SPARQLFunction", "SHACLFunction", "Function"):
        yield from _subjects(matching, RDF_TYPE, sh(kind))


def _own_parameters(matching: Matching, components: Iterable[Node]) -> Iterator[NamedNode]:
    """What shapes say those things by that components of their own ask for."""
    for component in components:
        for parameter in _objects(matching, component, sh("parameter")):
            if isinstance(parameter, Node):
                for path in _objects(matching, parameter, sh("path")):
                    if isinstance(path, NamedNode):
                        yield path


def _triples(matching: Matching, beginnings: Iterable[Node], own: frozenset[NamedNode]) -> Iterator[Triple]:
    waiting, seen = list(dict.fromkeys(beginnings)), set[Node]()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        for quad in matching(node, None, None, None):
            predicate, object_ = quad.predicate, quad.object
            if predicate in _BESIDE or predicate in own or predicate.value.startswith(SH):
                yield quad.triple
                leads_on = isinstance(object_, NamedNode) and predicate not in _TO_DATA
                if leads_on or isinstance(object_, BlankNode):
                    assert isinstance(object_, Node)
                    waiting.append(object_)
    yield from _classes(matching)


def _classes(matching: Matching) -> Iterator[Triple]:
    """What is a kind of class: a shape that is of such a kind targets its own instances."""
    waiting: list[Node] = [RDFS_CLASS, NamedNode(OWL + "Class")]
    seen = set(waiting)
    while waiting:
        for quad in matching(None, RDFS_SUBCLASS_OF, waiting.pop(), None):
            yield quad.triple
            if isinstance(quad.subject, Node) and quad.subject not in seen:
                seen.add(quad.subject)
                waiting.append(quad.subject)


def _subjects(matching: Matching, predicate: NamedNode, object_: Term | None) -> list[Node]:
    quads = matching(None, predicate, object_, None)
    return list(dict.fromkeys(quad.subject for quad in quads if isinstance(quad.subject, Node)))


def _objects(matching: Matching, subject: Node, predicate: NamedNode) -> list[Term]:
    return [quad.object for quad in matching(subject, predicate, None, None)]
