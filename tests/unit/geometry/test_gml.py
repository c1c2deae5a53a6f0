"""GML literals: the elements of GML 2 and 3 that are read, and what is written."""

import re

import pytest
import shapely

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geometry.geometry import write_geometry
from graphdb.geometry.geosparql_names import CRS84, GML
from graphdb.geometry.gml import gml_profile, read_gml, write_gml
from tests.unit.geometry.conftest import EPSG, read

GML_3_2 = "http://www.opengis.net/gml/3.2"


def gml(body: str, namespace: str = GML_3_2) -> str:
    """Elements without a prefix, in a namespace."""
    return re.sub(r"^<(\w+)", rf'<\1 xmlns="{namespace}"', body)


def in_elements(content: str, *names: str) -> str:
    """The content within elements, the outermost first."""
    for name in reversed(names):
        content = f"<{name}>{content}</{name}>"
    return content


def line(positions: str) -> str:
    return in_elements(positions, "LineString", "posList")


def segment(positions: str, name: str = "LineStringSegment") -> str:
    return in_elements(positions, name, "posList")


TRIANGLE = "<LinearRing><posList>0 0 4 0 0 4 0 0</posList></LinearRing>"
HOLE = "<LinearRing><posList>1 1 1 2 2 1 1 1</posList></LinearRing>"
POINT_PROPERTY = "<pointProperty><Point><pos>{}</pos></Point></pointProperty>"
PATCH = ("PolygonPatch", "exterior")
LINE_Z = "LINESTRING Z (1 2 0, 3 4 0)"
BOX = "POLYGON ((2 1, 2 3, 0 3, 0 1, 2 1))"


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("<Point><pos>1 2</pos></Point>", "POINT (1 2)"),
        ("<Point><pos>1 2 3</pos></Point>", "POINT Z (1 2 3)"),
        ("<Point><coordinates>1,2</coordinates></Point>", "POINT (1 2)"),
        ("<Point><coord><X>1</X><Y>2</Y></coord></Point>", "POINT (1 2)"),
        ("<Point></Point>", "POINT EMPTY"),
        ("<Point><posList></posList></Point>", "POINT EMPTY"),
        (line("1 2 3 4"), "LINESTRING (1 2, 3 4)"),
        ('<LineString><posList srsDimension="3">1 2 0 3 4 0</posList></LineString>', LINE_Z),
        ('<LineString srsDimension="3"><posList>1 2 0 3 4 0</posList></LineString>', LINE_Z),
        ("<LineString><pos>1 2</pos><pos>3 4</pos></LineString>", "LINESTRING (1 2, 3 4)"),
        ("<LineString><coordinates>1,2 3,4</coordinates></LineString>", "LINESTRING (1 2, 3 4)"),
        (
            '<LineString><coordinates decimal="," cs=" " ts=";">1,5 2;3 4</coordinates></LineString>',
            "LINESTRING (1.5 2, 3 4)",
        ),
        (
            in_elements(POINT_PROPERTY.format("1 2") + POINT_PROPERTY.format("3 4"), "LineString"),
            "LINESTRING (1 2, 3 4)",
        ),
        (
            f"<Polygon><exterior>{TRIANGLE}</exterior><interior>{HOLE}</interior></Polygon>",
            "POLYGON ((0 0, 4 0, 0 4, 0 0), (1 1, 1 2, 2 1, 1 1))",
        ),
        (in_elements(TRIANGLE, "Polygon", "outerBoundaryIs"), "POLYGON ((0 0, 4 0, 0 4, 0 0))"),
        ("<Polygon></Polygon>", "POLYGON EMPTY"),
        (in_elements(TRIANGLE, "Surface", "patches", *PATCH), "POLYGON ((0 0, 4 0, 0 4, 0 0))"),
        (
            in_elements(
                in_elements(TRIANGLE, *PATCH) + in_elements(HOLE, *PATCH), "PolyhedralSurface", "patches"
            ),
            "MULTIPOLYGON (((0 0, 4 0, 0 4, 0 0)), ((1 1, 1 2, 2 1, 1 1)))",
        ),
        (
            in_elements(segment("0 0 1 1") + segment("1 1 2 0"), "Curve", "segments"),
            "LINESTRING (0 0, 1 1, 2 0)",
        ),
        (
            in_elements(line("0 0 1 1") + line("1 1 2 0"), "CompositeCurve", "curveMember"),
            "LINESTRING (0 0, 1 1, 2 0)",
        ),
        (
            f'<OrientableCurve orientation="-"><baseCurve>{line("0 0 1 1")}</baseCurve></OrientableCurve>',
            "LINESTRING (1 1, 0 0)",
        ),
        ("<Envelope><lowerCorner>0 1</lowerCorner><upperCorner>2 3</upperCorner></Envelope>", BOX),
        ("<Box><coordinates>0,1 2,3</coordinates></Box>", BOX),
        (
            "<MultiPoint><pointMember><Point><pos>1 2</pos></Point></pointMember><pointMembers>"
            "<Point><pos>3 4</pos></Point><Point><pos>5 6</pos></Point></pointMembers></MultiPoint>",
            "MULTIPOINT ((1 2), (3 4), (5 6))",
        ),
        (in_elements(line("1 2 3 4"), "MultiCurve", "curveMember"), "MULTILINESTRING ((1 2, 3 4))"),
        (
            in_elements(TRIANGLE, "MultiSurface", "surfaceMember", "Polygon", "exterior"),
            "MULTIPOLYGON (((0 0, 4 0, 0 4, 0 0)))",
        ),
        (
            in_elements("1 2", "MultiGeometry", "geometryMember", "Point", "pos"),
            "GEOMETRYCOLLECTION (POINT (1 2))",
        ),
        ("<MultiPoint></MultiPoint>", "MULTIPOINT EMPTY"),
        ("<MultiPoint><pointMember><Point></Point></pointMember></MultiPoint>", "MULTIPOINT (EMPTY)"),
    ],
)
def test_elements_that_are_read(body: str, shape: str) -> None:
    assert read_gml(gml(body)).shape.wkt == shape


@pytest.mark.parametrize(
    ("name", "positions", "length"),
    [
        ("Arc", "0 0 1 1 2 0", 3.1416),
        ("ArcString", "0 0 1 1 2 0 3 -1 4 0", 6.2832),
        ("Circle", "0 0 1 1 2 0", 6.2832),
    ],
)
def test_arcs_are_drawn_with_edges(name: str, positions: str, length: float) -> None:
    shape = read_gml(gml(in_elements(segment(positions, name), "Curve", "segments"))).shape
    assert shape.length == pytest.approx(length, rel=1e-3)


@pytest.mark.parametrize(
    "namespace",
    [
        "http://www.opengis.net/gml",
        "http://www.opengis.net/gml/3.2",
        "http://www.opengis.net/ont/gml",
        "https://www.opengis.net/gml",
    ],
)
def test_results_are_in_the_namespace_of_their_argument(namespace: str) -> None:
    geometry = read(gml("<Point><pos>1 2</pos></Point>", namespace), GML)
    assert write_geometry(geometry).value == (
        f'<gml:Point xmlns:gml="{namespace}" srsName="{CRS84}"><gml:pos>1 2</gml:pos></gml:Point>'
    )


def test_the_reference_system_is_said_anywhere_and_orders_the_axes() -> None:
    point = f'<Point srsName="{EPSG}4326"><pos>10 20</pos></Point>'
    geometry = read(gml(in_elements(point, "MultiPoint", "pointMember")), GML)
    assert geometry.shape.wkt == "MULTIPOINT ((20 10))"
    assert "<gml:pos>10 20</gml:pos>" in write_geometry(geometry).value
    old = read(gml('<Point srsName="EPSG:4326"><pos>20 10</pos></Point>'), GML)
    assert old.shape.wkt == "POINT (20 10)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<Point>", "malformed XML at line 1, column 8"),
        ("<a:Point/>", "unbound prefix"),
        ("<Point/>", "namespace"),
        (gml("<Solid></Solid>"), "Solid is not read"),
        (gml("<Curve><segments><Clothoid/></segments></Curve>"), "Clothoid is not read"),
        (gml("<Point><pos>1 2 3 4</pos></Point>"), "two numbers or three"),
        (gml("<Point><pos>1 x</pos></Point>"), "malformed GML"),
        (gml("<Point><posList>1 2 3 4</posList></Point>"), "one position"),
        (gml(line("1 2 3")), "no positions of 2"),
        (gml(line("1 2")), "two positions"),
        (gml('<LineString srsDimension="4"><posList>1 2</posList></LineString>'), "neither 2 nor 3"),
        (
            gml(in_elements("0 0 1 1 2 2", "Polygon", "exterior", "LinearRing", "posList")),
            "not closed",
        ),
        (gml(f"<Polygon><exterior>{TRIANGLE}{TRIANGLE}</exterior></Polygon>"), "2 rings"),
        (gml(in_elements(line("1 2 3 4"), "MultiPoint", "pointMember")), "no Point"),
        (gml(in_elements(segment("0 0 1 1", "Arc"), "Curve", "segments")), "no arcs"),
        (gml(in_elements(segment("0 0 1 1 2 2", "Circle"), "Curve", "segments")), "on a line"),
        (
            gml(in_elements(segment("0 0 1 1") + segment("2 2 3 3"), "Curve", "segments")),
            "follow each other",
        ),
        (gml("<Envelope><lowerCorner>0 1</lowerCorner></Envelope>"), "two corners"),
        (gml("<OrientableCurve></OrientableCurve>"), "no base"),
        (
            gml(
                f'<MultiPoint srsName="{CRS84}"><pointMember><Point srsName="{EPSG}4326"/></pointMember>'
                "</MultiPoint>"
            ),
            "several reference systems",
        ),
        (gml(in_elements("<Point/>", *("MultiGeometry", "geometryMember") * 33)), "nested"),
        ("<a>" * 1000, "nested"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "DOCTYPE"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "DOCTYPE"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadGeometry, match=words):
        read_gml(text)


def test_no_element_is_an_empty_geometry() -> None:
    assert read(" ", GML).shape.is_empty


@pytest.mark.parametrize(
    ("name", "namespace", "is_gml_2"),
    [
        ("3.2", GML_3_2, False),
        ("3.2.1", GML_3_2, False),
        ("GML 3.1.1", "http://www.opengis.net/gml", False),
        ("GML3", GML_3_2, False),
        ("2.1.2", "http://www.opengis.net/gml", True),
        ("http://www.opengis.net/gml/3.2", GML_3_2, False),
    ],
)
def test_profiles(name: str, namespace: str, is_gml_2: bool) -> None:
    profile = gml_profile(name)
    assert (profile.namespace, profile.is_gml_2) == (namespace, is_gml_2)


@pytest.mark.parametrize("name", ["", "4", "gml32", "http://example.org/"])
def test_no_profiles(name: str) -> None:
    with pytest.raises(InvalidParameter):
        gml_profile(name)


@pytest.mark.parametrize("profile", ["3.2", "2"])
@pytest.mark.parametrize(
    "text",
    [
        "POINT (1 2.5)",
        "POINT EMPTY",
        "LINESTRING Z (1 2 3, 4 5 6)",
        "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 1 2, 2 2, 1 1))",
        "POLYGON EMPTY",
        "MULTIPOINT ((1 2), (3 4))",
        "MULTILINESTRING ((1 2, 3 4), (5 6, 7 8))",
        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
        "GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (1 2, 3 4))",
    ],
)
def test_what_is_written_can_be_read(text: str, profile: str) -> None:
    written = write_gml(shapely.from_wkt(text), CRS84, gml_profile(profile))
    back = read_gml(written)
    assert (back.shape.wkt, back.system) == (text, CRS84)
