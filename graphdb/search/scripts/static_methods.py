"""Static methods and constants that scripts may use, by class and name."""

import math
from collections.abc import Callable
from typing import Any

from graphdb.search.scripts.faults import ScriptFault, null_pointer
from graphdb.search.scripts.methods import (
    Method,
    as_int,
    as_number,
    as_text,
    joined,
    listed,
    sort,
    to_int,
    to_long,
)
from graphdb.search.scripts.moments import STATIC_MOMENTS, Named, Wording
from graphdb.search.scripts.text_functions import STATIC_PROCESSORS
from graphdb.search.scripts.values import Budget, compared, equal, text_of, wrapped

__all__ = ["CONSTANTS", "STATIC"]


def _math(function: Callable[..., float]) -> Method:
    def apply(budget: Budget, *numbers: Any) -> float:
        try:
            return float(function(*(float(as_number(number)) for number in numbers)))
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return apply


def _log(number: float) -> float:
    return -math.inf if number == 0 else math.log(number)


def _log10(number: float) -> float:
    return -math.inf if number == 0 else math.log10(number)


def _floored(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda number: number if not math.isfinite(number) else float(function(number))


def _pow(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        return math.inf
    return math.pow(base, exponent)


def _extreme(best: Callable[[Any, Any], Any]) -> Method:
    def apply(budget: Budget, one: Any, other: Any) -> Any:
        first, second = as_number(one), as_number(other)
        if type(first) is int and type(second) is int:
            return best(first, second)
        if math.isnan(first) or math.isnan(second):
            return math.nan
        return best(float(first), float(second))

    return apply


def _absolute(budget: Budget, value: Any) -> Any:
    number = abs(as_number(value))
    return wrapped(number) if isinstance(number, int) else number


def _rounded(budget: Budget, value: Any) -> int:
    number = as_number(value)
    return number if isinstance(number, int) else to_long(_floored(math.floor)(number + 0.5))


def _parsed_int(budget: Budget, value: Any, *radix: Any) -> int:
    text = as_text(value)
    try:
        if len(text) > 70 or "_" in text or text != text.strip():
            raise ValueError
        number = int(text, *map(as_int, radix))
    except ValueError:
        raise ScriptFault("number_format_exception", f'For input string: "{text[:100]}"') from None
    if not -(2**63) <= number < 2**63:
        raise ScriptFault("number_format_exception", f'For input string: "{text[:100]}"')
    return number


def _parsed_double(budget: Budget, value: Any) -> float:
    text = as_text(value)
    try:
        if "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise ScriptFault("number_format_exception", f'For input string: "{text[:100]}"') from None


def _value_of(parse: Method, convert: Callable[[float], Any]) -> Method:
    return lambda budget, value: parse(budget, value) if isinstance(value, str) else convert(as_number(value))


def _required(budget: Budget, value: Any, *_message: Any) -> Any:
    if value is None:
        raise null_pointer("a required value")
    return value


STATIC: dict[str, Method] = {
    **{
        f"Math.{name}": _math(getattr(math, name))
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "expm1")
    },
    "Math.sqrt": _math(math.sqrt),
    "Math.cbrt": _math(math.cbrt),
    "Math.log": _math(_log),
    "Math.log10": _math(_log10),
    "Math.log1p": _math(math.log1p),
    "Math.pow": _math(_pow),
    "Math.atan2": _math(math.atan2),
    "Math.hypot": _math(math.hypot),
    "Math.toRadians": _math(math.radians),
    "Math.toDegrees": _math(math.degrees),
    "Math.signum": _math(lambda number: math.copysign(1.0, number) if number else number),
    "Math.floor": _math(_floored(math.floor)),
    "Math.ceil": _math(_floored(math.ceil)),
    "Math.rint": _math(_floored(round)),
    "Math.round": _rounded,
    "Math.abs": _absolute,
    "Math.max": _extreme(max),
    "Math.min": _extreme(min),
    "Integer.parseInt": _parsed_int,
    "Long.parseLong": _parsed_int,
    "Double.parseDouble": _parsed_double,
    "Float.parseFloat": _parsed_double,
    "Integer.valueOf": _value_of(_parsed_int, to_int),
    "Long.valueOf": _value_of(_parsed_int, to_long),
    "Double.valueOf": _value_of(_parsed_double, float),
    "Float.valueOf": _value_of(_parsed_double, float),
    "Boolean.parseBoolean": lambda budget, value: isinstance(value, str) and value.lower() == "true",
    "Double.isNaN": lambda budget, value: math.isnan(as_number(value)),
    "Double.isInfinite": lambda budget, value: math.isinf(as_number(value)),
    "Integer.compare": lambda budget, one, other: compared(as_int(one), as_int(other)),
    "Long.compare": lambda budget, one, other: compared(as_int(one), as_int(other)),
    "Double.compare": lambda budget, one, other: compared(float(as_number(one)), float(as_number(other))),
    "Integer.toString": lambda budget, value: text_of(as_int(value), budget),
    "Long.toString": lambda budget, value: text_of(as_int(value), budget),
    "Double.toString": lambda budget, value: text_of(float(as_number(value)), budget),
    "String.valueOf": lambda budget, value: text_of(value, budget),
    "String.join": lambda budget, between, values: joined(budget, listed(values), between),
    "Objects.equals": lambda budget, one, other: equal(one, other),
    "Objects.isNull": lambda budget, value: value is None,
    "Objects.nonNull": lambda budget, value: value is not None,
    "Objects.requireNonNull": _required,
    "Objects.toString": lambda budget, value: text_of(value, budget),
    "Collections.emptyList": lambda budget: (),
    "Collections.emptyMap": lambda budget: {},
    "Collections.singletonList": lambda budget, value: (value,),
    "Collections.sort": sort,
    "Arrays.asList": lambda budget, *values: list(values),
    **STATIC_PROCESSORS,
    **{
        name: (lambda budget, *arguments, function=function: function(*arguments))
        for name, function in STATIC_MOMENTS.items()
    },
}

CONSTANTS: dict[str, Any] = {
    "Math.PI": math.pi,
    "Math.E": math.e,
    "Integer.MAX_VALUE": 2**31 - 1,
    "Integer.MIN_VALUE": -(2**31),
    "Long.MAX_VALUE": 2**63 - 1,
    "Long.MIN_VALUE": -(2**63),
    "Double.MAX_VALUE": 1.7976931348623157e308,
    "Double.MIN_VALUE": 5e-324,
    "Double.NaN": math.nan,
    "Double.POSITIVE_INFINITY": math.inf,
    "Double.NEGATIVE_INFINITY": -math.inf,
    **{
        f"ChronoUnit.{name}": Named(name, 0)
        for name in ("MILLIS", "SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS", "MONTHS", "YEARS")
    },
    **{
        f"TextStyle.{name}{ending}": Wording(name, is_style=True)
        for name in ("FULL", "SHORT", "NARROW")
        for ending in ("", "_STANDALONE")
    },
    **{f"Locale.{name}": Wording(name, is_style=False) for name in ("ENGLISH", "US")},
}
