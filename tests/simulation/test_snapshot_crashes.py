"""A snapshot arrives on a node that stops at any step: it is there whole afterwards, or not at all."""

from pathlib import Path
from random import Random

import pytest

from actors.raft.snapshot_transfer import BLOCK_BYTES
from actors.raft.snapshots import Snapshots
from graphdb.raft.membership import Member, Members, PeerId
from graphdb.raft.messages import SnapshotMark
from tests.simulation.crashing_directories import CrashingDirectories
from tests.simulation.lossy_file_system import Crash

MEMBERS = Members((Member(PeerId(3, 99), "127.0.0.1:7002", True),))
OLD, NEW = SnapshotMark(5, 1, MEMBERS), SnapshotMark(9, 2, MEMBERS)
NEVER = 1_000_000


def contents(mark: SnapshotMark) -> dict[str, bytes]:
    random = Random(mark.log_index)
    sizes = {"CURRENT": 0, "store/a/1.sst": BLOCK_BYTES + 5, "store/b/2.sst": 300, "views": 7}
    return {path: random.randbytes(size) for path, size in sizes.items()}


def stream_of(directory: Path, mark: SnapshotMark) -> bytes:
    snapshots = Snapshots(directory / f"source{mark.log_index}", lambda: 0)
    for path, content in contents(mark).items():
        (directory / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / "tree" / path).write_bytes(content)
    snapshots.offer(directory / "tree", mark)
    piece = snapshots.read(mark, 0, 1 << 20)
    snapshots.close()
    assert piece is not None
    assert piece[1]
    return piece[0]


def receive(snapshots: Snapshots, mark: SnapshotMark, stream: bytes) -> None:
    half = len(stream) // 2
    snapshots.write(mark, 0, stream[:half])
    snapshots.write(mark, half, stream[half:])
    snapshots.complete(mark)


def check(snapshots: Snapshots) -> SnapshotMark | None:
    """The mark of what is there; its files are as they were sent."""
    received = snapshots.received()
    if received is None:
        return None
    tree = received.tree
    found = {
        path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()
    }
    assert found == contents(received.mark)
    return received.mark


class Story:
    """A node with an older snapshot, not adopted, receives a newer one and forgets it; crash_at says where it
    ends.
    """

    def __init__(self, directory: Path, streams: dict[SnapshotMark, bytes], crash_at: int) -> None:
        self._directory, self._streams = directory, streams
        self.completed = self.forgotten = False
        quiet = Snapshots(directory, lambda: 0)
        receive(quiet, OLD, streams[OLD])
        quiet.close()
        self.files = CrashingDirectories(crash_at)
        self.crashed = self._ends_early()

    def _ends_early(self) -> bool:
        snapshots = None
        try:
            snapshots = Snapshots(self._directory, lambda: 0, files=self.files)
            receive(snapshots, NEW, self._streams[NEW])
            self.completed = True
            self.forgotten = True
            snapshots.forget_received(NEW.log_index)
        except Crash:
            return True
        finally:
            if snapshots is not None:
                snapshots.close()
        return False

    def check_afterwards(self) -> None:
        reopened = Snapshots(self._directory, lambda: 0)
        mark = check(reopened)
        if not self.completed:
            assert mark in (OLD, NEW)
        elif not self.forgotten:
            assert mark == NEW
        receive(reopened, NEW, self._streams[NEW])
        assert check(reopened) == NEW
        reopened.close()
        allowed = {"trash", "9-2.received"}
        assert {path.name for path in self._directory.iterdir()} == allowed


@pytest.fixture
def streams(tmp_path: Path) -> dict[SnapshotMark, bytes]:
    return {mark: stream_of(tmp_path / "sources", mark) for mark in (OLD, NEW)}


@pytest.mark.parametrize("power_loss", [False, True])
def test_every_step_may_be_the_last(
    tmp_path: Path, streams: dict[SnapshotMark, bytes], power_loss: bool
) -> None:
    crash_at, crashes = 1, 0
    while True:
        for seed in range(3 if power_loss else 1):
            story = Story(tmp_path / f"{crash_at}-{seed}", streams, crash_at)
            if power_loss:
                story.files.lose_power(Random(seed))
            story.check_afterwards()
            crashes += story.crashed
        if not story.crashed:
            break
        crash_at += 1
    assert crashes >= 20


def test_a_machine_that_stops_right_after_completion_has_the_snapshot(
    tmp_path: Path, streams: dict[SnapshotMark, bytes]
) -> None:
    for seed in range(20):
        directory = tmp_path / str(seed)
        files = CrashingDirectories(NEVER)
        snapshots = Snapshots(directory, lambda: 0, files=files)
        receive(snapshots, NEW, streams[NEW])
        files.lose_power(Random(seed))
        snapshots.close()
        reopened = Snapshots(directory, lambda: 0)
        assert check(reopened) == NEW
        reopened.close()
