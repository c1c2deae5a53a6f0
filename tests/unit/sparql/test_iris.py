"""Resolution of IRIs: the examples of RFC 3986, section 5.4, and pyoxigraph as a twin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, RdfFormat, parse

from graphdb.sparql.iris import resolve_iri

BASE = "http://a/b/c/d;p?q"
EXAMPLES = {
    "g:h": "g:h", "g": "http://a/b/c/g", "./g": "http://a/b/c/g", "g/": "http://a/b/c/g/", "/g": "http://a/g",
    "//g": "http://g", "?y": "http://a/b/c/d;p?y", "g?y": "http://a/b/c/g?y", "#s": "http://a/b/c/d;p?q#s",
    "g#s": "http://a/b/c/g#s", "g?y#s": "http://a/b/c/g?y#s", ";x": "http://a/b/c/;x", "g;x": "http://a/b/c/g;x",
    "": "http://a/b/c/d;p?q", ".": "http://a/b/c/", "./": "http://a/b/c/", "..": "http://a/b/",
    "../": "http://a/b/", "../g": "http://a/b/g", "../..": "http://a/", "../../": "http://a/",
    "../../g": "http://a/g", "../../../g": "http://a/g", "../../../../g": "http://a/g", "/./g": "http://a/g",
    "/../g": "http://a/g", "g.": "http://a/b/c/g.", ".g": "http://a/b/c/.g", "g..": "http://a/b/c/g..",
    "..g": "http://a/b/c/..g", "./../g": "http://a/b/g", "./g/.": "http://a/b/c/g/", "g/./h": "http://a/b/c/g/h",
    "g/../h": "http://a/b/c/h", "g;x=1/./y": "http://a/b/c/g;x=1/y", "g;x=1/../y": "http://a/b/c/y",
    "g?y/./x": "http://a/b/c/g?y/./x", "g#s/../x": "http://a/b/c/g#s/../x",
}  # fmt: skip


@pytest.mark.parametrize(("reference", "iri"), EXAMPLES.items())
def test_examples_of_the_rfc(reference: str, iri: str) -> None:
    assert resolve_iri(reference, BASE) == iri


def twin(reference: str, base: str) -> str | None:
    """What pyoxigraph's Turtle parser makes of the reference; None where it refuses.

    It leaves the dots of a base in place, where the RFC does not, so bases here have none.
    """
    try:
        (quad,) = parse(f"<{reference}> <a:p> <a:o> .", RdfFormat.TURTLE, base_iri=base)
    except SyntaxError:
        return None
    assert isinstance(quad.subject, NamedNode)
    return quad.subject.value


@given(
    reference=st.text("ag./?#;%:@[]é2", max_size=12),
    base=st.sampled_from([BASE, "http://a", "http://a?q#f", "urn:x:y", "file:///a/b"]),
)
def test_twin(reference: str, base: str) -> None:
    try:
        ours = resolve_iri(reference, base)
    except ValueError:
        ours = None
    assert ours == twin(reference, base)
