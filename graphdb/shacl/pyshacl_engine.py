"""pySHACL as an engine: what it needs of graph and shapes becomes rdflib's, its results become ours.

It walks rdflib's graphs in Python and is slow, but it is the reference. Its modules are imported when they
are first needed.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.errors import EvaluationFailed
from graphdb.shacl.compiled_engine import is_compilable
from graphdb.shacl.data_graph import DataGraph, graph_of_quads
from graphdb.shacl.messages import messages_of
from graphdb.shacl.neighbourhood import Neighbourhood, is_bounded
from graphdb.shacl.nesting import DEPTH_MAX, inner_shapes
from graphdb.shacl.paths import Path, PredicatePath
from graphdb.shacl.pyshacl_shapes import PyshaclShapes
from graphdb.shacl.rdflib_terms import RdflibTerms
from graphdb.shacl.report import ValidationResult
from graphdb.shacl.shape_tree import (
    ComponentConstraint,
    Constraint,
    ExpressionConstraint,
    Shape,
    SparqlConstraint,
)
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.vocabulary import RDF_TYPE, Node, Term, sh

__all__ = ["pyshacl_results"]

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
