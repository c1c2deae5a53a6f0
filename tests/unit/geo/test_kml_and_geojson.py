"""KML and GeoJSON literals: always in CRS84."""

import json

import pytest
import shapely

from graphdb.errors import BadGeometry
from graphdb.geo.geojson import read_geojson, write_geojson
from graphdb.geo.kml import read_kml, write_kml

TEXTS = [
    "POINT (1 2.5)",
    "POINT Z (1 2 3)",
    "POINT EMPTY",
    "LINESTRING (1 2, 3 4)",
    "LINESTRING EMPTY",
    "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 1 2, 2 2, 1 1))",
    "POLYGON EMPTY",
    "MULTIPOINT ((1 2), (3 4))",
    "MULTILINESTRING ((1 2, 3 4), (5 6, 7 8))",
    "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
    "GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (1 2, 3 4))",
    "GEOMETRYCOLLECTION EMPTY",
]
KML = '<{0} xmlns="http://www.opengis.net/kml/2.2">{1}</{0}>'
RING = "<LinearRing><coordinates>{}</coordinates></LinearRing>"


@pytest.mark.parametrize("text", TEXTS)
def test_kml_that_is_written_can_be_read(text: str) -> None:
    assert read_kml(write_kml(shapely.from_wkt(text))).wkt == text


@pytest.mark.parametrize("text", TEXTS)
def test_geojson_that_is_written_can_be_read(text: str) -> None:
    assert read_geojson(write_geojson(shapely.from_wkt(text))).wkt == text


def test_outer_rings_of_geojson_go_counterclockwise() -> None:
    written = json.loads(write_geojson(shapely.from_wkt("POLYGON ((0 0, 0 1, 1 1, 0 0))")))
    assert written == {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 1], [0, 0]]]}


@pytest.mark.parametrize("text", ["", " ", "null"])
def test_nothing_is_an_empty_geometry(text: str) -> None:
    assert read_geojson(text).is_empty
    assert read_kml(text.replace("null", "")).is_empty


def test_what_geojson_may_hold_beside() -> None:
    assert read_geojson('{"type":"Point","coordinates":[1,2,3,4],"bbox":[1]}').wkt == "POINT Z (1 2 3)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "malformed JSON"),
        ("[]", "object"),
        ("1", "object"),
        ("{}", "no type"),
        ('{"type":["Point"]}', "no type"),
        ('{"type":"Feature","geometry":null}', "no type"),
        ('{"type":"Point"}', "arrays"),
        ('{"type":"Point","coordinates":[1]}', "two numbers"),
        ('{"type":"Point","coordinates":["1","2"]}', "two numbers"),
        ('{"type":"Point","coordinates":[true,2]}', "two numbers"),
        ('{"type":"Point","coordinates":{"x":1}}', "arrays"),
        ('{"type":"LineString","coordinates":[[1,2]]}', "two positions"),
        ('{"type":"LineString","coordinates":[1,2]}', "two numbers"),
        ('{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1]]]}', "not closed"),
        ('{"type":"Polygon","coordinates":[1]}', "arrays"),
        ('{"type":"MultiPolygon","coordinates":[[[0,0],[1,0],[0,0]]]}', "two numbers"),
        ('{"type":"GeometryCollection"}', "array"),
        ('{"type":"GeometryCollection","geometries":[1]}', "object"),
        ('{"type":"Point","coordinates":' + "[" * 5000 + "]" * 5000 + "}", "nested"),
        ('{"type":"GeometryCollection","geometries":[' * 20 + "]}" * 20, "nested"),
    ],
)
def test_geojson_that_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadGeometry, match=words):
        read_geojson(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<Point/>", "namespace"),
        ("<Point>", "malformed XML"),
        (KML.format("Model", ""), "Model is not read"),
        (KML.format("Point", "<coordinates>1 2</coordinates>"), "two numbers or three"),
        (KML.format("Point", "<coordinates>1,2 3,4</coordinates>"), "one position"),
        (KML.format("Point", "<coordinates>x,y</coordinates>"), "malformed KML"),
        (KML.format("LineString", "<coordinates>1,2</coordinates>"), "two positions"),
        (
            KML.format("Polygon", f"<outerBoundaryIs>{RING.format('0,0 1,1 2,2')}</outerBoundaryIs>"),
            "not closed",
        ),
        ('<MultiGeometry xmlns="http://www.opengis.net/kml/2.2">' * 40 + "</MultiGeometry>" * 40, "nested"),
    ],
)
def test_kml_that_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadGeometry, match=words):
        read_kml(text)
