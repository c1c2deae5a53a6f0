"""The log on disk: what it keeps, what it refuses, and how it tells a torn tail from damage."""

import errno
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast

import pytest

from graphdb.errors import CorruptionError, LogUnavailable, OutcomeUnknown, StorageFull
from graphdb.log.codec import entry_bytes
from graphdb.log.file_log import FileLog, FileLogConfig, begin_log
from graphdb.log.file_system import RealFileSystem, replace_file
from graphdb.model import UNKNOWN_AUTHOR, Author, EntryKind, Interface, LogEntry
from tests.simulation.lossy_file_system import LossyFileSystem

SMALL = FileLogConfig(segment_bytes=2000, reserve_bytes=1000)


def entry(index: int, payload: bytes = b"payload") -> LogEntry:
    return LogEntry(index, 0, EntryKind.CHANGES, index.to_bytes(16, "big"), 0, payload)


def indexes(log: FileLog) -> list[int]:
    found: list[int] = []
    while entries := log.read(found[-1] + 1 if found else log.first_index):
        found += (entry.log_index for entry in entries)
    return found


def only_segment(file_system: LossyFileSystem) -> str:
    [path] = [f"log/{name}" for name in file_system.list("log")]
    return path


def test_entries_are_there_again(tmp_path: Path) -> None:
    log = FileLog(RealFileSystem(), str(tmp_path / "a" / "log"), SMALL)
    assert (log.first_index, log.last_index) == (1, 0)
    entries = [entry(i, bytes([i]) * 100) for i in range(1, 31)]
    for start in range(0, 30, 3):
        log.append(entries[start : start + 3])
    log.close()
    log = FileLog(RealFileSystem(), str(tmp_path / "a" / "log"), SMALL)
    log.validate_state()
    found: list[LogEntry] = []
    while more := log.read(len(found) + 1, max_bytes=400):
        assert sum(len(item.payload) + 65 for item in more) <= 400
        found += more
    assert found == entries
    assert len(log.read(1, max_bytes=1)) == 1
    log.close()


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    log = FileLog(RealFileSystem(), str(tmp_path))
    with pytest.raises(LogUnavailable, match="in use by another process"):
        FileLog(RealFileSystem(), str(tmp_path))
    log.close()
    FileLog(RealFileSystem(), str(tmp_path)).close()


def test_compaction_drops_whole_segments_only() -> None:
    log = FileLog(LossyFileSystem(Random(1)), "log", SMALL)
    for index in range(1, 41):
        log.append([entry(index, bytes(200))])
    log.truncate_before(20)
    assert 10 < log.first_index <= 20
    assert indexes(log) == list(range(log.first_index, 41))
    with pytest.raises(CorruptionError, match="begins at"):
        log.read(log.first_index - 1)
    log.truncate_before(1000)
    assert log.last_index == 40
    assert indexes(log) == list(range(log.first_index, 41))


def mixed(random: Random, index: int) -> LogEntry:
    """Of any kind, short or long, some by an author with a name."""
    kind = random.choice((EntryKind.SEARCH, EntryKind.SEARCH, EntryKind.CHANGES, EntryKind.PART))
    size = random.choice((0, 100, 4_030, 4_031, 4_032, 9_000))
    author = random.choice((UNKNOWN_AUTHOR, Author("a name", Interface.SPARQL_UPDATE)))
    return LogEntry(index, 3, kind, random.randbytes(16), index * 7, random.randbytes(size), author)


def without_documents(one: LogEntry) -> LogEntry:
    size = entry_bytes(len(one.payload)) + len(one.author.name)
    if one.kind is not EntryKind.SEARCH or size < 4096:
        return one
    return LogEntry(one.log_index, one.raft_term, one.kind, one.request_id, one.timestamp_ms, b"")


@pytest.mark.parametrize("seed", range(8))
def test_long_entries_of_search_may_be_read_without_their_payloads(seed: int) -> None:
    random, file_system = Random(seed), LossyFileSystem(Random(seed))
    config = FileLogConfig(segment_bytes=60_000, reserve_bytes=10_000)
    log = FileLog(file_system, "log", config)
    given: dict[int, LogEntry] = {}
    while log.last_index < 80:
        batch = [mixed(random, log.last_index + 1 + place) for place in range(random.randrange(1, 6))]
        log.append(batch)
        given |= {one.log_index: one for one in batch}
        if random.random() < 0.2:
            log.truncate_after(log.last_index - random.randrange(2))
        if random.random() < 0.2:
            log.close()
            log = FileLog(file_system, "log", config)
        log.validate_state()
    for max_bytes in (0, 1, 4_096, 5_000, 30_000, 1 << 20):
        found: list[LogEntry] = []
        while more := log.read(len(found) + 1, max_bytes, omits_search=True):
            whole = [one for one in more if one.payload]
            assert len(more) == 1 or sum(entry_bytes(len(one.payload)) for one in whole) <= max_bytes
            found += more
        assert found == [without_documents(given[index]) for index in range(1, log.last_index + 1)]
    assert any(one != given[one.log_index] for one in found)


def test_an_entry_without_its_payload_is_the_one_that_was_asked_for() -> None:
    file_system = LossyFileSystem(Random(1))
    log = FileLog(file_system, "log")
    log.append([entry(1)._replace(kind=EntryKind.SEARCH, payload=bytes(9_000)), entry(2)])
    assert [len(one.payload) for one in log.read(1, omits_search=True)] == [0, 7]
    file = file_system.open(only_segment(file_system))
    for offset in (64, 64 + 12, 64 + 16):  # its mark, its kind, its index
        byte = file.read(1, offset)
        file.write(bytes([byte[0] ^ 2]), offset)
        with pytest.raises(CorruptionError, match="entry 1 is damaged"):
            log.read(1, omits_search=True)
        file.write(byte, offset)
    assert len(log.read(1, omits_search=True)) == 2


def naive_index_before(sizes: dict[int, int], index: int, size: int) -> int:
    """The same by adding up entry by entry."""
    while size > 0 and index in sizes:
        size -= sizes[index]
        index -= 1
    return index


@pytest.mark.parametrize("seed", range(5))
def test_how_far_back_so_many_bytes_go(seed: int) -> None:
    random = Random(seed)
    log = FileLog(LossyFileSystem(random), "log", FileLogConfig(segment_bytes=900, reserve_bytes=100))
    sizes: dict[int, int] = {}
    while log.last_index < 60:
        batch = [
            entry(log.last_index + 1 + i, bytes(random.randrange(200))) for i in range(random.randrange(1, 5))
        ]
        log.append(batch)
        sizes |= {each.log_index: entry_bytes(len(each.payload)) for each in batch}
        if random.random() < 0.1:
            log.truncate_after(log.last_index - 1)
    log.truncate_before(20)
    sizes = {index: sizes[index] for index in range(log.first_index, log.last_index + 1)}
    for index in range(log.first_index - 1, log.last_index + 1):
        for size in (0, 1, 200, 600, 1000, 2500, 100_000, random.randrange(5000)):
            assert log.index_before(index, size) == naive_index_before(sizes, index, size), (index, size)


def test_entries_can_be_taken_back_across_segments() -> None:
    file_system = LossyFileSystem(Random(1))
    log = FileLog(file_system, "log", SMALL)
    for index in range(1, 21):
        log.append([entry(index, bytes(300))])
    log.truncate_after(7)
    log.append([entry(8, b"another")])
    log.close()
    log = FileLog(file_system, "log", SMALL)
    assert indexes(log) == list(range(1, 9))
    assert log.read(8)[0].payload == b"another"
    log.truncate_after(0)
    assert (log.first_index, log.last_index) == (1, 0)


def test_a_log_can_begin_anywhere(tmp_path: Path) -> None:
    begin_log(RealFileSystem(), str(tmp_path), 501)
    log = FileLog(RealFileSystem(), str(tmp_path))
    assert (log.first_index, log.last_index) == (501, 500)
    log.append([entry(501)])
    assert indexes(log) == [501]
    log.close()


@pytest.mark.parametrize("operation", ["allocate", "write", "sync", "create", "rename", "sync_directory"])
def test_a_full_disk_is_refused_and_forgotten(operation: str) -> None:
    """Each operation fails once, in an append that also begins a new segment."""
    file_system = LossyFileSystem(Random(1))
    log = FileLog(file_system, "log", SMALL)
    log.append([entry(1, bytes(2000))])
    file_system.fault = failing_once(operation, errno.ENOSPC)
    with pytest.raises(StorageFull):
        log.append([entry(2, b"refused")])
    assert indexes(log) == [1]
    log.append([entry(2, b"taken")])
    for _ in range(2):
        file_system.crash()
        log = FileLog(file_system, "log", SMALL)
        assert [item.payload for item in log.read(2)] == [b"taken"]
    log.validate_state()


def failing_once(operation: str, number: int) -> Callable[[str], None]:
    left = [operation]

    def fault(name: str) -> None:
        if name in left:
            left.remove(name)
            raise OSError(number, "no")

    return fault


def test_a_sync_that_fails_is_not_repeated() -> None:
    """fsyncgate: a second sync succeeds although the data is gone; were it believed, entry 2 would be."""
    file_system = LossyFileSystem(Random(4))
    log = FileLog(file_system, "log", SMALL)
    log.append([entry(1)])
    file_system.fault = failing_once("sync", errno.EIO)
    with pytest.raises(LogUnavailable):
        log.append([entry(2, bytes(900))])
    assert len(file_system.list("log")) == 2, "it goes on in a new segment"
    log.append([entry(2, b"again")])
    file_system.crash()
    assert indexes(FileLog(file_system, "log", SMALL)) == [1, 2]


def test_nothing_is_appended_while_the_disk_stays_broken() -> None:
    file_system = LossyFileSystem(Random(1))
    log = FileLog(file_system, "log", SMALL)

    def fault(operation: str) -> None:
        if operation in ("sync", "create"):
            raise OSError(errno.ENOSPC, "no")

    file_system.fault = fault
    with pytest.raises(OutcomeUnknown):
        log.append([entry(1, b"maybe")])
    with pytest.raises(StorageFull):
        log.append([entry(1, b"no")])
    assert log.last_index == 0
    file_system.fault = lambda operation: None
    log.append([entry(1, b"yes")])
    file_system.crash()
    assert [item.payload for item in FileLog(file_system, "log", SMALL).read(1)] == [b"yes"]


ENTRY_BYTES = 65 + 400


def with_three_batches() -> tuple[LossyFileSystem, str]:
    """Entries of ENTRY_BYTES from offset 64 on: 1, then 2, then 3 and 4 with one sync."""
    file_system = LossyFileSystem(Random(1))
    log = FileLog(file_system, "log")
    log.append([entry(1, b"a" * 400)])
    log.append([entry(2, b"b" * 400)])
    log.append([entry(3, b"c" * 400), entry(4, b"d" * 400)])
    log.close()
    return file_system, only_segment(file_system)


@pytest.mark.parametrize(
    ("name", "offset", "data", "kept"),
    [
        ("the end of the last entry was not written", 64 + 4 * ENTRY_BYTES - 9, bytes(9), 3),
        ("the last batch's first sector was not written", 64 + 2 * ENTRY_BYTES, bytes(30), 2),
        ("a sector inside the last batch was not written", 1536, bytes(464), 3),
        ("nothing of the last batch was written", 64 + 2 * ENTRY_BYTES, bytes(2 * ENTRY_BYTES), 2),
    ],
)
def test_a_torn_tail_is_cut(name: str, offset: int, data: bytes, kept: int) -> None:
    file_system, path = with_three_batches()
    file_system.damage(path, offset, data)
    log = FileLog(file_system, "log")
    assert log.last_index == kept, name
    log.append([entry(kept + 1, b"new")])
    log.close()
    assert indexes(FileLog(file_system, "log")) == list(range(1, kept + 2))


@pytest.mark.parametrize(
    ("name", "offset", "data"),
    [
        ("a bit flips in the first entry", 64 + 70, b"?"),
        ("the first entry is overwritten with zeros", 64, bytes(ENTRY_BYTES)),
        ("the second batch's end is zero, yet a third batch follows", 64 + 2 * ENTRY_BYTES - 9, bytes(9)),
        ("a bit flips in the last entry", 64 + 4 * ENTRY_BYTES - 100, b"?"),
        ("a bit flips in the last entry's checksum", 64 + 3 * ENTRY_BYTES + 4, b"?"),
        ("the segment header", 20, b"?"),
        ("the segment's magic", 0, b"?"),
    ],
)
def test_damage_is_not_cut(name: str, offset: int, data: bytes) -> None:
    file_system, path = with_three_batches()
    before = file_system.content(path)
    file_system.damage(path, offset, data)
    damaged = file_system.content(path)
    assert damaged != before, name
    with pytest.raises(CorruptionError):
        FileLog(file_system, "log")
    assert file_system.content(path) == damaged, "nothing is changed in a damaged log"


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    log = FileLog(RealFileSystem(), str(tmp_path), SMALL)
    for index in range(1, 21):
        log.append([entry(index, bytes(500))])
    log.close()
    sorted(tmp_path.glob("*.segment"))[1].unlink()
    with pytest.raises(CorruptionError, match="missing or damaged"):
        FileLog(RealFileSystem(), str(tmp_path), SMALL)


def test_a_newer_format_is_refused() -> None:
    file_system, path = with_three_batches()
    file_system.damage(path, 8, b"\x02")
    with pytest.raises(CorruptionError, match="format version 2, this program reads 1"):
        FileLog(file_system, "log")


@pytest.mark.parametrize("after", [0, 1])
def test_an_entry_of_a_newer_version_is_refused_by_name_and_kept(after: int) -> None:
    file_system, path = with_three_batches()
    log = FileLog(file_system, "log")
    log.append([entry(5, b"e")._replace(kind=cast(EntryKind, 200))])
    log.append([entry(6 + n, b"f") for n in range(after)])
    log.close()
    before = file_system.content(path)
    with pytest.raises(CorruptionError, match=r"entry 5 is of a kind \(200\) that only newer versions know"):
        FileLog(file_system, "log")
    assert file_system.content(path) == before


def test_a_replaced_file_is_the_old_or_the_new_one() -> None:
    for seed in range(200):
        random = Random(seed)
        file_system = LossyFileSystem(random)
        replace_file(file_system, "d", "f", b"old content")
        file_system.fault = failing_once(
            random.choice(["write", "sync", "rename", "sync_directory"]), errno.EIO
        )
        with pytest.raises(OSError, match="no"):
            replace_file(file_system, "d", "f", b"new")
        file_system.crash()
        assert file_system.content("d/f") in (b"old content", b"new")


def test_a_segment_ends_so_that_what_is_in_it_can_be_dropped(tmp_path: Path) -> None:
    log = FileLog(RealFileSystem(), str(tmp_path), FileLogConfig(1 << 20, 1 << 12))
    assert log.end_segment(5) == 1  # nothing is there
    log.append([entry(index) for index in range(1, 8)])
    assert log.end_segment(1) == 1
    assert log.end_segment(4) == 8
    assert log.end_segment(4) == log.end_segment(8) == 8
    log.append([entry(8), entry(9)])
    assert log.end_segment(4) == 8
    log.truncate_before(8)
    assert indexes(log) == [8, 9]
    assert log.end_segment(10) == 10
    log.validate_state()
    log.close()
    log = FileLog(RealFileSystem(), str(tmp_path))
    log.truncate_before(10)
    assert (log.first_index, log.last_index) == (10, 9)
    log.append([entry(10)])
    log.close()
