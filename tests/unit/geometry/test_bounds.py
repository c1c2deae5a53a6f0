"""Bounds enclose: what is near a place, and what another reference system draws."""

import math
import random

import pytest
import shapely
from pyproj import Geod

from graphdb.geometry.bounds import Bounds, around, extent_of
from graphdb.geometry.geometry import in_system
from graphdb.geometry.reference_systems import crs84
from tests.unit.geometry.conftest import wkt

GEOD = Geod(ellps="WGS84")


def is_in(longitude: float, latitude: float, bounds: Bounds) -> bool:
    """Whether a place is within, or would be if it were moved around the globe."""
    places = (Bounds(longitude + turn, latitude, longitude + turn, latitude) for turn in (-360, 0, 360))
    return any(place.meets(bounds) for place in places)


@pytest.mark.parametrize("latitude", [0, 30, -60, 79, 84.9, -88, 90])
@pytest.mark.parametrize("metres", [1, 10_000, 500_000, 3_000_000, 12_000_000])
def test_around_holds_all_that_is_near(latitude: float, metres: float) -> None:
    rng = random.Random(f"{latitude} {metres}")
    place = Bounds(179, latitude, 179, latitude)
    found = around(place, metres)
    for _ in range(300):
        azimuth, distance = rng.uniform(0, 360), metres * math.sqrt(rng.random())
        longitude, there, _ = GEOD.fwd(179, latitude, azimuth, distance)
        assert is_in(longitude, there, found)


def test_around_is_no_larger_than_it_need_be() -> None:
    found = around(Bounds(10, 50, 10, 50), 100_000)
    assert found.west == pytest.approx(10 - 1.4, abs=0.05)
    assert found.north == pytest.approx(50.9, abs=0.03)


def test_bounds_turn_around_the_globe() -> None:
    reach = Bounds(-180, -10, 180, 10)
    turned = list(Bounds(175, 0, 190, 1).turned(reach))
    assert [(each.west, each.east) for each in turned] == [(-185, -170), (175, 190)]
    assert list(Bounds(0, 0, 1, 1).turned(Bounds(5, 0, 6, 1))) == []


def test_degrees_are_bounds_themselves() -> None:
    extent = extent_of(wkt("LINESTRING(50 -10, 51 30)", epsg=4326))
    assert extent.is_plain
    assert extent.bounds == Bounds(-10, 50, 30, 51)


@pytest.mark.parametrize("epsg", [3857, 27700, 32630, 28992, 2154])
def test_another_system_is_enclosed(epsg: int) -> None:
    """With its straight edges, as degrees see them."""
    corners = {3857: (0, 6_000_000), 27700: (400_000, 200_000), 32630: (500_000, 5_600_000)}
    corners |= {28992: (155_000, 463_000), 2154: (700_000, 6_600_000)}
    x, y = corners[epsg]
    shape = wkt(f"LINESTRING({x} {y}, {x + 200_000} {y + 100_000})", epsg=epsg)
    extent = extent_of(shape)
    assert not extent.is_plain
    assert extent.bounds is not None
    for part in range(11):
        at = f"POINT({x + 20_000 * part} {y + 10_000 * part})"
        [(longitude, latitude)] = shapely.get_coordinates(in_system(wkt(at, epsg=epsg), crs84()).shape)
        assert Bounds(longitude, latitude, longitude, latitude).meets(extent.bounds)


@pytest.mark.parametrize("text", ["POINT(9e6 9e6)", "POLYGON((0 0, 2e6 0, 2e6 2e6, 0 0))"])
def test_what_lies_far_outside_of_its_system_or_is_large_may_be_anywhere(text: str) -> None:
    assert extent_of(wkt(text, epsg=27700)).bounds is None
