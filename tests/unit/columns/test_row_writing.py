"""Rows are written as the engine's own writers write them, byte for byte."""

import pytest
from pyoxigraph import Store

from graphdb.columns import results, row_writing
from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import CompiledQuery, compile_query
from graphdb.columns.results import TermTexts, answer_of
from graphdb.columns.row_writing import may_write_rows, write_rows, write_triples
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.results import ResultFormat, write_answer
from graphdb.sparql.translation import abstract_query
from tests.support.column_answers import written_both_ways
from tests.support.column_tables import column_tables

FORMATS = [ResultFormat.TSV, ResultFormat.CSV, ResultFormat.JSON, ResultFormat.PLAIN_JSON]
DATA = r"""PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> INSERT DATA {
    :a :p 1, 2.50, 3e0, true, "", "a\tb", "a\nb\r", "\"q\", 'r'", "x,y", "ä\uFFFF\U0001F600", "\u0001", "\\" .
    :a :p "en"@en, "v"^^:own, "2020-01-01"^^xsd:date, <http://e/x?y=%20>, _:b, "},{\"c\":", "[{\"c\":", "}]" .
    :b :p _:b ; :r :c .
}"""
QUERIES = [
    "SELECT * { ?s ?p ?o }",
    "SELECT ?o { ?s ?p ?o }",
    "SELECT ?o ?r { ?s :p ?o OPTIONAL { ?s :r ?r } }",
    "SELECT ?r { ?s :p ?o OPTIONAL { ?s :r ?r } }",
    "SELECT ?s ?none { ?s :p ?o }",
    "SELECT * { ?s :nothing ?o }",
    "SELECT ?s (COUNT(*) AS ?n) (MAX(?o) AS ?m) { ?s :r ?o } GROUP BY ?s",
    "SELECT ?s (STR(?p) AS ?text) { ?s ?p ?o }",
    "SELECT ?s ?x { ?s :r ?o BIND(:absent AS ?x) }",
    "SELECT ?s ?x { ?s :r ?o VALUES ?x { :absent 'absent \"too\"' UNDEF } }",
    "SELECT ?s ?ж { ?s :r ?ж }",
    "ASK { ?s ?p ?o }",
]


def compiled(catalog: Catalog, text: str) -> CompiledQuery:
    found = compile_query(abstract_query(parse_query("PREFIX : <http://e/> " + text)), Dataset(), catalog)
    assert isinstance(found, CompiledQuery)
    return found


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    store = Store()
    store.update(DATA)
    return column_tables(store)


@pytest.mark.parametrize("batch", [1, 3, 20_480])
@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("text", QUERIES)
def test_the_same_bytes(
    catalog: Catalog, text: str, fmt: ResultFormat, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_writing, "_BATCH_ROWS", batch)
    query, texts = compiled(catalog, text), TermTexts(catalog.connection)
    if not may_write_rows(query, fmt):
        assert query.form == "ASK" or (fmt is ResultFormat.CSV and len(query.variables) == 1)
        return
    for _ in range(2):  # the second time from what was kept
        ours, engines = written_both_ways(catalog, query, texts, fmt)
        assert ours == engines


CONSTRUCTS = [
    ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", False),
    ("CONSTRUCT { ?o :q ?s . ?s ?o ?o . ?s :q 1, 'x', ?none } WHERE { ?s ?p ?o }", False),
    ("CONSTRUCT { ?s a :Thing } WHERE { ?s ?p ?o }", False),
    ("CONSTRUCT { ?s :many ?n } WHERE { SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s }", False),
    ("CONSTRUCT { ?s :p ?o } WHERE { ?s :p ?o } ORDER BY ?s LIMIT 3", True),
    ("CONSTRUCT { ?s :of [ :value ?o ] } WHERE { ?s :p ?o }", True),
    ("CONSTRUCT { ?s ?p ?o } WHERE { ?s :nothing ?o . ?s ?p ?o }", False),
]


@pytest.mark.parametrize("batch", [1, 3, 20_480])
@pytest.mark.parametrize(("text", "is_free"), CONSTRUCTS)
def test_the_same_triples(
    catalog: Catalog, text: str, batch: int, monkeypatch: pytest.MonkeyPatch, *, is_free: bool
) -> None:
    """is_free: which triples there are is not determined, but how many."""
    monkeypatch.setattr(results, "_BATCH_ROWS", batch)
    query, texts = compiled(catalog, text), TermTexts(catalog.connection)
    written: list[bytes] = []
    write_triples(query, catalog.connection.execute(query.sql).fetchmany, texts, written.append)
    lines = b"".join(written).splitlines(keepends=True)
    assert len(set(lines)) == len(lines)
    engines: list[bytes] = []
    answer = answer_of(query, catalog.connection.execute(query.sql).fetchmany, texts)
    write_answer(answer, ResultFormat.N_TRIPLES, engines.append)
    expected = b"".join(engines).splitlines(keepends=True)
    assert len(lines) == len(expected) if is_free else set(lines) == set(expected)


def test_formats_follow_each_other(catalog: Catalog) -> None:
    query, texts = compiled(catalog, QUERIES[0]), TermTexts(catalog.connection)
    for fmt in (*FORMATS, *reversed(FORMATS)):
        ours, engines = written_both_ways(catalog, query, texts, fmt)
        assert ours == engines


def test_terms_of_another_query_are_not_kept(catalog: Catalog) -> None:
    texts = TermTexts(catalog.connection)
    for name in ("one", "two"):
        query = compiled(catalog, f"SELECT ?s ?x {{ ?s :r ?o BIND(:absent-{name} AS ?x) }}")
        ours, _ = written_both_ways(catalog, query, texts, ResultFormat.TSV)
        assert f"absent-{name}".encode() in ours


def test_it_is_handed_on_in_pieces(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_writing, "_PIECE_BYTES", 64)
    pieces = list[bytes]()
    query = compiled(catalog, QUERIES[0])
    cursor = catalog.connection.execute(query.sql)
    write_rows(query, cursor.fetchmany, TermTexts(catalog.connection), ResultFormat.TSV, pieces.append)
    assert len(pieces) > 5
    assert all(len(piece) < 128 for piece in pieces)
