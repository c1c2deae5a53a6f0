"""Documents of lines read by the engine alone, against the same a quad at a time."""

from collections.abc import Callable
from functools import partial
from io import BytesIO
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, Store, Triple, serialize

from graphdb.errors import RdfSyntaxError
from graphdb.rdf.canonical import canonical_lines
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import ByteSource, read_quads
from graphdb.store import line_documents
from graphdb.store.line_documents import add_document, is_line_document
from graphdb.store.line_rewriting import Unusual
from serve.cli import shares
from serve.cli.shares import shared_out
from tests.property.strategies import GRAPHS, datasets

TARGETS = st.sampled_from([None, *GRAPHS])
BETWEEN = st.sampled_from([b"", b"\n", b"# a comment <a:a>\n", b"  ", b"\t# \n \n", b"\r\n"])


def add(
    store: Store,
    source: ByteSource,
    syntax: RdfSyntax,
    *,
    graph: NamedNode | None = None,
    counted: Callable[[int], None] = lambda more: None,
    loaders: int = 1,
) -> None:
    """In small pieces, so that a short document has several."""
    sharing = partial(shared_out, loaders=loaders)
    with patch.object(line_documents, "_READ_BYTES", 50), patch.object(shares, "_FIRST_BYTES", 0):
        add_document(store, source, syntax, graph=graph, counted=counted, sharing=sharing)


@settings(deadline=None)  # each has threads
@given(
    datasets,
    st.sampled_from([RdfSyntax.N_TRIPLES, RdfSyntax.N_QUADS]),
    TARGETS,
    st.lists(BETWEEN),
    st.integers(1, 3),
)
def test_a_document(
    quads: list[Quad], syntax: RdfSyntax, graph: NamedNode | None, between: list[bytes], loaders: int
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
        add(store, BytesIO(body), syntax, graph=graph, counted=counts.append, loaders=loaders)
    except Unusual:
        assert has_triple_terms
        assert loaders > 1 or not len(store)
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
        add(store, BytesIO(body), RdfSyntax.N_TRIPLES)
    assert not len(store)


def test_what_the_source_raises_comes_out() -> None:
    class Broken:
        def read(self, size: int, /) -> bytes:
            raise EOFError("cut")

    with pytest.raises(EOFError, match="cut"):
        add(Store(), Broken(), RdfSyntax.N_TRIPLES)
