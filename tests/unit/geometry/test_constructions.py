"""Geometries made from geometries."""

import math

import pytest
import shapely

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geometry import constructions
from graphdb.geometry.geometry import Geometry, write_geometry
from graphdb.geometry.geosparql_names import CRS84, GEOJSON
from tests.unit.geometry.conftest import EPSG, read, wkt

SQUARE = "POLYGON((0 0,4 0,4 4,0 4,0 0))"
ACROSS = "POLYGON((2 2,6 2,6 6,2 6,2 2))"


def is_equal(result: Geometry, text: str) -> bool:
    return bool(shapely.equals(result.shape, shapely.from_wkt(text)))


def test_sets() -> None:
    one, other = wkt(SQUARE), wkt(ACROSS)
    assert is_equal(constructions.intersection(one, other), "POLYGON((2 2,4 2,4 4,2 4,2 2))")
    assert is_equal(constructions.union(one, other), "POLYGON((0 0,4 0,4 2,6 2,6 6,2 6,2 4,0 4,0 0))")
    assert is_equal(constructions.difference(one, other), "POLYGON((0 0,4 0,4 2,2 2,2 4,0 4,0 0))")
    assert constructions.symmetric_difference(one, other).shape.area == 24
    assert constructions.intersection(one, wkt("POINT(9 9)")).shape.is_empty


def test_results_are_in_the_system_of_the_first() -> None:
    one = wkt("POLYGON((0 10,4 10,4 14,0 14,0 10))", 4326)
    other = wkt("POLYGON((11 1,20 1,20 9,11 9,11 1))")
    result = constructions.intersection(one, other)
    assert write_geometry(result).value.startswith(f"<{EPSG}4326> POLYGON")
    assert is_equal(result, "POLYGON((11 1,14 1,14 4,11 4,11 1))")


@pytest.mark.parametrize(
    "operation", [constructions.intersection, constructions.union, constructions.difference]
)
def test_where_a_geometry_is_not_valid(operation: "type") -> None:
    bow_tie, triangle = wkt("POLYGON((0 0,2 2,2 0,0 2,0 0))"), wkt("POLYGON((0 0,1 0,1 1,0 0))")
    with pytest.raises(BadGeometry, match="not valid: Self-intersection"):
        operation(bow_tie, triangle)


@pytest.mark.parametrize(
    ("text", "boundary"),
    [
        (SQUARE, "LINESTRING(0 0,4 0,4 4,0 4,0 0)"),
        ("LINESTRING(0 0,1 1,2 0)", "MULTIPOINT(0 0,2 0)"),
        (
            "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,2 1,1 2,1 1))",
            "MULTILINESTRING((0 0,4 0,4 4,0 4,0 0),(1 1,2 1,1 2,1 1))",
        ),
    ],
)
def test_boundaries(text: str, boundary: str) -> None:
    assert is_equal(constructions.boundary(wkt(text)), boundary)


def test_what_has_no_boundary() -> None:
    assert constructions.boundary(wkt("POINT(1 1)")).shape.is_empty
    with pytest.raises(BadGeometry, match="no boundary"):
        constructions.boundary(wkt("GEOMETRYCOLLECTION(POINT(1 1))"))


def test_hulls_and_envelopes() -> None:
    cloud = wkt("MULTIPOINT(0 0,4 0,4 4,0 4,1 1,3 2)")
    assert is_equal(constructions.convex_hull(cloud), SQUARE)
    assert is_equal(constructions.concave_hull(cloud, 1), SQUARE)
    assert constructions.concave_hull(cloud, 0).shape.area < 16
    assert constructions.concave_hull(cloud).shape.area <= 16
    assert is_equal(constructions.envelope(wkt("LINESTRING(0 4,4 0)")), SQUARE)
    assert is_equal(constructions.centroid(cloud), "POINT(2 1.8333333333333333)")
    for ratio in (-0.1, 1.1):
        with pytest.raises(InvalidParameter, match="ratio"):
            constructions.concave_hull(cloud, ratio)


def test_a_bounding_circle_is_around_all_and_as_large_as_a_circle() -> None:
    square = wkt(SQUARE)
    circle = constructions.bounding_circle(square).shape
    assert shapely.covers(circle, square.shape)
    assert circle.area == pytest.approx(math.pi * 8, rel=1e-3)
    assert constructions.bounding_circle(wkt("POINT(1 2)")).shape.wkt == "POINT (1 2)"
    assert constructions.bounding_circle(wkt("POINT EMPTY")).shape.is_empty


def test_transform() -> None:
    moved = constructions.transform(wkt("POINT(2 48)"), f"{EPSG}4326")
    assert write_geometry(moved).value == f"<{EPSG}4326> POINT (48 2)"
    geojson = read('{"type":"Point","coordinates":[2,48]}', GEOJSON)
    assert write_geometry(constructions.transform(geojson, CRS84)).datatype.value == GEOJSON
    projected = write_geometry(constructions.transform(geojson, f"{EPSG}3857")).value
    assert projected.startswith(f"<{EPSG}3857> POINT (222638.98")
    with pytest.raises(InvalidParameter, match="reference system"):
        constructions.transform(geojson, "http://example.org/")
