"""Every result format: read back by others, cut into chunks, refused where it cannot hold a value."""

import csv
import io
import json
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    Quad,
    QueryResultsFormat,
    QuerySolutions,
    Store,
    Triple,
    parse_query_results,
)

from graphdb.errors import EvaluationFailed, NotAcceptable
from graphdb.rdf.canonical import canonical_lines
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from graphdb.sparql.results import ResultFormat, formats_for, write_answer
from tests.unit.rdf.random_quads import literals, quads, texts, xml_texts

A, P = NamedNode("http://e/a"), NamedNode("http://e/p")
SELECT = "SELECT ?s ?nothing ?o WHERE { ?s ?p ?o }"
CONSTRUCT = "CONSTRUCT WHERE { ?s ?p ?o }"


def store_of(items: list[Quad]) -> Store:
    store = Store()
    store.extend(items)
    return store


def answer(store: Store, query: str, fmt: ResultFormat) -> bytes:
    chunks: list[bytes] = []
    write_answer(store.query(query), fmt, chunks.append)
    assert len(chunks) == 1, "a small answer is one call"
    return chunks[0]


def bindings(document: bytes, fmt: QueryResultsFormat) -> set[tuple[str, ...]]:
    solutions = parse_query_results(document, format=fmt)
    assert isinstance(solutions, QuerySolutions)
    return {tuple(str(term) for term in solution) for solution in solutions}


def expected(items: list[Quad]) -> set[tuple[str, ...]]:
    return {(str(item.subject), "None", str(item.object)) for item in items}


NATIVE = {
    ResultFormat.JSON: QueryResultsFormat.JSON,
    ResultFormat.PLAIN_JSON: QueryResultsFormat.JSON,
    ResultFormat.TSV: QueryResultsFormat.TSV,
}


@settings(deadline=None)
@given(quads(graphs=False))
def test_solutions_survive_json_and_tsv(items: list[Quad]) -> None:
    store = store_of(items)
    for fmt, native in NATIVE.items():
        assert bindings(answer(store, SELECT, fmt), native) == expected(items)


@settings(deadline=None)
@given(quads(xml_texts, graphs=False))
def test_solutions_survive_xml(items: list[Quad]) -> None:
    document = answer(store_of(items), SELECT, ResultFormat.XML)
    assert bindings(document, QueryResultsFormat.XML) == expected(items)
    seen = {element.text or "" for element in ElementTree.fromstring(document).iter() if not len(element)}
    assert {item.object.value for item in items if isinstance(item.object, Literal)} <= seen


@settings(deadline=None)
@given(quads(graphs=False))
def test_ndjson_is_the_bindings_of_json_a_line_each(items: list[Quad]) -> None:
    store = store_of(items)
    query = "SELECT * WHERE { ?s ?p ?o . OPTIONAL { ?s <http://e/p#q> ?q } } ORDER BY ?s ?p ?o ?q"
    lines = answer(store, query, ResultFormat.NDJSON).splitlines(keepends=True)
    assert all(line.endswith(b"\n") for line in lines)
    rows = json.loads(answer(store, query, ResultFormat.JSON))["results"]["bindings"]
    assert [json.loads(line) for line in lines] == rows


TRICKY = st.text('{},"\\:[]a\n', max_size=12)


@settings(deadline=None)
@given(st.lists(st.none() | TRICKY, max_size=6))
def test_ndjson_is_cut_only_between_rows(values: list[str | None]) -> None:
    rows = " ".join("UNDEF" if value is None else str(Literal(value)) for value in values)
    lines = answer(Store(), f"SELECT ?v {{ VALUES ?v {{ {rows} }} }}", ResultFormat.NDJSON).splitlines()
    seen = [json.loads(line).get("v", {}).get("value") for line in lines]
    assert seen == values


def test_ndjson_has_no_line_ends_but_its_own() -> None:
    values = ["\x85", "a\u2028b\u2029", "\u0105\U0001f600", "\x0b\x0c\x1c\x1e\r\n"]
    text = f"SELECT ?v {{ VALUES ?v {{ {' '.join(str(Literal(value)) for value in values)} }} }}"
    lines = answer(Store(), text, ResultFormat.NDJSON).decode().splitlines()
    assert [json.loads(line)["v"]["value"] for line in lines] == values


def test_ndjson_passes_over_a_head_larger_than_a_chunk() -> None:
    variables = " ".join(f"?{'v' * 60}{i}" for i in range(3_000))
    assert (
        answer(Store(), f"SELECT {variables} ?x {{ BIND(1 AS ?x) }}", ResultFormat.NDJSON).count(b"\n") == 1
    )


@settings(deadline=None)
@given(st.lists(literals(texts) | st.just(BlankNode("b")) | st.just(A), max_size=5))
def test_csv_is_read_back_by_a_csv_reader(terms: list[Literal | BlankNode | NamedNode]) -> None:
    store = store_of([Quad(NamedNode(f"http://e/{i}"), P, term) for i, term in enumerate(terms)])
    text = answer(store, "SELECT ?s ?o WHERE { ?s ?p ?o } ORDER BY ?s", ResultFormat.CSV).decode()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0] == ["s", "o"]
    assert [row[1] for row in rows[1:]] == ["_:b" if term == BlankNode("b") else term.value for term in terms]


def test_csv_of_a_triple_term_is_as_in_the_specification() -> None:
    carol = NamedNode("http://example/carol")
    term = Triple(carol, NamedNode("http://example/says"), Literal('Hello world, my name is "Alice".'))
    store = store_of([Quad(A, P, term)])
    assert answer(store, "SELECT ?o WHERE { ?s ?p ?o }", ResultFormat.CSV) == (
        b'o\r\n"<< http://example/carol http://example/says '
        b'""Hello world, my name is """"Alice""""."" >>"\r\n'
    )


@pytest.mark.parametrize(
    ("fmt", "yes", "no"),
    [
        (ResultFormat.JSON, b'{"head":{},"boolean":true}', b'{"head":{},"boolean":false}'),
        (ResultFormat.PLAIN_JSON, b'{"head":{},"boolean":true}', b'{"head":{},"boolean":false}'),
    ],
)
def test_ask_in_json(fmt: ResultFormat, yes: bytes, no: bytes) -> None:
    assert answer(Store(), "ASK {}", fmt) == yes
    assert answer(Store(), "ASK { FILTER(false) }", fmt) == no


@pytest.mark.parametrize("fmt", [ResultFormat.XML, ResultFormat.PLAIN_XML])
def test_ask_in_xml(fmt: ResultFormat) -> None:
    assert bool(parse_query_results(answer(Store(), "ASK {}", fmt), format=QueryResultsFormat.XML)) is True


def test_terms_of_rdf_1_2_have_the_shapes_of_sparql_1_2() -> None:
    query = 'SELECT ?d ?t { BIND("x"@en--rtl AS ?d) BIND(<<( <http://e/a> <http://e/p> "y" )>> AS ?t) }'
    (row,) = json.loads(answer(Store(), query, ResultFormat.JSON))["results"]["bindings"]
    assert row == {
        "d": {"type": "literal", "value": "x", "xml:lang": "en", "its:dir": "rtl"},
        "t": {
            "type": "triple",
            "value": {
                "subject": {"type": "uri", "value": "http://e/a"},
                "predicate": {"type": "uri", "value": "http://e/p"},
                "object": {"type": "literal", "value": "y"},
            },
        },
    }
    document = answer(Store(), query, ResultFormat.XML).decode()
    assert 'its:dir="rtl"' in document
    assert "<triple><subject><uri>http://e/a</uri></subject>" in document


@settings(deadline=None)
@given(quads(graphs=False))
def test_graphs_come_as_a_json_array_of_n_triples(items: list[Quad]) -> None:
    lines = json.loads(answer(store_of(items), CONSTRUCT, ResultFormat.JSON))
    assert all(line.endswith(" .") for line in lines)
    assert canonical_lines(read_quads("\n".join(lines).encode(), RdfSyntax.N_TRIPLES)) == canonical_lines(
        items
    )


@settings(deadline=None)
@given(quads(graphs=False))
def test_graphs_survive_every_rdf_format(items: list[Quad]) -> None:
    store = store_of(items)
    for fmt in formats_for("CONSTRUCT"):
        if fmt not in (
            ResultFormat.JSON,
            ResultFormat.PLAIN_JSON,
            ResultFormat.RDF_XML,
            ResultFormat.JSON_LD,
            ResultFormat.BINARY_RDF,
            ResultFormat.RDF_THRIFT,
        ):
            document = answer(store, CONSTRUCT, fmt)
            assert canonical_lines(
                read_quads(document, RdfSyntax.from_media_type(fmt.media_type))
            ) == canonical_lines(items)


@pytest.mark.parametrize(
    "fmt", [ResultFormat.TURTLE, ResultFormat.N_TRIPLES, ResultFormat.CANONICAL_N_TRIPLES]
)
def test_one_triple_stands_on_each_line(fmt: ResultFormat) -> None:
    store = store_of([Quad(A, P, Literal("1")), Quad(A, P, Literal("2"))])
    assert sorted(answer(store, CONSTRUCT, fmt).splitlines()) == [
        b'<http://e/a> <http://e/p> "1" .',
        b'<http://e/a> <http://e/p> "2" .',
    ]


@pytest.mark.parametrize("fmt", ResultFormat)
def test_large_answers_come_in_chunks_and_whole(fmt: ResultFormat) -> None:
    store = store_of([Quad(NamedNode(f"http://e/{i}"), P, Literal(f"{i} " * 20)) for i in range(3_000)])
    query = CONSTRUCT if "CONSTRUCT" in fmt.applies_to and "SELECT" not in fmt.applies_to else SELECT
    chunks: list[bytes] = []
    write_answer(store.query(query), fmt, chunks.append)
    assert len(chunks) >= 3
    assert max(map(len, chunks)) < 400_000
    document = b"".join(chunks)
    assert all(f"http://e/{i}".encode() in document for i in (0, 1_499, 2_999))


@pytest.mark.parametrize("fmt", formats_for("SELECT"))
def test_a_failed_evaluation_is_named(fmt: ResultFormat) -> None:
    solutions = Store().query("SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }")
    with pytest.raises(EvaluationFailed):
        write_answer(solutions, fmt, lambda chunk: None)


@pytest.mark.parametrize("fmt", ResultFormat)
def test_what_the_sink_raises_comes_out_as_it_is(fmt: ResultFormat) -> None:
    store = store_of([Quad(A, P, Literal("1"))])
    query = CONSTRUCT if "SELECT" not in fmt.applies_to else SELECT

    def sink(chunk: bytes) -> None:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        write_answer(store.query(query), fmt, sink)


@pytest.mark.parametrize(
    ("fmt", "query", "value"),
    [
        (ResultFormat.XML, SELECT, Literal("\x01")),
        (ResultFormat.RDF_XML, CONSTRUCT, Literal("\x01")),
        (ResultFormat.JSON_LD, CONSTRUCT, Triple(A, P, A)),
    ],
)
def test_what_a_format_cannot_hold_is_refused(fmt: ResultFormat, query: str, value: Literal) -> None:
    with pytest.raises(NotAcceptable):
        answer(store_of([Quad(A, P, value)]), query, fmt)


def test_the_formats_of_each_form_in_order_of_preference() -> None:
    assert [fmt.value for fmt in formats_for("ASK")] == ["json", "plain-json", "xml", "plain-xml"]
    assert formats_for("SELECT")[0] is ResultFormat.JSON
    assert formats_for("CONSTRUCT") == formats_for("DESCRIBE")
    assert ResultFormat.CANONICAL_N_TRIPLES.content_type == (
        'application/n-triples; profile="http://www.w3.org/ns/rdf-canon#c14n"'
    )
    assert ResultFormat.CSV.content_type == "text/csv; charset=utf-8"
