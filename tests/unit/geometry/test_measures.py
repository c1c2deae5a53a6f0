"""Distances, areas and lengths against published figures."""

import math

import pytest
import shapely
from pyproj import Geod

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geometry import measures
from tests.unit.geometry.conftest import EPSG, UOM, wkt

METRE = UOM + "metre"
WITHIN = 1e-6  # of the published figure


@pytest.mark.parametrize(
    ("one", "other", "metres"),
    [
        # New York to London, Wellington to Salamanca: the examples of GeographicLib, C. F. F. Karney
        ("POINT(-73.8 40.6)", "POINT(-0.5 51.6)", 5551759.400),
        ("POINT(174.81 -41.32)", "POINT(-5.50 40.96)", 19959679.267),
        # the first line of his GeodTest.dat
        ("POINT(0 36.530042355041)", "POINT(5.762344694676510456 -48.164270779097768864)", 9398502.0434687),
        # Flinders Peak to Buninyong: the test of the Geocentric Datum of Australia technical manual
        ("POINT(144.42486788889 -37.95103341667)", "POINT(143.92649552778 -37.65282113889)", 54972.271),
        # a quarter of a meridian, degrees at the equator, the way over a pole and over the antimeridian
        ("POINT(10 0)", "POINT(10 90)", 10001965.729),
        ("POINT(0 0)", "POINT(0 1)", 110574.3886),
        ("POINT(0 0)", "POINT(1 0)", 111319.4908),
        ("POINT(0 89)", "POINT(180 89)", 223387.7298),
        ("POINT(179.5 0)", "POINT(-179.5 0)", 111319.4908),
        ("POINT(1 2)", "POINT(1 2)", 0),
    ],
)  # fmt: skip
def test_distances_of_points(one: str, other: str, metres: float) -> None:
    assert measures.metric_distance(wkt(one), wkt(other)) == pytest.approx(metres, rel=WITHIN)
    assert measures.distance(wkt(one), wkt(other), METRE) == pytest.approx(metres, rel=WITHIN)
    assert measures.distance(wkt(other), wkt(one), UOM + "kilometre") == pytest.approx(
        metres / 1000, rel=WITHIN
    )


@pytest.mark.parametrize(
    ("one", "other", "metres"),
    [
        # to a parallel, a meridian, the equator: what is nearest is plain, and so is how far that is
        ("POINT(5 51)", "POLYGON((0 40,10 40,10 50,0 50,0 40))", 111238.6809),
        ("POINT(45 60)", "LINESTRING(0 50,90 50)", 1113225.7778),
        ("POINT(5 -1)", "LINESTRING(0 0,10 0)", 110574.3886),
        ("POINT(1 0)", "LINESTRING(0 -10,0 10)", 111319.4908),
        ("POINT(5 5)", "POLYGON((0 0,10 0,10 10,0 10,0 0))", 0),
        ("LINESTRING(0 0,10 10)", "LINESTRING(10 0,0 10)", 0),
        # over the antimeridian and over a pole
        ("POINT(-179.9 0)", "POLYGON((170 -1,179.9 -1,179.9 1,170 1,170 -1))", 22263.8982),
        ("POINT(180 10)", "POLYGON((-181 9,-179 9,-179 11,-181 11,-181 9))", 0),
        ("POINT(190 0)", "LINESTRING(-170 -1,-170 1)", 0),
        ("POINT(0 90)", "LINESTRING(0 80,90 80)", 1116825.8574),
        ("POINT(10 89)", "LINESTRING(190 89,200 88)", 223387.7298),
        ("POINT(33 89.5)", "POLYGON((-180 89,180 89,180 90,-180 90,-180 89))", 0),
        # of several parts, the nearest
        ("MULTIPOINT(50 50,1 0)", "GEOMETRYCOLLECTION(POINT(-50 0),LINESTRING(0 -1,0 1))", 111319.4908),
        # a metre apart along a hundred kilometres
        ("LINESTRING(0 45,1 45)", "LINESTRING(0 45.000009,1 45.000009)", 1.0001860),
    ],
)  # fmt: skip
def test_distances_of_others(one: str, other: str, metres: float) -> None:
    assert measures.metric_distance(wkt(one), wkt(other)) == pytest.approx(metres, rel=1e-5, abs=1e-3)
    assert measures.metric_distance(wkt(other), wkt(one)) == pytest.approx(metres, rel=1e-5, abs=1e-3)


def test_degrees_are_those_of_the_plane() -> None:
    one, other = wkt("POINT(0 0)"), wkt("LINESTRING(3 4,9 4)")
    assert measures.distance(one, other, UOM + "degree") == 5
    assert measures.distance(one, other, UOM + "radian") == pytest.approx(math.radians(5))
    assert measures.area(wkt("POLYGON((0 0,2 0,2 3,0 3,0 0))"), UOM + "degree") == 6


def test_in_a_plane_its_own_unit_counts() -> None:
    one, other = wkt("POINT(0 0)", 27700), wkt("POINT(3000 4000)", 27700)
    assert measures.metric_distance(one, other) == 5000
    assert measures.distance(one, other, UOM + "kilometre") == 5
    square = wkt("POLYGON((0 0,1000 0,1000 1000,0 1000,0 0))", 2263)  # in feet of the US survey
    assert measures.metric_area(square) == pytest.approx((1000 * 1200 / 3937) ** 2)
    assert measures.metric_length(square) == pytest.approx(4000 * 1200 / 3937)


def test_the_system_of_the_first_counts() -> None:
    new_york, london = wkt("POINT(-73.8 40.6)"), wkt("POINT(51.6 -0.5)", 4326)
    assert measures.metric_distance(new_york, london) == pytest.approx(5551759.400, rel=WITHIN)
    assert measures.distance(london, new_york, METRE) == pytest.approx(5551759.400, rel=WITHIN)


def test_a_quarter_of_a_meridian_in_grads_is_what_the_metre_was_made_of() -> None:
    equator, pole = wkt("POINT(0 1)", 4807), wkt("POINT(100 1)", 4807)
    assert measures.metric_distance(equator, pole) == pytest.approx(1e7, rel=1e-3)
    assert measures.metric_area(wkt("POLYGON((0 0,0 100,100 0,0 0))", 4807)) == pytest.approx(
        510065621724088.4 / 8, rel=1e-3
    )


@pytest.mark.parametrize(
    ("text", "square_metres"),
    [
        # the whole ellipsoid, halves of it, and Antarctica: GeographicLib's example for Planimeter
        ("POLYGON((-180 -90,180 -90,180 90,-180 90,-180 -90))", 510065621724088.4),
        ("POLYGON((-180 0,180 0,180 90,-180 90,-180 0))", 510065621724088.4 / 2),
        ("POLYGON((0 -90,180 -90,180 90,0 90,0 -90))", 510065621724088.4 / 2),
        ("POLYGON((-100 -90,100 -90,100 90,-100 90,-100 -90))", 510065621724088.4 * 200 / 360),
        ("POLYGON((0 0,90 0,0 90,0 0))", 510065621724088.4 / 8),
        ("POLYGON((0 0,0 1,1 1,1 0,0 0))", 12308778361.469),
        ("MULTIPOLYGON(((0 0,1 0,1 1,0 1,0 0)),((5 0,6 0,6 1,5 1,5 0)))", 2 * 12308778361.469),
        ("POLYGON((0 50,0.0001 50,0.0001 50.0001,0 50))", 39.87),
        ("LINESTRING(0 0,1 1)", 0),
        ("POLYGON EMPTY", 0),
    ],
)  # fmt: skip
def test_areas(text: str, square_metres: float) -> None:
    assert measures.metric_area(wkt(text)) == pytest.approx(
        square_metres, rel=1e-3 if square_metres < 100 else 1e-6
    )
    assert measures.area(wkt(text), "http://qudt.org/vocab/unit/HA") == pytest.approx(
        square_metres / 1e4, rel=1e-3
    )
    assert measures.area(wkt(text), UOM + "kilometre") == pytest.approx(square_metres / 1e6, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("POLYGON((-180 -90,180 -90,180 90,-180 90,-180 -90))", 1.0),
        ("POLYGON((-180 0,180 0,180 90,-180 90,-180 0))", 0.5),
    ],
)
def test_why_areas_are_not_those_of_pyproj(text: str, share: float) -> None:
    """An edge along a whole parallel has no length for pyproj, since both ends are one point."""
    area, _ = Geod(ellps="WGS84").geometry_area_perimeter(shapely.from_wkt(text))
    assert area == pytest.approx(0, abs=1)
    assert measures.metric_area(wkt(text)) == pytest.approx(share * 510065621724088.4, rel=1e-6)


def test_why_perimeters_are_not_those_of_pyproj() -> None:
    """pyproj leaves holes out."""
    whole, hole = "(0 0,4 0,4 4,0 4,0 0)", "(1 1,1 2,2 2,2 1,1 1)"
    polygon = wkt(f"POLYGON({whole},{hole})")
    rings = sum(measures.metric_length(wkt(f"POLYGON({ring})")) for ring in (whole, hole))
    _, perimeter = Geod(ellps="WGS84").geometry_area_perimeter(polygon.shape)
    assert measures.metric_length(polygon) == pytest.approx(rings)
    assert perimeter == pytest.approx(measures.metric_length(wkt(f"POLYGON({whole})")))


def test_holes_do_not_count() -> None:
    whole, hole = "(0 0,2 0,2 2,0 2,0 0)", "(0.5 0.5,1 0.5,1 1,0.5 0.5)"
    with_hole = measures.metric_area(wkt(f"POLYGON({whole},{hole})"))
    parts = [measures.metric_area(wkt(f"POLYGON({ring})")) for ring in (whole, hole)]
    assert with_hole == pytest.approx(parts[0] - parts[1])


ANTARCTICA = (
    "-58 -63.1,-74 -72.9,-102 -71.9,-102 -74.9,-131 -74.3,-163 -77.5,-180 -77.8,-180 -90,180 -90,180 -77.8,"
    "163 -77.4,172 -71.7,140 -65.9,113 -65.7,88 -66.6,59 -66.9,25 -69.8,-4 -70.0,-14 -71.0,-33 -77.3,"
    "-46 -77.9,-61 -74.7,-58 -63.1"
)


def test_the_area_of_antarctica() -> None:
    """The example of GeographicLib's Planimeter, cut at the antimeridian and led to the pole."""
    polygon = wkt(f"POLYGON(({ANTARCTICA}))")
    assert measures.metric_area(polygon) == pytest.approx(13662703680020.1, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "metres"),
    [
        ("LINESTRING(-73.8 40.6,-0.5 51.6)", 5551759.400),
        ("LINESTRING(0 0,0 1,0 2)", 221149.4536),
        ("MULTILINESTRING((0 0,1 0),(5 0,6 0))", 2 * 111319.4908),
        ("LINESTRING(179.5 0,-179.5 0)", 111319.4908),
        ("POLYGON((0 0,1 0,1 1,0 1,0 0))", 443770.917),
        ("POLYGON((-180 0,180 0,180 90,-180 90,-180 0))", 40075016.686 + 2 * 10001965.729),
        ("GEOMETRYCOLLECTION(LINESTRING(0 0,1 0),POLYGON((0 0,1 0,1 1,0 1,0 0)))", 111319.4908 + 443770.917),
        ("POINT(1 1)", 0),
        ("LINESTRING EMPTY", 0),
    ],
)
def test_lengths(text: str, metres: float) -> None:
    assert measures.metric_length(wkt(text)) == pytest.approx(metres, rel=WITHIN)
    assert measures.length(wkt(text), "http://qudt.org/vocab/unit/KiloM") == pytest.approx(
        metres / 1000, rel=WITHIN
    )


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("POINT EMPTY", "POINT(0 0)", "empty"),
        ("POINT(0 0)", "POLYGON EMPTY", "empty"),
        ("POINT(0 91)", "POINT(0 0)", "latitude 91"),
        ("POINT(0 0)", "LINESTRING(0 0,1 -90.5)", "latitude -90.5"),
        ("POINT(1000 0)", "POINT(0 0)", "longitude"),
    ],
)
def test_no_distances(one: str, other: str, words: str) -> None:
    with pytest.raises(BadGeometry, match=words):
        measures.metric_distance(wkt(one), wkt(other))


def test_units_that_do_not_fit() -> None:
    planar, square = wkt("POINT(0 0)", 27700), wkt("POLYGON((0 0,1 0,1 1,0 0))", 27700)
    with pytest.raises(InvalidParameter, match=f"angle, but coordinates in <{EPSG}27700> are lengths"):
        measures.distance(planar, planar, UOM + "degree")
    with pytest.raises(InvalidParameter, match="of area"):
        measures.distance(planar, planar, UOM + "squareMetre")
    with pytest.raises(InvalidParameter, match="not known"):
        measures.area(square, "http://example.org/unit")
