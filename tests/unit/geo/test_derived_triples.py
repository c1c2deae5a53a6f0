"""What triple patterns match beside stated triples, and how a query asks for more or for less."""

from collections.abc import Iterable

import pytest
from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, RdfFormat, Store, parse

from graphdb.geo.entailment import Entailment, asked_text
from graphdb.model import ChangeSet
from graphdb.planning.complexity import measure
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.translation import pattern_of_group
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.store.small_joins import is_one_scan, small_join
from graphdb.updates.planner import UpdateContext, plan_update

PREFIXES = """PREFIX : <urn:> PREFIX geo: <http://www.opengis.net/ont/geosparql#>
PREFIX sf: <http://www.opengis.net/ont/sf#> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
"""
GML_POINT = "<gml:Point xmlns:gml='http://www.opengis.net/ont/gml'><gml:pos>20 1</gml:pos></gml:Point>"
DATA = f"""
:land geo:hasDefaultGeometry :landShape .
:landShape geo:asWKT "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0))"^^geo:wktLiteral .
:town a :Town ; geo:hasGeometry :townShape . :townShape geo:asWKT "POINT(1 1)"^^geo:wktLiteral .
:port a :Town ; geo:hasDefaultGeometry :portShape ; geo:hasGeometry :portPlan .
:portShape geo:asGML "{GML_POINT}"^^geo:gmlLiteral . :portPlan geo:asWKT "POINT(2 2)"^^geo:wktLiteral .
:claim geo:sfWithin :land .
GRAPH :g {{
  :hut geo:hasGeometry :hutShape . :hutShape geo:asWKT "POINT(3 3)"^^geo:wktLiteral .
  :hill geo:hasGeometry :hillShape .
  :hillShape geo:asWKT "POLYGON((2 2, 4 2, 4 4, 2 4, 2 2))"^^geo:wktLiteral
}}
"""


@pytest.fixture
def store() -> QuadStore:
    store = Store()
    store.extend(parse(PREFIXES + DATA, format=RdfFormat.TRIG))
    return QuadStore(store)


def rows(store: QuadStore, text: str, entailment: Entailment = Entailment.GEOSPARQL) -> list[str]:
    """Each row as the local names of its terms, sorted."""
    asked = asked_text(parse_query(PREFIXES + text), entailment)
    solutions = store.query(parse_query(asked), Dataset())
    assert isinstance(solutions, QuerySolutions)
    return sorted(" ".join("-" if term is None else local(term) for term in row) for row in solutions)


def local(term: object) -> str:
    return str(term.value).removeprefix("urn:") if isinstance(term, NamedNode | Literal) else "_"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # a feature without default geometry by any; one with by that alone; stated; each once
        ("SELECT ?x { ?x geo:sfWithin :land }", "claim land landShape portPlan town townShape"),
        ("SELECT ?x { :land geo:sfContains ?x }", "land landShape portPlan town townShape"),
        ("SELECT ?x { :landShape geo:ehContains ?x }", "portPlan town townShape"),
        ("SELECT ?x { ?x a :Town ; geo:sfWithin :land }", "town"),
        ("SELECT ?x { ?x a :Town . :land geo:sfDisjoint ?x }", "port"),
        (
            "SELECT ?x { ?x a :Town OPTIONAL { ?x geo:sfWithin :land . BIND(1 AS ?y) } FILTER(!BOUND(?y)) }",
            "port",
        ),
        ("SELECT ?x { ?x a :Town FILTER NOT EXISTS { ?x geo:sfWithin :land } }", "port"),
        ("SELECT ?x { ?x a :Town MINUS { ?x geo:sfWithin :land } }", "port"),
        (
            "SELECT ?x { [] geo:sfWithin ?x . ?x geo:hasDefaultGeometry :landShape }",
            "land land land land land land",
        ),
        (
            "SELECT ?x { { SELECT * { ?x geo:sfEquals ?x } } }",
            "land landShape port portPlan portShape town townShape",
        ),
        ("SELECT (1 AS ?x) { :town geo:sfWithin :land . :town geo:sfWithin :landShape }", "1"),
        ("SELECT (1 AS ?x) { :port geo:sfWithin :land }", ""),
        ("SELECT ?x { :town ^geo:sfContains ?x }", ""),  # a path matches what is stated
        ("SELECT ?x { ?x ?how :land FILTER(?how = geo:sfWithin) }", "claim"),
        ("SELECT ?x { :town geo:sfWithin|geo:sfTouches ?x }", ""),
    ],
)
def test_topology_properties(store: QuadStore, text: str, expected: str) -> None:
    assert rows(store, text) == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT ?x { GRAPH :g { ?x geo:sfWithin :hill } }", ["hill", "hillShape", "hut", "hutShape"]),
        ("SELECT ?x ?g { GRAPH ?g { ?x geo:sfWithin :hill . ?x geo:hasGeometry ?y } }", ["hill g", "hut g"]),
        ("SELECT ?g { GRAPH ?g { :hut geo:sfWithin :hill } }", ["g"]),
        ("SELECT ?g { GRAPH ?g { :town geo:sfWithin :land } }", []),
        ("SELECT ?x { ?x geo:sfWithin :hill }", []),
    ],
)
def test_each_graph_by_itself(store: QuadStore, text: str, expected: list[str]) -> None:
    assert rows(store, text) == expected


def test_construct_where_makes_the_triples_that_follow(store: QuadStore) -> None:
    made = store.query(
        parse_query(f"{PREFIXES}CONSTRUCT WHERE {{ ?x a :Town ; geo:sfWithin :land }}"), Dataset()
    )
    texts = sorted(str(triple.predicate.value).rpartition("#")[2] for triple in made)  # type: ignore[union-attr]
    assert texts == ["sfWithin", "type"]


def planned(store: QuadStore, text: str) -> ChangeSet:
    context = UpdateContext(fresh_blank_node=lambda: pytest.fail("no blank node is needed"))
    return plan_update(parse_update(PREFIXES + text), Overlay(store), Dataset(), context)


def names(quads: Iterable[Quad]) -> list[str]:
    return sorted(local(quad.subject) for quad in quads)


def test_updates_match_them_in_where(store: QuadStore) -> None:
    change = planned(store, "INSERT { ?x :in :land } WHERE { ?x geo:sfWithin :land ; a :Town }")
    assert names(change.added) == ["town"]


def test_delete_where_deletes_what_is_stated(store: QuadStore) -> None:
    change = planned(store, "DELETE WHERE { ?x geo:sfWithin :land }")
    assert names(change.removed) == ["claim"]


def test_simple_entailment_is_what_is_stated(store: QuadStore) -> None:
    assert rows(store, "SELECT ?x { ?x geo:sfWithin :land }", Entailment.SIMPLE) == ["claim"]
    assert rows(store, "SELECT ?x { ?x geo:sfWithin ?y, :land ; geo:sfWithin ?z }", Entailment.SIMPLE) == [
        "claim"
    ]
    short = asked_text(
        parse_query(f"{PREFIXES}CONSTRUCT WHERE {{ ?x geo:sfWithin :land }}"), Entailment.SIMPLE
    )
    assert len(list(store.query(parse_query(short), Dataset()))) == 1  # type: ignore[arg-type]


SCHEMA = """INSERT DATA {
:City rdfs:subClassOf :Place . :Place rdfs:subClassOf geo:Feature .
:rome a :City, geo:Feature . :oslo a :City .
:outline rdfs:subPropertyOf geo:hasDefaultGeometry . :oslo :outline :osloShape .
:osloShape a sf:Polygon . :a a sf:Triangle . :b a sf:Point . :c a geo:Geometry . :d a :Other
}"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT ?x { ?x a geo:Feature }", "oslo rome"),
        ("SELECT ?x { ?x a geo:Feature ; :outline ?y }", "oslo"),
        ("SELECT ?x { ?x a sf:Surface }", "a osloShape"),
        ("SELECT ?x { ?x a geo:SpatialObject }", "a b c oslo osloShape rome"),
        ("SELECT ?x { ?x geo:hasGeometry :osloShape }", "oslo"),
        ("SELECT ?x { :oslo geo:hasDefaultGeometry ?x }", "osloShape"),
        ("SELECT (1 AS ?x) { :a a sf:Polygon . :rome a geo:Feature }", "1"),
        ("SELECT ?x { ?x a :Place }", ""),  # of GeoSPARQL's own classes only
    ],
)
def test_rdfs_entailment_of_geosparql(text: str, expected: str) -> None:
    store = Store()
    store.update(PREFIXES + SCHEMA)
    assert rows(QuadStore(store), text, Entailment.RDFS) == expected.split()


def test_rdfs_entailment_is_for_those_who_ask() -> None:
    store = Store()
    store.update(PREFIXES + SCHEMA)
    assert rows(QuadStore(store), "SELECT ?x { ?x a geo:Feature }") == ["rome"]


@pytest.mark.parametrize("pattern", ["?x geo:sfWithin :land", "GRAPH :g { :a geo:sfWithin ?x }"])
def test_they_are_neither_one_scan_nor_a_small_join(pattern: str) -> None:
    query = parse_query(f"{PREFIXES}SELECT ?x {{ {pattern} }}")
    assert query.where is not None
    assert not is_one_scan(pattern_of_group(query.where))
    assert small_join(query) is None


def test_the_gate_counts_what_they_become() -> None:
    plain = measure(parse_query("ASK { ?x <urn:p> ?y }"))
    figures = measure(parse_query(f"{PREFIXES}ASK {{ ?x geo:sfWithin ?y }}"))
    assert figures.patterns > 10 * plain.patterns
    assert figures.unions > plain.unions
    assert figures.nesting > plain.nesting
