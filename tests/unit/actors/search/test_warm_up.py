"""Warming up: everything that it goes through works."""

import pytest

from actors.search.warm_up import warm_up


def test_warming_up_meets_no_error(caplog: pytest.LogCaptureFixture) -> None:
    warm_up()
    assert caplog.text == ""
