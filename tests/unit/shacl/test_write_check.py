"""The report that decides about a write, and how much it may take to make one."""

import itertools
from typing import Any

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Store, Triple, parse

from graphdb.shacl.change_check import (
    ShapeCost,
    check_report,
    first_refusing,
    shape_costs,
    terms_from_texts,
    texts_of_terms,
)
from graphdb.shacl.shacl_names import Term
from graphdb.shacl.shapes import Shapes, read_shapes

PREFIXES = "PREFIX sh: <http://www.w3.org/ns/shacl#> PREFIX x: <http://x/> "
P = NamedNode("http://x/p")


def shapes_of(turtle: str) -> Shapes:
    return read_shapes(quad.triple for quad in parse(PREFIXES + turtle, RdfFormat.TURTLE))


def report_of(severities: list[str], count: int, focus: list[NamedNode] | None = None) -> dict[str, Any]:
    """Of so many nodes, each of which violates a shape of each severity."""
    store = Store()
    store.extend(Quad(NamedNode(f"http://x/n{number}"), P, Literal(number)) for number in range(count))
    turtle = " ".join(
        f"x:S{number} sh:targetSubjectsOf x:p ; sh:severity {severity} ; sh:property "
        f"[ sh:path x:p ; sh:nodeKind sh:IRI ; sh:severity {severity} ] ."
        for number, severity in enumerate(severities)
    )
    return check_report(store, None, shapes_of(turtle), focus, itertools.count().__next__)


def test_a_report_is_bounded_and_counts_all() -> None:
    report = report_of(["sh:Info", "sh:Violation"], 80)
    assert len(report["results"]) == 100
    severities = [result["severity"].rpartition("#")[2] for result in report["results"]]
    assert severities == ["Violation"] * 80 + ["Info"] * 20
    assert (report["stats"]["violations"], report["stats"]["infos"]) == (80, 80)
    assert (report["conforms"], report["stats"]["duration_ms"]) == (False, 1000)


@pytest.mark.parametrize(
    ("severities", "refuses"),
    [
        (["sh:Violation"], True),
        (["sh:Warning", "sh:Info"], False),
        (["sh:Warning", "x:Fatal"], True),
        ([], False),
    ],
)
def test_what_refuses(severities: list[str], refuses: bool) -> None:
    assert (first_refusing(report_of(severities, 2)) is not None) == refuses


def test_only_the_nodes_that_are_asked_about() -> None:
    report = report_of(["sh:Violation"], 5, [NamedNode("http://x/n3"), NamedNode("http://x/n9")])
    assert [result["focusNode"] for result in report["results"]] == ["http://x/n3"]
    assert report["stats"]["focus_nodes_validated"] == 1


def test_terms_travel_as_texts() -> None:
    terms: list[Term] = [
        NamedNode("http://x/\u00e9"),
        BlankNode("b1"),
        Literal('"\n\\', language="en"),
        Literal(1),
        Triple(NamedNode("urn:a"), NamedNode("urn:b"), Literal("c")),
        Triple(NamedNode("urn:a"), NamedNode("urn:b"), Triple(BlankNode("c"), P, Literal(2.5))),
    ]
    assert terms_from_texts(texts_of_terms(terms)) == terms
    assert terms_from_texts([]) == []


COSTS = {
    "sh:nodeKind sh:IRI": (0, 2),
    "sh:property [ sh:path x:p ; sh:minCount 1 ]": (1, 4),
    "sh:property [ sh:path ( x:p [ sh:inversePath x:q ] ) ; sh:minCount 1 ]": (2, 4),
    "sh:property [ sh:path [ sh:alternativePath ( x:p ( x:q x:r ) ) ] ; sh:minCount 1 ]": (2, 4),
    "sh:property [ sh:path [ sh:zeroOrMorePath x:p ] ; sh:minCount 1 ]": (2, 4),
    "sh:property [ sh:path x:p ; sh:node [ sh:property [ sh:path x:q ; sh:class x:C ] ] ]": (2, 8),
    "sh:or ( [ sh:path x:p ; sh:minCount 1 ] [ sh:nodeKind sh:IRI ] )": (1, 6),
    "sh:node x:Same ; sh:not x:Same . x:Same sh:nodeKind sh:IRI": (0, 7),
    "sh:pattern '" + "a" * 500 + "'": (0, 12),
    "sh:in ( " + " ".join(f"x:m{number}" for number in range(10, 60)) + ")": (0, 2 + len("<http://x/m10>")),
}


@pytest.mark.parametrize("constraints", COSTS)
def test_what_validating_may_cost(constraints: str) -> None:
    costs = shape_costs(shapes_of(f"x:S sh:targetClass x:C ; {constraints} ."))
    assert costs[NamedNode("http://x/S")] == ShapeCost(*COSTS[constraints])


def test_only_some_shapes_look_for_their_focus_nodes() -> None:
    shapes = shapes_of(" ".join(f"x:S{number} sh:targetClass x:C ; sh:node x:T ." for number in range(3)))
    [one] = shapes.only([NamedNode("http://x/S1"), NamedNode("http://x/T")]).targeted
    assert one.node == NamedNode("http://x/S1")
    assert len(shapes.targeted) == 3
