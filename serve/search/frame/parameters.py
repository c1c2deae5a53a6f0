"""Parameters of a request: booleans, numbers, times."""

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar
from urllib.parse import unquote_to_bytes

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.near_names import did_you_mean

__all__ = ["COMMON", "TIME_UNITS", "Parameters", "decoded", "java_integer", "time_value_ms"]

# Time values as Elasticsearch writes them: `30s`, `1m`, `500ms`.

_VALUE = re.compile(r"\s*(-?\d{1,18})\s*(nanos|micros|ms|s|m|h|d)\s*", re.ASCII | re.IGNORECASE)
TIME_UNITS = {  # in nanoseconds
    "nanos": 1,
    "micros": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}


def time_value_ms(text: str, name: str) -> int:
    """In milliseconds; name is what the value was given for. `-1` and `0` need no unit."""
    if text.strip() in ("-1", "0"):
        return int(text)
    found = _VALUE.fullmatch(text)
    what = f"failed to parse setting [{name}] with value [{text[:200]}] as a time value"
    if found is None:
        raise illegal_argument(f"{what}: unit is missing or unrecognized")
    number, nanoseconds = int(found[1]), TIME_UNITS[found[2].lower()]
    if number < 0 or number * nanoseconds > _LONG_MAX:
        raise illegal_argument(
            f"{what}: {'negative durations are not supported' if number < 0 else 'value is too large'}"
        )
    return number * nanoseconds // 1_000_000


# `Parameters`: the query string as Elasticsearch reads it.

D = TypeVar("D", int, None)

# Parameters of every operation.
COMMON = frozenset(
    {"pretty", "human", "error_trace", "filter_path", "format", "source", "source_content_type"}
)
_TIMES = ("timeout", "master_timeout")  # whichever operation they are of, they have to be times
FIELDS_MAX = 1_000
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_TRUE, _FALSE = "true", "false"


class Parameters:
    """By name; the last one counts where a name is there more than once."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    @classmethod
    def of(cls, query: bytes) -> "Parameters":
        """The parameters of a query string. Raises SearchError for broken escapes and for invalid UTF-8."""
        values: dict[str, str] = {}
        fields = query.split(b"&") if query else []
        if len(fields) > FIELDS_MAX:
            raise illegal_argument(f"too many parameters: [{len(fields)}], the limit is [{FIELDS_MAX}]")
        for field in fields:
            if field:
                name, _, value = field.replace(b"+", b" ").partition(b"=")
                values[decoded(name)] = decoded(value)
        return cls(values)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str | None:
        """As it is."""
        return self._values.get(name)

    def strings(self, name: str) -> list[str]:
        """The values separated by commas; empty if the parameter is missing or empty."""
        return [part for part in self._values.get(name, "").split(",") if part]

    def boolean(self, name: str, default: bool) -> bool:
        """A name without a value is true."""
        value = self._values.get(name)
        if value is None:
            return default
        if value not in ("", _TRUE, _FALSE):
            raise illegal_argument(f"Failed to parse value [{value}] as only [true] or [false] are allowed.")
        return value != _FALSE

    def integer(self, name: str, default: D) -> int | D:
        """32 bits."""
        return self._number(name, default, "int", _INT_MIN, _INT_MAX)

    def long(self, name: str, default: D) -> int | D:
        """64 bits."""
        return self._number(name, default, "long", _LONG_MIN, _LONG_MAX)

    def time_ms(self, name: str, default: D) -> int | D:
        """A time value such as `30s`, in milliseconds; `-1` is -1."""
        value = self._values.get(name)
        return default if value is None else time_value_ms(value, name)

    def check(self, path: str, known: Iterable[str]) -> None:
        """Refuse what the operation at path does not know."""
        allowed = {*known, *COMMON}
        unknown = sorted(self._values.keys() - allowed)
        if unknown:
            plural = "s" if len(unknown) > 1 else ""
            hints = ((name, did_you_mean(name, allowed)) for name in unknown)
            listed = ", ".join(f"[{name}]{' ->' if hint else ''}{hint}" for name, hint in hints)
            raise illegal_argument(f"request [{path}] contains unrecognized parameter{plural}: {listed}")
        for name in _TIMES:
            self.time_ms(name, None)

    def _number(self, name: str, default: D, kind: str, least: int, most: int) -> int | D:
        value = self._values.get(name)
        if value is None:
            return default
        number = java_integer(value)
        if number is None or not least <= number <= most:
            cause = SearchError("number_format_exception", f'For input string: "{value}"')
            message = f"Failed to parse {kind} parameter [{name}] with value [{value}]"
            raise illegal_argument(message, cause)
        return number


def java_integer(text: str) -> int | None:
    """Digits with or without a sign, as Java reads them; None for anything else."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 20 else None


def decoded(encoded: bytes) -> str:
    """A part of an address, percent-decoded."""
    try:
        return unquote_to_bytes(_checked(encoded)).decode()
    except UnicodeDecodeError:
        raise _bad_parameter("the text is not UTF-8", encoded) from None


def _checked(encoded: bytes) -> bytes:
    position = encoded.find(b"%")
    while position >= 0:
        pair = encoded[position + 1 : position + 3]
        if len(pair) < 2:
            raise _bad_parameter("unterminated escape sequence at end of string", encoded)
        if not all(byte in b"0123456789abcdefABCDEF" for byte in pair):
            raise _bad_parameter(f"invalid hex byte '{pair.decode('latin-1')}' at index {position}", encoded)
        position = encoded.find(b"%", position + 3)
    return encoded


def _bad_parameter(reason: str, encoded: bytes) -> SearchError:
    cause = illegal_argument(f"{reason}: {encoded[:200].decode('latin-1')}")
    reason = f"java.lang.IllegalArgumentException: {cause.reason}"
    return SearchError("bad_parameter_exception", reason, 400, None, cause)
