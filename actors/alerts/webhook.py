"""`Webhooks`: calls the targets of alerts, within the rules for outgoing calls."""

import time
from dataclasses import dataclass

from actors.egress.guarded_fetch import Bounds, Call, GuardedFetch
from actors.egress.rules import HostRules
from graphdb.alerts.definition import Definition
from graphdb.alerts.signature import delivery_headers
from graphdb.config import Settings
from graphdb.errors import EvaluationFailed, HostNotAllowed, InvalidParameter

__all__ = ["Attempt", "Webhooks", "webhook_fetch"]

_GONE = 410


@dataclass(frozen=True, slots=True)
class Attempt:
    """What has become of one call: it was taken where error is None."""

    status_code: int | None
    error: str | None
    may_succeed_later: bool = False


def webhook_fetch(settings: Settings) -> GuardedFetch:
    """What calls webhooks, by these settings."""
    bounds = Bounds(
        settings.alerts.webhook_timeout_seconds, "alerts.webhook_timeout_seconds", 0, "no answer is read"
    )
    return GuardedFetch(HostRules("WEBHOOK", settings.security.webhook_allow, public_allowed=True), bounds)


class Webhooks:
    """For any number of calls at a time, on one event loop. Nothing of them is logged: targets may tell
    secrets, as the paths of chat services do.
    """

    def __init__(self, fetch: GuardedFetch) -> None:
        self._fetch = fetch

    async def check(self, url: str) -> None:
        """Raises InvalidParameter for what is no URL, or leads where it must not."""
        try:
            await self._fetch.check(url)
        except HostNotAllowed as refused:
            raise InvalidParameter("webhook", str(refused)) from None

    async def call(self, definition: Definition, delivery_id: str, body: bytes) -> Attempt:
        """One attempt at telling; any status of 200 to 299 says that it was taken."""
        headers = delivery_headers(delivery_id, int(time.time()), body, definition.secret)
        try:
            answer = await self._fetch.fetch(
                Call(definition.webhook, "POST", headers, body, wants_body=False)
            )
        except HostNotAllowed as refused:
            return Attempt(None, str(refused))
        except EvaluationFailed as failed:
            return Attempt(None, str(failed), may_succeed_later=True)
        if 200 <= answer.status < 300:
            return Attempt(answer.status, None)
        error = f"the webhook answers {answer.status}"
        return Attempt(answer.status, error, may_succeed_later=answer.status != _GONE)
