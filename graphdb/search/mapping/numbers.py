"""From a JSON value to a number of a field's type."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["FLOAT_TYPES", "INTEGER_RANGES", "float_reader", "integer_reader", "parse_number", "rounder"]

INTEGER_RANGES = {
    "byte": (-(2**7), 2**7 - 1),
    "short": (-(2**15), 2**15 - 1),
    "integer": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
    "unsigned_long": (0, 2**64 - 1),
}
"""The smallest and largest value by type."""

FLOAT_TYPES = ("double", "float", "half_float", "scaled_float")

_INTEGER = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_DECIMAL = re.compile(
    r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?|[+-]?Infinity|NaN)[dDfF]?\s*", re.ASCII
)
_TEXT_LENGTH_MAX = 1000


def parse_number(text: str) -> int | float | None:
    """The number that a text means, as Java reads it; None where it means none."""
    if _INTEGER.fullmatch(text):
        return int(text)
    match = _DECIMAL.fullmatch(text) if len(text) <= _TEXT_LENGTH_MAX else None
    return float(match[1]) if match else None


def integer_reader(type_name: str, coerce: bool) -> Callable[[Any], int | None]:
    """With coerce strings are numbers, fractions are cut off, and an empty string is no value (None)."""
    low, high = INTEGER_RANGES[type_name]

    def read(value: Any) -> int | None:
        if type(value) is int and low <= value <= high:
            return value
        if value == "" and coerce:
            return None
        number = _number(value, type_name, coerce)
        whole = int(number) if abs(number) < 2**70 else None
        if whole is None or not low <= whole <= high:
            raise illegal_argument(f"Value [{_shown(value)}] is out of range for {_with_article(type_name)}")
        if whole != number and not coerce:
            raise illegal_argument(f"Value [{_shown(value)}] has a decimal part")
        return whole

    return read


def float_reader(type_name: str, coerce: bool, scaling_factor: float = 1.0) -> Callable[[Any], float | None]:
    """Rounds to the precision of the type."""
    to_precision = rounder(type_name, scaling_factor)

    def read(value: Any) -> float | None:
        if value == "" and coerce:
            return None
        number = to_precision(float(_number(value, type_name, coerce)))
        if not np.isfinite(number):
            raise illegal_argument(f"[{type_name}] supports only finite values, but got [{_shown(value)}]")
        return number

    return read


def rounder(type_name: str, scaling_factor: float = 1.0) -> Callable[[float], float]:
    """What rounds a double to the precision that a field of a type keeps; infinite beyond its range."""
    if type_name == "scaled_float":
        return lambda number: (
            round(number * scaling_factor) / scaling_factor if np.isfinite(number) else number
        )
    if type_name == "double":
        return lambda number: number
    narrow = np.float32 if type_name == "float" else np.float16

    def to_precision(number: float) -> float:
        with np.errstate(over="ignore"):
            return float(narrow(number))

    return to_precision


def _number(value: Any, type_name: str, coerce: bool) -> int | float:
    """Errors: illegal_argument_exception, number_format_exception for decimals as Elasticsearch has it."""
    if isinstance(value, bool):
        token = "VALUE_TRUE" if value else "VALUE_FALSE"
        raise illegal_argument(f"Current token ({token}) not numeric, can not use numeric value accessors")
    if isinstance(value, int | float):
        return value if abs(value) < 2**1023 else float("inf")
    if not isinstance(value, str):
        raise illegal_argument("Cannot parse object as number")
    if not coerce:
        raise illegal_argument(f"{type_name.capitalize()} value passed as String")
    number = parse_number(value)
    if number is None or number != number:
        kind = "number_format_exception" if type_name in FLOAT_TYPES else "illegal_argument_exception"
        raise SearchError(kind, f'For input string: "{value[:200]}"')
    return number


def _shown(value: Any) -> str:
    return str(value)[:100]


def _with_article(type_name: str) -> str:
    if type_name == "unsigned_long":
        return "unsigned long"
    return f"an {type_name}" if type_name == "integer" else f"a {type_name}"
