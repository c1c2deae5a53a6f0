"""The interior of a holon against the shapes in its boundary."""

import httpx
import pytest

from tests.unit.serve.holonic.conftest import A, B, Holons, confirmed, in_path, refused, update

SHAPES = """
    @prefix sh: <http://www.w3.org/ns/shacl#> . @prefix x: <urn:x#> .
    x:Shape a sh:NodeShape ; sh:targetClass x:C ;
        sh:property [ sh:path x:p ; sh:minCount 1 ; sh:maxCount 1 ] .
"""
GOOD = "@prefix x: <urn:x#> . <urn:good> a x:C ; x:p 1 ."
BAD = "@prefix x: <urn:x#> . <urn:bad> a x:C ."


def membrane(holons: Holons, iri: str, tenant: str | None = None, **headers: str) -> httpx.Response:
    params = {} if tenant is None else {"tenant": tenant}
    return holons.http.get(f"/holonic/holons/{in_path(iri)}/membrane", params=params, headers=headers)


def violations(answer: httpx.Response, iri: str = A) -> list[str]:
    """The nodes that the report names, of this holon."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    report = answer.json()
    assert set(report) == {"iri", "conforms", "results", "stats"}
    assert report["iri"] == iri
    assert report["conforms"] == (not report["results"])
    assert report["stats"]["violations"] == len(report["results"])
    return sorted(result["focusNode"] for result in report["results"])


@pytest.fixture
def bounded(holons: Holons) -> Holons:
    """a has a membrane."""
    confirmed(holons.declare(A))
    confirmed(holons.add(A, "boundary", SHAPES))
    return holons


def test_a_membrane(bounded: Holons) -> None:
    assert violations(membrane(bounded, A)) == []
    confirmed(bounded.add(A, "interior", GOOD))
    assert violations(membrane(bounded, A)) == []
    index = confirmed(bounded.add(A, "interior", BAD))["snapshot_index"]
    answer = membrane(bounded, A)
    assert violations(answer) == ["urn:bad"]
    assert answer.headers["X-Snapshot-Index"] == str(index)


def test_nothing_else_counts(bounded: Holons) -> None:
    confirmed(bounded.declare(B))
    confirmed(bounded.declare(A, "other"))
    confirmed(bounded.add(A, "interior", BAD, "other"))
    confirmed(bounded.add(B, "interior", BAD))
    for layer in ("context", "projection", "boundary"):
        confirmed(bounded.add(A, layer, BAD))
    update(bounded.http, "INSERT DATA { <urn:bad> a <urn:x#C> }")
    assert violations(membrane(bounded, A)) == []
    assert violations(membrane(bounded, B), B) == []
    assert violations(membrane(bounded, A, "other")) == []


def test_graphs_of_a_layer_count_together(bounded: Holons) -> None:
    confirmed(bounded.add(A, "interior", BAD))
    confirmed(bounded.add(A, "interior", GOOD, graph_slug="one"))
    confirmed(bounded.add(A, "interior", GOOD, graph_slug="two"))
    assert violations(membrane(bounded, A)) == ["urn:bad"], "the same value twice is one value"
    confirmed(bounded.add(A, "interior", "<urn:bad> <urn:x#p> 1 .", graph_slug="two"))
    assert violations(membrane(bounded, A)) == []
    stricter = """
        @prefix sh: <http://www.w3.org/ns/shacl#> .
        <urn:x#Values> a sh:NodeShape ; sh:targetSubjectsOf <urn:x#p> ;
            sh:property [ sh:path <urn:x#p> ; sh:minInclusive 2 ] .
    """
    confirmed(bounded.add(A, "boundary", stricter, graph_slug="stricter"))
    assert violations(membrane(bounded, A)) == ["urn:bad", "urn:good"]


def test_a_portal_is_no_shape(bounded: Holons) -> None:
    confirmed(bounded.connect("urn:p", A, B, "CONSTRUCT WHERE { ?s <urn:x#p> ?o }"))
    confirmed(bounded.add(A, "interior", BAD))
    assert violations(membrane(bounded, A)) == ["urn:bad"]


def test_a_report_in_rdf(bounded: Holons) -> None:
    confirmed(bounded.add(A, "interior", BAD))
    answer = membrane(bounded, A, accept="text/turtle")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/turtle"
    assert "<urn:bad>" in answer.text


def test_what_cannot_be_validated(bounded: Holons) -> None:
    refused(membrane(bounded, B), 404)
    refused(membrane(bounded, A, "other"), 404)
    refused(membrane(bounded, A, accept="image/png"), 406)
    refused(bounded.http.post(f"/holonic/holons/{in_path(A)}/membrane", json={}), 405)
    broken = "@prefix sh: <http://www.w3.org/ns/shacl#> . <urn:x#Shape> sh:property [ sh:path 7 ] ."
    confirmed(bounded.add(A, "boundary", broken))
    refused(membrane(bounded, A), 400)
