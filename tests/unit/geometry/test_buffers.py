"""Buffers: how large they are, where they are, and that none leaves the globe."""

import math

import numpy as np
import pytest
import shapely
from pyproj import Geod

from graphdb.errors import BadGeometry, InvalidParameter, LimitExceeded
from graphdb.geometry import measures
from graphdb.geometry.buffers import buffer, metric_buffer
from tests.unit.geometry.conftest import UOM, wkt

WGS84 = Geod(ellps="WGS84")
DEGREE = UOM + "degree"


@pytest.mark.parametrize("radius", [10, 1000, 100_000])
@pytest.mark.parametrize(
    "place", ["0 0", "10 50", "180 10", "-179.9999 -60", "0 90", "77 89.999", "5 -90", "370 20"]
)
def test_a_circle_around_a_point(place: str, radius: float) -> None:
    around = metric_buffer(wkt(f"POINT({place})"), radius)
    assert around.shape.is_valid
    assert measures.metric_area(around) == pytest.approx(math.pi * radius**2, rel=1e-3)
    west, south, east, north = around.shape.bounds
    assert (west >= -180, south >= -90, east <= 180, north <= 90) == (True,) * 4


@pytest.mark.parametrize("place", ["0 0", "10 50", "180 10", "0 85"])
def test_its_rim_is_as_far_away_as_it_should_be(place: str) -> None:
    around, (longitude, latitude) = metric_buffer(wkt(f"POINT({place})"), 500_000), map(float, place.split())
    rim = shapely.get_coordinates(around.shape)
    rim = rim[(np.abs(rim[:, 0]) < 180) & (rim[:, 1] < 90)]  # not where it is cut
    far = WGS84.inv(*np.broadcast_to([[longitude], [latitude]], (2, len(rim))), *rim.T)[2]
    assert np.allclose(far, 500_000, rtol=1e-4)


@pytest.mark.parametrize("radius", [2e6, 9.9e6, 1e7])
@pytest.mark.parametrize("place", ["0 0", "10 45", "179 -45", "100 80", "0 1"])
def test_as_large_as_half_the_globe(place: str, radius: float) -> None:
    """Places all over the globe are in it or not as their distance says."""
    around = metric_buffer(wkt(f"POINT({place})"), radius)
    centre = np.array(place.split(), dtype=float)
    rng = np.random.default_rng(1)
    places = np.stack((rng.uniform(-180, 180, 1000), np.degrees(np.arcsin(rng.uniform(-1, 1, 1000)))))
    far = WGS84.inv(*np.broadcast_to(centre[:, None], (2, 1000)), *places)[2]
    clear = np.abs(far - radius) > radius / 200
    assert np.array_equal(shapely.contains_xy(around.shape, *places)[clear], (far < radius)[clear])


def test_what_crosses_the_antimeridian_is_cut_there() -> None:
    around = metric_buffer(wkt("POINT(179.99 0)"), 10_000).shape
    assert around.geom_type == "MultiPolygon"
    assert shapely.covers(around, shapely.from_wkt("MULTIPOINT(179.95 0,-179.95 0)"))
    assert not shapely.intersects(around, shapely.Point(0, 0))


def test_a_line_across_a_continent() -> None:
    """A parallel is no geodesic, so its buffer has to bend with it."""
    line, radius = wkt("LINESTRING(10 50,40 50)"), 1000
    around = metric_buffer(line, radius)
    along = (
        2
        * math.pi
        * WGS84.a
        * math.cos(math.radians(50))
        / math.sqrt(1 - WGS84.es * math.sin(math.radians(50)) ** 2)
        / 12
    )
    assert measures.metric_area(around) == pytest.approx(2 * radius * along + math.pi * radius**2, rel=1e-3)
    inside = measures.metric_distance(wkt("POINT(25 50)"), wkt("POINT(25 50.008)"))
    assert inside < radius
    assert shapely.contains(around.shape, shapely.Point(25, 50.008))
    assert not shapely.intersects(around.shape, shapely.Point(25, 50.01))


def test_a_surface_with_and_without_its_margin() -> None:
    square = wkt("POLYGON((0 0,1 0,1 1,0 1,0 0))")
    wider, narrower = metric_buffer(square, 10_000), metric_buffer(square, -10_000)
    area, rim = measures.metric_area(square), measures.metric_length(square)
    assert measures.metric_area(wider) == pytest.approx(area + 1e4 * rim + math.pi * 1e8, rel=1e-3)
    assert measures.metric_area(narrower) == pytest.approx(area - 1e4 * rim + 4e8, rel=1e-3)
    assert shapely.contains(wider.shape, square.shape)
    assert shapely.contains(square.shape, narrower.shape)
    assert shapely.equals(metric_buffer(square, 0).shape, square.shape)
    assert metric_buffer(square, -100_000).shape.is_empty
    assert metric_buffer(wkt("POINT(1 1)"), -1).shape.is_empty


def test_several_parts_become_one() -> None:
    around = metric_buffer(wkt("GEOMETRYCOLLECTION(POINT(0 0),LINESTRING(0 0.001,0 0.01))"), 1000)
    assert around.shape.geom_type == "Polygon"
    assert metric_buffer(wkt("GEOMETRYCOLLECTION EMPTY"), 10).shape.is_empty


def test_a_buffer_around_a_buffer() -> None:
    points = wkt("MULTIPOINT(0 61, 0 62)")
    around, twice = metric_buffer(points, 6e6), metric_buffer(metric_buffer(points, 3e6), 3e6)
    assert measures.metric_area(twice) == pytest.approx(measures.metric_area(around), rel=1e-3)


def test_in_the_plane() -> None:
    circle = buffer(wkt("POINT(10 20)"), 2, DEGREE).shape
    assert circle.area == pytest.approx(math.pi * 4, rel=1e-3)
    assert circle.bounds == pytest.approx((8, 18, 12, 22))
    meadow = buffer(wkt("POINT(0 0)", 27700), 1, UOM + "kilometre").shape
    assert meadow.area == pytest.approx(math.pi * 1e6, rel=1e-3)


def test_units() -> None:
    metres = metric_buffer(wkt("POINT(1 2)"), 1852)
    miles = buffer(wkt("POINT(1 2)"), 1, UOM + "nauticalMile")
    assert shapely.equals_exact(metres.shape, miles.shape, 1e-9)
    with pytest.raises(InvalidParameter, match="unit"):
        buffer(wkt("POINT(1 2)"), 1, UOM + "parsec")
    with pytest.raises(InvalidParameter, match="angle"):
        buffer(wkt("POINT(1 2)", 27700), 1, DEGREE)


@pytest.mark.parametrize("radius", [math.nan, math.inf, 2e7, -2e7])
def test_no_radius(radius: float) -> None:
    with pytest.raises(InvalidParameter, match="radius"):
        metric_buffer(wkt("POINT(1 2)"), radius)


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(BadGeometry, match="not valid"):
        metric_buffer(wkt("POLYGON((0 0,2 2,2 0,0 2,0 0))"), 10)
    with pytest.raises(BadGeometry, match="latitude"):
        metric_buffer(wkt("POINT(0 95)"), 10)
    with pytest.raises(LimitExceeded, match="vertices"):
        metric_buffer(wkt("MULTILINESTRING((-180 89,180 89),(-180 88,180 88),(-180 -89,180 -89))"), 1e-3)
