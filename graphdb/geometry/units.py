"""Units of length, angle and area by their IRIs: of OGC, EPSG, UCUM and QUDT."""

import math
import re
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache

from pyproj.database import get_units_map

from graphdb.errors import InvalidParameter

__all__ = ["METRE", "Quantity", "Unit", "unit"]

_OGC = "http://www.opengis.net/def/uom/OGC/1.0/"
_UCUM = "http://www.opengis.net/def/uom/UCUM/"
_QUDT = ("http://qudt.org/vocab/unit/", "http://qudt.org/vocab/unit#")
_EPSG = re.compile(r"(?:http://www\.opengis\.net/def/uom/EPSG/[\d.]+/|urn:ogc:def:uom:EPSG:[\d.]*:)(\d{4})")
_OGC_URN = re.compile(r"urn:ogc:def:uom:OGC:(?:1\.0)?:")


class Quantity(Enum):
    """What a unit measures. The value is its name; below each, the unit of its factors."""

    LENGTH = "length"
    """metres"""
    ANGLE = "angle"
    """radians"""
    AREA = "area"
    """square metres"""


@dataclass(frozen=True, slots=True)
class Unit:
    """What it measures, and its size in metres, radians or square metres."""

    quantity: Quantity
    factor: float


METRE = Unit(Quantity.LENGTH, 1.0)

_FOOT, _US_FOOT, _MILE = 0.3048, 1200 / 3937, 1609.344
_LENGTHS = {
    "metre": 1.0,
    "kilometre": 1000.0,
    "centimetre": 0.01,
    "millimetre": 0.001,
    "mile": _MILE,
    "statuteMile": _MILE,
    "nauticalMile": 1852.0,
    "yard": 0.9144,
    "foot": _FOOT,
    "inch": 0.0254,
    "surveyFootUS": _US_FOOT,
}
_ANGLES = {
    "degree": math.radians(1),
    "radian": 1.0,
    "microRadian": 1e-6,
    "minute": math.radians(1 / 60),
    "second": math.radians(1 / 3600),
    "grad": math.pi / 200,
}
_UCUM_LENGTHS = {
    **{"m": "metre", "km": "kilometre", "cm": "centimetre", "mm": "millimetre", "[mi_i]": "mile"},
    **{"[nmi_i]": "nauticalMile", "[yd_i]": "yard", "[ft_i]": "foot", "[in_i]": "inch"},
    "[ft_us]": "surveyFootUS",
}
_UCUM_ANGLES = {"deg": "degree", "rad": "radian", "'": "minute", "''": "second", "gon": "grad"}
_QUDT_LENGTHS = {
    **{"M": "metre", "KiloM": "kilometre", "CentiM": "centimetre", "MilliM": "millimetre", "MI": "mile"},
    **{"MI_N": "nauticalMile", "YD": "yard", "FT": "foot", "IN": "inch", "FT_US": "surveyFootUS"},
}
_QUDT_ANGLES = {"DEG": "degree", "RAD": "radian", "MicroRAD": "microRadian", "ARCMIN": "minute"}
_QUDT_ANGLES |= {"ARCSEC": "second", "GRAD": "grad", "GON": "grad"}
_AREAS = {"HA": 1e4, "ARE": 100.0, "AC": 43560 * _FOOT**2}


@lru_cache(256)
def unit(iri: str) -> Unit:
    """The unit that an IRI names. Raises InvalidParameter."""
    if match := _EPSG.fullmatch(iri):
        found = _epsg_units().get(match[1])
    else:
        found = _named_units().get(_OGC_URN.sub(_OGC, iri))
    if found is None:
        raise InvalidParameter("unit", f"<{iri[:200]}> is not known; the metre is <{_OGC}metre>")
    return found


@cache
def _named_units() -> dict[str, Unit]:
    lengths = {_OGC + name: factor for name, factor in _LENGTHS.items()}
    lengths |= {_UCUM + code: _LENGTHS[name] for code, name in _UCUM_LENGTHS.items()}
    lengths |= {space + code: _LENGTHS[name] for space in _QUDT for code, name in _QUDT_LENGTHS.items()}
    lengths |= {iri.replace("metre", "meter"): factor for iri, factor in lengths.items()}
    angles = {_OGC + name: factor for name, factor in _ANGLES.items()}
    angles |= {_UCUM + code: _ANGLES[name] for code, name in _UCUM_ANGLES.items()}
    angles |= {space + code: _ANGLES[name] for space in _QUDT for code, name in _QUDT_ANGLES.items()}
    areas = {space + code: factor for space in _QUDT for code, factor in _AREAS.items()}
    areas |= {squared: factor**2 for iri, factor in lengths.items() for squared in _squared(iri)}
    return {
        iri: Unit(quantity, factor)
        for quantity, units in zip(Quantity, (lengths, angles, areas), strict=True)
        for iri, factor in units.items()
    }


def _squared(iri: str) -> tuple[str, ...]:
    """The IRIs of the square of a unit of length."""
    cut = max(iri.rfind("/"), iri.rfind("#")) + 1
    space, name = iri[:cut], iri[cut:]
    if space == _OGC:
        return f"{space}square_{name}", f"{space}square{name[0].upper()}{name[1:]}"
    return (f"{space}{name}2",)


@cache
def _epsg_units() -> dict[str, Unit]:
    """By code, without those that are not a multiple of the metre or radian, such as degrees and minutes."""
    return {
        entry.code: Unit(quantity, entry.conv_factor)
        for category, quantity in (("linear", Quantity.LENGTH), ("angular", Quantity.ANGLE))
        for entry in get_units_map(auth_name="EPSG", category=category).values()
        if entry.conv_factor
    }
