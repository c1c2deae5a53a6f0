"""Which WHERE clauses are small joins: told by the data, in doubt not."""

from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.syntax import DeleteWhere
from graphdb.sparql.translation import pattern_of_group, pattern_of_quads
from graphdb.store.quad_store import QuadStore
from graphdb.store.small_joins import LargePatterns, SmallJoin, is_one_scan, small_join


@pytest.fixture(scope="module")
def store() -> QuadStore:
    """A hub that knows a thousand people, each with a name; one of them has a nickname."""
    quads = Store()
    for number in range(1000):
        person = NamedNode(f"urn:{number}")
        quads.add(Quad(NamedNode("urn:hub"), NamedNode("urn:knows"), person))
        quads.add(Quad(person, NamedNode("urn:name"), Literal(number)))
    quads.add(Quad(NamedNode("urn:7"), NamedNode("urn:nick"), Literal("seven")))
    quads.add(Quad(NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:a"), NamedNode("urn:g")))
    return QuadStore(quads)


def is_small(store: QuadStore, where: str, graph: str | None = None, entries_max: int = 100) -> bool:
    query = parse_query(f"PREFIX : <urn:> SELECT * WHERE {{ {where} }}")
    assert query.where is not None
    join = SmallJoin.of_pattern(pattern_of_group(query.where), NamedNode(graph) if graph else None)
    return join is not None and join.fits(store, entries_max)


@pytest.mark.parametrize(
    "where",
    [
        "",
        ":7 :name ?n",
        ":7 :name ?n . :7 :nick ?k",
        "?s :nick ?k . ?s :name ?n",
        "?s :name ?n . ?s :nick 'seven'",
        "?s :nick ?k FILTER(STRLEN(?k) > 2) BIND(STR(?s) AS ?t)",
        ":hub :knows :7 . :7 :name ?n",
        ":nobody ?p ?o . ?o ?q ?r . ?r ?x ?y",
        "_:b :nick 'seven' ; :name ?n",
        ":7 :name ?n . :8 ?p ?o",
        "GRAPH :g { :a ?p ?o } :7 :name ?n",
        "?s :nick ?k OPTIONAL { ?s :name ?n FILTER(?n > 1) } OPTIONAL { ?s :none ?x }",
        "GRAPH :g { ?s :b ?x FILTER(ISIRI(?x)) OPTIONAL { ?x :name ?n } }",
        "OPTIONAL { :7 :name ?n }",
        "OPTIONAL { :7 :name ?n } OPTIONAL { :7 :nick ?k }",
        ":7 :name ?n OPTIONAL { :7 :nick ?k } OPTIONAL { :8 :nick ?l }",
        "BIND(UUID() AS ?id)",
        "?s :name 07",
        "7 :name ?n",
    ],
)
def test_small(store: QuadStore, where: str) -> None:
    assert is_small(store, where)


@pytest.mark.parametrize(
    "where",
    [
        "?s ?p ?o",
        ":hub :knows ?x . ?x :name ?n",
        ":7 :name ?n . ?a ?b ?c",
        ":hub :knows ?x . :hub :knows ?y . :hub :knows ?z",
        ":nobody ?p ?o . ?a ?b ?c",
        ":7 :name ?n FILTER EXISTS { ?a ?b ?c . ?d ?e ?f }",
        ":7 :name ?n FILTER(?n = 7 && (?n < 1 || !EXISTS { ?a ?b ?c }))",
        ":7 :name ?n OPTIONAL { ?a ?b ?c }",
        "?s :nick ?k OPTIONAL { ?s :name ?n . ?s :knows ?x }",
        "?s :nick ?k OPTIONAL { ?s :name ?n BIND(1 AS ?one) }",
        "?s :nick ?k OPTIONAL { ?s :name ?n } ?s :knows ?x",
        "?s :nick ?k OPTIONAL { ?s :none ?x } OPTIONAL { ?x :knows ?y }",
        "?s :nick ?k OPTIONAL { ?s :name ?n } OPTIONAL { ?n :none ?x }",
        "?s :nick ?k . :7 :name ?n OPTIONAL { ?s :none ?x }",
        ":7 :name ?n BIND(?n AS ?m) :7 :nick ?k",
        "?s :nick ?k . GRAPH :g { ?a :b ?b FILTER(ISIRI(?b)) }",
        "?s :nick ?k . GRAPH :g { ?a :b ?s OPTIONAL { ?a :none ?x } }",
        "?s :nick ?k OPTIONAL { GRAPH :g { ?s :b ?x FILTER(ISIRI(?x)) } }",
        ":7 :nick ?k BIND(CONCAT(?k, ?k) AS ?kk)",
        "{ :7 :nick ?k FILTER(ISLITERAL(?k)) } :7 :name ?n",
        "{ :7 :nick ?k FILTER(ISLITERAL(?k)) } OPTIONAL { :7 :name ?n }",
        "?s :nick ?k OPTIONAL { { ?s :name ?n FILTER(ISLITERAL(?n)) } }",
        "OPTIONAL { ?s :name ?n }",
        ":nobody :nick ?k OPTIONAL { ?s :name ?n }",
        ":7 (:name|:nick) ?n",
        "{ SELECT * { :7 :name ?n } }",
        "GRAPH ?g { :a ?p ?o }",
        "VALUES ?x { 1 2 } :7 :name ?n",
        ":7 :name <<( :a :b :c )>>",
        "GRAPH :g { ?x :b ?x }",
    ],
)
def test_not_small_or_undecided(store: QuadStore, where: str) -> None:
    assert not is_small(store, where)


def test_budget_is_what_is_looked_at(store: QuadStore) -> None:
    where = ":hub :knows ?x . ?x :name ?n"
    assert not is_small(store, where, entries_max=3000)
    assert is_small(store, where, entries_max=3001)  # 1 + 1000 + 1000 * (1 + 1)


def test_what_is_computed_counts(store: QuadStore) -> None:
    """One entry for as many as 16 nodes of an expression; here two entries are looked at."""
    where = ":7 :nick ?k FILTER(" + " || ".join(["?k = 'x'"] * 10) + ")"  # 31 nodes
    assert not is_small(store, where, entries_max=3)
    assert is_small(store, where, entries_max=4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT ?k { :7 :nick ?k }", True),
        ("SELECT " + " ".join(f"(UCASE(?k) AS ?k{n})" for n in range(40)) + " { :7 :nick ?k }", False),
        ("SELECT ?k { :7 :nick ?k } ORDER BY " + "UCASE(" * 80 + "?k" + ")" * 80, False),
        ("CONSTRUCT { " + ":a :b ?k . " * 80 + " } { :7 :nick ?k }", False),
        ("SELECT ?k { ?s :nick ?k OPTIONAL { ?s :name ?n FILTER(?n IN (1)) } }", True),
        ("SELECT ?k { ?s :nick ?k OPTIONAL { ?s :name ?n FILTER(?n IN (" + "1, " * 40 + "1)) } }", False),
    ],
)
def test_what_a_query_makes_of_its_solutions_counts(store: QuadStore, text: str, expected: bool) -> None:
    join = small_join(parse_query(f"PREFIX : <urn:> {text}"))
    assert (join is not None and join.fits(store, 8)) is expected


def test_long_texts_count_as_several_entries() -> None:
    quads = Store()
    quads.add(Quad(NamedNode("urn:a"), NamedNode("urn:b"), Literal("x" * 5_000)))
    assert is_small(QuadStore(quads), ":a :b ?x", entries_max=11)
    assert not is_small(QuadStore(quads), ":a :b ?x", entries_max=10)


def test_a_pattern_that_is_large_is_walked_once_in_each_state(
    store: QuadStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[object]()
    matching = QuadStore.matching

    def counted(*constants: Any) -> Any:
        asked.append(constants[1:])
        return matching(*constants)

    monkeypatch.setattr(QuadStore, "matching", counted)
    large = LargePatterns()

    def fits(where: str, state: int) -> bool:
        join = small_join(parse_query(f"PREFIX : <urn:> SELECT * {{ {where} }}"))
        assert join is not None
        asked.clear()
        return join.fits(store, 100, large.at(state))

    assert not fits("?s :name ?n . ?t :name ?n", 1)
    assert asked
    assert not fits("?other :name ?o OPTIONAL { ?other :nick ?k }", 1)
    assert not asked
    assert fits("?s :nick ?k . ?s :name ?n", 1)
    assert not fits("?s :name ?n . ?t :name ?n", 2)
    assert asked
    pattern = small_join(parse_query("PREFIX : <urn:> SELECT * { ?s :name ?n . ?t :name ?n }"))
    assert pattern is not None
    asked.clear()
    assert not pattern.fits(store.uniting_graphs(), 100, large.at(2))
    assert asked  # another default graph may hold more or less of it


def test_in_the_graph_that_is_meant(store: QuadStore) -> None:
    assert is_small(store, "?s ?p ?o", "urn:g")
    assert not is_small(store, "?s ?p ?o")


def test_deep_expression(store: QuadStore) -> None:
    assert is_small(store, ":7 :name ?n FILTER(" + "(" * 190 + "?n + 1" + ")" * 190 + " > 0)")


@pytest.mark.parametrize(("graph", "expected"), [(":g", True), ("?g", False)])
def test_quads_of_delete_where(store: QuadStore, graph: str, expected: bool) -> None:
    text = f"PREFIX : <urn:> DELETE WHERE {{ :7 :name ?n . GRAPH {graph} {{ ?s ?p ?o }} }}"
    (operation,) = parse_update(text).operations
    assert isinstance(operation, DeleteWhere)
    join = SmallJoin.of_pattern(pattern_of_quads(operation.pattern), is_stated=True)
    assert (join is not None and join.fits(store, 10)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT DISTINCT ?n (COUNT(*) AS ?c) { :7 :name ?n ; :nick ?k } GROUP BY ?n ORDER BY DESC(?n)",
            True,
        ),
        ("ASK { :7 :name ?n ; :nick ?k }", True),
        ("CONSTRUCT { ?n :of [] } { :7 :name ?n ; :nick ?k }", True),
        ("DESCRIBE ?n { :7 :name ?n ; :nick ?k }", False),
        ("SELECT * FROM :g { :7 :name ?n ; :nick ?k }", False),
        ("SELECT * { :7 :name ?n ; :nick ?k } VALUES ?n { 1 }", False),
        ("SELECT (CONCAT(?k, ?k) AS ?m) { :7 :name ?n ; :nick ?k }", False),
        ("SELECT * { :7 :name ?n ; :nick ?k } ORDER BY CONCAT(?k, ?k)", False),
        ("SELECT (GROUP_CONCAT(?k) AS ?m) { :7 :name ?n ; :nick ?k }", False),
        ("SELECT * { :7 :name ?n ; :nick ?k FILTER(REGEX(?k, 'a')) }", False),
        ("SELECT * { :7 :name ?n ; :nick 'a'@a-b-c }", False),
        ("SELECT * { " + ":7 :name ?n ." * 8 + " }", True),
        ("SELECT * { " + ":7 :name ?n ." * 9 + " }", False),
    ],
)
def test_whole_queries(text: str, expected: bool) -> None:
    assert (small_join(parse_query(f"PREFIX : <urn:> {text}")) is not None) is expected


def test_default_graph_as_union() -> None:
    quads = Store()
    quads.add(Quad(NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:a"), NamedNode("urn:g")))
    assert is_small(QuadStore(quads), "?s ?p ?o", entries_max=1)
    assert not is_small(QuadStore(quads, union_default_graph=True), "?s ?p ?o", entries_max=1)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("?s ?p ?o", True),
        ("GRAPH ?g { ?s ?p ?o }", True),
        ("?s :p/:q ?o", False),
        ("?s ?p ?s", False),
        ("_:b ?p _:b", False),
        ("GRAPH ?g { ?g ?p ?o }", False),
        ("?s ?p <<( ?s ?p ?o )>>", False),
        ("?s ?p ?o . ?o ?q ?r", False),
        ("?s ?p ?o FILTER(?o = 1)", False),
        ("GRAPH ?g { ?s ?p ?o } ?s ?p ?o", False),
    ],
)
def test_one_scan(where: str, expected: bool) -> None:
    query = parse_query(f"PREFIX : <urn:> SELECT * WHERE {{ {where} }}")
    assert query.where is not None
    assert is_one_scan(pattern_of_group(query.where)) is expected


@pytest.mark.parametrize(
    ("quads", "expected"),
    [
        ("?s ?p ?o", True),
        ("GRAPH ?g { ?s ?p ?o }", True),
        ("?s ?p ?s", False),
        ("GRAPH ?g { ?g ?p ?o }", False),
    ],
)
def test_one_scan_of_delete_where(quads: str, expected: bool) -> None:
    (operation,) = parse_update(f"DELETE WHERE {{ {quads} }}").operations
    assert isinstance(operation, DeleteWhere)
    assert is_one_scan(pattern_of_quads(operation.pattern), is_stated=True) is expected
