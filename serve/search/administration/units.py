"""Sizes and times as Elasticsearch writes them, and the units in which a caller may ask for them."""

from serve.search.frame.time_values import TIME_UNITS

__all__ = ["BYTE_UNITS", "size_text", "time_text"]

BYTE_UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40, "pb": 1 << 50}


def size_text(count: int) -> str:
    """In the largest unit that it reaches, with one decimal: 225b, 1.2kb."""
    reached = [name for name in BYTE_UNITS if BYTE_UNITS[name] <= count]
    unit = reached[-1] if reached else "b"
    return _one_decimal(count / BYTE_UNITS[unit]) + unit


def time_text(milliseconds: float) -> str:
    """As `size_text`: 0s, 12ms, 1.5m."""
    nanos = milliseconds * TIME_UNITS["ms"]
    if nanos == 0:
        return "0s"
    reached = [name for name in TIME_UNITS if TIME_UNITS[name] <= nanos]
    unit = reached[-1] if reached else "nanos"
    return _one_decimal(nanos / TIME_UNITS[unit]) + unit


def _one_decimal(value: float) -> str:
    """Cut off, not rounded."""
    return f"{int(value * 10) / 10:.1f}".removesuffix(".0")
