"""WKT literals: what is read, with which reference system, and what is written."""

import pytest
import shapely

from graphdb.errors import BadGeometry, LimitExceeded
from graphdb.geometry import shapes
from graphdb.geometry.geometry import write_geometry
from graphdb.geometry.geosparql_names import CRS84, WKT
from graphdb.geometry.wkt import read_wkt, write_wkt
from tests.unit.geometry.conftest import EPSG, read, wkt

KEPT = [
    "POINT (1 2)",
    "POINT EMPTY",
    "POINT Z (1 2 3)",
    "POINT M (1 2 3)",
    "LINESTRING ZM (1 2 3 4, 5 6 7 8)",
    "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 1 2, 2 2, 1 1))",
    "MULTIPOINT ((1 2), (3 4))",
    "MULTILINESTRING ((1 2, 3 4), (5 6, 7 8))",
    "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
    "GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (1 2, 3 4))",
    "GEOMETRYCOLLECTION M (POINT M (1 2 3), POINT M EMPTY, POLYGON M ((0 0 1, 1 0 2, 0 1 3, 0 0 1)))",
    "POINT (0.1 0.3333333333333333)",
    "POINT (-83.4 34.1)",
    "POINT (1e-9 1e+20)",
]


@pytest.mark.parametrize("text", KEPT)
def test_what_is_written_is_what_was_read(text: str) -> None:
    assert write_geometry(wkt(text)).value == text


@pytest.mark.parametrize("text", [text for text in KEPT if "e+" not in text])
def test_latitude_first_is_written_as_it_was_read(text: str) -> None:
    geometry = wkt(text, 4326)
    assert write_geometry(geometry).value == f"<{EPSG}4326> {text}"


def test_the_shape_has_longitude_first_whatever_the_literal_has() -> None:
    assert (
        wkt("LINESTRING ZM (10 20 3 4, 11 21 3 4)", 4326).shape.wkt == "LINESTRING ZM (20 10 3 4, 21 11 3 4)"
    )
    assert wkt("POINT EMPTY", 4326).shape.is_empty


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("  point(1 2)\n", "POINT (1 2)"),
        ("POINT(1 2 3)", "POINT Z (1 2 3)"),
        ("MULTIPOINT(1 2,3 4)", "MULTIPOINT ((1 2), (3 4))"),
        ("\n <http://www.opengis.net/def/crs/OGC/1.3/CRS84>\n POINT(1 2)", "POINT (1 2)"),
        ("<http://www.opengis.net/def/crs/OGC/1.3/CRS84>POINT(1 2)", "POINT (1 2)"),
        ("", "GEOMETRYCOLLECTION EMPTY"),
        (" \t", "GEOMETRYCOLLECTION EMPTY"),
        (f"<{CRS84}>", "GEOMETRYCOLLECTION EMPTY"),
    ],
)
def test_ways_to_write_it(text: str, shape: str) -> None:
    assert read(text, WKT).shape.wkt == shape


def test_the_system_is_written_where_it_was_or_where_it_is_not_the_usual_one() -> None:
    assert write_geometry(read(f"<{CRS84}> POINT(1 2)", WKT)).value == f"<{CRS84}> POINT (1 2)"
    assert write_geometry(read("POINT(1 2)", WKT)).value == "POINT (1 2)"
    assert write_wkt(shapely.Point(1, 2), None) == "POINT (1 2)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("POINT(1,2)", "Expected number"),
        ("POINT(1 2) POINT(1 2)", "Unexpected text"),
        ("PINT(1 2)", "Unknown type"),
        ("LINESTRING(0 0)", "0 or >1"),
        ("POLYGON((0 0,1 1,1 0))", "closed"),
        ("POINT(nan 1)", "finite"),
        ("POINT(1e999 1)", "finite"),
        ("<http://example.org/crs> POINT(1 2)", "not known"),
        ("<http://www.opengis.net/def/crs/EPSG/0/999999> POINT(1 2)", "not known"),
        ("GEOMETRYCOLLECTION(" * 33 + "POINT(1 1)" + ")" * 33, "nested"),
        ("(" * 100_000, "nested"),
        ("POINT(1 2\0)", "malformed"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadGeometry, match=words):
        read(text, WKT)


def test_nested_as_deep_as_is_allowed() -> None:
    text = "GEOMETRYCOLLECTION(" * 31 + "POINT(1 1)" + ")" * 31
    assert not read_wkt(text)[1].is_empty


def test_many_brackets_are_not_deep_ones() -> None:
    assert len(read_wkt(f"MULTIPOINT({','.join(['(1 1)'] * 100)})")[1].geoms) == 100  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text", ["LINESTRING(" + "0 0," * shapes.VERTICES_MAX + "1 1)", " " * (shapes.CHARACTERS_MAX + 1)]
)
def test_what_is_too_large(text: str) -> None:
    with pytest.raises(LimitExceeded):
        read_wkt(text)


@pytest.mark.parametrize(
    ("text", "kind", "area", "length"),
    [
        ("CIRCULARSTRING(0 0,1 1,2 0)", "LineString", 0, 3.1416),
        ("CIRCULARSTRING(0 0,1 1,2 0,3 -1,4 0)", "LineString", 0, 6.2832),
        ("CIRCULARSTRING(0 0,1 0,2 0)", "LineString", 0, 2),
        ("CIRCULARSTRING EMPTY", "LineString", 0, 0),
        ("COMPOUNDCURVE(CIRCULARSTRING(0 0,1 1,2 0),(2 0,0 0))", "LineString", 0, 5.1416),
        ("CURVEPOLYGON(CIRCULARSTRING(0 0,2 0,0 0))", "Polygon", 3.1416, 6.2832),
        ("CURVEPOLYGON(CIRCULARSTRING(0 0,8 0,0 0),(1 0,2 1,2 -1,1 0))", "Polygon", 49.265, 29.961),
        ("CURVEPOLYGON(COMPOUNDCURVE(CIRCULARSTRING(0 0,1 1,2 0),(2 0,0 0)))", "Polygon", 1.5708, 5.1416),
        ("MULTICURVE((0 0,3 4),CIRCULARSTRING(0 0,1 1,2 0))", "MultiLineString", 0, 8.1416),
        (
            "MULTISURFACE(((0 0,1 0,0 1,0 0)),CURVEPOLYGON(CIRCULARSTRING(9 0,11 0,9 0)))",
            *("MultiPolygon", 3.6416, 9.697),
        ),
        ("TRIANGLE((0 0,3 0,0 4,0 0))", "Polygon", 6, 12),
        ("TIN Z(((0 0 1,3 0 1,0 4 1,0 0 1)),((3 0 1,0 4 1,3 4 1,3 0 1)))", "MultiPolygon", 12, 24),
        ("POLYHEDRALSURFACE(((0 0,3 0,0 4,0 0)))", "MultiPolygon", 6, 12),
        ("TIN EMPTY", "MultiPolygon", 0, 0),
        (
            "GEOMETRYCOLLECTION(POINT EMPTY,LINESTRING(0 0,3 4),CIRCULARSTRING(0 0,1 1,2 0))",
            *("GeometryCollection", 0, 8.1416),
        ),
    ],
)
def test_curves_and_patches_are_drawn_with_edges(text: str, kind: str, area: float, length: float) -> None:
    shape = read_wkt(text)[1]
    assert shape.geom_type == kind
    assert shape.area == pytest.approx(area, rel=1e-3)
    assert shape.length == pytest.approx(length, rel=1e-3)


def test_a_curve_keeps_its_heights_and_loses_its_measures() -> None:
    shape = read_wkt("CIRCULARSTRING ZM(0 0 1 9,1 1 2 9,2 0 3 9)")[1]
    heights = shapely.get_coordinates(shape, include_z=True)[:, 2]
    assert (heights[0], heights[-1], shape.has_m) == (1, 3, False)
    assert sorted(heights) == list(heights)
    assert not read_wkt("CIRCULARSTRING M(0 0 1,1 1 2,2 0 3)")[1].has_z


@pytest.mark.parametrize(
    "text",
    [
        "CIRCULARSTRING(0 0,1 1)",
        "CIRCULARSTRING(0 0,1 1,2 0) x",
        "CIRCULARSTRING",
        "CIRCULARSTRING(a b,c d,e f)",
        "CIRCULARSTRING(0 0,1 1,2 0",
        "CIRCULARSTRING(0 0,1 1 1,2 0)",
        "CURVE(1 2)",
        "CURVEPOLYGON((0 0,1 1,2 2))",
        "CURVEPOLYGON(((0 0)))",
        "CURVEPOLYGON(POINT(1 1))",
        "COMPOUNDCURVE((0 0,1 1),(2 2,3 3))",
        "MULTISURFACE(POINT(1 1))",
        "GEOMETRYCOLLECTION(POINT(1 2,CIRCULARSTRING(0 0,1 1,2 0))",
        "GEOMETRYCOLLECTION(POINT, CIRCULARSTRING EMPTY)",
        "1CURVE",
    ],
)
def test_curves_that_are_refused(text: str) -> None:
    with pytest.raises(BadGeometry):
        read_wkt(text)


def test_a_curve_of_too_many_vertices() -> None:
    arcs = shapes.VERTICES_MAX // 64 + 1
    with pytest.raises(LimitExceeded):
        read_wkt(f"CIRCULARSTRING({','.join(['0 0', '1 1'] * arcs)},0 0)")
