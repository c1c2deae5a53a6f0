"""How well the views of all processes follow the log: each process reports its view to the log, and the graph
port asks the log for all of them.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from actors.log.client import LogAccess
from graphdb.errors import GraphDBError
from graphdb.log.views import ViewStatus
from graphdb.timestamps import until_whole

__all__ = ["REPORT_S", "ReportedViews", "ViewReports", "report_views"]

logger = logging.getLogger(__name__)
REPORT_S = 2.0  # between two reports of a process
_SILENT_S = 10.0  # after which a process is gone, or hangs


class ViewReports:
    """What a log was told of its views. Owned by the log's server, on its event loop."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock: in seconds."""
        self._clock = clock
        self._reports: dict[str, tuple[float, ViewStatus]] = {}

    def note(self, status: ViewStatus) -> None:
        """A view's process reports it."""
        self._reports[status.name] = self._clock(), status

    def statuses(self) -> list[ViewStatus]:
        """As they were last reported; a view whose process has fallen silent waits."""
        now = self._clock()
        return [_as_of(now - reported_at, status) for reported_at, status in self._reports.values()]


def _as_of(silent_s: float, status: ViewStatus) -> ViewStatus:
    if silent_s < _SILENT_S:
        return status
    return replace(status, state="waiting", error=f"its process has not reported for {silent_s:.0f} s")


async def report_views(log: LogAccess, status: Callable[[], ViewStatus], every_s: float = REPORT_S) -> None:
    """Until cancelled: report a view to the log."""
    while True:
        try:
            await log.report_view(status())
        except GraphDBError as error:
            logger.debug("a view is not reported now: %s", error)
        await asyncio.sleep(until_whole(every_s, time.monotonic()))


class ReportedViews:
    """What other processes have reported, as the graph port knows it. Have `run` run; any thread reads."""

    def __init__(self, log: LogAccess, every_s: float = REPORT_S) -> None:
        self._log, self._every_s = log, every_s
        self.statuses: Sequence[ViewStatus] = ()

    async def run(self) -> None:
        """Until cancelled. While the log does not answer, the last report stands."""
        while True:
            try:
                self.statuses = await self._log.reported_views()
            except GraphDBError as error:
                logger.debug("what views report is not known now: %s", error)
            await asyncio.sleep(until_whole(self._every_s, time.monotonic()))
