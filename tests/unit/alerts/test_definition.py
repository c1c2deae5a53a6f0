"""What an alert may be, and what is shown of it."""

from typing import Any

import pytest

from graphdb.alerts.definition import Alert, iso_time
from graphdb.errors import InvalidParameter
from tests.support.alerts import NOON_MS, definition

SECRET = "a secret of the receiver"


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 201}, "name: has 201 characters"),
        ({"condition": "result"}, "condition"),
        ({"interval_seconds": 0}, "interval_seconds"),
        ({"interval_seconds": -5}, "interval_seconds"),
        ({"interval_seconds": 10**12}, "interval_seconds"),
        ({"webhook": ""}, "webhook"),
        ({"webhook": "http://" + "x" * 3_000}, "webhook"),
        ({"secret": "short"}, "secret: has 5 characters"),
        ({"secret": "whsec_not base 64 at all"}, "secret: what follows whsec_ is not Base64"),
    ],
)
def test_what_no_alert_can_be(members: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        definition(**members).check()


def test_what_one_can_be() -> None:
    definition("Größe, 1/2 ✓", secret=SECRET, interval_seconds=1, notify="change").check()


def test_a_secret_is_not_shown() -> None:
    alert = Alert("a", definition(secret=SECRET), NOON_MS)
    assert alert.shown()["signed"] is True
    assert SECRET not in repr(alert) + str(alert.shown())


def test_times_are_of_utc() -> None:
    assert (iso_time(NOON_MS + 5), iso_time(None)) == ("2023-11-14T22:13:20.005Z", None)
