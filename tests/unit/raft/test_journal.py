"""The journal: terms, members and entries, compaction and snapshots."""

from pathlib import Path
from random import Random

import pytest

from actors.log.protocol import decode_entries
from graphdb.errors import CorruptionError, StorageFull
from graphdb.log.file_log import FileLogConfig
from graphdb.log.file_system import FileSystem, RealFileSystem
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.journal import Journal, JournalConfig
from graphdb.raft.membership import Member, Members, PeerId, encode_members
from graphdb.raft.messages import SnapshotMark
from tests.simulation.lossy_file_system import LossyFileSystem

CONFIG = JournalConfig(FileLogConfig(segment_bytes=400, reserve_bytes=200), recent_bytes_max=300)
ONE = Members((Member(PeerId(1, 11), "a:1", True),))
TWO = ONE.with_member(Member(PeerId(2, 22), "b:1", True))


def entry(index: int, term: int, payload: bytes = b"x", kind: EntryKind = EntryKind.CHANGES) -> LogEntry:
    return LogEntry(index, term, kind, bytes(16), 0, payload)


def open_journal(file_system: FileSystem, incarnation: int = 11) -> Journal:
    return Journal(file_system, "state", "log", 1, lambda: incarnation, CONFIG)


@pytest.fixture
def disk() -> LossyFileSystem:
    return LossyFileSystem(Random(1))


@pytest.fixture
def journal(disk: LossyFileSystem) -> Journal:
    """Entries 1 to 9, of terms 1 1 1 2 2 5 5 5 5; members ONE at 1 and TWO at 5."""
    journal = open_journal(disk)
    for index, term in enumerate([1, 1, 1, 2, 2, 5, 5, 5, 5], start=1):
        members = {1: ONE, 5: TWO}.get(index)
        kind = EntryKind.MEMBERS if members else EntryKind.CHANGES
        payload = encode_members(members) if members else b"%d" % index * 40
        journal.append([entry(index, term, payload, kind)])
    journal.join_cluster(77)
    journal.set_term(6, PeerId(3, 33))
    journal.sync()
    return journal


def terms(journal: Journal) -> list[int | None]:
    return [journal.term_at(index) for index in range(journal.base.log_index, journal.last_index + 2)]


def reopen(journal: Journal, disk: LossyFileSystem) -> Journal:
    disk.crash()
    return open_journal(disk, incarnation=99)


def test_all_that_was_synced_is_there_after_a_crash(journal: Journal, disk: LossyFileSystem) -> None:
    journal = reopen(journal, disk)
    assert terms(journal) == [0, 1, 1, 1, 2, 2, 5, 5, 5, 5, None]
    assert (journal.peer, journal.cluster_id) == (PeerId(1, 11), 77)
    assert (journal.term, journal.vote) == (6, PeerId(3, 33))
    assert (journal.members, journal.members_index) == (TWO, 5)
    assert (journal.members_at(4), journal.members_at(5)) == (ONE, TWO)


def test_reading_goes_over_from_disk_to_memory(journal: Journal) -> None:
    found: list[LogEntry] = []
    while entries := journal.read(len(found) + 1, 200):
        found += entries
    assert [each.log_index for each in found] == list(range(1, 10))


def test_entries_that_are_on_disk_are_read_encoded(journal: Journal) -> None:
    """From disk and from memory, also behind entries that were taken back."""
    journal.truncate_after(7)
    journal.append([entry(8, 6), entry(9, 6)])
    journal.sync()
    found: list[LogEntry] = []
    while len(found) < 8:
        found += decode_entries(journal.read_encoded(len(found) + 1, 8, 200))
    assert found == [read_one(journal, index) for index in range(1, 9)]
    assert len(decode_entries(journal.read_encoded(8, 8, 1))) == 1
    journal.compact(8)
    with pytest.raises(CorruptionError, match="in the snapshot"):
        journal.read_encoded(8, 9, 1 << 20)


def read_one(journal: Journal, index: int) -> LogEntry:
    return journal.read(index, 1)[0]


def test_what_is_not_synced_counts_until_it_is_rolled_back(journal: Journal) -> None:
    journal.truncate_after(4)
    journal.append([entry(5, 6), entry(6, 6)])
    assert (terms(journal), journal.members, journal.synced_index) == ([0, 1, 1, 1, 2, 6, 6, None], ONE, 4)
    assert [each.raft_term for each in journal.read(3, 1 << 20)] == [1, 2]
    journal.roll_back()
    assert (terms(journal)[-3:], journal.members, journal.synced_index) == ([5, 5, None], TWO, 9)


def test_a_change_of_members_that_was_taken_back_stays_away(journal: Journal, disk: LossyFileSystem) -> None:
    journal.truncate_after(4)
    journal.append([entry(5, 6)])
    journal.sync()
    journal = reopen(journal, disk)
    assert (journal.members, journal.members_index, journal.last_index) == (ONE, 1, 5)


def test_compaction_keeps_the_place_and_the_members(journal: Journal, disk: LossyFileSystem) -> None:
    journal.compact(6)
    for each in (journal, reopen(journal, disk)):
        assert terms(each) == [5, 5, 5, 5, None]
        assert each.base == SnapshotMark(6, 5, TWO)
        assert (each.members, each.term_at(5)) == (TWO, None)
        with pytest.raises(CorruptionError):
            each.read(6, 1)


@pytest.mark.parametrize(
    ("index", "keep_bytes", "expected"),
    [(9, 0, 9), (9, 1, 8), (9, 250, 6), (7, 250, 4), (9, 100_000, 0), (9, None, 0), (0, 5, 0)],
)
def test_what_a_peer_that_lags_a_little_needs_is_kept(
    journal: Journal, index: int, keep_bytes: int | None, expected: int
) -> None:
    assert journal.compactable_index(index, keep_bytes) == expected  # an entry has some 100 bytes
    journal.compact(3)
    assert journal.compactable_index(max(index, 3), keep_bytes) == max(expected, 3)


def test_compaction_while_something_waits_for_the_disk(journal: Journal, disk: LossyFileSystem) -> None:
    journal.truncate_after(8)
    journal.append([entry(9, 7)])
    journal.set_term(7, None)
    journal.compact(8)
    assert (terms(journal), journal.is_synced) == ([5, 7, None], False)
    journal.roll_back()
    assert terms(journal) == [5, 5, None]
    assert journal.term == 7  # was written with the snapshot's place


def test_a_log_that_begins_with_data(disk: LossyFileSystem) -> None:
    journal = open_journal(disk)
    mark = SnapshotMark(40, 0, Members())
    journal.install(mark)
    for each in (journal, reopen(journal, disk)):
        assert (each.base, each.last_index, each.last_term, each.members) == (mark, 40, 0, Members())
    each.append([entry(41, 1)])
    each.sync()
    assert terms(reopen(each, disk)) == [0, 1, None]


def test_a_snapshot_that_fits_keeps_what_follows(journal: Journal) -> None:
    journal.install(SnapshotMark(7, 5, TWO))
    assert terms(journal) == [5, 5, 5, None]


@pytest.mark.parametrize("mark", [SnapshotMark(7, 6, ONE), SnapshotMark(40, 6, ONE)])
def test_a_snapshot_that_does_not_fit_replaces_the_log(
    journal: Journal, disk: LossyFileSystem, mark: SnapshotMark
) -> None:
    journal.install(mark)
    for each in (journal, reopen(journal, disk)):
        assert (each.base, each.last_index, each.members) == (mark, mark.log_index, ONE)
    each.append([entry(mark.log_index + 1, 6)])
    each.sync()
    assert terms(reopen(each, disk)) == [6, 6, None]


def test_a_crash_between_the_snapshots_note_and_the_log(journal: Journal, disk: LossyFileSystem) -> None:
    operations = []

    def stop_at_the_new_segment(operation: str) -> None:
        operations.append(operation)
        if operations.count("create") == 2:
            raise OSError(28, "no")

    disk.fault = stop_at_the_new_segment
    with pytest.raises(StorageFull):
        journal.install(SnapshotMark(7, 6, ONE))
    disk.fault = lambda operation: None
    journal = reopen(journal, disk)
    assert (journal.base.log_index, journal.last_index, journal.term_at(7)) == (7, 7, 6)


def test_the_last_index_within_a_term(journal: Journal) -> None:
    cases = {(9, 9): 9, (7, 5): 7, (9, 4): 5, (9, 2): 5, (4, 2): 4, (9, 1): 3, (9, 0): 0, (20, 7): 9}
    assert {case: journal.last_index_within(*case) for case in cases} == cases


def test_a_state_file_that_is_damaged_or_gone_is_not_guessed_at(
    journal: Journal, disk: LossyFileSystem
) -> None:
    journal.close()
    disk.damage("state/raft.state", 30, b"\xff")
    with pytest.raises(CorruptionError, match="checksum"):
        open_journal(disk)
    disk.unlink("state/raft.state")
    with pytest.raises(CorruptionError, match="gone"):
        open_journal(disk)


def test_the_directory_of_another_node_is_refused(journal: Journal, disk: LossyFileSystem) -> None:
    journal.close()
    with pytest.raises(CorruptionError, match="belongs to node 1"):
        Journal(disk, "state", "log", 2, lambda: 5, CONFIG)


def test_it_works_on_the_real_file_system(tmp_path: Path) -> None:
    state, log = str(tmp_path), str(tmp_path / "log")
    for last in (3, 6):
        journal = Journal(RealFileSystem(), state, log, 1, lambda: 11)
        journal.set_term(last, PeerId(1, 11))
        journal.append([entry(index, last) for index in range(last - 2, last + 1)])
        journal.sync()
        journal.close()
    journal = Journal(RealFileSystem(), state, log, 1, lambda: 12)
    assert terms(journal) == [0, 3, 3, 3, 6, 6, 6, None]
    assert (journal.peer.incarnation, journal.term) == (11, 6)
    journal.close()


def test_what_the_snapshot_stands_for_is_in_no_file(journal: Journal, disk: LossyFileSystem) -> None:
    assert journal.end_segment(7) == 10
    journal.compact(5)
    assert journal.drop_compacted() < 7  # one segment has what counts, and more
    journal.append([entry(10, 5)])
    journal.sync()
    journal.compact(9)
    assert journal.drop_compacted() == 10
    again = reopen(journal, disk)
    assert again.base.log_index == 9
    assert [one.log_index for one in again.read(10, 1_000)] == [10]
