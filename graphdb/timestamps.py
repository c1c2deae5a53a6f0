"""Moments of the log as text and of periodic work, and the proleptic Gregorian calendar for any year."""

from datetime import UTC, datetime

__all__ = ["date_of", "days_of", "iso_timestamp", "month_length", "until_whole"]

_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_TOO_SOON = 0.1  # of a period: a timer may go off a little early, and is not to be set again for the rest


def iso_timestamp(time_ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC, to the millisecond: `2026-11-22T12:00:00.000Z`."""
    moment = datetime.fromtimestamp(time_ms / 1_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def days_of(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date; no check of its parts.

    Years are counted from March, so that the leap day is a year's last, in eras of 400 years.
    """
    year, shifted = (year - 1, month + 9) if month < 3 else (year, month - 3)
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * shifted + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day: the inverse of days_of."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + year_of_era + (month < 3), month, day_of_year - (153 * shifted + 2) // 5 + 1


def month_length(year: int, month: int) -> int:
    """Days of a month, 28 to 31."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else _MONTH_LENGTHS[month - 1]


def until_whole(period_s: float, now_s: float) -> float:
    """Seconds until a clock, such as the monotonic one that all processes share, shows a whole number of
    periods; one more where that is at once.

    Periodic work of all loops and processes is done at the same moments, because a wake-up costs a processor
    at rest more than what is done in it, and those that come together cost it once.
    """
    left = period_s - now_s % period_s
    return left if left > _TOO_SOON * period_s else left + period_s
