"""In which order resources stand: by fields, the same in SPARQL and in Python, and last by their IRIs.

Of several values the smallest counts where the order ascends, else the largest. Values that are not of the
field's type count as none, and none comes before all others where the order ascends. Numbers stand by value,
texts by code points (their languages do not count), times without a zone as if in UTC.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import isnan
from typing import Any

from graphdb.graphql.failures import VALIDATION_FAILED, Refused, failure
from graphdb.graphql.model import Field, ObjectType, Reference, Scalar
from graphdb.graphql.scalars import DATATYPES, NUMBERS, TIMES
from graphdb.graphql.terms import Value
from graphdb.shacl.vocabulary import XSD
from graphdb.timestamps import days_of

__all__ = ["OrderKey", "comparable", "key_expression", "key_value", "orders_of", "valid_expression", "zoned"]

_ZONED = r"(Z|[+-][0-9][0-9]:[0-9][0-9])$"
_HAS_ZONE = re.compile(_ZONED)
_NUMERIC = tuple(XSD + one for one in ("integer", "decimal", "double", "float"))
_TIME_FORMS = {
    Scalar.DATE_TIME: r"^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}",
    Scalar.DATE: r"^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}",
    Scalar.TIME: r"^[0-9]{2}:[0-9]{2}:[0-9]{2}",
}
_PARTS = re.compile(
    r"(?:(-?[0-9]{4,})-([0-9]{2})-([0-9]{2}))?T?(?:([0-9]{2}):([0-9]{2}):([0-9]{2}(?:\.[0-9]+)?))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One of the things to order by; field None is the resource's own IRI."""

    field: Field | None
    descending: bool

    @property
    def sign(self) -> str:
        """How cursors write it."""
        return f"{'-' if self.descending else '+'}{self.field.name if self.field else 'id'}"


def orders_of(kind: ObjectType, given: Sequence[Mapping[str, Any]] | None) -> tuple[OrderKey, ...]:
    """What the argument `orderBy` says; the IRI is always the last. Raises Refused with VALIDATION_FAILED."""
    found: list[OrderKey] = []
    for one in given or ():
        name, descending = one["field"], one.get("direction") == "DESC"
        if name == "id":
            return (*found, OrderKey(None, descending))
        field = kind.fields.get(name)
        if field is None or isinstance(field.value, Reference):
            what = "is no field" if field is None else "has objects as its values"
            message = f'Cannot order by "{name}", which {what} of type "{kind.name}".'
            raise Refused([failure(VALIDATION_FAILED, message)])
        found.append(OrderKey(field, descending))
    return (*found, OrderKey(None, False))


def valid_expression(field: Field, variable: str) -> str:
    """The values of a field that can be ordered by, in SPARQL."""
    scalar = field.value
    if not isinstance(scalar, Scalar) or scalar in (Scalar.STRING, Scalar.ID):
        return f"!isBlank({variable})"
    if scalar in NUMBERS:
        return f"isNumeric({variable}) && {variable} = {variable}"  # NaN is not itself
    if scalar is Scalar.BOOLEAN:
        return f"DATATYPE({variable}) = <{XSD}boolean>"
    form = _TIME_FORMS[scalar].replace("\\", "\\\\")
    return f'DATATYPE({variable}) = <{DATATYPES[scalar]}> && REGEX(STR({variable}), "{form}")'


def key_expression(field: Field, variable: str) -> str:
    """What a value is ordered by, in SPARQL."""
    scalar = field.value
    if isinstance(scalar, Scalar) and scalar in TIMES:
        return zoned(scalar, variable)
    return variable if scalar in NUMBERS or scalar is Scalar.BOOLEAN else f"STR({variable})"


def zoned(scalar: Scalar, variable: str) -> str:
    """A time with a zone, in SPARQL."""
    with_zone = f'STRDT(CONCAT(STR({variable}), "Z"), <{DATATYPES[scalar]}>)'
    return f'IF(REGEX(STR({variable}), "{_ZONED}"), {variable}, {with_zone})'


def key_value(key: OrderKey, values: Iterable[Value]) -> Value | None:
    """What a resource with these values is ordered by; None where none is valid."""
    assert key.field is not None
    scalar = key.field.value if isinstance(key.field.value, Scalar) else Scalar.STRING
    found = [(made, one) for one in values if (made := comparable(scalar, one)) is not None]
    if not found:
        return None
    chosen = (max if key.descending else min)(found, key=lambda pair: pair[0])[1]
    return _normal(scalar, chosen)


def comparable(scalar: Scalar, value: Value) -> Any:
    """What Python compares in place of a value; None for what cannot be ordered by."""
    if scalar in (Scalar.STRING, Scalar.ID):
        return None if value.datatype is None and value.text.startswith("_:") else value.text
    if scalar in NUMBERS:
        return _number(value)
    if scalar is Scalar.BOOLEAN:
        return value.text == "true" if value.datatype == XSD + "boolean" else None
    if value.datatype != DATATYPES[scalar] or not re.match(_TIME_FORMS[scalar], value.text):
        return None
    return _seconds(_with_zone(value.text))


def _normal(scalar: Scalar, value: Value) -> Value:
    if scalar in TIMES:
        return Value(_with_zone(value.text), value.datatype)
    return value if scalar in NUMBERS or scalar is Scalar.BOOLEAN else Value(value.text, XSD + "string")


def _with_zone(text: str) -> str:
    return text if _HAS_ZONE.search(text) else f"{text}Z"


def _number(value: Value) -> Decimal | float | int | None:
    if value.datatype not in _NUMERIC:
        return None
    try:
        if value.datatype == XSD + "integer":
            return int(value.text)
        if value.datatype == XSD + "decimal":
            return Decimal(value.text)
        number = float(value.text)
    except (ValueError, InvalidOperation):
        return None
    return None if isnan(number) else number


def _seconds(text: str) -> Decimal | None:
    """Since 1970; of a time alone, since midnight."""
    found = _PARTS.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, zone = found.groups()
    days = days_of(int(year), int(month), int(day)) if year else 0
    seconds = Decimal(second or 0) + 60 * (int(minute or 0) + 60 * int(hour or 0)) + 86_400 * days
    if zone != "Z":
        offset = 60 * (60 * int(zone[1:3]) + int(zone[4:6]))
        seconds += offset if zone[0] == "-" else -offset
    return seconds
