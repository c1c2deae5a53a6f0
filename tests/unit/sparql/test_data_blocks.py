"""INSERT DATA and DELETE DATA as quads, small blocks through the grammar and large ones through TriG."""

from collections.abc import Callable

import pytest
from pyoxigraph import BaseDirection, BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from graphdb.errors import QuerySyntaxError
from graphdb.sparql.parser import GRAMMAR_CHARS_MAX, LARGE_BLOCK_CHARS, ground_quads, parse_update
from graphdb.sparql.syntax import DeleteData, InsertData

PREFIXES = "PREFIX : <http://e/>\nPREFIX x: <http://x/>\n"
PADDING = " # padding {\n" + "#" * LARGE_BLOCK_CHARS + "\n"
PIECE = ':s :p "}{ \\" \'#<" .\n'


def node(name: str) -> NamedNode:
    return NamedNode("http://e/" + name)


def counting() -> Callable[[], BlankNode]:
    numbers = iter(range(1_000_000))
    return lambda: BlankNode(f"fresh{next(numbers)}")


def quads_of(text: str, fresh: Callable[[], BlankNode] | None = None) -> list[Quad]:
    update = parse_update(text)
    quads: list[Quad] = []
    for operation in update.operations:
        assert isinstance(operation, InsertData | DeleteData)
        quads.extend(ground_quads(update, operation, fresh))
    return quads


def is_native(text: str) -> bool:
    (operation,) = parse_update(text).operations
    assert isinstance(operation, InsertData | DeleteData)
    return operation.quads is None


S, P, G = node("s"), node("p"), node("g")
D = DefaultGraph()
# name, block, its quads with fresh blank nodes, whether TriG reads it when it is large
BLOCKS = [
    ("nothing", "", set(), True),
    ("no last dot", ":s :p 1", {Quad(S, P, Literal(1), D)}, True),
    ("last dot", ":s :p 1.", {Quad(S, P, Literal(1), D)}, True),
    ("a graph", "GRAPH :g { :s :p 1 }", {Quad(S, P, Literal(1), G)}, True),
    (
        "a graph in small letters",
        "graph x:g { :s :p 1 }",
        {Quad(S, P, Literal(1), NamedNode("http://x/g"))},
        True,
    ),
    (
        "triples, then a graph",
        ":s :p 1 . GRAPH :g { :s :p 2 } :s :p 3 .",
        {Quad(S, P, Literal(1), D), Quad(S, P, Literal(2), G), Quad(S, P, Literal(3), D)},
        True,
    ),
    ("dot behind a graph", "GRAPH :g { :s :p 1 } .", {Quad(S, P, Literal(1), G)}, False),
    (
        "no dot before a graph",
        ":s :p 1 GRAPH :g { :s :p 2 }",
        {Quad(S, P, Literal(1), D), Quad(S, P, Literal(2), G)},
        False,
    ),
    ("TRUE", ":s :p TRUE", {Quad(S, P, Literal(True), D)}, False),
    (
        "strings with braces",
        ":s :p '}{', '''}'{'''",
        {Quad(S, P, Literal(v), D) for v in ("}{", "}'{")},
        True,
    ),
    ("names with signs", r":a\#b :p :\'", {Quad(node("a#b"), P, node("'"), D)}, True),
    (
        "languages",
        ":s :p 'a'@en-GB, 'b'@ar--rtl",
        {
            Quad(S, P, Literal("a", language="en-GB"), D),
            Quad(S, P, Literal("b", language="ar", direction=BaseDirection.RTL), D),
        },
        True,
    ),
    ("a triple term", ":s :p <<( :s :p 1 )>>", {Quad(S, P, Triple(S, P, Literal(1)), D)}, True),
    (
        "an annotation",
        ":s :p 1 ~ :r {| :p 2 |}",
        {
            Quad(S, P, Literal(1), D),
            Quad(
                node("r"),
                NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies"),
                Triple(S, P, Literal(1)),
                D,
            ),
            Quad(node("r"), P, Literal(2), D),
        },
        True,
    ),
    (
        "one label is one node",
        "_:a :p _:a . GRAPH :g { :s :p <<( _:a :p _:a )>> }",
        {
            Quad(BlankNode("fresh0"), P, BlankNode("fresh0"), D),
            Quad(S, P, Triple(BlankNode("fresh0"), P, BlankNode("fresh0")), G),
        },
        True,
    ),
    ("each [] is another", "[] :p []", {Quad(BlankNode("fresh0"), P, BlankNode("fresh1"), D)}, True),
]
each_block = pytest.mark.parametrize(
    ("name", "block", "quads", "native"), BLOCKS, ids=[case[0] for case in BLOCKS]
)


@each_block
def test_small_and_large_blocks_are_read_alike(name: str, block: str, quads: set[Quad], native: bool) -> None:
    small = f"{PREFIXES}INSERT DATA {{ {block} }}"
    large = f"{PREFIXES}INSERT DATA {{ {block} {PADDING} }}"
    assert set(quads_of(small, counting())) == quads
    assert set(quads_of(large, counting())) == quads
    assert (is_native(small), is_native(large)) == (False, native)


def test_relative_iris_are_resolved_against_the_base_in_force() -> None:
    text = "BASE <http://e/a/> INSERT DATA { <s> <../p> <#f> %s }"
    expected = [Quad(node("a/s"), P, node("a/#f"), D)]
    assert quads_of(text % "") == quads_of(text % PADDING) == expected
    update = parse_update("INSERT DATA { <s> <../p> <#f> " + PADDING + "}", "http://e/a/")
    (operation,) = update.operations
    assert isinstance(operation, InsertData)
    assert list(ground_quads(update, operation)) == expected


def test_without_fresh_labels_stay() -> None:
    assert quads_of("INSERT DATA { _:a <a:p> 1 }") == [
        Quad(BlankNode("a"), NamedNode("a:p"), Literal(1), D),
    ]


# name, the end of a block after many triples, line from the end of those, column, part of the reason
FAULTS = [
    ("object missing", ":s :p }", 0, 7, "found '}'"),
    ("not closed", ":s :p 1", 0, 8, "expected '}', found the end of the text"),
    ("string not closed", ':s :p "a }', 0, 7, "not closed on its line"),
    ("on a later line", ":s :p 1 .\n:s : }", 1, 6, "found '}'"),
    ("prefix not declared", "no:s :p 1 }", 0, 1, "the prefix 'no:' is not declared"),
    ("PREFIX in data", "PREFIX a: <http://a/> }", 0, 1, "found 'PREFIX'"),
    ("@prefix in data", "@prefix a: <http://a/> . }", 0, 1, "found '@prefix'"),
    ("@prefix before a graph", "@prefix a: <http://a/> . GRAPH :g {} }", 0, 1, "found '@prefix'"),
    ("a graph without GRAPH", ":g { :s :p 1 } }", 0, 4, "found '{'"),
    ("braces alone", "{ :s :p 1 } }", 0, 1, "found '{'"),
    ("a graph that is a blank node", "GRAPH _:g { :s :p 1 } }", 0, 7, "found '_:g'"),
    ("variable", ":s :p ?o }", 0, 7, "data cannot hold a variable, here ?o"),
    (
        "too deep",
        ":s :p " + "<<( :s :p " * 201 + ":o" + " )>>" * 201 + "}",
        0,
        1997,
        "nested deeper than 200",
    ),
]
each_fault = pytest.mark.parametrize(
    ("name", "end", "line", "column", "reason"), FAULTS, ids=[case[0] for case in FAULTS]
)


@each_fault
def test_fault_in_a_large_block(name: str, end: str, line: int, column: int, reason: str) -> None:
    pieces = LARGE_BLOCK_CHARS // len(PIECE) + 1
    with pytest.raises(QuerySyntaxError) as caught:
        parse_update(f"{PREFIXES}INSERT DATA {{\n{PIECE * pieces}{end}")
    error = caught.value
    assert (error.line, error.column) == (4 + pieces + line, column)
    assert reason in error.reason


@each_fault
def test_fault_in_a_block_too_large_for_the_grammar(
    name: str, end: str, line: int, column: int, reason: str
) -> None:
    """The TriG parser's words are its own, and its columns may be those of a neighbouring sign."""
    pieces = GRAMMAR_CHARS_MAX // len(PIECE) + 1
    with pytest.raises(QuerySyntaxError) as caught:
        parse_update(f"{PREFIXES}INSERT DATA {{\n{PIECE * pieces}{end}")
    assert caught.value.line == 4 + pieces + line


def test_blank_nodes_in_a_large_delete() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_update(f"DELETE DATA {{ {PADDING} <a:s> <a:p>\n _:o }}")
    assert (caught.value.line, caught.value.column) == (4, 2)
    assert caught.value.reason == "DELETE DATA cannot hold a blank node"


def test_labels_shared_by_large_operations() -> None:
    one = f"INSERT DATA {{ _:a <a:p> 1 {PADDING} }}"
    assert len(quads_of(f"{one} ; {one.replace('_:a', '_:b')}")) == 2
    with pytest.raises(QuerySyntaxError, match="_:a stands in two operations"):
        parse_update(f"{one} ; {one}")


def test_labels_shared_by_operations_too_large_for_the_grammar() -> None:
    one = f"INSERT DATA {{ _:a <a:p> <<( _:b <a:p> 1 )>>, [] . {PADDING} }}"
    other = one.replace("_:a", "_:c").replace("_:b", "_:d") + "#" * GRAMMAR_CHARS_MAX
    assert len(quads_of(f"{one} ; {other}")) == 4
    with pytest.raises(QuerySyntaxError) as caught:
        parse_update(f"{one} ; {other.replace('_:c', '_:b')}")
    assert (caught.value.line, caught.value.reason) == (3, "_:b stands in two operations")
    with pytest.raises(QuerySyntaxError) as caught:
        parse_update(f"INSERT DATA {{ _:c <a:p> 1 }} ; {other}")
    assert (caught.value.line, caught.value.reason) == (1, "_:c stands in two operations")


def test_large_blocks_among_other_operations() -> None:
    large = f"INSERT DATA {{ <a:s> <a:p> 1 {PADDING} }}"
    update = parse_update(f"{large} ; CLEAR ALL ; {large.replace('INSERT', 'DELETE')}")
    kinds = [type(operation).__name__ for operation in update.operations]
    assert kinds == ["InsertData", "ClearGraph", "DeleteData"]
    first = update.operations[0]
    assert isinstance(first, InsertData)
    assert update.text[first.block.start : first.block.end] == large[len("INSERT DATA ") :]


def test_a_term_that_the_native_parser_has_no_room_for_is_refused() -> None:
    text = f'INSERT DATA {{ <urn:a> <urn:b> "{"x" * (17 << 20)}" }}'
    with pytest.raises(QuerySyntaxError, match="a term or comment is too long"):
        parse_update(text)
