"""The schedule of alerts under a clock of its own: nodes come and go, evaluations take their time."""

from collections import defaultdict
from random import Random

import pytest

from graphdb.alerts.definition import Alert
from graphdb.alerts.schedule import Schedule, latest_tick, next_tick
from tests.support.alerts import NOON_MS, an_alert

HOUR_MS = 3_600_000


def test_times_follow_from_the_making_alone() -> None:
    alert = an_alert(interval_seconds=60)
    shift_ms = next_tick(alert, NOON_MS) - NOON_MS - 60_000
    assert 0 <= shift_ms <= 5_000
    for number in (1, 2, 1_000_000):
        tick = NOON_MS + shift_ms + number * 60_000
        assert (next_tick(alert, tick - 1), latest_tick(alert, tick - 1)) == (
            tick,
            NOON_MS if number == 1 else tick - 60_000,
        )
        assert (next_tick(alert, tick), latest_tick(alert, tick)) == (tick + 60_000, tick)
    assert (latest_tick(alert, NOON_MS - 1), next_tick(alert, NOON_MS - 1)) == (None, NOON_MS)


def test_alerts_made_together_are_spread() -> None:
    alerts = [an_alert(f"alert {number}", interval_seconds=3_600) for number in range(500)]
    seconds = {next_tick(alert, NOON_MS) // 100 for alert in alerts}
    assert len(seconds) > 45, "of fifty tenths of a second"


class Nodes:
    """One schedule at a time, and what it has evaluated; a later one knows what the log knows."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = NOON_MS
        self.alerts: dict[str, Alert] = {}
        self.schedule = Schedule()
        self.running: dict[str, tuple[int, int]] = {}  # until when, and for which time
        self.evaluated: dict[str, list[tuple[int, int]]] = defaultdict(list)  # due at, begun at
        self.down_until_ms = 0

    def step(self) -> None:
        """One thing happens: the next, or something that nobody has planned."""
        due = [until for until, _ in self.running.values()]
        if (planned := self.schedule.next_due_ms()) is not None and len(self.running) < 2:
            due.append(planned)
        soon = self.now_ms + self.random.randrange(1, 30_000)
        self.now_ms = max(self.now_ms, min([*due, soon]))
        for id_, (until, tick) in [*self.running.items()]:
            if until <= self.now_ms:
                del self.running[id_]
                self.alerts[id_] = self._told(self.alerts[id_], tick)
                self.schedule.done(id_, self.now_ms)
        match self.random.randrange(40):
            case 0 if len(self.alerts) < 30:
                id_ = f"alert {len(self.alerts)}"
                seconds = self.random.choice([1, 7, 60, 600])
                self.alerts[id_] = an_alert(id_, self.now_ms, interval_seconds=seconds)
            case 1:
                self.now_ms += self.random.randrange(120_000)  # nobody leads
                self.schedule, self.running = Schedule(), {}
        self.schedule.adjust(self.alerts.values(), self.now_ms)
        for alert, tick in self.schedule.take(self.now_ms, 2 - len(self.running)):
            assert alert.id not in self.running, "two of one alert at once"
            self.evaluated[alert.id].append((tick, self.now_ms))
            self.running[alert.id] = self.now_ms + self.random.choice([1, 5, 50, 3_000]), tick
        assert len(self.running) <= 2

    def _told(self, alert: Alert, tick: int) -> Alert:
        """An entry of the log tells of some evaluations."""
        if self.random.random() < 0.5:
            return alert
        return Alert(alert.id, alert.definition, alert.created_at_ms, tick_ms=tick)


@pytest.mark.parametrize("seed", range(20))
def test_on_time_without_drift_and_never_two_at_once(seed: int) -> None:
    nodes = Nodes(seed)
    while nodes.now_ms < NOON_MS + HOUR_MS:
        nodes.step()
    assert nodes.evaluated
    for id_, evaluated in nodes.evaluated.items():
        alert = nodes.alerts[id_]
        interval_ms = alert.definition.interval_seconds * 1_000
        ticks = [tick for tick, _ in evaluated]
        assert ticks == sorted(ticks)
        for tick, begun in evaluated:
            assert begun >= tick
            assert tick == latest_tick(alert, tick), "on the grid of the alert"
            assert latest_tick(alert, begun) - tick <= interval_ms + 200_000  # type: ignore[operator]


def test_with_nothing_in_the_way_every_time_is_met_exactly() -> None:
    alerts = [an_alert(f"alert {number}", interval_seconds=10 + number) for number in range(5)]
    schedule, now_ms, met = Schedule(), NOON_MS, defaultdict(list)
    while now_ms < NOON_MS + HOUR_MS:
        schedule.adjust(alerts, now_ms)
        for alert, tick in schedule.take(now_ms, 9):
            met[alert.id].append(now_ms)
            assert tick == now_ms
            schedule.done(alert.id, now_ms + 777)
        due = schedule.next_due_ms()
        assert due is not None
        now_ms = due
    for alert in alerts:
        first, second, *_ = times = met[alert.id]
        assert first == NOON_MS
        interval_ms = alert.definition.interval_seconds * 1_000
        assert times[1:] == [second + number * interval_ms for number in range(len(times) - 1)]
        assert len(times) >= HOUR_MS // interval_ms


def test_what_is_not_wanted_any_more_is_not_evaluated() -> None:
    schedule, alert = Schedule(), an_alert()
    schedule.adjust([alert], NOON_MS)
    schedule.adjust([Alert("a", alert.definition, NOON_MS, is_paused=True)], NOON_MS)
    assert (schedule.take(NOON_MS, 2), schedule.next_due_ms()) == ([], None)
    schedule.adjust([alert], NOON_MS)
    assert len(schedule.take(NOON_MS, 2)) == 1
    schedule.adjust([], NOON_MS)  # while it runs
    schedule.done("a", NOON_MS)
    schedule.adjust([], NOON_MS + 1)
    assert (schedule.take(NOON_MS + 99_999_999, 2), schedule.next_due_ms()) == ([], None)


def test_a_clock_that_is_set_back_keeps_nobody_waiting() -> None:
    schedule, alert = Schedule(), an_alert(interval_seconds=60)
    late_ms = NOON_MS + 10 * HOUR_MS
    schedule.adjust([alert], late_ms)
    (_,) = schedule.take(late_ms, 2)
    schedule.done("a", late_ms)
    schedule.adjust([alert], late_ms - HOUR_MS)
    due_ms = schedule.next_due_ms()
    assert due_ms is not None
    assert due_ms <= late_ms - HOUR_MS + 65_000
