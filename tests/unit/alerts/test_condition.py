"""Conditions: what is one, and when it holds."""

import pytest

from graphdb.alerts.definition import Condition, Value
from graphdb.errors import InvalidParameter

NAN = float("nan")


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("result > 5", 6, True),
        ("result > 5", 5, False),
        ("result>=5", 5, True),
        ("  result  <  -1.5e1 ", -15.5, True),
        ("result <= .5", 0.5, True),
        ("result == 0.1", 0.1, True),
        ("result != 3", 3.0, False),
        ("result == 9007199254740993", 9007199254740992, False),
        ("result > 1e999", 10**400, False),
        ("result > 1", float("inf"), True),
        ("result == 1", NAN, False),
        ("result != 1", NAN, True),
        ("result <= 1", NAN, False),
    ],
)
def test_holds(text: str, value: Value, holds: bool) -> None:
    assert Condition.parse(text).holds(value) is holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "result",
        "result > ",
        "result = 5",
        "result => 5",
        "5 < result",
        "count > 5",
        "result > 5 and result < 9",
        "result > five",
        "result > 0x10",
        "result > 1e",
        "result > ٣",
        "result > NaN",
        "result > " + "9" * 5_000,
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(InvalidParameter, match="condition: has to be the word result"):
        Condition.parse(text)
