"""The functions as the engine calls them: terms in, a literal or an error out."""

import subprocess
import sys

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions, Store

from graphdb.geometry.calls import AGGREGATES as AGGREGATE_IMPLEMENTATIONS
from graphdb.geometry.calls import IMPLEMENTATIONS
from graphdb.geometry.functions import AGGREGATES, FUNCTIONS, Term
from graphdb.geometry.geosparql_names import AGGREGATES as AGGREGATE_NAMES
from graphdb.geometry.geosparql_names import GEOF, GEOJSON, GML, KML, SIGNATURES, WKT, Kind
from tests.support.timing import HANG_S
from tests.unit.geometry.conftest import UOM

XSD = "http://www.w3.org/2001/XMLSchema#"
GML_POINT = (
    '<gml:Point xmlns:gml="http://www.opengis.net/gml/3.2" srsName="EPSG:4326">'
    "<gml:pos>1 2</gml:pos></gml:Point>"
)
POINT, SQUARE = "POINT (1 2)", "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))"
ARGUMENTS: dict[Kind, Term] = {
    Kind.GEOMETRY: Literal(SQUARE, datatype=NamedNode(WKT)),
    Kind.UNIT: NamedNode(UOM + "metre"),
    Kind.SYSTEM: NamedNode("http://www.opengis.net/def/crs/EPSG/0/4326"),
    Kind.NUMBER: Literal(1),
    Kind.INTEGER: Literal(1),
    Kind.TEXT: Literal("T********"),
}


def arguments(name: str) -> list[Term]:
    if name == "asGML":
        return [ARGUMENTS[Kind.GEOMETRY], Literal("3.2")]
    return [ARGUMENTS[kind] for kind in SIGNATURES[name].parameters]


def call(name: str, *terms: Term) -> Term | None:
    return FUNCTIONS[NamedNode(GEOF + name)](*terms)


def geometry(text: str, datatype: str = WKT) -> Literal:
    return Literal(text, datatype=NamedNode(datatype))


def rows(query: str) -> list[Term | None]:
    answer = Store().query(
        f"PREFIX geof: <{GEOF}> PREFIX geo: <http://www.opengis.net/ont/geosparql#> {query}",
        custom_functions=FUNCTIONS,
        custom_aggregate_functions=AGGREGATES,
    )
    assert isinstance(answer, QuerySolutions)
    return [solution[0] for solution in answer]


def test_every_signature_has_its_implementation() -> None:
    assert set(SIGNATURES) == set(IMPLEMENTATIONS)
    assert set(AGGREGATE_NAMES) == set(AGGREGATE_IMPLEMENTATIONS)


@pytest.mark.parametrize("name", sorted(set(SIGNATURES) - {"minZ", "maxZ"}))
def test_every_function_answers(name: str) -> None:
    assert isinstance(call(name, *arguments(name)), Literal)


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_wrong_number_of_arguments_is_an_error(name: str) -> None:
    terms = arguments(name)
    assert call(name, *terms, Literal("one too many")) is None
    assert call(name, *terms[: len(terms) - SIGNATURES[name].optional - 1]) is None


@pytest.mark.parametrize("name", SIGNATURES)
def test_arguments_of_a_wrong_kind_are_errors(name: str) -> None:
    terms = arguments(name)
    for at in range(len(terms)):
        for wrong in (
            BlankNode(),
            Literal("x", language="en"),
            Literal("POINT(1 2)", datatype=NamedNode(XSD + "date")),
        ):
            assert call(name, *terms[:at], wrong, *terms[at + 1 :]) is None


@pytest.mark.parametrize(
    ("name", "terms", "datatype", "value"),
    [
        ("sfWithin", (geometry("POINT(1 1)"), geometry(SQUARE)), "boolean", "true"),
        ("dimension", (geometry(SQUARE),), "integer", "2"),
        ("minY", (geometry(SQUARE),), "double", "0"),
        ("getSRID", (geometry(SQUARE),), "anyURI", "http://www.opengis.net/def/crs/OGC/1.3/CRS84"),
        ("geometryType", (geometry(SQUARE),), "anyURI", "http://www.opengis.net/ont/sf#Polygon"),
    ],
)
def test_types_of_values(name: str, terms: tuple[Term, ...], datatype: str, value: str) -> None:
    result = call(name, *terms)
    assert isinstance(result, Literal)
    assert (result.datatype.value, result.value) == (XSD + datatype, value)


@pytest.mark.parametrize(
    ("text", "datatype"),
    [
        (POINT, WKT),
        (GML_POINT, GML),
        ('{"type":"Point","coordinates":[1.0,2.0]}', GEOJSON),
        ('<Point xmlns="http://www.opengis.net/kml/2.2"><coordinates>1,2</coordinates></Point>', KML),
    ],
)  # fmt: skip
def test_results_are_written_as_their_first_argument(text: str, datatype: str) -> None:
    assert call("centroid", geometry(text, datatype)) == geometry(text, datatype)
    assert call("asWKT", geometry(text, datatype)) in (geometry(POINT), geometry(f"<EPSG:4326> {POINT}"))
    for name, other in (("asGML", GML), ("asGeoJSON", GEOJSON), ("asKML", KML)):
        written = call(name, geometry(text, datatype))
        assert isinstance(written, Literal)
        assert written.datatype.value == other
        assert call("sfEquals", written, geometry(text, datatype)) == Literal(True)


def test_units_and_numbers_are_taken_in_every_form() -> None:
    terms = geometry("POINT(0 0)"), geometry("POINT(0 1)")
    in_metres = call("distance", *terms, NamedNode(UOM + "metre"))
    assert call("distance", *terms, Literal(UOM + "metre")) == in_metres
    assert call("distance", *terms, Literal(UOM + "metre", datatype=NamedNode(XSD + "anyURI"))) == in_metres
    for number in (Literal(5), Literal(5.0), Literal("5", datatype=NamedNode(XSD + "decimal"))):
        assert call("metricBuffer", terms[0], number) == call("metricBuffer", terms[0], Literal(5))
    assert call("metricBuffer", terms[0], Literal("INF", datatype=NamedNode(XSD + "double"))) is None
    assert call("geometryN", terms[0], Literal(1.5)) is None


def test_ours_are_called_and_not_those_of_the_engine() -> None:
    one, other = "POINT(1 2)", "<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(2 1)"
    equals = f"geof:sfEquals('{one}'^^geo:wktLiteral, '{other}'^^geo:wktLiteral)"
    assert rows(f"SELECT ({equals} AS ?equals) {{}}") == [Literal(True)]
    assert rows("SELECT (geof:distance('POINT(0 0)'^^geo:wktLiteral, 'x'^^geo:wktLiteral, 1) AS ?d) {}") == [
        None
    ]


VALUES = "VALUES ?g {{ {} }}"


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("aggUnion", "MULTIPOINT ((0 0), (2 4))"),
        ("aggBoundingBox", "POLYGON ((0 0, 2 0, 2 4, 0 4, 0 0))"),
        ("aggConvexHull", "LINESTRING (0 0, 2 4)"),
        ("aggCentroid", "POINT (1 2)"),
    ],
)
def test_aggregates(name: str, result: str) -> None:
    group = "VALUES ?g { 'POINT(0 0)'^^geo:wktLiteral 'POINT(2 4)'^^geo:wktLiteral }"
    (found,) = rows(f"SELECT (geof:{name}(?g) AS ?all) {{ {group} }}")
    assert found == geometry(result)


@pytest.mark.parametrize("name", ["aggBoundingCircle", "aggConcaveHull"])
def test_aggregates_around_all(name: str) -> None:
    points = " ".join(
        f"'POINT({x} {y})'^^geo:wktLiteral" for x, y in ((0, 0), (4, 0), (4, 4), (0, 4), (2, 1))
    )
    (found,) = rows(f"SELECT (geof:{name}(?g) AS ?all) {{ VALUES ?g {{ {points} }} }}")
    assert isinstance(found, Literal)
    assert call("sfIntersects", found, geometry("POINT(2 0.5)")) == Literal(True)


@pytest.mark.parametrize(
    "group",
    [
        "",
        "'POINT(0 0)'^^geo:wktLiteral 'POINT('^^geo:wktLiteral",
        "'POINT(0 0)'^^geo:wktLiteral geo:x",
        "'POINT(0 0)'^^geo:wktLiteral 1",
        "'<EPSG:3857> POINT(0 0)'^^geo:wktLiteral 'POINT(0 100)'^^geo:wktLiteral",
    ],
)
def test_groups_without_a_result(group: str) -> None:
    assert rows(f"SELECT (geof:aggUnion(?g) AS ?all) {{ VALUES ?g {{ {group} }} }}") == [None]


def test_aggregates_are_in_the_system_and_notation_of_the_first() -> None:
    group = (
        "'<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(1 2)'^^geo:wktLiteral"
        ' \'{"type":"Point","coordinates":[3,4]}\'^^geo:geoJSONLiteral'
    )
    (found,) = rows(f"SELECT (geof:aggUnion(?g) AS ?all) {{ VALUES ?g {{ {group} }} }}")
    assert found == geometry("<http://www.opengis.net/def/crs/EPSG/0/4326> MULTIPOINT ((1 2), (4 3))")


def test_the_libraries_for_geometries_are_imported_at_the_first_call() -> None:
    script = (
        "import sys; import graphdb.geometry.functions, graphdb.geometry.evaluate, actors.readers.evaluator;"
        "sys.exit(bool({'shapely', 'pyproj', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=HANG_S).returncode == 0
