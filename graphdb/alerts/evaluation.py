"""What a query's answer means to an alert, and what an evaluation leads to."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

import orjson

from graphdb.alerts.commands import Fire, Note
from graphdb.alerts.definition import Alert, Condition, Definition, Value, iso_time, number_of

__all__ = ["Evaluation", "Judgement", "RowReader", "body_of", "outcome_of"]

Row: TypeAlias = Mapping[str, Any]  # a solution: terms as in SPARQL results JSON, by variable

_ROWS_MAX = 100  # of an answer that a webhook is told
_ROWS_BYTES_MAX = 32_768
_LINE_BYTES_MAX = 1 << 20  # of a row that is looked at; a longer one only counts
_XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMERIC = {_XSD + name for name in ("integer", "decimal", "double", "float")}  # what the engine answers


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a query has answered, at a log index."""

    value: Value
    rows: tuple[Row, ...]  # the first ones
    snapshot_index: int


class RowReader:
    """Reads an answer to SELECT as it comes, a JSON object a line: counts all rows, and keeps a few."""

    def __init__(self) -> None:
        self._count = 0
        self._rows: list[Row] = []
        self._kept_bytes = 0
        self._number: Value | None = None  # of the first row, if it is one
        self._line = bytearray()  # as far as it has come, unless it is too long
        self._line_bytes = 0

    def feed(self, piece: bytes) -> None:
        """The next bytes, of any length."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._add(end)
            self._end_line()
        self._add(rest)

    def close(self, snapshot_index: int) -> Evaluation:
        """At the end: the number where one row with one column is one, else how many rows there are."""
        if self._line_bytes:
            self._end_line()
        value = self._number if self._count == 1 and self._number is not None else self._count
        return Evaluation(value, tuple(self._rows), snapshot_index)

    def _add(self, part: bytes) -> None:
        self._line_bytes += len(part)
        if self._line_bytes <= _LINE_BYTES_MAX:
            self._line += part

    def _end_line(self) -> None:
        self._count += 1
        if self._count <= _ROWS_MAX and self._line_bytes <= _LINE_BYTES_MAX:
            row = orjson.loads(self._line)
            if self._count == 1:
                self._number = _number_in(row)
            self._kept_bytes += self._line_bytes
            if self._kept_bytes <= _ROWS_BYTES_MAX:
                self._rows.append(row)
        self._line.clear()
        self._line_bytes = 0


def _number_in(row: Row) -> Value | None:
    if len(row) != 1:
        return None
    (term,) = row.values()
    if term["type"] != "literal" or term.get("datatype") not in _NUMERIC:
        return None
    try:
        return number_of(term["value"].replace("INF", "inf"))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Judgement:
    """One evaluation of an alert: due at tick_ms, done at at_ms. Either evaluation or error is there."""

    at_ms: int
    tick_ms: int
    evaluation: Evaluation | None
    error: str | None = None
    is_holding: bool = False

    @classmethod
    def of(cls, definition: Definition, evaluation: Evaluation, at_ms: int, tick_ms: int) -> "Judgement":
        holds = Condition.parse(definition.condition).holds(evaluation.value)
        return cls(at_ms, tick_ms, evaluation, None, holds)

    @property
    def value(self) -> Value | None:
        """As JSON can express it."""
        return None if self.evaluation is None else _shown(self.evaluation.value)


def outcome_of(alert: Alert, judged: Judgement, fresh_id: str) -> Fire | Note | None:
    """What the log is to be told of an evaluation, if anything. fresh_id: of the delivery, if it is one."""
    wants_change = alert.definition.notify == "change"
    if judged.evaluation is None:
        if alert.evaluation_error is not None:
            return None
        # a condition that could not be looked at has not ceased to hold
        return Note(alert.id, judged.at_ms, judged.tick_ms, None, alert.is_holding, judged.error)
    if judged.is_holding and not (wants_change and alert.is_holding):
        evaluation = judged.evaluation
        body = body_of(alert, evaluation, judged.at_ms)
        index, value = evaluation.snapshot_index, judged.value
        return Fire(alert.id, fresh_id, judged.at_ms, judged.tick_ms, index, value, body.decode())
    is_new = alert.evaluation_error is not None or (wants_change and alert.is_holding != judged.is_holding)
    if not is_new:
        return None
    return Note(alert.id, judged.at_ms, judged.tick_ms, judged.value, judged.is_holding, None)


def body_of(alert: Alert, evaluation: Evaluation, at_ms: int, *, is_test: bool = False) -> bytes:
    """What the webhook is sent, as JSON."""
    told = {
        "alert": {"id": alert.id, "name": alert.definition.name},
        "fired_at": iso_time(at_ms),
        "snapshot_index": evaluation.snapshot_index,
        "condition": alert.definition.condition,
        "result": _shown(evaluation.value),
        "rows": evaluation.rows,
    }
    return orjson.dumps(told | {"test": True} if is_test else told)


def _shown(value: Value) -> Value | None:
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if -(1 << 63) <= value < 1 << 63 else float(value)
