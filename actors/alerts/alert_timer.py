"""`AlertTimer`: evaluates alerts when they are due, on the node that leads, and has what fires told."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from uuid import uuid4

from actors.alerts.alert_queries import AlertLog, AlertProgress, AlertQueries
from actors.alerts.webhooks import WebhookDelivery
from graphdb.alerts.definition import Alert
from graphdb.alerts.evaluation import Judgement, outcome_of
from graphdb.alerts.schedule import Schedule
from graphdb.errors import GraphDBError, UnavailableError
from graphdb.node import Consistency
from graphdb.public_text import public_text

__all__ = ["AlertTimer"]

logger = logging.getLogger(__name__)

_EVALUATIONS_AT_ONCE = 2  # further ones wait: queries of clients need readers too
_SLEEP_MAX_S = 60.0  # the clock may be set meanwhile
_REACH_S = 5.0
_AGAIN_S = 0.5


class AlertTimer:
    """Owned by an `AlertService`, on its event loop.

    It knows from the log alone what there is to do, so any node can go on where another has ended. An
    evaluation that tells nothing new leaves no entry: `latest` has it, on this node, while it leads.
    """

    def __init__(
        self,
        log: AlertLog,
        progress: AlertProgress,
        queries: AlertQueries,
        webhook_delivery: WebhookDelivery,
        clock_ms: Callable[[], int],
    ) -> None:
        """webhook_delivery belongs to this from here on."""
        self._log, self._progress, self._queries = log, progress, queries
        self._webhook_delivery, self._clock_ms = webhook_delivery, clock_ms
        self.latest: dict[str, Judgement] = {}  # by alert
        self._schedule: Schedule | None = None  # None while another node leads
        self._running: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look after alerts."""
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run())

    def wake(self) -> None:
        """Alerts have changed, or who leads has. Any thread, any time."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake.set)

    async def close(self) -> None:
        """Leave what is not done; the log has what is needed to go on."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._loop = None
        await self._let_go()

    async def _let_go(self) -> None:
        self._schedule = None
        self.latest.clear()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._webhook_delivery.stop()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                delay_s = await self._look()
            except UnavailableError as error:
                logger.debug("alerts are not looked after now: %s", error)
                delay_s = _AGAIN_S
            except Exception:
                logger.exception("looking after alerts failed")
                delay_s = _AGAIN_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await self._wake.wait()

    async def _look(self) -> float | None:
        """Begin what is due; how long nothing else will be, None: until something has changed."""
        if not self._log.leads():
            if self._schedule is not None:
                await self._let_go()
            return None
        alerts = self._log.alert_book().alerts
        if self._schedule is None:
            if not alerts:
                return None
            # what a leader before has told is not told again
            await self._progress.reach(Consistency.LINEARIZABLE, _REACH_S)
            alerts, self._schedule = self._log.alert_book().alerts, Schedule()
        for gone in self.latest.keys() - alerts.keys():
            del self.latest[gone]
        self._schedule.adjust(alerts.values(), self._clock_ms())
        for alert, tick_ms in self._schedule.take(
            self._clock_ms(), _EVALUATIONS_AT_ONCE - len(self._running)
        ):
            task = asyncio.get_running_loop().create_task(self._evaluate(alert, tick_ms, self._schedule))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        self._webhook_delivery.see_to(alerts.values())
        due_ms = self._schedule.next_due_ms()
        if due_ms is None or len(self._running) >= _EVALUATIONS_AT_ONCE:
            return None
        return min(max(0.0, (due_ms - self._clock_ms()) / 1_000), _SLEEP_MAX_S)

    async def _evaluate(self, alert: Alert, tick_ms: int, schedule: Schedule) -> None:
        try:
            await self._judge(alert, tick_ms)
        except GraphDBError as error:  # paused, gone, told already; or the log is away: the next time tells
            logger.debug("alert %s: an evaluation is not logged: %s", alert.id, error)
        except Exception:
            logger.exception("alert %s: an evaluation failed", alert.id)
        finally:
            schedule.done(alert.id, self._clock_ms())
            self._wake.set()

    async def _judge(self, alert: Alert, tick_ms: int) -> None:
        try:
            evaluation = await self._queries.evaluate(alert.definition)
        except GraphDBError as error:
            judged = Judgement(self._clock_ms(), tick_ms, None, public_text(error))
        else:
            judged = Judgement.of(alert.definition, evaluation, self._clock_ms(), tick_ms)
        present = self._log.alert_book().find(alert.id)
        self.latest[alert.id] = judged
        if (command := outcome_of(present, judged, str(uuid4()))) is not None:
            await self._log.change_alerts(command)
