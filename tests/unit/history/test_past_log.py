"""What changed is found in the history and in the log alike, while compaction moves it on."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from graphdb.errors import CorruptionError, HistoryForgotten
from graphdb.history.archive import COMPRESSED, RawFile, compress, parse_archive_name
from graphdb.history.past_log import PastChange, PastLog
from graphdb.history.places import HISTORY, LOG
from graphdb.log.file_log import FileLog, FileLogConfig
from graphdb.log.file_system import RealFileSystem
from graphdb.log.payloads import encode_changes, encode_close
from graphdb.model import Author, ChangeSet, EntryKind, Interface, LogEntry

ANN = Author("basic:ann", Interface.GRAPHQL)
COUNT = 400


def quad(number: int, kind: str = "s") -> Quad:
    return Quad(NamedNode(f"urn:{kind}{number}"), NamedNode("urn:p"), Literal("x" * 300))


def changes(number: int, payload: ChangeSet, kind: EntryKind = EntryKind.CHANGES) -> LogEntry:
    return LogEntry(number, 0, kind, b"%16d" % 1, 1_000 * number, encode_changes(payload), ANN)


def entry(number: int) -> LogEntry:
    """Of ten entries: one of search, two parts and the one that closes them, six alone."""
    place = number % 10
    if place == 1:
        return LogEntry(number, 0, EntryKind.SEARCH, bytes(16), 1_000 * number, b"urn:s" * 100)
    if place in (2, 4):
        return changes(number, ChangeSet(added=(quad(number),)), EntryKind.PART)
    if place == 3:  # between the parts, as another writer's
        return LogEntry(number, 0, EntryKind.SEARCH, bytes(16), 1_000 * number, b"")
    if place == 5:
        return LogEntry(number, 0, EntryKind.CLOSE, b"%16d" % 1, 1_000 * number, encode_close(2), ANN)
    return changes(number, ChangeSet((quad(number, "gone"),), (quad(number),)))


def told(number: int) -> list[tuple[int, ChangeSet]]:
    place = number % 10
    if place in (1, 2, 3, 4):
        return []
    if place == 5:
        return [(number, ChangeSet(added=(quad(part),))) for part in (number - 3, number - 1)]
    return [(number, ChangeSet((quad(number, "gone"),), (quad(number),)))]


def short(found: Iterator[PastChange]) -> list[tuple[int, ChangeSet]]:
    return [(change.log_index, change.change) for change in found]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[FileLog]:
    config = FileLogConfig(16_384, 16_384, str(tmp_path / HISTORY))
    with closing(FileLog(RealFileSystem(), str(tmp_path / LOG), config)) as opened:
        for number in range(1, COUNT + 1):
            opened.append([entry(number)])
        yield opened


@pytest.fixture
def past(tmp_path: Path, log: FileLog) -> Iterator[PastLog]:
    with closing(PastLog(tmp_path)) as opened:
        yield opened


def compress_all(history: Path) -> None:
    for path in history.iterdir():
        name = parse_archive_name(path.name)
        assert name is not None
        if path.suffix != COMPRESSED:
            with closing(RawFile(path)) as raw:
                compress(raw, name.last_index, path.with_suffix(COMPRESSED), lambda: None)
            path.unlink()


@pytest.mark.parametrize("compacted", [0, 150, COUNT])
@pytest.mark.parametrize("compressed", [False, True])
def test_all_changes_are_told_in_both_directions(
    tmp_path: Path, log: FileLog, past: PastLog, compacted: int, compressed: bool
) -> None:
    log.truncate_before(compacted)
    assert (log.first_index > 1) == bool(compacted)
    if compressed and compacted:
        compress_all(tmp_path / HISTORY)
    expected = [change for number in range(1, COUNT + 1) for change in told(number)]
    assert past.first_index(COUNT) == 1
    assert short(past.changes_between(1, COUNT)) == expected
    assert short(past.changes_between(1, COUNT, newest_first=True)) == expected[::-1]
    found = next(past.changes_between(COUNT - 1, COUNT))
    assert (found.timestamp_ms, found.author) == (1_000 * (COUNT - 1), ANN)
    for first, last in ((7, 7), (140, 163), (6, COUNT - 1)):
        inner = [change for number in range(first, last + 1) for change in told(number)]
        assert short(past.changes_between(first, last)) == inner
        assert short(past.changes_between(first, last, newest_first=True)) == inner[::-1]


def test_what_has_a_text_is_found_wherever_it_stands(tmp_path: Path, log: FileLog, past: PastLog) -> None:
    log.truncate_before(200)
    compress_all(tmp_path / HISTORY)
    for number in (16, 34, 396):
        [(index, change)] = short(past.changes_between(1, COUNT, needle=b"<urn:s%d>" % number))
        assert (index, change) == (35 if number == 34 else number, ChangeSet(added=(quad(number),)))
    assert short(past.changes_between(1, COUNT, needle=b"<urn:s>")) == []


def test_compaction_does_not_end_a_scan(tmp_path: Path, log: FileLog, past: PastLog) -> None:
    expected = [change for number in range(1, COUNT + 1) for change in told(number)]
    found = []
    for number, scanned in enumerate(past.scan(1, COUNT)):
        found += short(scanned.changes)
        log.truncate_before(100 * number)
        compress_all(tmp_path / HISTORY) if (tmp_path / HISTORY).exists() else None
    assert found == expected


def test_a_scan_says_where_to_go_on(log: FileLog, past: PastLog) -> None:
    log.truncate_before(200)
    for newest_first in (False, True):
        found, first, last = [], 1, COUNT
        while first <= last:
            scanned = next(past.scan(first, last, newest_first=newest_first))
            found += short(scanned.changes)
            if newest_first:
                last = scanned.next_index
            else:
                first = scanned.next_index
        assert sorted(index for index, _ in found) == sorted(
            index for number in range(1, COUNT + 1) for index, _ in told(number)
        )


def test_what_is_gone_is_said_to_be_gone(tmp_path: Path, log: FileLog, past: PastLog) -> None:
    log.truncate_before(200)
    paths = sorted((tmp_path / HISTORY).iterdir())
    for path in paths[:3]:
        path.unlink()
    name = parse_archive_name(paths[3].name)
    assert name is not None
    first_index = past.first_index(COUNT)
    assert name.first_index <= first_index <= name.first_index + 4
    assert next(past.changes_between(first_index, COUNT)).log_index >= first_index
    with pytest.raises(HistoryForgotten) as raised:
        list(past.changes_between(first_index - 1, COUNT))
    assert raised.value.oldest_index == first_index - 1


def test_a_large_change_that_is_gone_in_part_does_not_count(tmp_path: Path) -> None:
    config = FileLogConfig(512, 512, str(tmp_path / HISTORY))
    with closing(FileLog(RealFileSystem(), str(tmp_path / LOG), config)) as log:
        for number in range(1, 11):
            log.append([entry(number)])
        log.truncate_before(10)
    for path in sorted((tmp_path / HISTORY).iterdir()):
        name = parse_archive_name(path.name)
        if name is not None and name.first_index <= 2:
            path.unlink()
    with closing(PastLog(tmp_path)) as past:
        assert past.first_index(10) == 6
        assert short(past.changes_between(6, 10)) == [t for number in range(6, 11) for t in told(number)]


def test_a_log_that_began_anew_has_no_past_before_that(tmp_path: Path, log: FileLog, past: PastLog) -> None:
    log.truncate_before(200)
    log.restart_at(1_000)
    log.append([changes(1_000, ChangeSet(added=(quad(1),)))])
    assert past.first_index(1_000) == 1_000
    assert short(past.changes_between(1_000, 1_000)) == [(1_000, ChangeSet(added=(quad(1),)))]


def test_entries_that_were_taken_back_are_not_told(log: FileLog, past: PastLog) -> None:
    log.truncate_before(200)
    log.truncate_after(COUNT - 4)
    log.append([changes(COUNT - 3, ChangeSet(added=(quad(1),)))])
    assert short(past.changes_between(COUNT - 4, COUNT - 3)) == [
        *told(COUNT - 4),
        (COUNT - 3, ChangeSet(added=(quad(1),))),
    ]


def test_the_entry_at_a_time(tmp_path: Path, log: FileLog, past: PastLog) -> None:
    log.truncate_before(200)
    compress_all(tmp_path / HISTORY)
    assert past.index_at(1_000 * COUNT + 5, COUNT) == COUNT
    assert past.index_at(1_000 * 147 + 999, COUNT) == 147
    assert past.index_at(1_000 * 151, COUNT) == 150  # an entry of search is none
    assert past.index_at(1, COUNT) is None


def test_files_that_are_gone_are_let_go(tmp_path: Path, log: FileLog, past: PastLog) -> None:
    expected = [change for number in range(1, COUNT + 1) for change in told(number)]
    for compacted in (0, 100, 200, COUNT):
        log.truncate_before(compacted)
        if compacted == 200:
            compress_all(tmp_path / HISTORY)
        assert short(past.changes_between(1, COUNT)) == expected
        past.rest()
        assert not [path for path in Path("/proc/self/fd").iterdir() if HISTORY in str(path.resolve())]


def test_damage_is_noticed(tmp_path: Path, log: FileLog) -> None:
    log.truncate_before(COUNT)
    compress_all(tmp_path / HISTORY)
    first = min((tmp_path / HISTORY).iterdir())
    data = bytearray(first.read_bytes())
    for place in (20, len(data) - 3):
        first.write_bytes(bytes(data[:place]) + bytes([data[place] ^ 1]) + bytes(data[place + 1 :]))
        with closing(PastLog(tmp_path)) as past, pytest.raises(CorruptionError):
            list(past.changes_between(1, COUNT))


@pytest.mark.parametrize("compacted", [0, 150])
def test_a_state_within_a_large_change_needs_all_its_parts(
    log: FileLog, past: PastLog, compacted: int
) -> None:
    log.truncate_before(compacted)
    assert past.needed_from(0, COUNT) == 1
    assert past.needed_from(COUNT, COUNT) == COUNT + 1
    first = 200
    for place, needed in ((0, 1), (1, 2), (2, 2), (3, 2), (4, 2), (5, 6), (9, 10)):
        assert past.needed_from(first + place, COUNT) == first + needed, place
