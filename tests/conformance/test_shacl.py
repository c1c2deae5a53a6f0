"""The W3C suite of SHACL, core and SPARQL, by both engines: reports equal up to blank nodes, or failures."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import BlankNode, NamedNode, Quad, RdfFormat, Store, Triple, parse

from graphdb.errors import EvaluationFailed, MalformedShapes
from graphdb.rdf.canonical import canonical_lines
from graphdb.shacl.report import ValidationReport, report_triples
from graphdb.shacl.shacl_names import Node, Term, sh
from graphdb.shacl.shapes import Shapes, read_shapes
from graphdb.shacl.validation import Engine, validate
from graphdb.store.stored_form import stored_term
from tests.conformance.manifests import MF, Case, iri_of, manifest_graph, path_of, read_manifest, suite_root

ROOT = suite_root()
pytestmark = pytest.mark.skipif(ROOT is None, reason="the conformance suites are absent; set GRAPHDB_SHARED")

COUNTS = {"core": 98, "sparql": 22}
TESTS = ROOT / "w3c-shacl/data-shapes-test-suite/tests" if ROOT else None
CASES = [case for part in COUNTS for case in read_manifest(TESTS / part / "manifest.ttl")] if TESTS else []
SHT = "http://www.w3.org/ns/shacl-test#"

STORED_INTEGER = (
    "the store keeps xsd:byte as xsd:integer: a value that was no byte but could be passes for one"
)
EXCEPTIONS: dict[tuple[Engine, str], str] = {
    ("compiled", "datatype-ill-formed"): STORED_INTEGER,
    ("pyshacl", "datatype-ill-formed"): STORED_INTEGER,
    ("pyshacl", "prefixes-001"): "pySHACL does not follow owl:imports to further sh:declare",
    ("pyshacl", "shapesGraph-001"): "pySHACL has no $shapesGraph",
}
REPORT_PROPERTIES = ("conforms", "result")
RESULT_PROPERTIES = (
    *("focusNode", "resultPath", "resultSeverity", "sourceConstraint", "sourceConstraintComponent"),
    *("sourceShape", "value"),
)


def name_of(case: Case) -> str:
    return case.iri.rpartition("/")[2]


def test_no_case_is_lost() -> None:
    found = [case.manifest.relative_to(TESTS).parts[0] for case in CASES] if TESTS else []
    assert {part: found.count(part) for part in COUNTS} == COUNTS


def test_exceptions_are_cases() -> None:
    assert {name for _, name in EXCEPTIONS} <= {name_of(case) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=name_of)
@pytest.mark.parametrize("engine", ["compiled", "pyshacl"])
def test_case(case: Case, engine: Engine, request: pytest.FixtureRequest) -> None:
    logging.getLogger("pyshacl-validate").setLevel(logging.CRITICAL)
    if reason := EXCEPTIONS.get((engine, name_of(case))):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    [expected] = case.properties[MF + "result"]
    if expected == NamedNode(SHT + "Failure"):
        with pytest.raises((MalformedShapes, EvaluationFailed)):
            validated(case, engine)
        return
    assert isinstance(expected, NamedNode | BlankNode)
    given = manifest_graph(case.manifest)
    with_messages = any(given.quads_for_pattern(None, sh("resultMessage"), None))
    assert canonical_report(reported(validated(case, engine)), with_messages) == canonical_report(
        Report(given, expected), with_messages
    )


def validated(case: Case, engine: Engine) -> ValidationReport:
    given = manifest_graph(case.manifest)
    [action] = case.properties[MF + "action"]
    files = {
        name: path_of(value.value)
        for name in ("dataGraph", "shapesGraph")
        for value in objects(given, action, NamedNode(SHT + name))
        if isinstance(value, NamedNode)
    }
    data = Store()
    data.extend(triples_as_quads(files["dataGraph"]))
    return validate(data, None, shapes_of(files["shapesGraph"]), engine=engine)


def shapes_of(path: Path) -> Shapes:
    return read_shapes(quad.triple for quad in triples_as_quads(path))


def triples_as_quads(path: Path) -> Iterator[Quad]:
    """Of a file, with its own blank nodes: the same in the data, the shapes and the expected report."""
    return parse(path=str(path), format=RdfFormat.TURTLE, base_iri=iri_of(path), rename_blank_nodes=False)


class Report:
    """A report, the root of it, and the graph that it is in."""

    def __init__(self, graph: Store, root: Node) -> None:
        self.graph, self.root = graph, root


def reported(report: ValidationReport) -> Report:
    graph = Store()
    graph.extend(Quad(*triple) for triple in report_triples(report))
    [root] = graph.quads_for_pattern(None, None, sh("ValidationReport"))
    assert isinstance(root.subject, BlankNode)
    return Report(graph, root.subject)


def canonical_report(report: Report, with_messages: bool) -> list[str]:
    """The report and no more of what hangs on it; other blank nodes are as good as each other."""
    names = (*RESULT_PROPERTIES, *(["resultMessage"] if with_messages else []))
    triples = list(kept(report.graph, report.root, REPORT_PROPERTIES))
    for result in objects(report.graph, report.root, sh("result")):
        triples += kept(report.graph, result, names)
        for path in objects(report.graph, result, sh("resultPath")):
            triples += below(report.graph, path)
    return sorted(canonical_lines(Quad(*triple) for triple in triples))


def kept(graph: Store, node: Term, names: tuple[str, ...]) -> Iterator[Triple]:
    assert isinstance(node, NamedNode | BlankNode)
    for name in names:
        for value in objects(graph, node, sh(name)):
            yield Triple(node, sh(name), value if name == "conforms" else stored_term(value))


def below(graph: Store, node: Term) -> Iterator[Triple]:
    """The triples of a blank node and of those below it."""
    if isinstance(node, BlankNode):
        for quad in graph.quads_for_pattern(node, None, None):
            yield quad.triple
            yield from below(graph, quad.object)


def objects(graph: Store, subject: Term, predicate: NamedNode) -> list[Term]:
    assert isinstance(subject, NamedNode | BlankNode)
    return [quad.object for quad in graph.quads_for_pattern(subject, predicate, None)]
