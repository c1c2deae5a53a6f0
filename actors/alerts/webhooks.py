"""`Webhooks`: calls the targets of alerts, within the rules for outgoing calls. `WebhookDelivery`: repeats
what has fired until it is taken or given up.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_result,
    stop_after_attempt,
    wait_exponential_jitter,
)

from actors.alerts.alert_queries import AlertLog
from actors.egress.guarded_fetch import Bounds, Call, GuardedFetch
from actors.egress.rules import HostRules
from graphdb.alerts.commands import Settle
from graphdb.alerts.definition import Alert, Definition, Delivery
from graphdb.alerts.signature import delivery_headers
from graphdb.config import Settings
from graphdb.config.service import Alerts
from graphdb.errors import EvaluationFailed, GraphDBError, HostNotAllowed, InvalidParameter, RequestError

__all__ = ["Attempt", "WebhookDelivery", "Webhooks", "webhook_fetch"]

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


logger = logging.getLogger(__name__)

_CALLS_AT_ONCE = 16
_BACKOFF_MAX_S = 60.0
_JITTER_SHARE = 0.2
_AGAIN_S = 1.0
_LOOK_S = 0.1


class WebhookDelivery:
    """Owned by an `AlertTimer`, on its event loop.

    The deliveries of one alert are made one after the other, in the order in which it fired, those of
    different alerts side by side. What the log has as pending is begun again by the next node that leads, or
    after a restart, under the same id: a webhook is told at least once.
    """

    def __init__(
        self, log: AlertLog, webhooks: Webhooks, config: Alerts, clock_ms: Callable[[], int]
    ) -> None:
        self._log, self._webhooks, self._config, self._clock_ms = log, webhooks, config, clock_ms
        self._turns = asyncio.Semaphore(_CALLS_AT_ONCE)
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by alert

    def see_to(self, alerts: Iterable[Alert]) -> None:
        """Begin what is pending; leave what belongs to alerts that are gone."""
        pending = {alert.id: alert for alert in alerts if alert.pending}
        for gone in [id_ for id_ in self._tasks if id_ not in pending]:
            self._tasks.pop(gone).cancel()
        for alert in pending.values():
            task = self._tasks.get(alert.id)
            if task is None or task.done():
                self._tasks[alert.id] = asyncio.get_running_loop().create_task(self._deliver_all(alert.id))

    async def stop(self) -> None:
        """Leave what is not done."""
        tasks = [*self._tasks.values()]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver_all(self, alert_id: str) -> None:
        """One after the other, until none is pending."""
        settled: set[str] = set()
        try:
            while (alert := self._log.alert_book().find(alert_id)).pending:
                delivery = alert.pending[0]
                if delivery.id in settled:  # another node leads now, and this one has not heard of it yet
                    await asyncio.sleep(_LOOK_S)
                    continue
                settled.add(delivery.id)
                await self._deliver(alert, delivery)
        except GraphDBError as error:  # the alert is gone, or the node stops
            logger.debug("alert %s: nothing is delivered now: %s", alert_id, error)
        except Exception:
            logger.exception("alert %s: a delivery failed", alert_id)

    async def _deliver(self, alert: Alert, delivery: Delivery) -> None:
        async def call() -> Attempt:
            async with self._turns:
                return await self._webhooks.call(alert.definition, delivery.id, delivery.body.encode())

        backoff_s = self._config.webhook_backoff_seconds
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._config.webhook_attempts),
            wait=wait_exponential_jitter(
                multiplier=backoff_s, max=_BACKOFF_MAX_S, jitter=_JITTER_SHARE * backoff_s
            ),
            retry=retry_if_result(lambda attempt: attempt.may_succeed_later),
            retry_error_callback=_last_attempt,
        )
        last: Attempt = await retrying(call)
        attempts = int(retrying.statistics["attempt_number"])
        if last.error is not None:
            logger.warning("alert %s: a delivery is given up after %d attempts", alert.id, attempts)
        await self._settle(
            Settle(alert.id, delivery.id, self._clock_ms(), attempts, last.status_code, last.error)
        )

    async def _settle(self, outcome: Settle) -> None:
        """Log it, so that nobody begins the delivery again."""
        while True:
            try:
                await self._log.change_alerts(outcome)
            except RequestError:
                return  # the alert is gone, or another node was faster
            except GraphDBError as error:
                logger.warning(
                    "alert %s: the outcome of a delivery is not logged yet: %s", outcome.alert, error
                )
                await asyncio.sleep(_AGAIN_S)
            else:
                return


def _last_attempt(state: RetryCallState) -> Attempt:
    assert state.outcome is not None
    attempt: Attempt = state.outcome.result()
    return attempt
