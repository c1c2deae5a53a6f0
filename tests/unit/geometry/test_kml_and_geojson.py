"""KML and GeoJSON literals: always in CRS84."""

import json
from collections.abc import Callable

import pytest
import shapely
from shapely.geometry.base import BaseGeometry

from graphdb.errors import BadGeometry
from graphdb.geometry.geojson import read_geojson, write_geojson
from graphdb.geometry.kml import read_kml, write_kml

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


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ('{"type": "MultiPoint", "coordinates": [[1, 2], []]}', "MULTIPOINT ((1 2), EMPTY)"),
        ('{"type": "MultiLineString", "coordinates": [[]]}', "MULTILINESTRING (EMPTY)"),
        ('{"type": "MultiPolygon", "coordinates": [[]]}', "MULTIPOLYGON (EMPTY)"),
    ],
)
def test_parts_may_be_empty(text: str, shape: str) -> None:
    assert read_geojson(text).wkt == shape


@pytest.mark.parametrize(
    ("text", "ours", "of_shapely"),
    [
        # RFC 7946, section 3.1.1: what follows the third number may be ignored
        ('{"type": "Point", "coordinates": [1, 2, 3, 4]}', "POINT Z (1 2 3)", None),
        (
            '{"type": "LineString", "coordinates": [[1, 2, 3], [4, 5]]}',
            "LINESTRING (1 2, 4 5)",
            "LINESTRING Z (1 2 3, 4 5 NaN)",
        ),
        # GeoSPARQL 1.1, 8.8.4: the object is a geometry
        ('{"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}}', None, "POINT (1 2)"),
    ],
)
def test_why_geojson_is_not_read_by_shapely(text: str, ours: str | None, of_shapely: str | None) -> None:
    def read(reader: Callable[[str], BaseGeometry]) -> str | None:
        try:
            return str(reader(text).wkt)
        except (BadGeometry, shapely.GEOSException):
            return None

    assert (read(read_geojson), read(shapely.from_geojson)) == (ours, of_shapely)


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
