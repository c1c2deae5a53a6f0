"""`IndexOrder`: the order that an index keeps its documents in within each segment (`index.sort.*`)."""

from dataclasses import astuple, dataclass
from typing import Any, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray

from graphdb.search.fields import FieldSpec, Storage

__all__ = ["IndexOrder", "OrderField", "column_of", "order_of_bytes", "order_to_bytes"]


@dataclass(frozen=True, slots=True)
class OrderField:
    """One field. column: where a segment has its values: `ints`, `exact`, `floats` or `terms`. mode: which
    of several values counts, `min` or `max`.
    """

    path: str
    column: str
    descending: bool = False
    mode: str = "min"
    missing_last: bool = True


IndexOrder: TypeAlias = tuple[OrderField, ...]
"""The most significant field first; empty: documents stay as they were written."""

_COLUMNS = {Storage.INTS: "ints", Storage.FLOATS: "floats", Storage.TERMS: "terms"}


def column_of(spec: FieldSpec) -> str | None:
    """The column that a field is ordered by; None where there is no such order."""
    return "exact" if spec.type in ("unsigned_long", "date_nanos") else _COLUMNS.get(spec.storage)


def order_to_bytes(order: IndexOrder) -> NDArray[np.uint8]:
    """JSON, as a segment has it."""
    return np.frombuffer(orjson.dumps([astuple(field) for field in order]), np.uint8)


def order_of_bytes(stored: NDArray[Any] | None) -> IndexOrder:
    """That of a segment; none where it says none."""
    return () if stored is None else tuple(OrderField(*row) for row in orjson.loads(stored.tobytes()))
