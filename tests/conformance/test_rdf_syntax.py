"""The W3C suites of the RDF 1.1 and 1.2 syntaxes, each case through our reading (and canonical writing)."""

from pathlib import Path

import pytest
from pyoxigraph import Quad

from graphdb.errors import RdfSyntaxError
from graphdb.rdf.canonical import canonical_lines
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from tests.conformance.manifests import Case, iri_of, read_manifest, suite_root

MANIFESTS = {
    # RDF 1.2's manifests include those of RDF 1.1
    "rdf12/rdf-n-triples": 140,
    "rdf12/rdf-n-quads": 155,
    "rdf12/rdf-turtle": 416,
    "rdf12/rdf-trig": 416,
    "rdf12/rdf-xml": 197,
}

NAMESPACES = (
    "expects an XML literal in exclusive canonical form, as RDF 2004 had it; since RDF 1.1 that is one of "
    "many lexical forms of the value, and the parser writes the namespaces in scope"
)
LABELS = "expects the blank node's label of the document, where RDFC-1.0 issues its own"
EXCEPTIONS = {
    "rdf11/rdf-xml/manifest.ttl#xml-canon-test001": NAMESPACES,
    "rdf11/rdf-xml/manifest.ttl#xml-canon-test002": NAMESPACES,
    "rdf12/rdf-xml/eval#rdf12-xml-an-13": NAMESPACES,
    "rdf12/rdf-xml/eval#rdf12-xml-an-14": NAMESPACES,
    "rdf12/rdf-n-triples/c14n#triple-term-02": LABELS,
    "rdf12/rdf-n-quads/c14n#triple-term-02": LABELS,
}

ROOT = suite_root()
pytestmark = pytest.mark.skipif(ROOT is None, reason="the conformance suites are absent; set GRAPHDB_SHARED")


def cases(manifest: str) -> list[Case]:
    return read_manifest(ROOT / "w3c-rdf-tests" / "rdf" / manifest / "manifest.ttl") if ROOT else []


CASES = [case for manifest in MANIFESTS for case in cases(manifest)]


@pytest.mark.parametrize(("manifest", "count"), MANIFESTS.items())
def test_no_case_is_lost(manifest: str, count: int) -> None:
    assert len(cases(manifest)) == count


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: case.iri.removeprefix("https://w3c.github.io/rdf-tests/rdf/")
)
def test_case(case: Case) -> None:
    if reason := EXCEPTIONS.get(case.iri.rpartition("/rdf/")[2]):
        with pytest.raises(AssertionError):
            run(case)  # once this passes, the exception is stale
        pytest.skip(reason)
    run(case)


def test_no_exception_names_a_case_that_is_not_there() -> None:
    assert set(EXCEPTIONS) <= {case.iri.rpartition("/rdf/")[2] for case in CASES}


def run(case: Case) -> None:
    (kind,) = case.kinds
    assert case.action.file is not None
    if kind.endswith("NegativeSyntax"):
        with pytest.raises(RdfSyntaxError):
            read(case.action.file)
        return
    quads = read(case.action.file, iri_of(case.action.file))
    if kind.endswith("Eval"):
        assert case.result is not None
        assert case.result.file is not None
        assert canonical_lines(quads) == canonical_lines(read(case.result.file))
    elif kind.endswith("C14N"):
        assert case.result is not None
        assert case.result.file is not None
        # These cases are about single lines, which they leave in the order of the document.
        expected = case.result.file.read_bytes().decode().splitlines(keepends=True)
        assert canonical_lines(quads) == sorted(expected)
    else:
        assert kind.endswith("PositiveSyntax")


def read(path: Path, base_iri: str | None = None) -> list[Quad]:
    with path.open("rb") as file:
        return list(read_quads(file, RdfSyntax.from_path(path), base_iri=base_iri or iri_of(path)))
