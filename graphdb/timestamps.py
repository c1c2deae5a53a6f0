"""Moments as the log counts them, in milliseconds of the Unix epoch, as text."""

from datetime import UTC, datetime

__all__ = ["iso_timestamp"]


def iso_timestamp(time_ms: int) -> str:
    """As ISO 8601 in UTC, to the millisecond: `2026-11-22T12:00:00.000Z`."""
    moment = datetime.fromtimestamp(time_ms / 1_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
