"""`Schedule`: when which alert is evaluated. It is told the time, in milliseconds of the Unix epoch.

An alert's times are a grid that follows from its making: one interval after the other, whatever an
evaluation takes and whichever node performs it, so nothing drifts. Each grid is shifted by a part of the
interval that depends on the alert's id, lest alerts made together be evaluated together for ever. The first
time is that of its making.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from graphdb.alerts.definition import Alert

__all__ = ["Schedule", "latest_tick", "next_tick"]

_SHIFT_MAX_MS = 5_000
_SHIFT_SHARE = 10  # a tenth of the interval at most


def _shift_ms(alert: Alert) -> int:
    most = min(_SHIFT_MAX_MS, alert.definition.interval_seconds * 1_000 // _SHIFT_SHARE)
    return zlib.crc32(alert.id.encode()) % (most + 1)


def _tick(alert: Alert, number: int) -> int:
    if number <= 0:
        return alert.created_at_ms
    return alert.created_at_ms + _shift_ms(alert) + number * alert.definition.interval_seconds * 1_000


def _number_at(alert: Alert, now_ms: int) -> int:
    """Of the last time that is not after now; 0 for that of its making, -1 for none."""
    if now_ms < alert.created_at_ms:
        return -1
    past_ms = now_ms - alert.created_at_ms - _shift_ms(alert)
    return max(0, past_ms // (alert.definition.interval_seconds * 1_000))


def latest_tick(alert: Alert, now_ms: int) -> int | None:
    """The last time of its grid that is not after now; None where a clock says that it is not made yet."""
    number = _number_at(alert, now_ms)
    return None if number < 0 else _tick(alert, number)


def next_tick(alert: Alert, now_ms: int) -> int:
    """The first time of its grid that is after now."""
    return _tick(alert, _number_at(alert, now_ms) + 1)


@dataclass(slots=True)
class _Planned:
    alert: Alert
    tick_ms: int  # the time of the grid that is evaluated for
    is_running: bool = False


class Schedule:
    """Of the alerts that one node evaluates. An alert runs once at a time; a time that comes meanwhile, or
    that nobody was there for, is left out, but for the last one.
    """

    def __init__(self) -> None:
        """Of no alert."""
        self._planned: dict[str, _Planned] = {}

    def adjust(self, alerts: Iterable[Alert], now_ms: int) -> None:
        """Evaluate these from now on, those of them that are not paused, and no others."""
        wanted = {alert.id: alert for alert in alerts if not alert.is_paused}
        for id_ in [id_ for id_, planned in self._planned.items() if id_ not in wanted]:
            if not self._planned[id_].is_running:
                del self._planned[id_]
        for alert in wanted.values():
            planned = self._planned.get(alert.id)
            if planned is None:
                self._planned[alert.id] = _Planned(alert, _first_tick(alert, now_ms))
                continue
            planned.alert = alert
            # a clock that was set back must not let an alert wait for the time it showed
            if not planned.is_running and planned.tick_ms > next_tick(alert, now_ms):
                planned.tick_ms = next_tick(alert, now_ms)

    def take(self, now_ms: int, count_max: int) -> list[tuple[Alert, int]]:
        """Those to evaluate now, count_max at most, the longest due first, each with the time that it was due
        at. They run until `done`.
        """
        due = [planned for planned in self._planned.values() if _is_due(planned, now_ms)]
        due.sort(key=lambda planned: planned.tick_ms)
        for planned in due[:count_max]:
            planned.is_running = True
        return [(planned.alert, planned.tick_ms) for planned in due[:count_max]]

    def done(self, alert_id: str, now_ms: int) -> None:
        """It runs no more."""
        planned = self._planned[alert_id]
        planned.is_running = False
        planned.tick_ms = next_tick(planned.alert, max(now_ms, planned.tick_ms))

    def next_due_ms(self) -> int | None:
        """When to take again, unless one is done before; None where none waits."""
        return min((each.tick_ms for each in self._planned.values() if not each.is_running), default=None)


def _is_due(planned: _Planned, now_ms: int) -> bool:
    return not planned.is_running and planned.tick_ms <= now_ms


def _first_tick(alert: Alert, now_ms: int) -> int:
    """The last time, where nothing is known of an evaluation at it, else the next."""
    latest = latest_tick(alert, now_ms)
    if latest is None:
        return alert.created_at_ms
    if alert.tick_ms is not None and alert.tick_ms >= latest:
        return next_tick(alert, now_ms)
    return latest
