"""`rate`: what the buckets of a date_histogram have in each unit of time.

Source: Elasticsearch 8's documentation of the rate aggregation; its `Rounding` for units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from graphdb.search.aggregations.aggregation import Aggregation, Answer, Definition, Rows, Scope
from graphdb.search.aggregations.metrics import Moments
from graphdb.search.aggregations.rounding import CALENDAR_UNITS
from graphdb.search.aggregations.value_sources import NUMERIC, Display, Source
from graphdb.search.errors import illegal_argument
from graphdb.search.leaf_reader import Doubles

__all__ = ["Rate", "parse_rate"]

_MODES = {"sum": "sum", "value_count": "count"}


@dataclass(frozen=True)
class Rate(Aggregation):
    """source: of the values, None: documents are counted. column: of their moments. unit: a value of
    CALENDAR_UNITS, None: the interval itself.
    """

    source: Source | None
    column: str
    unit: str | None
    display: Display
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "rate"

    def measure(self, scope: Scope, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
        if path or metric not in ("", "value"):
            return super().measure(scope, rows, path, metric)
        totals = self._totals(scope, rows)
        if self.unit is None:
            return totals
        assert scope.spans is not None  # the parser sees to it that a date_histogram is around it
        return totals / scope.spans.lengths(self.unit)

    def _totals(self, scope: Scope, rows: Rows) -> Doubles:
        if self.source is None:
            return scope.total(rows.sizes(scope.columns.doc_counts)).astype(float)
        places, data = self.source.countable(scope, rows.docs)
        moments = Moments.of(scope, data.astype(float), rows.owners[places], rows.count)
        return moments.column(self.column)

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        found = self.measure(scope, rows, (), "").tolist()
        texts = map(self.display.text, found)
        return [
            {"value": value} if text is None else {"value": value, "value_as_string": text}
            for value, text in zip(found, texts, strict=True)
        ]


def parse_rate(definition: Definition) -> Aggregation:
    """Errors: SearchError."""
    options = definition.options
    unit, mode = options.text("unit"), options.text("mode")
    if unit is not None and unit not in CALENDAR_UNITS:
        raise illegal_argument(f"Unsupported unit {unit[:100]}")
    if mode is not None and mode not in _MODES:
        raise illegal_argument(f"Unknown rate mode [{mode[:100]}], expected one of [sum, value_count]")
    source = None
    if "field" in options or "script" in options:
        source = Source.parse(definition, None if mode == "value_count" else NUMERIC)
    elif mode is not None:
        raise illegal_argument("The mode parameter is only supported with field or script")
    display = Display.of(None, options.text("format"), None) if source is None else source.display
    options.done()
    column = _MODES[mode or "sum"]
    return Rate(definition.common, source, column, None if unit is None else CALENDAR_UNITS[unit], display)
