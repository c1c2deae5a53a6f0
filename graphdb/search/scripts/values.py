"""The values of scripts: their types, arithmetic and texts, and how much of them a script may make.

null, boolean, String, List, Map are Python's None, bool, str, list, dict. Whole numbers are Java's long, also
where Java has int: int, in 64 bits. Fractions are doubles: float. A tuple is a list that cannot be changed.
"""

import math
from collections.abc import Callable
from typing import Any

from graphdb.search.deadline import checkpoint
from graphdb.search.number_text import number_text
from graphdb.search.scripts.faults import ScriptFault, class_cast, null_pointer

__all__ = [
    "BINARY",
    "Budget",
    "check_extent",
    "compared",
    "equal",
    "negated",
    "text_of",
    "truth",
    "type_name",
    "wrapped",
]

STEPS_MAX = 1_000_000  # of one run: nodes that are evaluated
ALLOCATED_MAX = 10_000_000  # of one run: characters of strings and entries of lists and maps that are made
STRING_MAX = 1_000_000  # characters of a string that a script makes
EXTENT_MAX = 2_000_000  # characters and entries of a value as JSON, what stands in it twice counted twice
_DEPTH_MAX = 200  # of such a value; JSON is written to a depth of 254
_CHECKED_STEPS = 50_000  # between two looks at the deadline of the request
_COMPARED_MAX = 100_000  # the same of values that are compared
_TOO_MANY_STEPS = "The maximum number of statements that can be executed in a loop has been reached."


class Budget:
    """What one run of a script may still do, or several runs together: steps_max is how many nodes, reason
    what is said where there are more.
    """

    __slots__ = ("_allocated", "_next_check", "_reason", "_steps", "_steps_max")

    def __init__(self, steps_max: int = STEPS_MAX, reason: str = _TOO_MANY_STEPS) -> None:
        self._reason = reason
        self._steps = self._allocated = 0
        self._next_check, self._steps_max = min(_CHECKED_STEPS, steps_max), steps_max

    def spend(self, steps: int) -> None:
        """Raises ScriptFault where too many have been; what the deadline raises."""
        self._steps += steps
        if self._steps > self._next_check:
            checkpoint()
            self._next_check = self._steps + _CHECKED_STEPS
            if self._steps <= self._steps_max:
                self._next_check = min(self._next_check, self._steps_max)
            else:
                raise ScriptFault("painless_error", self._reason)

    def allocate(self, size: int) -> None:
        """Characters or entries. Raises ScriptFault where there are too many."""
        self._allocated += size
        self.spend(size >> 6)
        if self._allocated > ALLOCATED_MAX:
            raise ScriptFault(
                "circuit_breaking_exception",
                f"the script makes more than [{ALLOCATED_MAX}] characters and entries",
            )

    @property
    def allocated(self) -> int:
        """Characters and entries so far."""
        return self._allocated

    def string(self, text: str) -> str:
        """A string that was made. Raises ScriptFault where it is too long."""
        if len(text) > STRING_MAX:
            raise ScriptFault(
                "circuit_breaking_exception", f"a string is longer than [{STRING_MAX}] characters"
            )
        self.allocate(len(text))
        return text


def type_name(value: Any) -> str:
    """As errors name it."""
    for kind, name in _NAMES:
        if isinstance(value, kind):
            return name
    return "null" if value is None else type(value).__name__


_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "java.lang.Boolean"),
    (int, "java.lang.Long"),
    (float, "java.lang.Double"),
    (str, "java.lang.String"),
    (list, "java.util.ArrayList"),
    (tuple, "java.util.List"),
    (dict, "java.util.Map"),
)


def wrapped(number: int) -> int:
    """In 64 bits, as Java's long overflows."""
    return number if -(2**63) <= number < 2**63 else (number + 2**63) % 2**64 - 2**63


def check_extent(value: Any, most: int = EXTENT_MAX) -> None:
    """Raises ScriptFault for a value that is larger or deeper, as one that holds itself is."""
    if not isinstance(value, (list, tuple, dict)):
        return
    level, count = [value], 0
    for _ in range(_DEPTH_MAX + 1):
        inside: list[Any] = []
        for one in level:
            if isinstance(one, str):
                count += len(one)
            elif isinstance(one, dict):
                count += len(one)
                inside += one.values()
                count += sum(len(key) for key in one if isinstance(key, str))
            elif isinstance(one, (list, tuple)):
                count += len(one)
                inside += one
            if count > most:
                raise ScriptFault("circuit_breaking_exception", f"a value is larger than [{most}] as JSON")
        level = inside
        if not level:
            return
    raise ScriptFault("illegal_argument_exception", f"a value nests deeper than [{_DEPTH_MAX}]")


def truth(value: Any) -> bool:
    """Of a condition. Raises ScriptFault for anything but a boolean."""
    if value is True or value is False:
        return bool(value)
    if value is None:
        raise null_pointer("a boolean")
    raise class_cast(f"Cannot cast from [{type_name(value)}] to [boolean].")


# Texts, as Java's `toString` has them.


def text_of(value: Any, budget: Budget) -> str:
    """Raises ScriptFault where it is too long."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple, dict)):
        check_extent(value, _COMPARED_MAX)
    return budget.string(_text(value))


def _text(value: Any) -> str:
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return _double_text(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)}={_text(member)}" for key, member in value.items()) + "}"
    return str(value)


def _double_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return number_text(value)


# Equality and order.


def equal(one: Any, other: Any) -> bool:
    """`==`: numbers by their value, whatever their types; a boolean equals no number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (list, tuple, dict)) and isinstance(other, (list, tuple, dict)):
        check_extent(one, _COMPARED_MAX)
        check_extent(other, _COMPARED_MAX)
    return bool(one == other)


def compared(one: Any, other: Any) -> int:
    """Less than 0, 0, or more than 0. Raises ScriptFault for what has no order."""
    if one is None or other is None:
        raise null_pointer("an operand of a comparison")
    is_number = _is_number(one) and _is_number(other)
    if not is_number and (type(one) is not type(other) or isinstance(one, (list, tuple, dict))):
        raise _no_operation("compareTo", one, other)
    try:
        return int(one > other) - int(one < other)
    except TypeError:
        raise _no_operation("compareTo", one, other) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# Operators.


def _no_operation(name: str, one: Any, other: Any) -> ScriptFault:
    if one is None or other is None:
        return null_pointer(f"an operand of [{name}]")
    return class_cast(
        f"Cannot apply [{name}] operation to types [{type_name(one)}] and [{type_name(other)}]."
    )


def _arithmetic(
    name: str, whole: Callable[[int, int], int], fraction: Callable[[float, float], float]
) -> Callable[[Any, Any, Budget], Any]:
    def apply(one: Any, other: Any, budget: Budget) -> Any:
        if type(one) is int and type(other) is int:
            return wrapped(whole(one, other))
        if not (_is_number(one) and _is_number(other)):
            raise _no_operation(name, one, other)
        try:
            return fraction(float(one), float(other))
        except OverflowError:
            return math.inf

    return apply


def _plus(one: Any, other: Any, budget: Budget) -> Any:
    if isinstance(one, str) or isinstance(other, str):
        first, second = text_of(one, budget), text_of(other, budget)
        return budget.string(first + second)
    return _sum(one, other, budget)


def _whole_quotient(one: int, other: int) -> int:
    """Towards zero."""
    if not other:
        raise ScriptFault("arithmetic_exception", "/ by zero")
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _whole_remainder(one: int, other: int) -> int:
    return one - other * _whole_quotient(one, other)


def _quotient(one: float, other: float) -> float:
    if other:
        return one / other
    if one == 0 or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, other)


def _remainder(one: float, other: float) -> float:
    if not other or math.isinf(one) or math.isnan(one) or math.isnan(other):
        return math.nan
    return math.fmod(one, other)


def _bits(name: str, whole: Callable[[int, int], int]) -> Callable[[Any, Any, Budget], Any]:
    def apply(one: Any, other: Any, budget: Budget) -> Any:
        if type(one) is bool and type(other) is bool and name in "&|^":
            return bool(whole(one, other))
        if type(one) is not int or type(other) is not int:
            raise _no_operation(name, one, other)
        return wrapped(whole(one, other))

    return apply


def _ordered(name: str, test: Callable[[Any, Any], bool]) -> Callable[[Any, Any, Budget], Any]:
    def apply(one: Any, other: Any, budget: Budget) -> Any:
        if not (_is_number(one) and _is_number(other)):
            raise _no_operation(name, one, other)
        return test(one, other)

    return apply


def _identical(one: Any, other: Any) -> bool:
    """`===`: of lists and maps whether they are the same one."""
    is_container = isinstance(one, (list, tuple, dict)) or isinstance(other, (list, tuple, dict))
    return one is other if is_container else equal(one, other)


_sum = _arithmetic("+", lambda one, other: one + other, lambda one, other: one + other)

BINARY: dict[str, Callable[[Any, Any, Budget], Any]] = {
    "+": _plus,
    "-": _arithmetic("-", lambda one, other: one - other, lambda one, other: one - other),
    "*": _arithmetic("*", lambda one, other: one * other, lambda one, other: one * other),
    "/": _arithmetic("/", _whole_quotient, _quotient),
    "%": _arithmetic("%", _whole_remainder, _remainder),
    "&": _bits("&", lambda one, other: one & other),
    "|": _bits("|", lambda one, other: one | other),
    "^": _bits("^", lambda one, other: one ^ other),
    "<<": _bits("<<", lambda one, other: one << (other & 63)),
    ">>": _bits(">>", lambda one, other: one >> (other & 63)),
    ">>>": _bits(">>>", lambda one, other: one % 2**64 >> (other & 63)),
    "<": _ordered("<", lambda one, other: one < other),
    "<=": _ordered("<=", lambda one, other: one <= other),
    ">": _ordered(">", lambda one, other: one > other),
    ">=": _ordered(">=", lambda one, other: one >= other),
    "==": lambda one, other, budget: equal(one, other),
    "!=": lambda one, other, budget: not equal(one, other),
    "===": lambda one, other, budget: _identical(one, other),
    "!==": lambda one, other, budget: not _identical(one, other),
}
"""By operator, all but `&&` and `||`. Each raises ScriptFault for operands that it does not take."""


def negated(operator: str, value: Any) -> Any:
    """`-`, `+`, `~` or `!` before a value."""
    if operator == "!":
        return not truth(value)
    if operator == "~" and type(value) is int:
        return ~value
    if operator == "~" or not _is_number(value):
        raise (
            null_pointer(f"an operand of [{operator}]")
            if value is None
            else class_cast(f"Cannot apply [{operator}] operation to type [{type_name(value)}].")
        )
    if operator == "+":
        return value
    return wrapped(-value) if isinstance(value, int) else -value
