"""`AlertBook`: all alerts of a node as the log has them, a state machine that commands drive.

In bytes, for the data directory: `graphdb.checked_json` with the mark "GLAB": `through` and the alerts.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType

from graphdb.alerts.commands import (
    Command,
    Create,
    Delete,
    Fire,
    Note,
    Pause,
    Resume,
    Settle,
    decode_command,
    encode_command,
)
from graphdb.alerts.definition import Alert, Delivery
from graphdb.checked_json import ExpectedJson, from_checked_json, to_checked_json
from graphdb.errors import AlreadyExists, LimitExceeded, NotFound, RequestError

__all__ = ["AlertBook"]

HISTORY_MAX = 100  # deliveries that an alert remembers
PENDING_MAX = 4  # of these, how many may still have to be told; what fires beyond has failed at once

_MARK = b"GLAB"


@dataclass(frozen=True, slots=True)
class _State:
    through: int  # the log index of the last entry that was taken
    alerts: dict[str, Alert]  # by id; it is not changed


@dataclass(frozen=True, slots=True)
class _Saved:
    through: int
    alerts: tuple[Alert, ...]


_SAVED = ExpectedJson[_Saved](_Saved)


class AlertBook:
    """Fed by a `Replayer` with every entry that concerns alerts, in order, on one thread; any may read.

    The same entries make the same alerts everywhere. An entry takes effect once, however often it is
    replayed. A command that does not fit the present state has no effect.
    """

    def __init__(self) -> None:
        """Empty."""
        # told after every change, on the feeding thread; whoever wants to know sets it
        self.on_change: Callable[[], None] = lambda: None
        self._state = _State(0, {})  # another one after each change, so that readers need no lock

    @property
    def alerts(self) -> Mapping[str, Alert]:
        """All of one moment, by id, the oldest first."""
        return MappingProxyType(self._state.alerts)

    def find(self, name_or_id: str) -> Alert:
        """Raises NotFound."""
        alerts = self._state.alerts
        if (alert := alerts.get(name_or_id)) is not None:
            return alert
        for alert in alerts.values():
            if alert.definition.name == name_or_id:
                return alert
        raise NotFound("alert", name_or_id)

    def plan(self, command: Command, alerts_max: int) -> bytes:
        """The payload of the entry that makes a command true in the present state.

        Raises NotFound, AlreadyExists; LimitExceeded where there are alerts_max already.
        """
        count = len(self._state.alerts)
        if isinstance(command, Create) and count >= alerts_max:
            raise LimitExceeded("number of alerts (alerts.max_alerts)", count + 1, alerts_max)
        self._changed(command)
        return encode_command(command)

    def apply(self, log_index: int, payload: bytes) -> None:
        """Take the entry at log_index. Raises CorruptionError."""
        if log_index <= self._state.through:
            return
        command, alerts = decode_command(payload), self._state.alerts
        with suppress(RequestError):  # on every node: it fitted nowhere
            alerts = self._changed(command)
        self._state = _State(log_index, alerts)
        self.on_change()

    def _changed(self, command: Command) -> dict[str, Alert]:
        """All alerts behind a command. Raises NotFound, AlreadyExists where it does not fit."""
        if isinstance(command, Create):
            return self._created(command)
        alert = self.find(command.alert)
        alerts = self._state.alerts
        if isinstance(command, Delete):
            return {other.id: other for other in alerts.values() if other is not alert}
        return alerts | {alert.id: _after(alert, command)}

    def _created(self, command: Create) -> dict[str, Alert]:
        name, alerts = command.definition.name, self._state.alerts
        if command.id in alerts or any(name == alert.definition.name for alert in alerts.values()):
            raise AlreadyExists("alert", name)
        return alerts | {command.id: Alert(command.id, command.definition, command.at_ms)}

    def to_bytes(self) -> bytes:
        """All of it, as of one moment."""
        state = self._state
        return to_checked_json(_MARK, _Saved(state.through, tuple(state.alerts.values())))

    @classmethod
    def from_bytes(cls, data: bytes) -> "AlertBook":
        """What to_bytes has written. Raises CorruptionError."""
        saved = from_checked_json(_MARK, data, _SAVED, "the book of alerts", "alerts")
        book = cls()
        book._state = _State(saved.through, {alert.id: alert for alert in saved.alerts})
        return book


def _after(alert: Alert, command: Pause | Resume | Fire | Note | Settle) -> Alert:
    match command:
        case Pause():
            return replace(alert, is_paused=True)
        case Resume():
            return replace(alert, is_paused=False, evaluation_error=None, delivery_error=None)
        case Fire():
            return _fired(_evaluated(alert, command), command)
        case Note():
            noted = _evaluated(alert, command)
            return replace(noted, is_holding=command.is_holding, evaluation_error=command.error)
        case Settle():
            return _settled(alert, command)


def _evaluated(alert: Alert, command: Fire | Note) -> Alert:
    """Raises NotFound where it is not evaluated any more, AlreadyExists where this evaluation was told
    already: by another node that led, or leads.
    """
    if alert.is_paused:
        raise NotFound("alert in evaluation", alert.id)
    if command.tick_ms == alert.tick_ms:
        raise AlreadyExists("evaluation", f"{alert.id} at {command.tick_ms}")
    return replace(
        alert,
        evaluated_at_ms=command.at_ms,
        tick_ms=command.tick_ms,
        value=command.value,
    )


def _fired(alert: Alert, command: Fire) -> Alert:
    delivery = Delivery(command.delivery, command.at_ms, command.snapshot_index, command.value, command.body)
    fired = replace(
        alert,
        is_holding=True,
        evaluation_error=None,
        fired_at_ms=command.at_ms,
        fire_count=alert.fire_count + 1,
    )
    if len(alert.pending) >= PENDING_MAX:
        error = f"{PENDING_MAX} earlier deliveries are still to be made"
        delivery = replace(delivery, status="failed", body="", error=error, finished_at_ms=command.at_ms)
        fired = replace(fired, delivery_error=error)
    return replace(fired, deliveries=_remembered((*alert.deliveries, delivery)))


def _remembered(deliveries: tuple[Delivery, ...]) -> tuple[Delivery, ...]:
    """Without the oldest that is done with, where they are too many."""
    if len(deliveries) <= HISTORY_MAX:
        return deliveries
    oldest = next(place for place, delivery in enumerate(deliveries) if delivery.status != "pending")
    return deliveries[:oldest] + deliveries[oldest + 1 :]


def _settled(alert: Alert, command: Settle) -> Alert:
    if all(delivery.id != command.delivery for delivery in alert.pending):
        raise NotFound("delivery", command.delivery)
    deliveries = tuple(
        replace(
            delivery,
            body="",
            status="delivered" if command.error is None else "failed",
            attempts=command.attempts,
            status_code=command.status_code,
            error=command.error,
            finished_at_ms=command.at_ms,
        )
        if delivery.id == command.delivery
        else delivery
        for delivery in alert.deliveries
    )
    return replace(alert, deliveries=deliveries, delivery_error=command.error)
