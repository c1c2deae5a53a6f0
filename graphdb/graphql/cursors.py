"""Cursors: where in an order a resource stands, told by its values and not by its number.

So a page goes on where the last one ended, whatever has come or gone since, the resource itself included.
"""

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyoxigraph import Literal, NamedNode

from graphdb.graphql.failures import VALIDATION_FAILED, Refused, failure
from graphdb.graphql.model import Scalar
from graphdb.graphql.orders import OrderKey, comparable
from graphdb.graphql.terms import Value, is_iri, string_text

__all__ = ["Cursor", "beyond"]

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
