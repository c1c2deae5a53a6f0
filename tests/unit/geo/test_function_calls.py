"""Calls of what is not a function are refused with the reason and the place; of whatever arguments are not.

Costs of calls are told from texts: what may be slow is never taken for short.
"""

import subprocess
import sys

import pytest
from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, Store

from graphdb.config.limits import GateLimits
from graphdb.errors import InvalidParameter, QuerySyntaxError, RequestError, UnknownFunction
from graphdb.geo.function_calls import CallCosts, calls_functions, characters_to_read, vertices_of
from graphdb.geometry import geometry
from graphdb.model import ChangeSet
from graphdb.planning.gate import check, read_query, read_update
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.store.quad_store import QuadStore

PREFIXES = (
    "PREFIX : <urn:> PREFIX geo: <http://www.opengis.net/ont/geosparql#>"
    " PREFIX geof: <http://www.opengis.net/def/function/geosparql/>\n"
)
LIMITS = GateLimits()
GEO = "http://www.opengis.net/ont/geosparql#"
PLACE = Literal("POINT(1 1)", datatype=NamedNode(GEO + "wktLiteral"))


@pytest.mark.parametrize(
    ("expression", "error", "words"),
    [
        ("geof:sfwithin(?w, ?v)", UnknownFunction, "there is geof:sfWithin"),
        ("geof:quux(?w)", UnknownFunction, "geof:quux"),
        ("geof:sfWithin(?w)", InvalidParameter, "takes 2 (a geometry, a geometry), and has 1"),
        ("geof:concaveHull(?w, 1, 2)", InvalidParameter, "1 or 2"),
        ("!(1 < 2 && geof:sfWithin(?w, geof:boundary()))", InvalidParameter, "geof:boundary"),
        ("geof:aggUnion(?w)", QuerySyntaxError, "an aggregate cannot stand in"),
    ],
)
def test_refused(expression: str, error: type[RequestError], words: str) -> None:
    with pytest.raises(error) as raised:
        check(read_query(f"{PREFIXES}ASK {{ ?s ?p ?w FILTER({expression}) }}", None, LIMITS), LIMITS)
    assert words in str(raised.value)
    assert "line 2, column" in str(raised.value)


@pytest.mark.parametrize(
    "expression",
    [
        "geof:sfWithin(?w, 'POINT(1 1)'^^geo:wktLiteral)",
        "geof:distance(?w, ?v, <http://www.opengis.net/def/uom/OGC/1.0/metre>) < 1",
        "geof:isEmpty(''^^geo:wktLiteral)",
        "geof:isEmpty('POINT(1'^^geo:wktLiteral)",
        "geof:isEmpty('POINT(1 1)')",
        "geof:isEmpty('<x'^^geo:gmlLiteral)",
        "geof:distance(?w, ?v, <urn:metre>)",
        "geof:transform(?w, <urn:crs>)",
        "<urn:else:sfWithin>(1, 2, 3)",
    ],
)
def test_admitted(expression: str) -> None:
    check(read_query(f"{PREFIXES}ASK {{ ?s ?p ?w FILTER({expression}) }}", None, LIMITS), LIMITS)


BAD = (
    "'nope'^^geo:wktLiteral",
    "'POINT(nan 1)'^^geo:wktLiteral",
    f"'{'(' * 5_000}'^^geo:wktLiteral",
    "'<urn:crs> POINT(1 1)'^^geo:wktLiteral",
    "'<http://www.opengis.net/def/crs/EPSG/0/99999> POINT(1 1)'^^geo:wktLiteral",
    "'<x'^^geo:gmlLiteral",
    "'<!DOCTYPE x><x/>'^^geo:gmlLiteral",
    "'{'^^geo:geoJSONLiteral",
    "'<Point>'^^geo:kmlLiteral",
    "'POINT(1 1)'",
    "<urn:x>",
)


@pytest.mark.parametrize("bad", BAD)
def test_a_constant_that_is_no_geometry_is_an_error_of_its_expression(bad: str) -> None:
    """Wherever expressions stand; as the same value is that comes from VALUES."""
    store = QuadStore(Store())
    store.apply(ChangeSet(added=(Quad(NamedNode("urn:a"), NamedNode(GEO + "asWKT"), PLACE),)))
    for text, given in (
        (f"SELECT (COALESCE(geof:dimension({bad}), 'bad') AS ?x) {{}}", ["bad"]),
        (f"SELECT (COALESCE(geof:dimension(?v), 'bad') AS ?x) {{ VALUES ?v {{ {bad} }} }}", ["bad"]),
        (f"SELECT ?s {{ ?s geo:asWKT ?w FILTER(geof:sfWithin(?w, {bad})) }}", []),
        (f"SELECT ?s {{ ?s geo:asWKT ?w FILTER(!geof:sfWithin({bad}, ?w)) }}", []),
        (f"SELECT ?s {{ ?s geo:asWKT ?w FILTER(geof:isEmpty({bad}) || true) }}", ["urn:a"]),
        (f"SELECT ?d {{ ?s geo:asWKT ?w BIND(geof:dimension({bad}) AS ?d) }}", [None]),
        (f"SELECT ?s {{ ?s geo:asWKT ?w }} ORDER BY geof:metricDistance(?w, {bad}) LIMIT 1", ["urn:a"]),
        (f"SELECT ?s {{ ?s geo:asWKT ?w }} GROUP BY ?s HAVING(geof:isEmpty({bad}))", []),
        (f"SELECT ?s {{ ?s geo:asWKT ?w FILTER(geof:sfWithin(?w, geof:metricBuffer({bad}, 5))) }}", []),
        (f"SELECT ?s {{ ?s geo:asWKT ?w FILTER EXISTS {{ FILTER(geof:isEmpty({bad})) }} }}", []),
    ):
        assert values(store, text) == given, text


@pytest.mark.parametrize(
    "unit", ["<urn:x>", "<http://www.opengis.net/def/uom/OGC/1.0/meters>", "'metre'", "1"]
)
def test_a_constant_that_is_no_unit_is_one_too(unit: str) -> None:
    store = QuadStore(Store())
    store.apply(ChangeSet(added=(Quad(NamedNode("urn:a"), NamedNode(GEO + "asWKT"), PLACE),)))
    at = "'POINT(0 0)'^^geo:wktLiteral"
    pattern = "?s geo:asWKT ?w"
    assert values(store, f"SELECT ?s {{ {pattern} FILTER(geof:distance(?w, {at}, {unit}) < 9) }}") == []
    ordered = f"SELECT ?s {{ {pattern} }} ORDER BY geof:distance(?w, {at}, {unit}) LIMIT 1"
    assert values(store, ordered) == ["urn:a"]
    made = f"SELECT (COALESCE(geof:asWKT(geof:transform(?w, {unit})), 'bad') AS ?x) {{ {pattern} }}"
    assert values(store, made) == ["bad"]


def test_what_is_no_geometry_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant comes to the function anew with each solution."""
    read: list[str] = []
    genuine = geometry._read_anew

    def noted(text: str, datatype: str) -> geometry.Geometry:
        read.append(text)
        return genuine(text, datatype)

    monkeypatch.setattr(geometry, "_read_anew", noted)
    numbers = " ".join(map(str, range(50)))
    call = "geof:sfWithin('POINT(once'^^geo:wktLiteral, 'POINT(1 1)'^^geo:wktLiteral)"
    assert values(QuadStore(Store()), f"SELECT ?n {{ VALUES ?n {{ {numbers} }} FILTER({call}) }}") == []
    assert read.count("POINT(once") == 1


def values(store: QuadStore, text: str) -> list[str | None]:
    """Of the first column."""
    query = read_query(PREFIXES + text, None, LIMITS)
    check(query, LIMITS)
    answer = store.query(query, Dataset())
    assert isinstance(answer, QuerySolutions)
    return [None if row[0] is None else row[0].value for row in answer]


def test_updates_may_have_such_constants() -> None:
    filters = "FILTER(geof:sfWithin(?w, 'nope'^^geo:wktLiteral))"
    check(
        read_update(f"{PREFIXES}DELETE {{ ?s ?p ?w }} WHERE {{ ?s ?p ?w {filters} }}", None, LIMITS), LIMITS
    )


def test_updates_are_looked_at_too() -> None:
    update = f"{PREFIXES}CLEAR ALL; INSERT {{ ?s ?p 1 }} WHERE {{ ?s ?p ?w FILTER(geof:sfWithin(?w)) }}"
    with pytest.raises(InvalidParameter, match="geof:sfWithin"):
        check(read_update(update, None, LIMITS), LIMITS)


def test_aggregates_group() -> None:
    text = "SELECT ?k (geof:aggUnion(?w) AS ?all) { ?g ?k ?w } GROUP BY ?k"
    check(read_query(PREFIXES + text + " HAVING(!geof:isEmpty(geof:aggUnion(?w)))", None, LIMITS), LIMITS)
    check(read_query(PREFIXES + text, None, LIMITS), LIMITS)
    for wrong in ("geof:aggUnion(DISTINCT ?w)", "geof:aggUnion(?w, 1)", "geof:aggUnion()"):
        with pytest.raises(QuerySyntaxError, match="takes one argument"):
            read_query(f"{PREFIXES}SELECT ({wrong} AS ?all) {{ ?g ?k ?w }}", None, LIMITS)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("ASK { ?s ?p ?o FILTER(?o < 1) }", False),
        ("ASK { ?s geo:asWKT ?o FILTER(<urn:geof>(?o)) }", False),
        ("ASK { ?s ?p ?o FILTER(?o < 1 && geof:isEmpty(?o)) }", True),
        ("SELECT (geof:aggUnion(?o) AS ?u) { ?s ?p ?o }", True),
        ("ASK { ?s geo:sfWithin ?o }", True),
        ("ASK { ?s geo:sfWithin+ ?o }", False),
        ("ASK { SERVICE <urn:x> { ?s ?p ?o FILTER(geof:isEmpty(?o)) } }", False),
    ],
)
def test_which_requests_call(text: str, calls: bool) -> None:
    assert calls_functions(read_query(PREFIXES + text, None, LIMITS)) is calls


@pytest.mark.parametrize(
    "modules",
    [
        "serve.graph_app",
        "actors.node.store_lifecycle",
        "actors.readers.evaluator",
        "actors.readers.store_reader",
    ],
)
def test_nothing_loads_the_libraries_at_its_start(modules: str) -> None:
    program = f"import sys, {modules}; print(sorted({{'shapely', 'pyproj'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def square(vertices: int) -> str:
    return f"POLYGON(({'0 0, ' * (vertices - 1)}0 0))"


def costs(expression: str) -> CallCosts:
    found = CallCosts()
    found.count(parse_query(f"{PREFIXES} SELECT * {{ ?g geo:asWKT ?w FILTER({expression}) }}").where)
    return found


@pytest.mark.parametrize(
    ("text", "vertices"),
    [
        ("POINT(1 1)", 1),
        ("POLYGON((0 0, 1 0, 1 1, 0 0))", 4),
        ("<http://www.opengis.net/def/crs/EPSG/0/4326> LINESTRING(1 1, 2 2)", 2),
        ('{"type": "Point", "coordinates": [1, 2]}', 3),
        ("no geometry", 1),
        ("CIRCULARSTRING(0 0, 1 1, 2 0)", None),
        ("CurvePolygon((0 0, 1 1, 2 0))", None),
        ("<http://www.opengis.net/def/crs/EPSG/0/27700> POINT(1 1)", None),
        ("<gml:Point xmlns:gml='http://www.opengis.net/gml'><gml:pos>1 1</gml:pos></gml:Point>", None),
    ],
)
def test_vertices(text: str, vertices: int | None) -> None:
    assert vertices_of(text) == vertices


def test_curves_are_longer_than_they_look() -> None:
    assert characters_to_read("LINESTRING(0 0, 1 1)") == 20
    assert characters_to_read("CIRCULARSTRING(0 0, 1 1, 2 2)") > 400


def test_pairs_of_vertices_count() -> None:
    polygon = f'geof:sfWithin(?w, "{square(100)}"^^geo:wktLiteral)'
    beside_points, beside_lines = costs(polygon).for_each(1), costs(polygon).for_each(100)
    assert beside_points is not None
    assert beside_lines is not None
    assert beside_points < 30
    assert beside_lines > 4_000
    both = costs(f"{polygon} && {polygon}").for_each(1)
    assert both is not None
    assert both > 8_000  # they might be compared with each other


def test_distances_are_between_points() -> None:
    distance = costs('geof:metricDistance(?w, "POINT(1 1)"^^geo:wktLiteral) < 10')
    assert distance.for_each(1) is not None
    assert distance.for_each(2) is None
    assert costs('geof:metricDistance(?w, "LINESTRING(1 1, 2 2)"^^geo:wktLiteral) < 10').for_each(1) is None


@pytest.mark.parametrize(
    "constant",
    [
        '"CIRCULARSTRING(0 0, 1 1, 2 0)"^^geo:wktLiteral',
        'STRDT("circularstring(0 0, 1 1, 2 0)", geo:wktLiteral)',
        '"<http://www.opengis.net/def/crs/EPSG/0/27700> POINT(1 1)"^^geo:wktLiteral',
    ],
)
def test_slow_constants(constant: str) -> None:
    assert costs(f"geof:sfWithin(?w, {constant})").for_each(1) is None


def test_nothing_is_called() -> None:
    assert not costs("?w = 1")
    assert costs("geof:isEmpty(?w)")
