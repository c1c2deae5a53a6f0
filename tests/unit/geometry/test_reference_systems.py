"""Reference systems: their names, the order of their axes, and ways between them."""

import numpy as np
import pytest
from pyproj import CRS, Transformer, network

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geometry.geometry import in_system
from graphdb.geometry.geosparql_names import CRS84
from graphdb.geometry.reference_systems import crs84, reference_system, transformation
from tests.unit.geometry.conftest import EPSG, wkt

NAMES_OF_4326 = [
    "http://www.opengis.net/def/crs/EPSG/0/4326",
    "https://www.opengis.net/def/crs/EPSG/0/4326",
    "http://www.opengis.net/def/crs/EPSG/9.9.1/4326",
    "http://www.opengis.net/def/srs/EPSG/0/4326",
    "urn:ogc:def:crs:EPSG::4326",
    "urn:ogc:def:crs:EPSG:6.9:4326",
    "urn:x-ogc:def:crs:EPSG::4326",
]


@pytest.mark.parametrize("iri", NAMES_OF_4326)
def test_names_of_one_system(iri: str) -> None:
    system = reference_system(iri)
    assert (system.iri, system.is_north_first, system.is_geographic) == (iri, True, True)
    assert system.is_like(crs84())


@pytest.mark.parametrize("iri", ["EPSG:4326", "http://www.opengis.net/gml/srs/epsg.xml#4326"])
def test_older_names_have_the_east_first(iri: str) -> None:
    assert not reference_system(iri).is_north_first


@pytest.mark.parametrize("iri", [CRS84, "urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:OGC::CRS84"])
def test_names_of_crs84(iri: str) -> None:
    system = reference_system(iri)
    assert (system.is_north_first, system.is_geographic, system.degrees) == (False, True, 1)


@pytest.mark.parametrize(
    "code",
    # to the north first, or the east; in the polar ones, both axes point the same way
    [
        4326,
        4258,
        2193,
        3035,
        31467,
        32761,
        32661,
        5041,
        5042,
        3031,
        2053,
        2065,
        27700,
        2056,
        3857,
        32633,
        4807,
    ],
)
def test_the_order_of_axes_is_that_of_proj(code: int) -> None:
    system = reference_system(f"{EPSG}{code}")
    area = CRS(code).area_of_use
    assert area is not None
    place = ((area.west + area.east) / 2 + 0.3, (area.south + area.north) / 2 + 0.2)
    ordered = Transformer.from_crs("OGC:CRS84", f"EPSG:{code}").transform(*place)
    (east_first,) = transformation(crs84(), system, np.array([place]))
    assert ordered == pytest.approx(tuple(east_first[::-1] if system.is_north_first else east_first))


@pytest.mark.parametrize(
    "iri",
    [
        "http://example.org/crs",
        "http://www.opengis.net/def/crs/EPSG/0/0",
        "http://www.opengis.net/def/crs/EPSG/0/99999999",
        "http://www.opengis.net/def/crs/NOBODY/0/4326",
        "urn:ogc:def:uom:EPSG::9001",
        "EPSG:4326 ",
        "",
        "x" * 10_000,
        "http://www.opengis.net/def/crs/EPSG/0/4978",  # positions from the centre of the earth
        "http://www.opengis.net/def/crs/EPSG/0/5773",  # heights
    ],
)
def test_no_systems(iri: str) -> None:
    with pytest.raises(InvalidParameter, match="reference system"):
        reference_system(iri)


def test_a_published_projection() -> None:
    """Ordnance Survey, A guide to coordinate systems in Great Britain, annexe C.1."""
    latitude, longitude = 52 + 39 / 60 + 27.2531 / 3600, 1 + 43 / 60 + 4.5177 / 3600
    placed = in_system(wkt(f"POINT({latitude} {longitude})", 4277), reference_system(f"{EPSG}27700"))
    assert list(placed.shape.coords[0]) == pytest.approx([651409.903, 313177.270], abs=2e-3)


def test_there_and_back() -> None:
    line = wkt("LINESTRING Z (2 48 5, 3 49 6)")
    back = in_system(in_system(line, reference_system(f"{EPSG}2154")), crs84())
    assert np.allclose(np.array(back.shape.coords), np.array(line.shape.coords), atol=1e-9)


def test_where_a_system_does_not_reach() -> None:
    with pytest.raises(BadGeometry, match="outside"):
        in_system(wkt("POINT(0 100)"), reference_system(f"{EPSG}3857"))


def test_an_empty_geometry_is_everywhere() -> None:
    assert in_system(wkt("POINT EMPTY"), reference_system(f"{EPSG}3857")).shape.is_empty


def test_nothing_is_fetched() -> None:
    assert not network.is_network_enabled()  # type: ignore[attr-defined]
