"""The column view: how fast it is made of a store, what it costs updates, how far it is behind under load."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from pyoxigraph import RdfFormat, Store

from actors.columns.client import ColumnClient
from actors.columns.database import ViewFiles
from actors.columns.protocol import ViewSettings
from actors.wire.server import private_directory
from benchmarks.durable_update import update_load
from benchmarks.report import Row, interleave
from benchmarks.service import BenchmarkError, RunningService, flight_triples, running_service, work_dir
from graphdb.config.service import Columns
from graphdb.errors import UnavailableError

__all__ = ["run", "view_process", "wait_until_following"]

QUADS = 1_000_000
QUADS_PER_SECOND = 300_000  # that a view is to be made with, on two cores
BEHIND_S = 1.0  # that it may be behind at most
CLIENTS = 64
_SAMPLE_S = 0.1  # looking takes from what is looked at
_MADE_TIMEOUT_S = 1_800.0


def run(rounds: int, scale: float) -> list[Row]:
    """Quads a second, updates a second with the view against those without, seconds behind."""
    with work_dir() as directory:
        made = _made(directory, int(QUADS * scale))
        measure = update_load(scale)
        behind: list[float] = []
        with_view, without = directory / "with", directory / "without"
        for each in (with_view, without):
            each.mkdir()
        off = {"GRAPHDB_COLUMNS__ENABLED": "false"}
        with running_service(with_view) as ours, running_service(without, environment=off) as floor:
            wait_until_following(ours)
            for service in (ours, floor):  # warm
                measure(service, CLIENTS)

            def watched() -> float:
                with _watching(ours, behind):
                    return measure(ours, CLIENTS).requests_per_second

            alone, beside = interleave(rounds, lambda: measure(floor, CLIENTS).requests_per_second, watched)
    return [
        Row("column view made of a store", "quads/s", QUADS_PER_SECOND, made, "at least", 1),
        Row(f"updates of {CLIENTS} clients, with the view", "updates/s", alone, beside, "at least", 0.9),
        Row("column view behind, under them, at most", "s", BEHIND_S, max(behind), "at most", 1),
    ]


def _made(directory: Path, quads: int) -> float:
    path = directory / "store"
    store = Store(str(path))
    store.bulk_load(path=str(flight_triples(directory, quads)), format=RdfFormat.N_TRIPLES)
    store.flush()
    count = len(store)
    del store
    files = ViewFiles(directory / "columns", ViewSettings.of(Columns()))
    began = time.perf_counter()
    files.load(path, 1).close()
    return count / (time.perf_counter() - began)


def _client(service: RunningService) -> ColumnClient:
    async def endpoint() -> str:
        return str(Path(private_directory(str(service.data_dir))) / "columns.sock")

    return ColumnClient(endpoint)


def wait_until_following(service: RunningService, log_index: int = 0) -> None:
    """Until its column view has been made, and has come to a log index. Raises BenchmarkError after half an
    hour.
    """

    async def wait() -> None:
        columns = _client(service)
        while True:
            with contextlib.suppress(UnavailableError):
                status = await columns.status()
                if status.state == "following" and status.log_index >= log_index:
                    return
            await asyncio.sleep(_SAMPLE_S)

    async def wait_in_time() -> None:
        try:
            async with asyncio.timeout(_MADE_TIMEOUT_S):
                await wait()
        except TimeoutError:
            raise BenchmarkError(f"the column view was not made within {_MADE_TIMEOUT_S:.0f} s") from None

    asyncio.run(wait_in_time())


def view_process(service: RunningService) -> int:
    """The id of the process that its column view is in; waits until there is one."""

    async def find() -> int:
        while True:
            with contextlib.suppress(UnavailableError):
                return (await _client(service).status()).pid
            await asyncio.sleep(_SAMPLE_S)

    return asyncio.run(find())


@contextmanager
def _watching(service: RunningService, behind: list[float]) -> Iterator[None]:
    """Meanwhile, add how many seconds the view is behind, now and then."""
    is_over = threading.Event()
    watching = threading.Thread(target=lambda: asyncio.run(_watch(service, behind, is_over.is_set)))
    watching.start()
    try:
        yield
    finally:
        is_over.set()
        watching.join()


async def _watch(service: RunningService, behind: list[float], is_over: Callable[[], bool]) -> None:
    columns, visible = _client(service), []
    url = f"http://{service.host}:{service.port}/health"
    async with httpx.AsyncClient() as client:
        while not is_over():
            index = (await client.get(url)).json()["snapshot_index"]
            visible.append((time.perf_counter(), index))
            reached = (await columns.status()).log_index
            visible = [(at, index) for at, index in visible if index > reached]
            behind.append(time.perf_counter() - visible[0][0] if visible else 0.0)
            await asyncio.sleep(_SAMPLE_S)
