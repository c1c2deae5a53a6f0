"""Time values as Elasticsearch writes them: `30s`, `1m`, `500ms`."""

import re

from graphdb.search.errors import illegal_argument

__all__ = ["TIME_UNITS", "time_value_ms"]

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
_LONG_MAX = 2**63 - 1


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
