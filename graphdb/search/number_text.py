"""Numbers as Java writes them, in keys of buckets and in scripts."""

from decimal import Decimal
from math import isfinite

__all__ = ["number_text"]


def number_text(number: float) -> str:
    """A number as Java writes it: 1.0E7 from ten millions on, 1.0E-4 below a thousandth."""
    if isinstance(number, int) or number == 0 or not isfinite(number):
        return str(number)
    if 1e-3 <= abs(number) < 1e7:
        return format(Decimal(repr(number)), "f")
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, *rest = digits
    fraction = "".join(map(str, rest)) or "0"
    return f"{'-' if sign else ''}{first}.{fraction}E{exponent + len(rest)}"
