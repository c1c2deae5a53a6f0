"""`AlertService`: what clients ask of a node's alerts."""

import time
from typing import Any
from uuid import uuid4

from actors.alerts.alert_means import AlertAsking, AlertLog, AlertProgress
from actors.alerts.alert_queries import AlertQueries
from actors.alerts.alert_timer import AlertTimer
from actors.alerts.courier import Courier
from actors.alerts.own_alerts import OwnAlerts
from actors.alerts.webhook import Webhooks, webhook_fetch
from graphdb.access.principal import Principal
from graphdb.alerts.book import AlertBook
from graphdb.alerts.commands import Create, Delete, Pause, Resume
from graphdb.alerts.definition import Alert, Definition, iso_time
from graphdb.alerts.evaluation import Judgement, body_of
from graphdb.config import Settings

__all__ = ["AlertService"]


class AlertService:
    """See `serve.backend.AlertRequests`. Owned by a node, on its event loop, with the timer behind it."""

    def __init__(
        self, log: AlertLog, progress: AlertProgress, queries: AlertAsking, settings: Settings
    ) -> None:
        """Nothing is evaluated before the timer is started."""
        self._log = log
        self._webhooks = Webhooks(webhook_fetch(settings))
        self._queries = AlertQueries(queries, settings.security, settings.server.query_timeout_seconds)
        courier = Courier(log, self._webhooks, settings.alerts, _now_ms)
        self.timer = AlertTimer(log, progress, self._queries, courier, _now_ms)

    def of(self, principal: Principal) -> "AlertService | OwnAlerts":
        """See `serve.backend.AlertRequests.of`."""
        return self if principal.visibility.is_whole else OwnAlerts(self, principal)

    def book(self) -> AlertBook:
        """The alerts as far as the node knows. Raises LogUnavailable."""
        return self._log.alert_book()

    async def create(self, definition: Definition, request_id: bytes | None) -> dict[str, Any]:
        """See `serve.backend.AlertRequests.create`."""
        definition.check()
        await self._queries.check(definition.query)
        await self._webhooks.check(definition.webhook)
        command = Create(str(uuid4()), definition, _now_ms())
        confirmation = await self._log.change_alerts(command, request_id)
        book = self._log.alert_book()
        if command.id in book.alerts or confirmation.message == "applied before":
            return self._shown(book.find(definition.name))
        return Alert(command.id, definition, command.at_ms).shown()  # this node does not see it yet

    async def delete(self, name_or_id: str, request_id: bytes | None) -> None:
        """See `serve.backend.AlertRequests.delete`."""
        await self._log.change_alerts(Delete(name_or_id), request_id)

    async def pause(self, name_or_id: str, request_id: bytes | None) -> dict[str, Any]:
        """See `serve.backend.AlertRequests.pause`."""
        await self._log.change_alerts(Pause(name_or_id), request_id)
        return self.show(name_or_id)

    async def resume(self, name_or_id: str, request_id: bytes | None) -> dict[str, Any]:
        """See `serve.backend.AlertRequests.resume`."""
        await self._log.change_alerts(Resume(name_or_id), request_id)
        return self.show(name_or_id)

    def show(self, name_or_id: str) -> dict[str, Any]:
        """See `serve.backend.AlertRequests.show`."""
        return self._shown(self._log.alert_book().find(name_or_id))

    def show_all(self) -> list[dict[str, Any]]:
        """See `serve.backend.AlertRequests.show_all`."""
        return [self._shown(alert) for alert in self._log.alert_book().alerts.values()]

    def history(self, name_or_id: str) -> list[dict[str, Any]]:
        """See `serve.backend.AlertRequests.history`."""
        alert = self._log.alert_book().find(name_or_id)
        return [delivery.shown() for delivery in reversed(alert.deliveries)]

    async def test(self, name_or_id: str) -> dict[str, Any]:
        """See `serve.backend.AlertRequests.test`."""
        alert = self._log.alert_book().find(name_or_id)
        evaluation = await self._queries.evaluate(alert.definition)
        now_ms = _now_ms()
        judged = Judgement.of(alert.definition, evaluation, now_ms, now_ms)
        body = body_of(alert, evaluation, now_ms, is_test=True)
        attempt = await self._webhooks.call(alert.definition, str(uuid4()), body)
        return {
            "result": judged.value,
            "snapshot_index": evaluation.snapshot_index,
            "holds": judged.is_holding,
            "delivered": attempt.error is None,
            "status_code": attempt.status_code,
            "error": attempt.error,
        }

    def _shown(self, alert: Alert) -> dict[str, Any]:
        """With the last evaluation, where this node has made one since the log was last told of one."""
        shown, judged = alert.shown(), self.timer.latest.get(alert.id)
        if judged is None or judged.at_ms < (alert.evaluated_at_ms or 0):
            return shown
        shown |= {
            "last_evaluated_at": iso_time(judged.at_ms),
            "last_value": judged.value,
            "last_error": judged.error or alert.delivery_error,
        }
        return shown


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
