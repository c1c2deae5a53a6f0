"""The report as the interface's JSON and as RDF."""

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Store, parse

from graphdb.rdf.canonical import canonical_lines
from graphdb.shacl.paths import AlternativePath, InversePath, Path, PredicatePath, RepeatedPath, SequencePath
from graphdb.shacl.report import ValidationReport, ValidationResult, report_json, report_triples
from graphdb.shacl.shacl_names import Node, Term, sh

EX = "http://example.org/"
A, S = NamedNode(EX + "a"), NamedNode(EX + "S")
P, Q = PredicatePath(NamedNode(EX + "p")), PredicatePath(NamedNode(EX + "q"))


def result(
    focus: Term = A,
    path: Path | None = None,
    value: Term | None = None,
    messages: tuple[Literal, ...] = (),
    shape: Node = S,
) -> ValidationResult:
    component = sh("ClassConstraintComponent")
    return ValidationResult(focus, path, value, sh("Violation"), messages, shape, component)


def test_members_are_those_of_the_interface() -> None:
    found = result(path=P, value=Literal("v"), messages=(Literal("no"),))
    assert report_json(ValidationReport((found,), 3, 4), 5) == {
        "conforms": False,
        "results": [
            {
                "focusNode": EX + "a",
                "resultPath": EX + "p",
                "severity": "http://www.w3.org/ns/shacl#Violation",
                "message": "no",
                "sourceShape": EX + "S",
                "sourceConstraintComponent": "http://www.w3.org/ns/shacl#ClassConstraintComponent",
            }
        ],
        "stats": {
            "focus_nodes_validated": 3,
            "constraints_checked": 4,
            "violations": 1,
            "warnings": 0,
            "infos": 0,
            "duration_ms": 5,
        },
    }


def shown(found: ValidationResult, member: str) -> object:
    return report_json(ValidationReport((found,), 0, 0), 0)["results"][0][member]


def test_what_is_no_iri_is_written_so_that_it_can_be_told() -> None:
    assert shown(result(focus=BlankNode("x")), "focusNode") == "_:x"
    assert shown(result(focus=Literal("a", language="en")), "focusNode") == '"a"@en'
    assert shown(result(shape=BlankNode("s")), "sourceShape") == "_:s"


def test_paths_are_written_as_in_sparql() -> None:
    p, q = f"<{EX}p>", f"<{EX}q>"
    texts: dict[Path, str] = {
        InversePath(P): f"^{p}",
        SequencePath((P, InversePath(Q))): f"{p}/^{q}",
        AlternativePath((P, SequencePath((P, Q)))): f"{p}|({p}/{q})",
        RepeatedPath(SequencePath((P, Q)), "*"): f"({p}/{q})*",
    }
    assert {path: shown(result(path=path), "resultPath") for path in texts} == texts
    assert shown(result(), "resultPath") is None


def test_of_several_messages_the_plain_one_is_shown_else_the_english_one() -> None:
    german, english, plain = Literal("de", language="de"), Literal("en", language="en-gb"), Literal("plain")
    assert shown(result(messages=(german, english, plain)), "message") == "plain"
    assert shown(result(messages=(german, english)), "message") == "en"
    assert shown(result(messages=(german,)), "message") == "de"


def test_the_report_as_rdf() -> None:
    path = SequencePath((P, AlternativePath((Q, RepeatedPath(InversePath(P), "+")))))
    value, taken = BlankNode("v"), BlankNode("report1")
    found = result(
        focus=taken, path=path, value=value, messages=(Literal("no"), Literal("nein", language="de"))
    )
    expected = f"""@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <{EX}> .
        [] a sh:ValidationReport ; sh:conforms false ; sh:result [ a sh:ValidationResult ;
            sh:focusNode _:other ; sh:value _:v ; sh:resultMessage "no", "nein"@de ;
            sh:resultPath ( :p [ sh:alternativePath ( :q [ sh:oneOrMorePath [ sh:inversePath :p ] ] ) ] ) ;
            sh:resultSeverity sh:Violation ; sh:sourceShape :S ;
            sh:sourceConstraintComponent sh:ClassConstraintComponent ] ."""
    written = Store()
    written.extend(Quad(*triple) for triple in report_triples(ValidationReport((found,), 1, 1)))
    assert sorted(canonical_lines(written)) == sorted(
        canonical_lines(parse(expected.encode(), RdfFormat.TURTLE))
    )
    assert {str(quad.object) for quad in written.quads_for_pattern(None, sh("focusNode"), None)} == {
        "_:report1"
    }


def test_an_empty_report_conforms() -> None:
    report = ValidationReport((), 0, 0)
    assert report.conforms
    assert [str(triple.object) for triple in report_triples(report)][1].startswith('"true"')
