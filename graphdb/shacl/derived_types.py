"""Datatypes that the store does not keep: values come back as another type (`graphdb.store.stored_form`).

"5"^^xsd:byte is stored as the xsd:integer 5. So that a shape which asks for xsd:byte accepts what was written
as one, a value matches such a datatype when it has the stored type and is one of the datatype's values.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from graphdb.shacl.shacl_names import XSD

__all__ = ["DERIVED_TYPES", "ZONED", "DerivedType"]


@dataclass(frozen=True, slots=True)
class DerivedType:
    """stored is the datatype that values come back with. least and most bound numbers, closed; zoned is for
    dates with a time zone only.
    """

    stored: str
    least: int | None = None
    most: int | None = None
    zoned: bool = False


ZONED: Final = r"(Z|[+-][0-9]{2}:[0-9]{2})$"
"""The pattern of a date that has a time zone."""


def _signed(bits: int) -> DerivedType:
    return DerivedType(XSD + "integer", -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _unsigned(bits: int) -> DerivedType:
    return DerivedType(XSD + "integer", 0, (1 << bits) - 1)


DERIVED_TYPES: Final = MappingProxyType(
    {
        XSD + "byte": _signed(8),
        XSD + "short": _signed(16),
        XSD + "int": _signed(32),
        XSD + "long": _signed(64),
        XSD + "unsignedByte": _unsigned(8),
        XSD + "unsignedShort": _unsigned(16),
        XSD + "unsignedInt": _unsigned(32),
        XSD + "unsignedLong": _unsigned(64),
        XSD + "nonNegativeInteger": DerivedType(XSD + "integer", least=0),
        XSD + "positiveInteger": DerivedType(XSD + "integer", least=1),
        XSD + "nonPositiveInteger": DerivedType(XSD + "integer", most=0),
        XSD + "negativeInteger": DerivedType(XSD + "integer", most=-1),
        XSD + "dateTimeStamp": DerivedType(XSD + "dateTime", zoned=True),
    }
)
"""By the IRI of the datatype that a shape asks for."""
