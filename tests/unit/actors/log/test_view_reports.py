"""A process reports its view to the log, over the log's socket, and the port hears it from there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.log.view_reports import ReportedViews, ViewReports, report_views
from graphdb.errors import LogUnavailable
from graphdb.log.views import ViewStatus
from tests.support.memory_log import MemoryLog
from tests.support.readers import answering
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


def test_a_process_that_has_fallen_silent_leaves_a_view_that_waits() -> None:
    now = 0.0
    reports = ViewReports(lambda: now)
    status = ViewStatus("columns", "following", 7, 9)
    reports.note(ViewStatus("columns", "starting"))
    reports.note(status)
    now = 9.0
    assert reports.statuses() == [status]
    now = 11.0
    (silent,) = reports.statuses()
    assert (silent.state, silent.index, silent.is_stalled) == ("waiting", 7, True)
    assert silent.error == "its process has not reported for 11 s"
    reports.note(status)
    assert reports.statuses() == [status]


@asynccontextmanager
async def running(*work: asyncio.Task[None]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def test_the_port_hears_what_another_process_reports(tmp_path: Path) -> None:
    log = UpdateLog(str(tmp_path / "log"), socket_directory=str(tmp_path))
    process, port = (LogClient(answering(log.endpoint())) for _ in range(2))
    status = ViewStatus("search", "waiting", 7, 9, "the disk is full", 3, 5, 0.25)
    views = ReportedViews(port, 0.01)
    try:
        async with running(
            asyncio.create_task(report_views(process, lambda: status, 0.01)),
            asyncio.create_task(views.run()),
        ):
            async with asyncio.timeout(HANG_S):
                while not views.statuses:  # noqa: ASYNC110 nobody tells
                    await asyncio.sleep(0.01)
            assert views.statuses == [status]
    finally:
        await process.close()
        await port.close()
        await asyncio.to_thread(log.close)


async def test_a_log_that_is_away_is_told_later() -> None:
    log = MemoryLog()
    report, faults = log.report_view, [LogUnavailable("away")] * 3

    async def away(status: ViewStatus) -> None:
        if faults:
            raise faults.pop()
        await report(status)

    log.report_view = away  # type: ignore[method-assign]
    status = ViewStatus("search", "following")
    async with running(asyncio.create_task(report_views(log, lambda: status, 0.001))):
        async with asyncio.timeout(HANG_S):
            while not log.reported:  # noqa: ASYNC110 nobody tells
                await asyncio.sleep(0.001)
    assert await log.reported_views() == [status]
