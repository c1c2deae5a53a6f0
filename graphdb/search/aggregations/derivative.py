"""`derivative`: the difference to the bucket before."""

from dataclasses import dataclass

from graphdb.search.aggregations.aggregation import Answer
from graphdb.search.aggregations.intervals import duration_ms
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.pipelines import Meta, OfValues, path_and_gaps
from graphdb.search.aggregations.rounding import CALENDAR_UNITS
from graphdb.search.errors import illegal_request

__all__ = ["Derivative", "parse_derivative"]

# Months and longer are parts of the mean Gregorian year, as in Java's `ChronoUnit`.
_YEAR_MS = 31_556_952_000
_UNITS_MS = {
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
    "month": _YEAR_MS // 12,
    "quarter": _YEAR_MS // 4,
    "year": _YEAR_MS,
}


@dataclass(frozen=True)
class Derivative(OfValues):
    """unit_ms: `normalized_value` is the difference for so many milliseconds between the keys of the two
    buckets; None: it is not asked for.
    """

    unit_ms: int | None

    @property
    def typed(self) -> str:
        return "derivative"

    def among(self, buckets: list[Answer]) -> list[Answer]:
        before: tuple[float, Answer] | None = None
        for bucket, value in zip(buckets, self._values(buckets), strict=True):
            if value is None:
                continue
            if before is not None:
                difference = float(value - before[0])
                self._put(bucket, difference, self._normalized(difference, before[1], bucket))
            before = value, bucket
        return buckets

    def _normalized(self, difference: float, before: Answer, bucket: Answer) -> dict[str, float]:
        if self.unit_ms is None:
            return {}
        units = (bucket["key"] - before["key"]) / self.unit_ms
        return {"normalized_value": difference / units} if units > 0 else {}


def parse_derivative(name: str, meta: Meta, options: Options) -> Derivative:
    """Errors: SearchError."""
    unit = options.text("unit")
    path, zeros = path_and_gaps(options)
    return Derivative(name, meta, zeros, path, None if unit is None else _unit_ms(unit))


def _unit_ms(unit: str) -> int:
    if unit in CALENDAR_UNITS:
        return _UNITS_MS[CALENDAR_UNITS[unit]]
    length = duration_ms(unit, "unit")
    if length < 1:
        raise illegal_request(f"[unit] must be longer than nothing, got [{unit[:100]}]")
    return length
