"""What an answer means, what is logged of it, and what a webhook is told."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.alerts.commands import Fire, Note
from graphdb.alerts.definition import Alert
from graphdb.alerts.evaluation import Evaluation, Judgement, RowReader, body_of, outcome_of
from tests.support.alerts import NOON_MS, an_alert

XSD = "http://www.w3.org/2001/XMLSchema#"


def literal(value: str, datatype: str | None = None) -> dict[str, str]:
    term = {"type": "literal", "value": value}
    return term | ({"datatype": XSD + datatype} if datatype else {})


def lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def evaluation_of(rows: list[dict[str, Any]]) -> Evaluation:
    reader = RowReader()
    reader.feed(lines(rows))
    return reader.close(7)


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        ([], 0),
        ([{"n": literal("42", "integer")}], 42),
        ([{"n": literal("9" * 30, "integer")}], int("9" * 30)),
        ([{"n": literal("0.5", "decimal")}], 0.5),
        ([{"n": literal("-INF", "double")}], float("-inf")),
        ([{"n": literal("odd", "integer")}], 1),
        ([{"n": literal("42")}], 1),
        ([{"n": {"type": "uri", "value": "urn:42"}}], 1),
        ([{}], 1),
        ([{"n": literal("42", "integer"), "m": literal("1", "integer")}], 1),
        ([{"n": literal("42", "integer")}] * 2, 2),
        ([{"n": {"type": "triple", "value": {}}}] * 3, 3),
    ],
)
def test_the_number_of_one_cell_else_of_the_rows(rows: list[dict[str, Any]], value: float) -> None:
    found = evaluation_of(rows)
    assert (found.value, type(found.value)) == (value, type(value))
    assert list(found.rows) == rows


@given(st.lists(st.integers(0, 10**6), max_size=250), st.lists(st.integers(1, 99), min_size=1))
def test_rows_are_counted_however_they_come(numbers: list[int], cuts: list[int]) -> None:
    rows = [{"a": literal(str(number), "integer"), "b": literal("x")} for number in numbers]
    reader, data, place = RowReader(), lines(rows), 0
    while place < len(data):
        size = cuts[place % len(cuts)]
        reader.feed(data[place : place + size])
        place += size
    found = reader.close(7)
    assert (found.value, list(found.rows)) == (len(rows), rows[:100])


def test_what_is_kept_of_rows_is_bounded() -> None:
    found = evaluation_of([{"a": literal("x" * 10_000)}] * 50)
    assert (found.value, len(found.rows)) == (50, 3)
    found = evaluation_of([{"a": literal("x" * 2_000_000)}, {"a": literal("y")}])
    assert (found.value, len(found.rows)) == (2, 1)


def judged(alert: Alert, value: float, tick: int = 1) -> Judgement:
    return Judgement.of(alert.definition, Evaluation(value, (), 7), NOON_MS, tick)


def test_at_each_interval_it_fires_as_long_as_the_condition_holds() -> None:
    alert = an_alert()
    assert isinstance(outcome_of(alert, judged(alert, 3), "d"), Fire)
    assert outcome_of(alert, judged(alert, 0), "d") is None, "nothing new leaves nothing in the log"


def test_on_change_it_fires_when_the_condition_begins_to_hold() -> None:
    alert = an_alert(notify="change")
    holding = Alert(alert.id, alert.definition, NOON_MS, is_holding=True)
    assert isinstance(outcome_of(alert, judged(alert, 3), "d"), Fire)
    assert outcome_of(holding, judged(alert, 3), "d") is None
    ceased = outcome_of(holding, judged(alert, 0), "d")
    assert isinstance(ceased, Note)
    assert not ceased.is_holding
    assert outcome_of(alert, judged(alert, 0), "d") is None


def test_errors_are_logged_as_they_come_and_go() -> None:
    alert = an_alert(notify="change")
    ill = Alert(alert.id, alert.definition, NOON_MS, is_holding=True, evaluation_error="no reader")
    failed = Judgement(NOON_MS, 1, None, "no reader")
    came = outcome_of(alert, failed, "d")
    assert isinstance(came, Note)
    assert came.error == "no reader"
    assert outcome_of(ill, failed, "d") is None
    went = outcome_of(ill, judged(alert, 3), "d")
    assert isinstance(went, Note)
    assert (went.error, went.is_holding) == (None, True), "it held before, so nothing has begun"


def test_what_a_webhook_is_told() -> None:
    alert = an_alert()
    evaluation = Evaluation(float("inf"), ({"s": literal("x")},), 7)
    told = orjson.loads(body_of(alert, evaluation, NOON_MS))
    assert told == {
        "alert": {"id": "a", "name": "a"},
        "fired_at": "2023-11-14T22:13:20.000Z",
        "snapshot_index": 7,
        "condition": "result > 0",
        "result": None,
        "rows": [{"s": literal("x")}],
    }
    assert orjson.loads(body_of(alert, evaluation, NOON_MS, is_test=True))["test"] is True
