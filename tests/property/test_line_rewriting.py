"""Blocks of lines rewritten singly, against the whole document in a store; and lines that come twice."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Store, parse, serialize

from graphdb.rdf.canonical import canonical_lines
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import TRIPLE_TERM_DEPTH_MAX
from graphdb.store import distinct_lines
from graphdb.store.distinct_lines import DistinctLines
from graphdb.store.line_rewriting import (
    Unusual,
    numbered_labels,
    rewritten_block,
    salted_labels,
    written_quads,
)
from tests.property.strategies import GRAPHS, datasets

XSD = "http://www.w3.org/2001/XMLSchema#"
TYPES = [
    "integer",
    "decimal",
    "double",
    "float",
    "boolean",
    "date",
    "dateTime",
    "time",
    "gYear",
    "gYearMonth",
    "gMonthDay",
    "duration",
    "dayTimeDuration",
    "yearMonthDuration",
    "byte",
    "unsignedLong",
    "string",
    "anyURI",
]
NUMBERS = st.from_regex(r"[+-]?[0-9]{0,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
TIMES = st.from_regex(
    r"-?[0-9]{4,5}-[0-1][0-9]-[0-3][0-9](T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,4})?)?(Z|[+-]0[0-9]:00)?",
    fullmatch=True,
)
WORDS = st.sampled_from(
    [
        "true",
        "false",
        "1",
        "0",
        "-0",
        "NaN",
        "INF",
        "P1D",
        "PT25H",
        "2000",
        "--01-02",
        'a "quoted" one',
        "\\",
        "\n",
    ]
)
LEXICAL = NUMBERS | TIMES | WORDS | st.text(max_size=5)
SALT = bytes(range(16))
DEEP = TRIPLE_TERM_DEPTH_MAX + 1


def lines_of(quads: list[Quad]) -> bytes:
    return serialize(quads, format=RdfFormat.N_QUADS) or b""


def quads_of(lines: bytes) -> list[Quad]:
    return [*parse(lines, RdfFormat.N_QUADS, lenient=True)] if lines else []


@given(LEXICAL, st.sampled_from(TYPES))
@example("2000-02-29", "date")
@example("1999-12-31T23:59:59Z", "dateTime")
@example("0.5", "decimal")
@example("-0", "integer")
def test_values_are_written_as_the_engine_stores_them(lexical: str, datatype: str) -> None:
    value = Literal(lexical, datatype=NamedNode(XSD + datatype))
    quads = [Quad(NamedNode("urn:s"), NamedNode("urn:p"), value, graph) for graph in GRAPHS[:2]]
    store = Store()
    store.extend(quads)
    rewritten = rewritten_block(lines_of(quads), RdfSyntax.N_QUADS, graph=None, labels=None)
    assert sorted(rewritten.lines.splitlines()) == sorted(
        (store.dump(format=RdfFormat.N_QUADS) or b"").splitlines()
    )


@given(datasets, st.integers(0, 20))
def test_blocks_together_are_the_document(document: list[Quad], cut: int) -> None:
    """A label is one node in all of them, and no node that has the label in another document."""
    lines = lines_of(document).splitlines(keepends=True)
    labels = salted_labels(SALT)
    parts = []
    for part in (b"".join(lines[:cut]), b"".join(lines[cut:])):
        parts.append(rewritten_block(part, RdfSyntax.N_QUADS, graph=None, labels=labels))
        again = written_quads(quads_of(part), graph=None, labels=labels)
        assert sorted(again.lines.splitlines()) == sorted(parts[-1].lines.splitlines())
    store = Store()
    store.extend(document)
    together = quads_of(b"".join(part.lines for part in parts))
    assert canonical_lines(set(together)) == canonical_lines(set(store))
    assert {name for part in parts for name in part.graphs if isinstance(name, NamedNode)} == {
        quad.graph_name for quad in document if isinstance(quad.graph_name, NamedNode)
    }
    own = {quad.subject for quad in document if isinstance(quad.subject, BlankNode)}
    assert own.isdisjoint(quad.subject for quad in together)


def test_labels() -> None:
    labels, others = salted_labels(SALT), salted_labels(SALT[1:] + b"x")
    assert labels(b"a") == labels(b"a") != others(b"a")
    assert labels(b"a") != labels(b"b")
    assert BlankNode(labels(b"a").decode()).value == labels(b"a").decode()
    first, second = numbered_labels(labels), numbered_labels(labels)
    assert [first(b"x"), first(b"y"), first(b"x")] == [second(b"u"), second(b"v"), second(b"u")]


def test_literals_and_iris_that_look_like_blank_nodes() -> None:
    line = b'<urn:_:a> <urn:p> "_:a \\" _:a" <urn:g_:a> .\n'
    rewritten = rewritten_block(line, RdfSyntax.N_QUADS, graph=None, labels=salted_labels(SALT))
    assert rewritten.lines == line


def test_triples_go_to_a_graph() -> None:
    line = b'<urn:s> <urn:p> " .\\n" .\n_:a <urn:p> _:b .\n'
    rewritten = rewritten_block(line, RdfSyntax.N_TRIPLES, graph=NamedNode("urn:g"), labels=None)
    assert rewritten.lines == b'<urn:s> <urn:p> " .\\n" <urn:g> .\n_:a <urn:p> _:b <urn:g> .\n'
    assert rewritten.graphs == [NamedNode("urn:g")]


@pytest.mark.parametrize(
    "block",
    [
        b"<urn:s> <urn:p> .\n",
        b"<urn:s> <urn:p> <urn:o> .\n# \xff\n",
        b"<urn:s> <urn:p> " + b"<<( <urn:s> <urn:p> " * DEEP + b"<urn:o>" + b" )>>" * DEEP + b" .\n",
        b"<urn:s> <urn:p> <urn:o> <urn:g> .\n",
    ],
    ids=["malformed", "not UTF-8", "deep triple terms", "graph in triples"],
)
def test_what_is_out_of_the_ordinary(block: bytes) -> None:
    with pytest.raises(Unusual):
        rewritten_block(block, RdfSyntax.N_TRIPLES, graph=None, labels=None)


@given(st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=5), st.integers(2, 8))
def test_lines_that_come_twice(blocks: list[list[int]], at_once: int) -> None:
    expected = list(dict.fromkeys(f"{number}\n" for block in blocks for number in block))
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as directory:
        patch.setattr(distinct_lines, "_SORTED_MAX", at_once)
        path = Path(directory) / "lines"
        with DistinctLines(path) as distinct:
            for block in blocks:
                distinct.add("".join(f"{number}\n" for number in block).encode())
            distinct.finish()
        assert path.read_text() == "".join(expected)
        assert distinct.count == len(expected)
        assert [found.name for found in Path(directory).iterdir()] == ["lines"]


def test_very_many_that_come_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct_lines, "_REPEATED_MAX", 1)
    with DistinctLines(tmp_path / "lines") as distinct:
        distinct.add(b"a\na\nb\nb\n")
        with pytest.raises(Unusual):
            distinct.finish()
