"""Functions that scripts which score may call: saturation, sigmoid, decay by distance, random numbers.

Source: Elasticsearch's documentation of the `script_score` query and of decay functions.
"""

import math
import re
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdb.search.errors import SearchError
from graphdb.search.leaf_reader import Doubles, Longs
from graphdb.search.mapping.dates import date_format
from graphdb.search.mapping.readers import point_of
from graphdb.search.mapping.units import DURATIONS_MS, METERS
from graphdb.search.scripts.documents import Documents, Point
from graphdb.search.scripts.faults import ScriptFault, class_cast
from graphdb.search.scripts.methods import as_number, as_text
from graphdb.search.scripts.moments import Moment

__all__ = ["SCORING_FUNCTIONS", "of_document", "random_numbers"]

_QUANTITY = re.compile(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*")


def _quantity(value: Any, units: dict[str, float]) -> float:
    """Of `10km` or `5d`, in the unit that counts 1."""
    found = _QUANTITY.fullmatch(as_text(value))
    try:
        if found is not None and (found[2] in units or not found[2]):
            return float(found[1]) * units.get(found[2], 1.0)
    except ValueError:
        pass
    raise ScriptFault("illegal_argument_exception", f"failed to parse [{str(value)[:100]}]: unknown quantity")


def random_numbers(seed: int, keys: Longs) -> Doubles:
    """One in [0, 1) for each key, always the same for the same seed."""
    mixed = keys.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15) % 2**64)
    for factor, shift in ((0xBF58476D1CE4E5B9, 30), (0x94D049BB133111EB, 27)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed & np.uint64(0xFFFFFF)).astype(np.float64) / 2**24


def _double(value: Any) -> float:
    return float(as_number(value))


def _saturation(value: Any, half: Any) -> float:
    return _double(value) / (_double(value) + _double(half))


def _sigmoid(value: Any, half: Any, exponent: Any) -> float:
    power, other = math.pow(_double(value), _double(exponent)), math.pow(_double(half), _double(exponent))
    return power / (other + power)


# Decay: 1 up to an offset from the origin, `decay` at scale beyond that.

_Shape = Callable[[float, float], float]
_SHAPES: dict[str, _Shape] = {
    "Linear": lambda scales, decay: max(0.0, 1 - scales * (1 - decay)),
    "Exp": lambda scales, decay: decay**scales,
    "Gauss": lambda scales, decay: decay ** (scales * scales),
}


def _decayed(shape: _Shape, away: float, scale: float, offset: float, decay: Any) -> float:
    kept = _double(decay)
    if not (0 < kept < 1 and scale > 0 and offset >= 0):
        reason = "a decay is between 0 and 1, its scale is positive, and its offset is not negative"
        raise ScriptFault("illegal_argument_exception", reason)
    return shape(max(0.0, away - offset) / scale, kept)


def _of_numbers(shape: _Shape) -> Callable[..., float]:
    def decayed(origin: Any, scale: Any, offset: Any, decay: Any, value: Any) -> float:
        away = abs(_double(value) - _double(origin))
        return _decayed(shape, away, _double(scale), _double(offset), decay)

    return decayed


def _of_dates(shape: _Shape) -> Callable[..., float]:
    def decayed(origin: Any, scale: Any, offset: Any, decay: Any, value: Any) -> float:
        if not isinstance(value, Moment):
            raise class_cast("a date is expected")
        try:
            began = date_format("strict_date_optional_time").parse(as_text(origin))
        except SearchError as error:
            raise ScriptFault("illegal_argument_exception", error.reason) from None
        lengths = (_quantity(scale, DURATIONS_MS), _quantity(offset, DURATIONS_MS))
        return _decayed(shape, abs(value.ms - began), *lengths, decay)

    return decayed


def _of_places(shape: _Shape) -> Callable[..., float]:
    def decayed(origin: Any, scale: Any, offset: Any, decay: Any, value: Any) -> float:
        if not isinstance(value, Point):
            raise class_cast("a point is expected")
        try:
            point = point_of(as_text(origin))
        except SearchError as error:
            raise ScriptFault("illegal_argument_exception", error.reason) from None
        away = value.distance_m(*point)
        return _decayed(shape, away, _quantity(scale, METERS), _quantity(offset, METERS), decay)

    return decayed


SCORING_FUNCTIONS: dict[str, Callable[..., float]] = {
    "saturation": _saturation,
    "sigmoid": _sigmoid,
    **{f"decayNumeric{name}": _of_numbers(shape) for name, shape in _SHAPES.items()},
    **{f"decayDate{name}": _of_dates(shape) for name, shape in _SHAPES.items()},
    **{f"decayGeo{name}": _of_places(shape) for name, shape in _SHAPES.items()},
}


def of_document(documents: Documents) -> dict[str, Callable[..., float]]:
    """Those that need to know which document it is about."""

    def random_score(seed: Any, *field: Any) -> float:
        """By a field's first value; without a field by the sequence number, which an update changes."""
        key = int(documents.leaf.segment.seq_nos[documents.at])
        if field and field[0] != "_seq_no":
            values = documents.script_element(as_text(field[0])).values
            key = zlib.crc32(str(values[0] if values else "").encode("utf-8", "surrogatepass"))
        return float(random_numbers(int(_double(seed)), np.array([key], np.int64))[0])

    return {"randomScore": random_score}
