"""`OwnAlerts`: the alerts of one maker, who does not see everything; those of others are not there."""

from dataclasses import replace
from typing import Any, Protocol

from graphdb.access.principal import Principal
from graphdb.alerts.book import AlertBook
from graphdb.alerts.definition import Alert, Definition
from graphdb.errors import AlreadyExists, NotFound

__all__ = ["OwnAlerts"]


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


class OwnAlerts:
    """See `serve.backend.AlertRequests`. An alert is its maker's by provider and name, and goes on seeing
    what its maker saw when making it.
    """

    def __init__(self, alerts: Alerts, principal: Principal) -> None:
        self._alerts = alerts
        self._maker = f"{principal.provider}:{principal.name}"
        self._visibility = principal.visibility.to_json()

    def of(self, principal: Principal) -> "OwnAlerts":
        """See `AlertRequests.of`."""
        return OwnAlerts(self._alerts, principal)

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
