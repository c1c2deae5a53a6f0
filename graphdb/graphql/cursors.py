"""Orders of a connection, and the cursors that continue it."""

import binascii
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import isnan
from typing import Any

from pyoxigraph import Literal, NamedNode

from graphdb.graphql.failures import VALIDATION_FAILED, Refused, failure
from graphdb.graphql.model import Field, ObjectType, Reference, Scalar
from graphdb.graphql.scalars import DATATYPES, NUMBERS, TIMES, Value, is_iri, string_text
from graphdb.shacl.shacl_names import XSD
from graphdb.timestamps import days_of

__all__ = [
    "Cursor",
    "OrderKey",
    "beyond",
    "comparable",
    "key_expression",
    "key_value",
    "orders_of",
    "valid_expression",
    "zoned",
]

# In which order resources stand: by fields, the same in SPARQL and in Python, and last by their IRIs.
#
# Of several values the smallest counts where the order ascends, else the largest. Values that are not of
# the field's type count as none, and none comes before all others where the order ascends. Numbers stand by
# value, texts by code points (their languages do not count), times without a zone as if in UTC.

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


# Cursors: where in an order a resource stands, told by its values and not by its number.
#
# So a page goes on where the last one ended, whatever has come or gone since, the resource itself included.

_CHARS_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Cursor:
    """values: one for each key of the order but the last, which is the IRI; None where there is none."""

    values: tuple[Value | None, ...]
    iri: str

    def text(self, orders: Sequence[OrderKey]) -> str:
        """As clients see it: nothing to read for them."""
        values = [None if one is None else [one.text, one.datatype] for one in self.values]
        content = [[one.sign for one in orders], values, self.iri]
        return urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode()

    @staticmethod
    def read(text: str, orders: Sequence[OrderKey], argument: str) -> "Cursor":
        """Raises Refused with VALIDATION_FAILED for a text that is none of ours, or of another order."""
        try:
            signs, values, iri = json.loads(urlsafe_b64decode(text.encode()[:_CHARS_MAX]))
            cursor = Cursor(tuple(map(_value, values)), iri)
        except (ValueError, TypeError, binascii.Error, RecursionError):
            raise _refused(f"`{argument}` is no cursor that this service gave.") from None
        if signs != [one.sign for one in orders] or len(cursor.values) != len(orders) - 1:
            raise _refused(f"`{argument}` is a cursor of a list in another order.")
        if not (isinstance(iri, str) and is_iri(iri)) or not all(map(_fits, orders, cursor.values)):
            raise _refused(f"`{argument}` is no cursor that this service gave.")
        return cursor


def beyond(orders: Sequence[OrderKey], cursor: Cursor, keys: Sequence[str], forward: bool) -> str:
    """A condition in SPARQL: what stands behind the cursor, or before it.

    keys: for each of the order but the last, the variable that holds it; for the last that of the resource.
    """
    alternatives: list[str] = []
    same: list[str] = []
    for order, key, value in zip(orders, keys, (*cursor.values, None), strict=True):
        ascending = order.descending is not forward
        if order.field is None:
            key, literal = f"STR({key})", string_text(cursor.iri)
        elif value is None:
            if ascending:  # none comes before all others
                alternatives.append(_all([*same, f"BOUND({key})"]))
            same.append(f"!BOUND({key})")
            continue
        else:
            literal = str(Literal(value.text, datatype=NamedNode(value.datatype or "")))
        further = f"{key} {'>' if ascending else '<'} {literal}"
        if order.field is not None and not ascending:
            further = f"({further} || !BOUND({key}))"
        alternatives.append(_all([*same, further]))
        same.append(f"{key} = {literal}")
    return f"COALESCE({' || '.join(alternatives)}, false)"


def _all(conditions: Sequence[str]) -> str:
    return f"({' && '.join(conditions)})"


def _value(given: Any) -> Value | None:
    if given is None:
        return None
    text, datatype = given
    if not (isinstance(text, str) and isinstance(datatype, str)):
        raise TypeError
    return Value(text, datatype)


def _fits(order: OrderKey, value: Value | None) -> bool:
    if value is None or order.field is None:
        return True
    scalar = order.field.value if isinstance(order.field.value, Scalar) else Scalar.STRING
    return value.datatype is not None and is_iri(value.datatype) and comparable(scalar, value) is not None


def _refused(message: str) -> Refused:
    return Refused([failure(VALIDATION_FAILED, message)])
