"""The W3C suite of RDFC-1.0: canonical N-Quads, issued labels, and the dataset that is poison."""

import json

import pytest

from graphdb.errors import LimitExceeded
from graphdb.rdf.canonical import canonical_labels, canonical_lines
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from tests.conformance.manifests import Case, read_manifest, suite_root

ROOT = suite_root()
pytestmark = pytest.mark.skipif(ROOT is None, reason="the conformance suites are absent; set GRAPHDB_SHARED")

CASES = read_manifest(ROOT / "w3c-rdf-canon" / "tests" / "manifest.ttl") if ROOT else []
COUNT = 86
HASH_ALGORITHM = "https://w3c.github.io/rdf-canon/tests/vocab#hashAlgorithm"


def test_no_case_is_lost() -> None:
    assert len(CASES) == COUNT


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.iri.partition("#")[2])
def test_case(case: Case) -> None:
    assert case.action.file is not None
    quads = list(read_quads(case.action.file.read_bytes(), RdfSyntax.N_QUADS, fresh_blank_nodes=False))
    hash_name = hash_of(case)
    if case.kinds == {"RDFC10NegativeEvalTest"}:
        with pytest.raises(LimitExceeded):
            canonical_lines(quads, hash_name)
        return
    assert case.result is not None
    assert case.result.file is not None
    if case.kinds == {"RDFC10MapTest"}:
        assert canonical_labels(quads, hash_name) == json.loads(case.result.file.read_bytes())
    else:
        assert case.kinds == {"RDFC10EvalTest"}
        assert "".join(canonical_lines(quads, hash_name)).encode() == case.result.file.read_bytes()


def hash_of(case: Case) -> str:
    names = [str(value.value) for value in case.properties.get(HASH_ALGORITHM, ())]  # type: ignore[union-attr]
    return names[0].lower() if names else "sha256"
