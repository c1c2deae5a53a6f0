"""What a geometry is by itself."""

import pytest

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geometry import properties
from graphdb.geometry.geosparql_names import SF
from tests.unit.geometry.conftest import EPSG, wkt


@pytest.mark.parametrize(
    ("text", "dimension", "coordinates", "space"),
    [
        ("POINT(1 2)", 0, 2, 2),
        ("POINT Z(1 2 3)", 0, 3, 3),
        ("LINESTRING M(1 2 3,4 5 6)", 1, 3, 2),
        ("POLYGON ZM((0 0 1 1,1 0 1 1,1 1 1 1,0 0 1 1))", 2, 4, 3),
        ("GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(1 2,3 4))", 1, 2, 2),
        ("GEOMETRYCOLLECTION EMPTY", 0, 2, 2),
    ],
)
def test_dimensions(text: str, dimension: int, coordinates: int, space: int) -> None:
    geometry = wkt(text)
    assert properties.dimension(geometry) == dimension
    assert properties.coordinate_dimension(geometry) == coordinates
    assert properties.spatial_dimension(geometry) == space
    assert properties.is_3d(geometry) is (space == 3)
    assert properties.is_measured(geometry) is (coordinates > space)


@pytest.mark.parametrize(
    ("text", "is_simple"),
    [
        ("POINT(1 2)", True),
        ("LINESTRING(0 0,1 1,1 0,0 1)", False),
        ("LINESTRING(0 0,1 1,1 0,0 0)", True),
        ("MULTIPOINT(1 1,1 1)", False),
        ("POLYGON((0 0,1 0,1 1,0 0))", True),
        ("GEOMETRYCOLLECTION(POINT(0 0),LINESTRING(0 0,1 1))", True),
        ("GEOMETRYCOLLECTION(POINT(0 0),LINESTRING(0 0,1 1,1 0,0 1))", False),
        ("GEOMETRYCOLLECTION EMPTY", True),
    ],
)
def test_is_simple(text: str, is_simple: bool) -> None:
    assert properties.is_simple(wkt(text)) is is_simple


def test_kind_and_system() -> None:
    assert properties.geometry_type(wkt("MULTIPOINT(1 1)")) == SF + "MultiPoint"
    assert properties.system_iri(wkt("POINT(1 1)", 3857)) == f"{EPSG}3857"
    assert properties.is_empty(wkt("POINT EMPTY"))
    assert not properties.is_empty(wkt("POINT(1 1)"))


def test_parts() -> None:
    several = wkt("GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(1 2,3 4))")
    assert properties.num_geometries(several) == 2
    assert properties.num_geometries(wkt("POINT(1 2)")) == 1
    assert properties.geometry_n(several, 2).shape.wkt == "LINESTRING (1 2, 3 4)"
    assert properties.geometry_n(wkt("POINT(1 2)"), 1).shape.wkt == "POINT (1 2)"
    for number in (0, 3, -1):
        with pytest.raises(InvalidParameter, match="index"):
            properties.geometry_n(several, number)


def test_bounds_are_in_the_order_of_the_literal() -> None:
    line = wkt("LINESTRING Z(1 20 300,4 50 600)")
    assert [properties.lowest(line, axis) for axis in range(3)] == [1, 20, 300]
    assert [properties.highest(line, axis) for axis in range(3)] == [4, 50, 600]
    assert properties.lowest(wkt("POINT(10 20)", 4326), 0) == 10


@pytest.mark.parametrize(("text", "axis"), [("POINT EMPTY", 0), ("POINT(1 2)", 2), ("POINT M(1 2 3)", 2)])
def test_no_bounds(text: str, axis: int) -> None:
    with pytest.raises(BadGeometry, match=r"empty|heights"):
        properties.lowest(wkt(text), axis)
