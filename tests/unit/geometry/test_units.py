"""Units by their IRIs."""

import math

import pytest

from graphdb.errors import InvalidParameter
from graphdb.geometry.units import Quantity, unit

OGC, EPSG = "http://www.opengis.net/def/uom/OGC/1.0/", "http://www.opengis.net/def/uom/EPSG/0/"
UCUM, QUDT = "http://www.opengis.net/def/uom/UCUM/", "http://qudt.org/vocab/unit/"


@pytest.mark.parametrize(
    ("iri", "quantity", "factor"),
    [
        (OGC + "metre", Quantity.LENGTH, 1),
        (OGC + "meter", Quantity.LENGTH, 1),
        (OGC + "kilometre", Quantity.LENGTH, 1000),
        (OGC + "nauticalMile", Quantity.LENGTH, 1852),
        ("urn:ogc:def:uom:OGC:1.0:metre", Quantity.LENGTH, 1),
        (EPSG + "9001", Quantity.LENGTH, 1),
        (EPSG + "9036", Quantity.LENGTH, 1000),
        ("urn:ogc:def:uom:EPSG::9002", Quantity.LENGTH, 0.3048),
        (UCUM + "km", Quantity.LENGTH, 1000),
        (QUDT + "KiloM", Quantity.LENGTH, 1000),
        ("http://qudt.org/vocab/unit#M", Quantity.LENGTH, 1),
        (QUDT + "MI", Quantity.LENGTH, 1609.344),
        (OGC + "degree", Quantity.ANGLE, math.pi / 180),
        (OGC + "radian", Quantity.ANGLE, 1),
        (QUDT + "DEG", Quantity.ANGLE, math.pi / 180),
        (EPSG + "9102", Quantity.ANGLE, math.pi / 180),
        (OGC + "square_kilometre", Quantity.AREA, 1e6),
        (OGC + "squareMetre", Quantity.AREA, 1),
        (QUDT + "KiloM2", Quantity.AREA, 1e6),
        (QUDT + "HA", Quantity.AREA, 1e4),
        (QUDT + "AC", Quantity.AREA, 4046.8564224),
    ],
)
def test_units(iri: str, quantity: Quantity, factor: float) -> None:
    found = unit(iri)
    assert found.quantity is quantity
    assert found.factor == pytest.approx(factor, rel=1e-9)


@pytest.mark.parametrize(
    "iri", ["metre", OGC, OGC + "parsec", EPSG + "9107", EPSG + "0", QUDT + "KiloGM", "x" * 9999]
)
def test_no_units(iri: str) -> None:
    with pytest.raises(InvalidParameter, match="unit"):
        unit(iri)
