"""Which month, quarter and year an instant is in."""

from datetime import UTC, datetime

import numpy as np
import pytest

from graphdb.search.aggregations.rounding import CalendarRounding, ZoneTable

YEARS = ((1971, 2069), (1871, 1969), (1500, 1869), (2070, 2500))  # in the list of months, and beyond it


@pytest.mark.parametrize("years", YEARS)
def test_months_as_the_calendar_has_them(years: tuple[int, int]) -> None:
    chance = np.random.default_rng(1)
    first, last = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in years)
    seconds = chance.integers(first, last, 500)
    dates = [datetime.fromtimestamp(second, UTC) for second in seconds.tolist()]
    months = np.array([(date.year - 1970) * 12 + date.month - 1 for date in dates])
    for unit, size in (("month", 1), ("quarter", 3), ("year", 12)):
        rounding = CalendarRounding(unit, ZoneTable.of(UTC))
        numbers = rounding.number(seconds * 1000)
        assert (numbers == months // size).all()
        assert (rounding.number(rounding.start(numbers)) == numbers).all()


def test_the_ends_of_the_list() -> None:
    rounding = CalendarRounding("month", ZoneTable.of(UTC))
    days = np.array([-36_526, -36_525, 36_524, 36_525])
    expected = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    assert rounding.number(days * 86_400_000).tolist() == expected.tolist()
    assert rounding.number(np.empty(0, np.int64)).tolist() == []
    for day, month in zip(days.tolist(), expected.tolist(), strict=True):
        assert rounding.number(np.array([day]) * 86_400_000).tolist() == [month]
