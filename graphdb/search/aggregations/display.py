"""How the values of a field appear in answers: keys, and the texts beside numbers (`..._as_string`)."""

import re
from dataclasses import dataclass
from datetime import UTC, tzinfo
from decimal import Decimal
from math import isfinite
from typing import Any

from graphdb.search.errors import illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.date_formats import DEFAULT_FORMAT, DateFormat, date_format
from graphdb.search.mapping.instants import zone_of
from graphdb.search.mapping.values import shown

__all__ = ["DATE_TYPES", "DecimalPattern", "Display", "number_text"]

DATE_TYPES = ("date", "date_nanos")
_DECIMAL = re.compile(r"([^#0.,;'%]{0,20})([#,]*)(0*)(?:\.(0*)(#*))?(%?)([^#0.,;'%]{0,20})")


@dataclass(frozen=True, slots=True)
class DecimalPattern:
    """A number pattern of Java's DecimalFormat: `#,##0.00`, `0.#`, `0%`, with text before and after."""

    prefix: str
    suffix: str
    grouped: bool
    digits_min: int
    fraction_min: int
    fraction_max: int
    percent: bool

    @staticmethod
    def of(pattern: str) -> "DecimalPattern":
        """Errors: illegal_argument_exception for a pattern beyond that."""
        match = _DECIMAL.fullmatch(pattern) if 0 < len(pattern) <= 100 else None
        if match is None or not re.search("[#0]", pattern):
            raise illegal_request(f'Malformed pattern "{pattern[:100]}"')
        prefix, hashes, zeros, least, more, percent, suffix = match.groups()
        fraction_min = len(least or "")
        return DecimalPattern(
            prefix, percent + suffix, "," in hashes, len(zeros), fraction_min, fraction_min + len(more or ""),
            bool(percent),
        )  # fmt: skip

    def write(self, number: float) -> str:
        number = number * 100 if self.percent else number
        text = f"{abs(number):{',' if self.grouped else ''}.{self.fraction_max}f}"
        whole, _, fraction = text.partition(".")
        while len(fraction) > self.fraction_min and fraction.endswith("0"):
            fraction = fraction[:-1]
        whole = whole.rjust(self.digits_min, "0") if whole != "0" or self.digits_min else ""
        sign = "-" if number < 0 else ""
        return f"{sign}{self.prefix}{whole}{'.' + fraction if fraction else ''}{self.suffix}"


@dataclass(frozen=True, slots=True)
class Display:
    """type is the field's, `double` where it is not mapped."""

    spec: FieldSpec | None
    pattern: DateFormat | DecimalPattern | None
    zone: tzinfo

    @staticmethod
    def of(spec: FieldSpec | None, shape: str | None, zone: str | None, dates: bool = False) -> "Display":
        """shape is the request's `format`. dates: values are instants although no field says so."""
        where = UTC if zone is None else zone_of(zone)
        if dates or (spec is not None and spec.type in DATE_TYPES):
            own = None if spec is None else spec.options.get("format")
            return Display(spec, date_format(shape or own or DEFAULT_FORMAT), where)
        numeric = spec is None or (spec.storage in (Storage.INTS, Storage.FLOATS) and spec.type != "boolean")
        return Display(spec, DecimalPattern.of(shape) if shape and numeric else None, where)

    def key(self, value: Any) -> Any:
        """The key of a bucket, from a stored value."""
        if self.spec is not None and self.spec.type == "ip":
            return shown(self.spec, value, None)
        return value

    def key_text(self, value: Any) -> str | None:
        """`key_as_string`, None where it would only repeat the key."""
        return None if isinstance(value, str) else self.text(value)

    def text(self, value: float) -> str | None:
        """The text beside a number, None where there is none."""
        if isinstance(self.pattern, DateFormat):
            return self.pattern.write(int(value), self.zone)
        if self.pattern is not None:
            return self.pattern.write(value)
        if self.spec is not None and self.spec.type == "boolean":
            return "true" if value else "false"
        return None


def number_text(number: float) -> str:
    """A number in a key, as Java writes it: 1.0E7 from ten millions on, 1.0E-4 below a thousandth."""
    if isinstance(number, int) or number == 0 or not isfinite(number):
        return str(number)
    if 1e-3 <= abs(number) < 1e7:
        return format(Decimal(repr(number)), "f")
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, *rest = digits
    fraction = "".join(map(str, rest)) or "0"
    return f"{'-' if sign else ''}{first}.{fraction}E{exponent + len(rest)}"
