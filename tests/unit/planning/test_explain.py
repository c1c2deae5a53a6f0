"""What EXPLAIN says of a query's text: why it is not cheap, and which patterns it looks for."""

import pytest
from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, Store, Triple

from graphdb.planning.decisions import is_cheap, why_not_cheap
from graphdb.planning.sources import COUNTED_MAX, scans_of
from graphdb.sparql.parser import parse_query

UNBOUNDED = "neither a subject, nor an object other than a class, nor a LIMIT up to 1000 is given"


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("SELECT * { <urn:a> ?p ?o }", ()),
        ("SELECT * { ?s ?p ?o }", (UNBOUNDED,)),
        ("SELECT * { ?s ?p 1 . ?s ?q 2 }", ("2 triple patterns are joined",)),
        ("SELECT * { ?s ?p 1 OPTIONAL { ?s ?q 2 } }", ("the pattern is more than triples in one graph",)),
        (
            "CONSTRUCT {} WHERE { ?s <urn:p>/<urn:q> 1 }",
            ("CONSTRUCT makes triples", "the triple pattern has a path, a triple term, or a variable twice"),
        ),
        ("SELECT (COUNT(*) AS ?n) { ?s ?p 1 }", ("what is selected drops or computes rows",)),
        (
            "SELECT * FROM <urn:g> { ?s ?p 1 } ORDER BY ?s OFFSET 2",
            ("FROM merges graphs", "ORDER BY collects the rows first", "OFFSET drops rows"),
        ),
    ],
)
def test_why_not_cheap(text: str, reasons: tuple[str, ...]) -> None:
    query = parse_query(text)
    assert why_not_cheap(query) == reasons
    assert is_cheap(query) == (not reasons)


def shown(text: str) -> list[str]:
    return [scan.pattern for scan in scans_of(parse_query(text))]


def test_patterns_in_the_order_of_the_text_each_once() -> None:
    assert shown(
        """SELECT * { ?s <urn:p> "x"@en . GRAPH <urn:g> { ?s ?p 1 . GRAPH ?h { [] <urn:q> ?o } }
        OPTIONAL { ?s <urn:p> "x"@en } FILTER EXISTS { ?s <urn:r> true } }"""
    ) == [
        '?s <urn:p> "x"@en',
        'GRAPH <urn:g> { ?s ?p "1"^^<http://www.w3.org/2001/XMLSchema#integer> }',
        *shown("SELECT * { GRAPH ?h { [] <urn:q> ?o } }"),
        '?s <urn:r> "true"^^<http://www.w3.org/2001/XMLSchema#boolean>',
    ]  # fmt: skip


def test_a_filter_amid_its_group_keeps_its_place() -> None:
    assert shown("SELECT * { ?s <urn:p> ?o FILTER EXISTS { ?o <urn:q> 1 } ?s <urn:r> (?a ?b) }") == [
        "?s <urn:p> ?o",
        *shown("SELECT * { ?o <urn:q> 1 }"),
        *shown("SELECT * { ?s <urn:r> (?a ?b) }"),
    ]


def test_paths_by_their_steps_and_nothing_of_service() -> None:
    assert shown("SELECT * { ?s (<urn:p>/^<urn:q>)+|!<urn:r> ?o SERVICE <http://x/> { ?a ?b ?c } }") == [
        "?a <urn:p> ?b",
        "?a <urn:q> ?b",
        "?a <urn:r> ?b",
    ]


def test_the_template_is_not_looked_for() -> None:
    assert shown("CONSTRUCT { ?s <urn:made> ?o } WHERE { ?s <urn:p> ?o }") == ["?s <urn:p> ?o"]
    assert shown("CONSTRUCT WHERE { ?s <urn:p> ?o }") == ["?s <urn:p> ?o"]
    assert shown("DESCRIBE <urn:a>") == []


@pytest.mark.parametrize(
    "term", ['"a"@en', '"a"@ar--rtl', '"\\n\\""@a-b-c', "<urn:a>", '<<( "a" <urn:p> <urn:b> )>>']
)
def test_terms_are_written_as_they_stand(term: str) -> None:
    """Also a language tag that the engine refuses, which is for the evaluation to find."""
    assert shown(f"SELECT * {{ ?s ?p {term} }}") == [f"?s ?p {term}"]


def count(store: Store, text: str) -> list[int]:
    counts = []
    for scan in scans_of(parse_query(text)):
        answer = store.query(scan.count_query)
        assert isinstance(answer, QuerySolutions)
        (row,) = answer
        counts.append(int(row["n"].value))
    return counts


def test_counts() -> None:
    store = Store()
    quads = (Quad(NamedNode("urn:a"), NamedNode("urn:p"), Literal(n)) for n in range(COUNTED_MAX + 5))
    store.bulk_extend(quads)
    store.add(Quad(NamedNode("urn:a"), NamedNode("urn:p"), Literal('"q"\n'), NamedNode("urn:g")))
    assert count(store, "SELECT * { ?s ?p ?o . <urn:a> <urn:p> 7 . ?s <urn:q> _:b }") == [COUNTED_MAX, 1, 0]
    assert count(store, 'SELECT * { GRAPH ?g { ?s ?p "\\"q\\"\\n" } }') == [1]


def test_filters_behind_a_scan_do_not_count() -> None:
    """A scan that finds no row still ends at the bound: what it looks at counts, not what it finds."""
    store = Store()
    a, p = NamedNode("urn:a"), NamedNode("urn:p")
    store.extend(Quad(a, p, Literal(n)) for n in range(5))
    store.add(Quad(a, p, Triple(a, p, a)))
    store.add(Quad(a, p, a, NamedNode("urn:g")))
    assert count(store, "SELECT * { ?s <urn:p> ?s . ?s <urn:p> <<( ?x <urn:q> ?y )>> }") == [6, 6]
    assert count(store, "SELECT * { <urn:a> <urn:p> <<( <urn:a> <urn:p> <urn:a> )>> }") == [1]
    assert count(store, "SELECT * { GRAPH ?g { ?g ?g ?g } GRAPH <urn:h> { ?s ?p ?o } }") == [1, 0]
