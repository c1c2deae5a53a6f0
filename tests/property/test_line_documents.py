"""Documents of lines read by the engine alone, against the same a quad at a time."""

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, Store, Triple, serialize

from graphdb.errors import RdfSyntaxError
from graphdb.rdf.canonical import canonical_lines
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from graphdb.store.line_documents import add_document, is_line_document
from graphdb.store.line_rewriting import Unusual
from tests.property.strategies import GRAPHS, datasets

TARGETS = st.sampled_from([None, *GRAPHS])
BETWEEN = st.sampled_from([b"", b"\n", b"# a comment <a:a>\n", b"  ", b"\t# \n \n", b"\r\n"])


@given(datasets, st.sampled_from([RdfSyntax.N_TRIPLES, RdfSyntax.N_QUADS]), TARGETS, st.lists(BETWEEN))
def test_a_document(
    quads: list[Quad], syntax: RdfSyntax, graph: NamedNode | None, between: list[bytes]
) -> None:
    if not is_line_document(syntax, graph):
        assert graph is not None
        return
    body = b""
    for number, quad in enumerate(quads):
        body += between[number] if number < len(between) else b""
        line = [quad] if syntax.carries_graphs else [quad.triple]
        body += serialize(line, format=syntax.rdf_format) or b""
    store, counts = Store(), list[int]()
    has_triple_terms = any(isinstance(quad.object, Triple) for quad in quads)
    try:
        add_document(store, BytesIO(body), syntax, graph=graph, counted=counts.append)
    except Unusual:
        assert has_triple_terms
        assert not len(store)
        return
    plain = list(read_quads(body, syntax))
    assert sum(counts) == len(plain)
    moved = Store()
    moved.extend(quad if graph is None else Quad(*_terms(quad), graph) for quad in plain)
    assert canonical_lines(store) == canonical_lines(moved)


def _terms(quad: Quad) -> tuple[NamedNode, NamedNode, NamedNode]:
    return quad.subject, quad.predicate, quad.object  # type: ignore[return-value]


@pytest.mark.parametrize(
    "body",
    [
        b"<a:a> <b:b> <c:c> .\n<a:a> <b:b> .\n",
        b"<a:a> <b:b> <c:c> .\n# \xff\n",
        b"<a:a> <b:b> <<( <a:a> <b:b> <c:c> )>> .\n",
        "<a:a> <b:b> <c:c> .\n".encode("utf-16"),
    ],
    ids=["malformed", "not UTF-8 in a comment", "a triple term", "UTF-16"],
)
def test_what_is_unusual_adds_nothing(body: bytes) -> None:
    store = Store()
    with pytest.raises((Unusual, RdfSyntaxError)):
        add_document(store, BytesIO(body), RdfSyntax.N_TRIPLES, graph=None, counted=lambda more: None)
    assert not len(store)


def test_what_the_source_raises_comes_out() -> None:
    class Broken:
        def read(self, size: int, /) -> bytes:
            raise EOFError("cut")

    with pytest.raises(EOFError, match="cut"):
        add_document(Store(), Broken(), RdfSyntax.N_TRIPLES, graph=None, counted=lambda more: None)
