"""`AlertService`: what clients ask of a node's alerts. `MakerAlerts`: those of one maker, who does not see
everything.
"""

import time
from dataclasses import replace
from typing import Any, Protocol
from uuid import uuid4

from actors.alerts.alert_queries import AlertLog, AlertProgress, AlertQueries, NodeQueries
from actors.alerts.alert_timer import AlertTimer
from actors.alerts.webhooks import WebhookDelivery, Webhooks, webhook_fetch
from graphdb.access.principal import Principal
from graphdb.alerts.book import AlertBook
from graphdb.alerts.commands import Create, Delete, Pause, Resume
from graphdb.alerts.definition import Alert, Definition, iso_time
from graphdb.alerts.evaluation import Judgement, body_of
from graphdb.config import Settings
from graphdb.errors import AlreadyExists, NotFound

__all__ = ["AlertService", "MakerAlerts"]


class Alerts(Protocol):
    """Those of all; see `serve.backend.AlertRequests`."""

    async def create(self, definition: Definition, request_id: bytes | None) -> dict[str, Any]: ...
    async def delete(self, name_or_id: str, request_id: bytes | None) -> None: ...
    async def pause(self, name_or_id: str, request_id: bytes | None) -> dict[str, Any]: ...
    async def resume(self, name_or_id: str, request_id: bytes | None) -> dict[str, Any]: ...
    def show(self, name_or_id: str) -> dict[str, Any]: ...
    def history(self, name_or_id: str) -> list[dict[str, Any]]: ...
    async def test(self, name_or_id: str) -> dict[str, Any]: ...
    def book(self) -> AlertBook: ...


class MakerAlerts:
    """See `serve.backend.AlertRequests`. An alert is its maker's by provider and name, and goes on seeing
    what its maker saw when making it.
    """

    def __init__(self, alerts: Alerts, principal: Principal) -> None:
        self._alerts = alerts
        self._maker = principal.qualified_name
        self._visibility = principal.visibility.to_json()

    def of(self, principal: Principal) -> "MakerAlerts":
        """See `AlertRequests.of`."""
        return MakerAlerts(self._alerts, principal)

    async def create(self, definition: Definition, request_id: bytes | None) -> dict[str, Any]:
        """See `AlertRequests.create`. Raises AlreadyExists also for a name that another maker has taken."""
        made = replace(definition, maker=self._maker, sight=self._visibility)
        created = await self._alerts.create(made, request_id)
        # another maker may have used the same key, with the same words
        if any(alert.id == created["id"] and not self._is_own(alert) for alert in self._all()):
            raise AlreadyExists("alert", definition.name)
        return created

    async def delete(self, name_or_id: str, request_id: bytes | None) -> None:
        """See `AlertRequests.delete`."""
        await self._alerts.delete(self._own_id(name_or_id), request_id)

    async def pause(self, name_or_id: str, request_id: bytes | None) -> dict[str, Any]:
        """See `AlertRequests.pause`."""
        return await self._alerts.pause(self._own_id(name_or_id), request_id)

    async def resume(self, name_or_id: str, request_id: bytes | None) -> dict[str, Any]:
        """See `AlertRequests.resume`."""
        return await self._alerts.resume(self._own_id(name_or_id), request_id)

    def show(self, name_or_id: str) -> dict[str, Any]:
        """See `AlertRequests.show`."""
        return self._alerts.show(self._own_id(name_or_id))

    def show_all(self) -> list[dict[str, Any]]:
        """See `AlertRequests.show_all`."""
        return [self._alerts.show(alert.id) for alert in self._all() if self._is_own(alert)]

    def history(self, name_or_id: str) -> list[dict[str, Any]]:
        """See `AlertRequests.history`."""
        return self._alerts.history(self._own_id(name_or_id))

    async def test(self, name_or_id: str) -> dict[str, Any]:
        """See `AlertRequests.test`."""
        return await self._alerts.test(self._own_id(name_or_id))

    def _all(self) -> list[Alert]:
        return list(self._alerts.book().alerts.values())

    def _is_own(self, alert: Alert) -> bool:
        return alert.definition.maker == self._maker

    def _own_id(self, name_or_id: str) -> str:
        """Raises NotFound, as for one that is not there."""
        alert = self._alerts.book().find(name_or_id)
        if not self._is_own(alert):
            raise NotFound("alert", name_or_id)
        return alert.id


class AlertService:
    """See `serve.backend.AlertRequests`. Owned by a node, on its event loop, with the timer behind it."""

    def __init__(
        self, log: AlertLog, progress: AlertProgress, queries: NodeQueries, settings: Settings
    ) -> None:
        """Nothing is evaluated before the timer is started."""
        self._log = log
        self._webhooks = Webhooks(webhook_fetch(settings))
        self._queries = AlertQueries(queries, settings.security, settings.server.query_timeout_seconds)
        webhook_delivery = WebhookDelivery(log, self._webhooks, settings.alerts, _now_ms)
        self.timer = AlertTimer(log, progress, self._queries, webhook_delivery, _now_ms)

    def of(self, principal: Principal) -> "AlertService | MakerAlerts":
        """See `serve.backend.AlertRequests.of`."""
        return self if principal.visibility.is_whole else MakerAlerts(self, principal)

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
        if command.id in book.alerts or confirmation.is_repeated:
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
