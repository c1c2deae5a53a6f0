"""The update log as a service: over its socket, with many callers, killed and started again."""

import asyncio
import os
import socket
import stat
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from errno import EIO, ENOSPC
from pathlib import Path
from random import Random

import pytest

from actors.log.client import LogClient
from actors.log.protocol import LOG_MESSAGES, Append, Index, LogStatus, encode_entries
from actors.log.update_log import UpdateLog
from actors.wire.client import WireClient
from graphdb.errors import CorruptionError, LogUnavailable, OutcomeUnknown, StorageFull
from graphdb.log.file_log import FileLogConfig
from graphdb.log.views import QUADS, SEARCH
from graphdb.model import EntryKind, LogEntry
from tests.simulation.lossy_file_system import LossyFileSystem
from tests.support.timing import HANG_S


def entries(*payloads: bytes) -> list[LogEntry]:
    return [LogEntry(0, 0, EntryKind.CHANGES, bytes(16), 7, payload) for payload in payloads]


@pytest.fixture
def file_system() -> LossyFileSystem:
    return LossyFileSystem(Random(1))


@pytest.fixture
def log(tmp_path: Path, file_system: LossyFileSystem) -> Iterator[UpdateLog]:
    log = UpdateLog("log", file_system=file_system, socket_directory=str(tmp_path))
    yield log
    log.close()


def client(log: UpdateLog) -> LogClient:
    return LogClient(answering(log.endpoint()))


def answering(path: str) -> Callable[[], Awaitable[str]]:
    async def endpoint() -> str:
        return path

    return endpoint


def test_views_of_quads_may_read_without_documents(log: UpdateLog) -> None:
    documents = LogEntry(0, 0, EntryKind.SEARCH, bytes(range(16)), 7, bytes(10_000))

    async def go() -> None:
        there, quads = client(log), LogClient(answering(log.endpoint()), omits_search=True)
        await there.append([*entries(b"a"), documents, *entries(b"b")])
        whole, part = await there.read(1), await quads.read(1)
        assert [one.payload for one in whole] == [b"a", documents.payload, b"b"]
        assert part == [whole[0], whole[1]._replace(payload=b""), whole[2]]
        await there.close()
        await quads.close()

    asyncio.run(go())


def test_entries_go_in_and_come_out(log: UpdateLog) -> None:
    async def go() -> None:
        there = client(log)
        assert await there.status() == LogStatus(1, 0)
        assert await there.append(entries(b"a", b"b")) == 1
        assert await there.append(entries(b"c"), expected_index=3) == 3
        found = await there.read(2)
        assert [(entry.log_index, entry.payload, entry.timestamp_ms) for entry in found] == [
            (2, b"b", 7),
            (3, b"c", 7),
        ]
        assert await there.read(4) == []
        assert await there.status() == LogStatus(1, 3)
        await there.truncate_before(3, QUADS)
        await there.close()

    asyncio.run(go())
    assert [entry.payload for entry in log.read(1)] == [b"a", b"b", b"c"]
    assert log.append(entries(b"d")) == 4


def test_an_append_for_another_index_stores_nothing(log: UpdateLog) -> None:
    assert log.append(entries(b"a"), expected_index=1) == 1
    assert log.append(entries(b"b"), expected_index=1) == 0
    assert log.append(entries(b"b"), expected_index=3) == 0
    assert log.status() == LogStatus(1, 1)


def test_documents_between_do_not_make_a_plan_old_and_changes_do(log: UpdateLog) -> None:
    document = LogEntry(0, 0, EntryKind.SEARCH, bytes(16), 7, b"document")
    assert log.append(entries(b"a")) == 1
    assert log.append([document, document]) == 2
    assert log.append(entries(b"b", b"c"), expected_index=2) == 4
    assert log.append(entries(b"d"), expected_index=2) == 0
    assert log.append(entries(b"d"), expected_index=5) == 0
    assert log.append([document], expected_index=6) == 6
    assert log.append(entries(b"d"), expected_index=6) == 7


def test_after_a_start_a_plan_is_refused_once_though_nothing_stands_in_its_way(
    tmp_path: Path, file_system: LossyFileSystem
) -> None:
    document = LogEntry(0, 0, EntryKind.SEARCH, bytes(16), 7, b"document")
    for expected in (0, 2):
        log = UpdateLog("log", file_system=file_system, socket_directory=str(tmp_path))
        assert log.append(entries(b"a"), expected_index=expected) == (0 if expected else 1)
        log.append([document])
        log.close()
    log = UpdateLog("log", file_system=file_system, socket_directory=str(tmp_path))
    assert log.append([document]) == 4
    assert log.append(entries(b"b"), expected_index=4) == 5
    log.close()


def test_a_failed_append_leaves_plans_as_they_are(log: UpdateLog, file_system: LossyFileSystem) -> None:
    file_system.fault = failing(ENOSPC)
    with pytest.raises(StorageFull):
        log.append(entries(b"a"))
    file_system.fault = lambda operation: None
    assert log.append(entries(b"b"), expected_index=1) == 1


def test_a_damaged_append_is_refused_alone(log: UpdateLog) -> None:
    async def append(there: WireClient, data: bytes, expected_index: int = 0) -> int:
        return (await there.ask(Append(expected_index, data), Index, HANG_S)).index

    async def go() -> list[int | BaseException]:
        there = WireClient(LOG_MESSAGES, "the log does", answering(log.endpoint()))
        good = encode_entries(entries(b"a", b"b"))
        damaged = [good[:-1], good[:-1] + b"x", good[:20] + b"x" + good[21:], b"x"]
        asked = [append(there, good), *(append(there, data) for data in damaged), append(there, good)]
        outcomes = await asyncio.gather(*asked, append(there, good, 4), return_exceptions=True)
        there.close()
        return list(outcomes)

    first, *refused, second, none = asyncio.run(go())
    assert (first, second, none) == (1, 3, 0)
    assert [type(error) for error in refused] == [CorruptionError] * 4
    assert [entry.payload for entry in log.read(1)] == [b"a", b"b"] * 2


def failing(number: int) -> Callable[[str], None]:
    def fault(operation: str) -> None:
        if operation == "write":
            raise OSError(number, "failing")

    return fault


def test_whoever_waits_hears_of_what_comes(log: UpdateLog) -> None:
    async def go() -> None:
        there = client(log)
        assert await there.watch_index(0, 0.05) == 0
        watching = [asyncio.create_task(there.watch_index(known)) for known in (0, 0, 2)]
        await asyncio.sleep(0.05)
        await there.append_unconditionally(entries(b"a", b"b"))
        assert await asyncio.gather(*watching[:2]) == [2, 2]
        assert await there.watch_index(1) == 2
        assert not watching[2].done()
        await there.append(entries(b"c"))
        assert await watching[2] == 3
        leaving = asyncio.create_task(there.watch_index(3))
        await asyncio.sleep(0.05)
        await there.close()
        with pytest.raises(LogUnavailable):
            await leaving
        assert await there.watch_index(2) == 3
        await there.close()

    asyncio.run(go())


def test_the_log_keeps_what_any_of_its_views_needs(tmp_path: Path) -> None:
    small = FileLogConfig(segment_bytes=100, reserve_bytes=100)
    system = LossyFileSystem(Random(1))
    log = UpdateLog("log", small, views=(QUADS, SEARCH), file_system=system, socket_directory=str(tmp_path))
    for number in range(6):
        log.append(entries(b"%d" % number * 100))
    held = log.status().held_bytes
    log.truncate_before(5, QUADS)
    assert log.status() == LogStatus(1, 6)
    log.truncate_before(3, SEARCH)
    assert (log.status(), log.status().held_bytes < held) == (LogStatus(3, 6), True)
    log.truncate_before(7, SEARCH)
    assert log.status() == LogStatus(5, 6)
    log.close()


def test_the_newest_entries_stay_for_those_who_resume(tmp_path: Path) -> None:
    small = FileLogConfig(segment_bytes=100, reserve_bytes=100)
    system = LossyFileSystem(Random(1))
    log = UpdateLog("log", small, keep_bytes=500, file_system=system, socket_directory=str(tmp_path))
    for number in range(20):
        log.append(entries(b"%d" % number * 100))
        log.truncate_before(number + 2, QUADS)
    status = log.status()
    assert 1 < status.first_index < status.last_index
    assert 500 <= status.held_bytes < 1_000, "no fewer, and not many more"
    log.close()


def test_appends_that_wait_share_a_sync(log: UpdateLog, file_system: LossyFileSystem) -> None:
    """One append holds the disk; 100 come meanwhile. They all go with the next sync."""
    holding, release, syncs = threading.Event(), threading.Event(), []

    def fault(operation: str) -> None:
        if operation == "sync":
            syncs.append(operation)
            holding.set()
            assert release.wait(HANG_S)

    file_system.fault = fault

    async def go() -> list[int]:
        there = client(log)
        first = asyncio.create_task(there.append(entries(b"first")))
        await asyncio.to_thread(holding.wait, 10)
        others = [asyncio.create_task(there.append(entries(b"%d" % i))) for i in range(100)]
        await asyncio.sleep(0.05)
        release.set()
        indexes = await asyncio.gather(first, *others)
        await there.close()
        return indexes

    assert asyncio.run(go()) == list(range(1, 102))
    assert len(syncs) == 2
    file_system.fault = lambda operation: None


@pytest.mark.parametrize(
    ("operations", "number", "error"),
    [
        ({"write"}, ENOSPC, StorageFull),
        ({"write"}, EIO, LogUnavailable),
        ({"sync", "create"}, EIO, OutcomeUnknown),
    ],
)
def test_errors_keep_their_class_on_the_way(
    log: UpdateLog, file_system: LossyFileSystem, operations: set[str], number: int, error: type[Exception]
) -> None:
    def fault(operation: str) -> None:
        if operation in operations:
            raise OSError(number, "no")

    async def go() -> None:
        there = client(log)
        assert await there.append(entries(b"a")) == 1
        file_system.fault = fault
        with pytest.raises(error) as raised:
            await there.append(entries(b"b"))
        assert type(raised.value) is error
        file_system.fault = lambda operation: None
        assert await there.append(entries(b"c")) == 2
        with pytest.raises(CorruptionError, match="log begins at"):
            await there.read(0)
        await there.close()

    asyncio.run(go())


def test_a_log_that_is_not_there_was_not_sent_to(tmp_path: Path) -> None:
    async def go() -> None:
        with pytest.raises(LogUnavailable, match="does not answer"):
            await LogClient(answering(str(tmp_path / "nothing.sock"))).append(entries(b"a"))

    asyncio.run(go())


def test_a_lost_answer_is_an_unknown_outcome_and_the_client_connects_again(
    tmp_path: Path, log: UpdateLog
) -> None:
    """A server that takes the request and dies; then the real one."""
    path = str(tmp_path / "dying.sock")
    paths = [path, path, log.endpoint()]

    async def endpoint() -> str:
        return paths.pop(0)

    async def go() -> None:
        there = LogClient(endpoint)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            dying = asyncio.create_task(asyncio.to_thread(take_and_die, listener))
            with pytest.raises(OutcomeUnknown):
                await there.append(entries(b"a"))
            await dying
            dying = asyncio.create_task(asyncio.to_thread(take_and_die, listener))
            with pytest.raises(LogUnavailable):
                await there.status()
            await dying
        assert await there.append(entries(b"b")) == 1
        await there.close()

    asyncio.run(go())


def take_and_die(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    connection.recv(1)
    connection.close()


def test_a_request_that_nobody_knows_ends_its_connection_alone(log: UpdateLog) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(log.endpoint())
        connection.sendall(struct.pack("<IBI", 0, 99, 5))
        connection.settimeout(HANG_S)
        assert connection.recv(1000) == b""
    assert log.append(entries(b"a")) == 1


def test_the_socket_is_private_and_its_place_is_always_the_same(tmp_path: Path) -> None:
    for _ in range(2):
        log = UpdateLog(str(tmp_path / ("long" * 40)))
        directory = os.path.dirname(log.endpoint())
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
        assert len(log.endpoint()) < 100
        log.close()
        assert os.listdir(directory) == []
    os.rmdir(directory)


def test_entries_are_dropped_whatever_is_kept_for_those_who_resume(tmp_path: Path) -> None:
    with closing(UpdateLog(str(tmp_path / "log"), views=(QUADS, SEARCH), keep_bytes=1 << 30)) as log:
        log.append(entries(b"a", b"b", b"c"))
        assert log.drop_before(3) == 1  # the views may need all
        log.append(entries(b"d"))
        log.truncate_before(5, QUADS)
        assert log.drop_before(3) == 1
        log.truncate_before(5, SEARCH)
        assert log.drop_before(3) == 4
        assert [entry.payload for entry in log.read(4)] == [b"d"]
