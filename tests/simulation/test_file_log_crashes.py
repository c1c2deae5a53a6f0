"""The log on a file system that loses what was not synced: thousands of crashes, each from one seed.

A failing seed is named in the test's own output; `run_lives(seed)` replays it.
"""

import errno
from dataclasses import replace
from random import Random

import pytest

from graphdb.errors import OutcomeUnknown, UnavailableError
from graphdb.history.archive import parse_archive_name
from graphdb.log.codec import decode_entry
from graphdb.log.file_log import FileLog, FileLogConfig
from graphdb.log.segment import SEGMENT_HEADER_BYTES
from graphdb.model import EntryKind, LogEntry
from tests.simulation.lossy_file_system import Crash, LossyFileSystem

DIRECTORY = "log"
CONFIG = FileLogConfig(segment_bytes=3000, reserve_bytes=700)
HISTORY = "history"


class Twin:
    """What the log has promised, and what it may hold besides."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.last_index = 0
        self.dropped_before = 1  # compaction was asked to drop entries before this
        self.in_flight: list[
            list[bytes]
        ] = []  # appends with an unknown outcome; at most one of them is there
        self.cut_after: int | None = None  # a truncate_after whose outcome is unknown
        self.restart_at: int | None = None  # likewise a restart_at
        self.begun_at = 1  # the first entry since it began anew

    def check(self, log: FileLog) -> None:
        """Compare a log that has just been opened, and take over what it says."""
        found = read_all(log)
        if self.restart_at is not None and (log.first_index, log.last_index) == (
            self.restart_at,
            self.restart_at - 1,
        ):
            self.restarted()
        assert log.first_index <= self.dropped_before
        assert list(found) == list(range(log.first_index, log.last_index + 1))
        cut = self.cut_after is not None and log.last_index == self.cut_after
        promised = self.cut_after if cut and self.cut_after is not None else self.last_index
        assert log.last_index >= promised, f"lost {log.last_index + 1} to {promised}"
        for index, payload in found.items():
            if index <= promised:
                assert payload == self.acknowledged[index], f"entry {index} changed"
        beyond = [found[index] for index in range(max(promised + 1, log.first_index), log.last_index + 1)]
        known = [[], *self.in_flight]
        assert any(beyond == sent[: len(beyond)] for sent in known), (
            "what was never sent, or refused, is there"
        )
        self.acknowledged.update(found)
        self.last_index = log.last_index
        self.in_flight, self.cut_after, self.restart_at = [], None, None

    def check_history(self, file_system: LossyFileSystem, log: FileLog) -> None:
        """What compaction has dropped is there."""
        found: dict[int, bytes] = {}
        for name in file_system.list(HISTORY):
            kept = parse_archive_name(name)
            assert kept is not None
            content, offset = file_system.content(f"{HISTORY}/{name}"), SEGMENT_HEADER_BYTES
            for index in range(kept.first_index, kept.last_index + 1):
                record = decode_entry(content, offset)
                assert record is not None, f"entry {index} in the history"
                found[index], offset = record.entry.payload, record.end
        for index in range(self.begun_at, log.first_index):
            assert found[index] == self.acknowledged[index], f"entry {index} in the history"

    def restarted(self) -> None:
        assert self.restart_at is not None
        self.acknowledged.clear()
        self.dropped_before, self.last_index = self.restart_at, self.restart_at - 1
        self.begun_at = self.restart_at
        self.in_flight, self.cut_after, self.restart_at = [], None, None

    def acknowledge(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            self.last_index += 1
            self.acknowledged[self.last_index] = payload
        self.in_flight, self.cut_after, self.restart_at = [], None, None


def read_all(log: FileLog) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    index = log.first_index
    while entries := log.read(index, max_bytes=900):
        found.update((entry.log_index, entry.payload) for entry in entries)
        index = entries[-1].log_index + 1
    return found


FALLIBLE = ["create", "allocate", "write", "truncate", "sync", "rename", "link", "unlink", "sync_directory"]


class Faults:
    """Crashes at the n-th operation from now; until then the kinds of operations in `failing` fail now and
    then.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self.operations_left = random.randrange(1, 60)
        self.failing: list[str] = []

    def __call__(self, operation: str) -> None:
        self.operations_left -= 1
        if self.operations_left == 0:
            raise Crash
        if operation in self.failing and self._random.random() < 0.7:
            raise OSError(self._random.choice([errno.ENOSPC, errno.EIO]), "no")


def run_lives(seed: int, lives: int = 5) -> None:
    random = Random(seed)
    file_system = LossyFileSystem(random)
    twin = Twin()
    config = replace(CONFIG, history=HISTORY if seed % 2 else None)
    for _ in range(lives):
        faults = Faults(random)
        file_system.fault = faults
        try:
            log = FileLog(file_system, DIRECTORY, config)
            live(log, twin, random, faults)
        except Crash:
            random.choice([file_system.crash, file_system.kill])()
    file_system.fault = lambda operation: None
    file_system.crash()
    log = FileLog(file_system, DIRECTORY, config)
    twin.check(log)
    if config.history is not None:
        twin.check_history(file_system, log)
    log.append([entry(log.last_index + 1, b"works")])
    log.validate_state()


def live(log: FileLog, twin: Twin, random: Random, faults: Faults) -> None:
    """Use a log until the crash."""
    twin.check(log)
    while True:
        faults.failing = random.sample(FALLIBLE, random.choice([0, 0, 0, 1, 1, 2, 9]))
        match random.randrange(14):
            case 0:
                compact(log, twin, random)
            case 1:
                cut(log, twin, random)
            case 2:
                restart(log, twin, random)
            case _:
                append(log, twin, random)
        log.validate_state()
        assert log.last_index == twin.last_index


def append(log: FileLog, twin: Twin, random: Random) -> None:
    payloads = [random.randbytes(random.choice([0, 10, 300, 1500])) for _ in range(random.randrange(1, 5))]
    twin.in_flight.append(payloads)
    try:
        log.append([entry(log.last_index + 1 + i, payload) for i, payload in enumerate(payloads)])
    except OutcomeUnknown:
        return
    except UnavailableError:
        twin.in_flight.pop()
    else:
        twin.acknowledge(payloads)


def compact(log: FileLog, twin: Twin, random: Random) -> None:
    index = random.randint(log.first_index, log.last_index + 1)
    twin.dropped_before = max(twin.dropped_before, index)
    try:
        log.truncate_before(index)
    except UnavailableError:
        return
    assert log.first_index <= index


def cut(log: FileLog, twin: Twin, random: Random) -> None:
    if twin.in_flight or twin.cut_after is not None or twin.restart_at is not None:
        return
    index = random.randint(log.first_index - 1, log.last_index)
    twin.cut_after = index
    try:
        log.truncate_after(index)
    except UnavailableError:
        return
    twin.last_index, twin.cut_after = index, None


def restart(log: FileLog, twin: Twin, random: Random) -> None:
    if twin.in_flight or twin.cut_after is not None or twin.restart_at is not None:
        return
    twin.restart_at = random.randint(log.first_index, log.last_index + 5)
    try:
        log.restart_at(twin.restart_at)
    except UnavailableError:
        return
    twin.restarted()
    assert (log.first_index, log.last_index) == (twin.dropped_before, twin.dropped_before - 1)


def entry(index: int, payload: bytes) -> LogEntry:
    return LogEntry(index, 0, EntryKind.CHANGES, bytes(16), 0, payload)


@pytest.mark.parametrize("hundred", range(40))
def test_any_crash_keeps_what_was_acknowledged(hundred: int) -> None:
    for seed in range(hundred * 100, hundred * 100 + 100):
        try:
            run_lives(seed)
        except Exception as error:
            raise AssertionError(f"run_lives({seed})") from error
