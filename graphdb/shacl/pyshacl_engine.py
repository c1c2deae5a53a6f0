"""The fallback engine: pySHACL, its shapes and its terms."""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.errors import EvaluationFailed
from graphdb.shacl.affected import Neighbourhood, is_bounded
from graphdb.shacl.compiled_engine import is_compilable
from graphdb.shacl.data_graph import DataGraph, graph_of_quads
from graphdb.shacl.derived_types import DERIVED_TYPES, ZONED, DerivedType
from graphdb.shacl.findings import messages_of
from graphdb.shacl.nesting import DEPTH_MAX, inner_shapes
from graphdb.shacl.paths import Path, PredicatePath
from graphdb.shacl.report import ValidationResult
from graphdb.shacl.shacl_names import RDF_FIRST, RDF_NIL, RDF_REST, RDF_TYPE, SH, XSD, Node, Term, sh
from graphdb.shacl.shape_tree import (
    AllOf,
    ClassTarget,
    ComponentConstraint,
    Constraint,
    DatatypeConstraint,
    ExactlyOneOf,
    ExpressionConstraint,
    NodeConstraint,
    OneOf,
    Shape,
    SparqlConstraint,
)
from graphdb.shacl.shapes import Shapes
from graphdb.store.stored_form import stored_term

__all__ = ["pyshacl_results"]

# Terms and triples as rdflib's, and back to the very terms that they were.


class RdflibTerms:
    """Remembers what it has translated. What rdflib has no term for becomes a blank node there."""

    def __init__(self) -> None:
        self._theirs: dict[Term, Any] = {}
        self._ours: dict[Any, Term] = {}

    def graph(self, triples: Iterable[Triple]) -> Any:
        """An rdflib Graph of the triples."""
        from rdflib import Graph

        graph = Graph()
        for triple in triples:
            subject = self.theirs(triple.subject)
            graph.add((subject, self.theirs(triple.predicate), self.theirs(triple.object)))
        return graph

    def theirs(self, term: Term) -> Any:
        """The term as rdflib's."""
        found = self._theirs.get(term)
        if found is None:
            found = _translated(term, len(self._theirs))
            self._theirs[term] = found
            self._ours[found] = term
        return found

    def ours(self, term: Any) -> Term:
        """What rdflib's term was made from; for one that came out of nowhere, the like of it."""
        found = self._ours.get(term)
        return _translated_back(term) if found is None else found


def _translated(term: Term, number: int) -> Any:
    import rdflib

    match term:
        case NamedNode():
            return rdflib.URIRef(term.value)
        case BlankNode():
            return rdflib.BNode(term.value)
        case Literal(language=None):
            datatype = term.datatype.value
            if datatype == XSD + "string":
                return rdflib.Literal(term.value)
            return rdflib.Literal(term.value, datatype=rdflib.URIRef(datatype), normalize=False)
        case Literal(direction=None):
            return rdflib.Literal(term.value, lang=term.language)
        case _:
            return rdflib.BNode(f"graphdb-term-{number}")


def _translated_back(term: Any) -> Term:
    import rdflib

    if isinstance(term, rdflib.URIRef):
        return NamedNode(str(term))
    if isinstance(term, rdflib.BNode):
        return BlankNode(str(term))
    if term.language:
        return Literal(str(term), language=term.language)
    return Literal(str(term), datatype=NamedNode(str(term.datatype)) if term.datatype else None)


# The shapes graph as pySHACL gets it: focus nodes in the place of targets, stored types beside derived.

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


# pySHACL as an engine: what it needs of graph and shapes becomes rdflib's, its results become ours.
#
# It walks rdflib's graphs in Python and is slow, but it is the reference. Its modules are imported when
# they are first needed.

_PRESENT = NamedNode("urn:graphdb:shacl:present")


def pyshacl_results(
    graph: DataGraph, shapes: Shapes, focus: Mapping[Node, Iterable[Term]]
) -> Iterator[ValidationResult]:
    """The results for these focus nodes, which are given for each shape by its node.

    Raises EvaluationFailed where pySHACL gives up, and what the graph's check raises.
    """
    terms = RdflibTerms()
    used = _reachable(shapes, focus)
    given = PyshaclShapes(shapes, focus)
    report = _validate(
        data=terms.graph(_data(graph, shapes, used, focus)),
        shacl_graph=terms.graph(given.triples),
        advanced=not all(is_compilable(each) for shape in used for each in shape.constraints),
    )
    yield from _Report(report, terms, shapes, given).results()


def _validate(data: Any, shacl_graph: Any, *, advanced: bool) -> Any:
    """The report, as an rdflib Graph."""
    import pyshacl
    import rdflib.plugins.sparql
    from pyshacl.constraints.sparql.sparql_based_constraint_components import (
        SPARQLConstraintComponentValidator,
    )
    from pyshacl.rdfutil.stringify import stringify_blank_node

    rdflib.plugins.sparql.SPARQL_LOAD_GRAPHS = False  # else FROM fetches what it names
    rdflib.plugins.sparql.CUSTOM_EVALS["graphdb"] = _refuse_service
    # Both are kept by the address of a graph, where another graph may be by now.
    SPARQLConstraintComponentValidator.validator_cache.clear()
    stringify_blank_node.dict_cache.clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, report, _ = pyshacl.validate(
                data, shacl_graph=shacl_graph, advanced=advanced, max_validation_depth=2 * DEPTH_MAX
            )
    except Exception as error:  # it raises what it is made to, and what it trips over
        raise EvaluationFailed(f"pySHACL: {error}") from error
    if isinstance(report, Exception):
        raise EvaluationFailed(f"pySHACL: {report}")
    return report


def _refuse_service(context: Any, part: Any) -> Any:
    """What rdflib asks first about each part of a query. The shapes were read, so this is a second lock."""
    if part.name == "ServiceGraphPattern":
        raise EvaluationFailed("SERVICE is not allowed in shapes")
    raise NotImplementedError  # it does the part itself


def _reachable(shapes: Shapes, focus: Mapping[Node, object]) -> list[Shape]:
    """The shapes with focus nodes, and all below them."""
    found: dict[Node, Shape] = {}
    waiting = list(focus)
    for node in waiting:
        if node not in found:
            found[node] = shapes[node]
            waiting.extend(inner_shapes(shapes[node]))
    return list(found.values())


def _data(
    graph: DataGraph, shapes: Shapes, used: list[Shape], focus: Mapping[Node, Iterable[Term]]
) -> Iterator[Triple]:
    """What the shapes look at; all of the graph, where that cannot be told."""
    if not is_bounded(used):
        for quad in graph.quads_matching(None, None, None, graph_of_quads(graph.name)):
            yield quad.triple
        return
    needed = Neighbourhood(shapes, graph, graph.name)
    for node, nodes in focus.items():
        needed.add(shapes[node], nodes)
    for quad in needed.quads:
        yield quad.triple
    for found in focus.values():
        for each in found:
            if isinstance(each, BlankNode):  # it wants to describe one, and finds it nowhere else perhaps
                yield Triple(_PRESENT, _PRESENT, each)


class _Report:
    """Reads rdflib's report graph."""

    def __init__(self, report: Any, terms: RdflibTerms, shapes: Shapes, given: PyshaclShapes) -> None:
        self._report, self._terms, self._shapes, self._given = report, terms, shapes, given

    def results(self) -> Iterator[ValidationResult]:
        """Those of the report itself; what sh:node adds as sh:detail only explains one of them."""
        kind = self._terms.theirs(RDF_TYPE), self._terms.theirs(sh("ValidationReport"))
        for report in self._report.subjects(*kind):
            for result in self._report.objects(report, self._terms.theirs(sh("result"))):
                yield self._result(result)

    def _result(self, node: Any) -> ValidationResult:
        focus, value = self._value(node, "focusNode"), self._value(node, "value")
        source, severity = self._value(node, "sourceShape"), self._value(node, "resultSeverity")
        component, source_constraint = self._value(node, "sourceConstraintComponent"), None
        assert focus is not None
        assert isinstance(component, NamedNode)
        assert isinstance(severity, NamedNode)
        shape = self._shapes[source]  # type: ignore[index]
        constraint = self._given.constraint(shape, component)
        assert constraint is not None
        if isinstance(constraint, SparqlConstraint):
            found = self._value(node, "sourceConstraint")
            constraint = next(
                each
                for each in shape.constraints
                if isinstance(each, SparqlConstraint) and each.node == found
            )
            source_constraint = constraint.node
        bindings = {"this": focus} if value is None else {"this": focus, "value": value}
        return ValidationResult(
            focus_node=focus,
            path=self._path(node, shape),
            value=value,
            severity=severity,
            messages=messages_of(shape, constraint, bindings, self._own_messages(node, constraint)),
            source_shape=shape.node,
            component=constraint.component,
            source_constraint=source_constraint,
        )

    def _path(self, node: Any, shape: Shape) -> Path | None:
        path = self._value(node, "resultPath")
        return PredicatePath(path) if isinstance(path, NamedNode) else shape.path

    def _own_messages(self, node: Any, constraint: Constraint) -> tuple[Literal, ...]:
        if not isinstance(constraint, SparqlConstraint | ComponentConstraint | ExpressionConstraint):
            return ()
        theirs = self._report.objects(node, self._terms.theirs(sh("resultMessage")))
        ours = (self._terms.ours(message) for message in theirs)
        return tuple(sorted((each for each in ours if isinstance(each, Literal)), key=str))

    def _value(self, node: Any, name: str) -> Term | None:
        value = self._report.value(node, self._terms.theirs(sh(name)))
        return None if value is None else self._terms.ours(value)
