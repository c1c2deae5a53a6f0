"""RDF Patch: what a document of rows comes to, and what is refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from graphdb.errors import LimitExceeded, RdfSyntaxError
from graphdb.model import ChangeSet
from graphdb.rdf.patch import QuadPatch, decode_patch, header_row, patch_rows, read_patch

S, P, G, OBJECT = (NamedNode(f"http://x/{name}") for name in "spgo")


def test_the_rows_of_one_transaction() -> None:
    patch = read_patch(
        b"""H id <urn:uuid:1> .
H prev "a" .
TX .
PA "x" <http://x/> .
PD "y" .
# a comment
A <http://x/s> <http://x/p> <http://x/o> .
A <http://x/s> <http://x/p> "a <_:b> \\"c\\""@en <http://x/g> .
D <_:abc> <http://x/p> _:d-e .
A <http://x/s> <http://x/p> <<( <http://x/s> <http://x/p> _:d-e )>> .
TC .
"""
    )
    assert patch == QuadPatch(
        (Quad(BlankNode("abc"), P, BlankNode("d-e")),),
        (
            Quad(S, P, OBJECT),
            Quad(S, P, Literal('a <_:b> "c"', language="en"), G),
            Quad(S, P, Triple(S, P, BlankNode("d-e"))),
        ),
    )


def test_of_each_quad_the_last_row_counts() -> None:
    row = b"<http://x/s> <http://x/p> <http://x/o> .\n"
    assert read_patch(b"A " + row + b"D " + row) == QuadPatch((Quad(S, P, OBJECT),), ())
    assert read_patch(b"D " + row + b"A " + row) == QuadPatch((), (Quad(S, P, OBJECT),))


def test_an_aborted_transaction_leaves_nothing() -> None:
    row = b"A <http://x/s> <http://x/p> <http://x/o> .\n"
    assert read_patch(b"TX .\n" + row + b"TA .\n") == QuadPatch()


def test_labels_of_any_characters_stay_different() -> None:
    rows = b"".join(
        b"A <_:%s> <http://x/p> <http://x/o> .\n" % label for label in (b"a:b", b"a/b", b"ab", b"-")
    )
    assert len({quad.subject for quad in read_patch(rows).added}) == 4


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (b"TX .\nA <http://x/s> <http://x/p> .\nTC .\n", 2),
        (b"A <http://x/s> <http://x/p> <http://x/o> . <http://x/s> <http://x/p> <http://x/o> .\n", 1),
        (b"\n\nA # nothing\n", 3),
        (b"X <http://x/s> .\n", 1),
        (b"TC .\n", 1),
        (b"TX .\nTX .\n", 2),
        (b"TX .\n", None),
        (b"A <http://x/s> <relative> <http://x/o> .\n", 1),
        (b"A ex:s ex:p ex:o .\n", 1),
        (b'A "literal" <http://x/p> <http://x/o> .\n', 1),
        (b"A <http://x/s> <http://x/p> \xff .\n", 1),
        (b"A <http://x/s> <http://x/p> " + b"<<( <http://x/s> <http://x/p> " * 3000 + b"\n", None),
    ],
)
def test_what_is_malformed_is_refused_with_its_line(document: bytes, line: int | None) -> None:
    with pytest.raises(RdfSyntaxError) as refused:
        read_patch(document)
    assert line is None or refused.value.line == line


def test_numbers_and_booleans_may_be_abbreviated() -> None:
    texts = ("1", "-2", "3.5", "1e3", "1.0E-2", "true")
    rows = "".join(f"A <http://x/s> <http://x/p> {text} .\n" for text in texts)
    kept = 'A <http://x/s> <http://x/p> " 1 true <_:a> " .\n'
    found = [quad.object for quad in read_patch((rows + kept).encode()).added]
    kinds = ("integer", "integer", "decimal", "double", "double", "boolean")
    xsd = "http://www.w3.org/2001/XMLSchema#"
    assert found[:-1] == [
        Literal(text, datatype=NamedNode(xsd + kind)) for text, kind in zip(texts, kinds, strict=True)
    ]
    assert found[-1] == Literal(" 1 true <_:a> ")


def test_rows_are_bounded() -> None:
    with pytest.raises(LimitExceeded):
        read_patch(b"A <http://x/s> <http://x/p> <http://x/o> .\n" * 3, rows_max=2)


def test_what_is_written_is_read() -> None:
    removed = (Quad(BlankNode("0123456789abcdef0123456789abcdef"), P, Literal("a\nb"), G),)
    added = (Quad(S, P, Triple(S, P, Literal("x", language="ar"))),)
    rows = (
        header_row("index", '"4"') + b"TX .\n" + b"".join(patch_rows(ChangeSet(removed, added))) + b"TC .\n"
    )
    assert read_patch(rows) == QuadPatch(removed, added)
    assert decode_patch(QuadPatch(removed, added).encode(), replaces_all=True) == QuadPatch(
        removed, added, True
    )


WORDS = b'A D TX TC TA H PA . " \\ < > <_: <http://x/s> _:b _: <<( )>> "a" @en ^^ 1 1e9 true # \xff'.split()
PIECES = st.sampled_from([*WORDS, b" ", b"\n", b"A ", b"TX .\n"])


@given(st.lists(PIECES, max_size=40).map(b"".join))
def test_any_document_is_read_or_refused(document: bytes) -> None:
    with suppress(RdfSyntaxError):
        patch = read_patch(document)
        assert read_patch(patch.encode()) == patch


@pytest.mark.parametrize(
    "piece",
    [
        b'"',
        b'\\"',
        b"<",
        b"<_:",
        b" ",
        b"1 ",
        b"TX ",
        b"H a ",
        b"<<( <http://x/s> <http://x/p> ",
        b"_:",
        b"#",
    ],
)
def test_long_rows_take_linear_time(piece: bytes) -> None:
    """A row of half a megabyte is refused within moments; in quadratic time it would take hours."""
    for begin in (b"A <http://x/s> <http://x/p> ", b'A <http://x/s> <http://x/p> "', b"TX", b"H a b", b"PA "):
        with suppress(RdfSyntaxError):
            read_patch(begin + piece * (500_000 // len(piece)) + b" x\n")
