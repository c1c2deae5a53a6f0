"""The functions of `moving_fn`, by the call that its script is.

Source: Elasticsearch's documentation of `moving_fn`.
"""

import math
import re
from collections.abc import Callable

from graphdb.search.errors import illegal_argument

__all__ = ["moving_function"]

_MOVING = re.compile(
    r"\s*(?:return\s+)?MovingFunctions\.(\w+)\(\s*values\s*((?:,[^,()]*(?:\(\s*values\s*\))?[^,()]*)*)\)\s*;?\s*"
)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _deviation(values: list[float]) -> float:
    if not values:
        return math.nan
    mean = _mean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def _linear(values: list[float]) -> float:
    """The mean, where the n-th value counts n times."""
    weights = range(1, len(values) + 1)
    weighed = math.fsum(value * weight for value, weight in zip(values, weights, strict=True))
    return weighed / sum(weights) if values else math.nan


def _smoothed(values: list[float], alpha: float) -> float:
    """Exponentially weighted, from the first value on."""
    found = math.nan
    for place, value in enumerate(values):
        found = value if place == 0 else value * alpha + found * (1 - alpha)
    return found


def _holt(values: list[float], alpha: float, beta: float) -> float:
    """Double exponential smoothing: a level and a trend."""
    if not values:
        return math.nan
    level, trend = values[0], 0.0
    for value in values[1:]:
        before = level
        level = alpha * value + (1 - alpha) * (before + trend)
        trend = beta * (level - before) + (1 - beta) * trend
    return level


_FUNCTIONS: dict[str, tuple[int, Callable[..., float | None]]] = {  # arguments behind the values
    "max": (0, lambda values: max(values, default=math.nan)),
    "min": (0, lambda values: min(values, default=math.nan)),
    "sum": (0, lambda values: math.fsum(values)),
    "unweightedAvg": (0, _mean),
    "linearWeightedAvg": (0, _linear),
    "stdDev": (1, lambda values, _mean: _deviation(values)),
    "ewma": (1, _smoothed),
    "holt": (2, _holt),
}


def moving_function(script: str) -> Callable[[list[float]], float | None]:
    """One of the predefined functions, called on `values`. Errors: illegal_argument_exception."""
    call = _MOVING.fullmatch(script) if len(script) <= 1_000 else None
    if call is None or call[1] not in _FUNCTIONS:
        known = ", ".join(f"MovingFunctions.{name}" for name in _FUNCTIONS)
        raise illegal_argument(
            f"[moving_fn] takes one call of [{known}] on [values], and not [{script[:100]}]"
        )
    count, function = _FUNCTIONS[call[1]]
    given = [part.strip() for part in call[2].split(",")[1:]]
    if len(given) != count:
        raise illegal_argument(f"[MovingFunctions.{call[1]}] takes {count} arguments behind [values]")
    if call[1] == "stdDev":  # its mean is that of the values
        return lambda values: function(values, None)
    try:
        numbers = [float(part) for part in given]
    except ValueError:
        raise illegal_argument(f"[MovingFunctions.{call[1]}] takes numbers behind [values]") from None
    return lambda values: function(values, *numbers)
