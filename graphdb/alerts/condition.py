"""The condition of an alert: `result`, a comparison, a number."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from graphdb.errors import InvalidParameter

__all__ = ["Condition", "Value", "number_of"]

Value: TypeAlias = int | float  # integers are exact, whatever their size

_COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_TEXT = re.compile(
    r"\s*result\s*(?P<comparison>[<>]=?|[=!]=)\s*"
    r"(?P<number>[+-]?(?:[0-9]+(?P<fraction>\.[0-9]*)?|\.[0-9]+)(?P<exponent>[eE][+-]?[0-9]+)?)\s*"
)
_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class Condition:
    """What a result is compared with, and how."""

    comparison: str
    number: Value

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Raises InvalidParameter where the text is not of the form `result > 5`."""
        found = _TEXT.fullmatch(text) if len(text) <= _CHARACTERS_MAX else None
        if found is None:
            raise InvalidParameter(
                "condition",
                f"has to be the word result, one of {' '.join(_COMPARISONS)} and a number: result > 5",
            )
        return cls(found["comparison"], number_of(found["number"]))

    def holds(self, value: Value) -> bool:
        """Whether it holds for a result; for what is no number (NaN) only != does."""
        return _COMPARISONS[self.comparison](value, self.number)


def number_of(text: str) -> Value:
    """A number as it is written: whole ones exactly. Raises ValueError."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else float(text)
