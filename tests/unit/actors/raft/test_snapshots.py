"""A node's snapshots: what is kept to be sent, what is refused, what outlives a restart."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from actors.raft.snapshot_transfer import (
    BLOCK_BYTES,
    Manifest,
    SnapshotFile,
    encode_header,
    list_files,
    take_header,
)
from actors.raft.snapshots import Snapshots
from graphdb.errors import CorruptionError, LogUnavailable, StorageFull
from graphdb.raft.membership import Members
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.wire import Malformed

ID = bytes(range(16))
CHUNK = 1 << 20


def mark_at(index: int) -> SnapshotMark:
    return SnapshotMark(index, 2, Members())


@dataclass
class Node:
    """Snapshots in a directory, with a clock and a log that begins behind base."""

    directory: Path
    now: float = 0
    base: int = 0
    free: int = 1 << 40

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        self.snapshots = Snapshots(
            self.directory, lambda: self.base, clock=lambda: self.now, free_bytes=lambda _: self.free
        )

    def reopen(self) -> None:
        self.snapshots.close()
        self.open()

    def offer(self, index: int, content: bytes = b"content") -> None:
        tree = self.directory.parent / "checkpoint"
        tree.mkdir()
        (tree / "a").write_bytes(content)
        self.snapshots.offer(tree, mark_at(index))
        assert not tree.exists()

    def names(self) -> list[str]:
        """What there is beside the trash."""
        return sorted(path.name for path in self.directory.iterdir() if path.name != "trash")


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[Callable[[str], Node]]:
    nodes = []

    def make(name: str) -> Node:
        nodes.append(Node(tmp_path / name / "snapshots"))
        return nodes[-1]

    yield make
    for node in nodes:
        node.snapshots.close()


@pytest.fixture
def node(make_node: Callable[[str], Node]) -> Node:
    return make_node("node")


@pytest.fixture
def other(make_node: Callable[[str], Node]) -> Node:
    return make_node("other")


def stream_of(node: Node, index: int, offset: int = 0) -> bytes:
    parts, last = [], False
    while not last:
        piece = node.snapshots.read(mark_at(index), offset, CHUNK)
        assert piece is not None
        parts.append(piece[0])
        offset, last = offset + len(piece[0]), piece[1]
    return b"".join(parts)


# to send


def test_a_snapshot_is_wanted_when_none_is_new_enough(node: Node) -> None:
    assert not node.snapshots.wanted
    node.base = 10
    assert node.snapshots.latest() is None
    assert node.snapshots.wanted
    node.offer(9)
    assert not node.snapshots.wanted
    assert node.snapshots.latest() is None
    assert node.snapshots.wanted
    node.offer(10)
    assert node.snapshots.latest() == mark_at(10)
    assert not node.snapshots.wanted


def test_what_nobody_asks_for_any_more_is_not_wanted(node: Node) -> None:
    node.base = 10
    node.snapshots.latest()
    node.now = 2.5
    assert not node.snapshots.wanted


def test_an_older_or_equal_snapshot_is_thrown_away(node: Node) -> None:
    node.offer(10, b"first")
    node.offer(10, b"second")
    node.offer(9)
    assert node.names() == ["10-2"]
    assert stream_of(node, 10).endswith(b"first")


def test_the_latest_replaces_those_that_nobody_reads(node: Node) -> None:
    node.offer(1)
    node.offer(2)
    assert node.snapshots.read(mark_at(2), 0, CHUNK) is not None
    node.offer(3)
    assert node.names() == ["2-2", "3-2"]
    assert node.snapshots.read(mark_at(1), 0, CHUNK) is None
    assert node.snapshots.oldest_in_use == 2
    node.now = 61
    node.offer(4)
    assert node.names() == ["4-2"]


def test_no_more_than_three_are_kept_however_many_are_read(node: Node) -> None:
    for index in range(1, 6):
        node.offer(index)
        node.now += 1
        assert node.snapshots.read(mark_at(index), 0, CHUNK) is not None
    assert node.names() == ["3-2", "4-2", "5-2"]


def test_an_unused_snapshot_is_dropped(node: Node) -> None:
    node.offer(1)
    node.now = 59
    node.snapshots.drop_unused()
    assert node.names() == ["1-2"]
    node.snapshots.read(mark_at(1), 0, 10)
    node.now = 118
    node.snapshots.drop_unused()
    assert node.names() == ["1-2"]
    node.now = 119
    node.snapshots.drop_unused()
    assert node.names() == []
    assert node.snapshots.oldest_in_use is None
    assert node.snapshots.read(mark_at(1), 10, CHUNK) is None


def test_a_peer_that_asks_for_the_same_again_and_again_does_not_keep_a_snapshot(node: Node) -> None:
    node.offer(1)
    for second in range(0, 70, 5):
        node.now = second
        node.snapshots.read(mark_at(1), 5, CHUNK)
    node.snapshots.drop_unused()
    assert node.names() == []


def test_a_tree_that_has_become_shorter_is_gone(node: Node) -> None:
    node.offer(1, bytes(100))
    os.truncate(node.directory / "1-2" / "a", 99)
    assert node.snapshots.read(mark_at(1), 0, CHUNK) is None
    assert node.snapshots.latest() is None
    assert node.snapshots.wanted


def test_no_file_stays_open(node: Node) -> None:
    node.offer(1, bytes(3 * BLOCK_BYTES))
    before = len(os.listdir("/proc/self/fd"))
    stream_of(node, 1)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_link_is_not_offered(node: Node, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match="link is no file"):
        node.snapshots.offer(tree, mark_at(1))
    assert tree.exists()


def test_a_missing_tree_is_refused(node: Node, tmp_path: Path) -> None:
    with pytest.raises(LogUnavailable):
        node.snapshots.offer(tmp_path / "missing", mark_at(1))
    assert node.snapshots.latest() is None


# to receive


def test_a_snapshot_is_received_and_outlives_restarts(node: Node, other: Node) -> None:
    other.offer(7, b"state")
    node.snapshots.write(mark_at(7), 0, stream_of(other, 7))
    assert node.snapshots.received() is None
    path = node.snapshots.complete(mark_at(7))
    node.reopen()
    received = node.snapshots.received()
    assert received is not None
    assert received == (mark_at(7), path / "tree")
    assert (received.tree / "a").read_bytes() == b"state"
    node.snapshots.forget_received(6)
    assert node.snapshots.received() is not None
    node.snapshots.forget_received(7)
    assert node.names() == []
    node.reopen()
    assert node.snapshots.received() is None


def test_a_newer_one_takes_the_place_of_one_that_was_not_adopted(node: Node, other: Node) -> None:
    for index in (7, 8):
        other.offer(index)
        node.snapshots.write(mark_at(index), 0, stream_of(other, index))
        node.snapshots.complete(mark_at(index))
    assert node.names() == ["8-2.received"]


def test_a_restart_clears_up_what_is_not_complete(node: Node, other: Node) -> None:
    other.offer(7, bytes(2 * BLOCK_BYTES))
    node.snapshots.write(mark_at(7), 0, stream_of(other, 7)[: BLOCK_BYTES + 500])
    node.offer(3)
    assert node.names() == ["3-2", "incoming"]
    node.reopen()
    assert node.names() == []
    with pytest.raises(Malformed, match="beginning is not here"):
        node.snapshots.write(mark_at(7), BLOCK_BYTES + 500, b"more")


def test_what_stops_arriving_is_dropped(node: Node, other: Node) -> None:
    other.offer(7, bytes(2 * BLOCK_BYTES))
    stream = stream_of(other, 7)
    node.snapshots.write(mark_at(7), 0, stream[:1000])
    node.now = 59
    node.snapshots.write(mark_at(7), 1000, stream[1000:2000])
    node.now = 118
    node.snapshots.drop_unused()
    node.snapshots.write(mark_at(7), 2000, stream[2000:3000])
    node.now = 178
    node.snapshots.drop_unused()
    assert node.names() == []
    with pytest.raises(Malformed, match="beginning is not here"):
        node.snapshots.write(mark_at(7), 3000, stream[3000:])


def test_blocks_of_another_snapshot_at_the_same_mark_are_refused(node: Node, other: Node) -> None:
    """A leader that has dropped its snapshot makes another, and its peer asks it to go on where it was."""
    other.offer(7, bytes(3 * BLOCK_BYTES))
    first, last = other.snapshots.read(mark_at(7), 0, CHUNK - BLOCK_BYTES) or (b"", True)
    assert not last
    node.snapshots.write(mark_at(7), 0, first)
    other.now = 60
    other.snapshots.drop_unused()
    other.offer(7, bytes(3 * BLOCK_BYTES))
    with pytest.raises(Malformed, match="or of another snapshot"):
        node.snapshots.write(mark_at(7), len(first), stream_of(other, 7, len(first)))


@pytest.mark.parametrize("position", [3, 9, 40, -1, -5, -BLOCK_BYTES])
def test_a_changed_byte_is_found(node: Node, other: Node, position: int) -> None:
    other.offer(7, bytes(2 * BLOCK_BYTES))
    stream = bytearray(stream_of(other, 7))
    stream[position] ^= 1
    with pytest.raises(Malformed):
        node.snapshots.write(mark_at(7), 0, bytes(stream))


def test_missing_and_superfluous_bytes_are_found(node: Node, other: Node) -> None:
    other.offer(7)
    stream = stream_of(other, 7)
    node.snapshots.write(mark_at(7), 0, stream[:-1])
    with pytest.raises(Malformed, match="not all"):
        node.snapshots.complete(mark_at(7))
    with pytest.raises(Malformed, match="no such"):
        node.snapshots.complete(mark_at(7))
    with pytest.raises(Malformed, match="behind the end"):
        node.snapshots.write(mark_at(7), 0, stream + b"!")
    node.snapshots.write(mark_at(7), 0, stream)
    with pytest.raises(Malformed, match="come next"):
        node.snapshots.write(mark_at(7), 5, b"!")
    with pytest.raises(Malformed, match="no such"):
        node.snapshots.complete(mark_at(8))


def test_nothing_is_written_where_the_disk_has_no_room(node: Node, other: Node) -> None:
    other.offer(7, bytes(1000))
    stream = stream_of(other, 7)
    node.free = (64 << 20) + 999
    with pytest.raises(StorageFull):
        node.snapshots.write(mark_at(7), 0, stream)
    assert [*(node.directory / "incoming").iterdir()] == []
    node.free += 1
    node.snapshots.write(mark_at(7), 0, stream)
    node.snapshots.complete(mark_at(7))


def test_a_file_that_was_lost_meanwhile_is_found(node: Node, other: Node) -> None:
    other.offer(7)
    node.snapshots.write(mark_at(7), 0, stream_of(other, 7))
    os.truncate(node.directory / "incoming/tree/a", 2)
    with pytest.raises(Malformed, match="has changed"):
        node.snapshots.complete(mark_at(7))


@pytest.mark.parametrize("damage", [b"", b"GDBMARK\n", b"x" * 100])
def test_a_damaged_mark_is_no_reason_to_guess(node: Node, other: Node, damage: bytes) -> None:
    other.offer(7)
    node.snapshots.write(mark_at(7), 0, stream_of(other, 7))
    (node.snapshots.complete(mark_at(7)) / "mark").write_bytes(damage)
    node.snapshots.close()
    with pytest.raises(CorruptionError, match=r"7-2\.received/mark"):
        node.open()


HOSTILE = {
    "absolute": ["/etc/passwd"],
    "parent": ["../a"],
    "parent inside": ["a/../../b"],
    "dot": ["./a"],
    "empty": [""],
    "empty name": ["a//b"],
    "trailing slash": ["a/"],
    "zero byte": ["a\0b"],
    "twice": ["a", "a"],
    "out of order": ["b", "a"],
    "file and directory": ["a", "a/b"],
    "file and directory apart": ["a", "a-", "a/b/c"],
    "long name": ["x" * 256],
    "long path": ["/".join(["x" * 200] * 3)],
    "deep": ["/".join("x" * 17)],
    "many": [f"{number:05}" for number in range(50_001)],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_header_is_refused_and_writes_nothing(node: Node, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    header = encode_header(Manifest(ID, tuple(SnapshotFile(path, 1) for path in HOSTILE[name])))
    with pytest.raises(Malformed):
        node.snapshots.write(mark_at(7), 0, header + bytes(BLOCK_BYTES))
    assert sorted(tmp_path.rglob("*")) == sorted([*before, node.directory / "incoming"])


def test_sizes_that_no_disk_has_are_refused() -> None:
    files = tuple(SnapshotFile(f"{number:03}", (1 << 64) - 1) for number in range(3))
    with pytest.raises(Malformed, match="too large"):
        take_header(encode_header(Manifest(ID, files)))


def test_a_header_that_would_not_end_is_refused_at_its_beginning() -> None:
    header = encode_header(Manifest(ID, ()))
    with pytest.raises(Malformed, match="of this version"):
        take_header(header[:5] + (1 << 30).to_bytes(4, "little") + header[9:])
    with pytest.raises(Malformed, match="of this version"):
        take_header(b"HTTP/1.1 400 Bad Request")


def test_directories_without_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "b/c").mkdir(parents=True)
    (tmp_path / "b/a").write_bytes(b"12")
    (tmp_path / "empty").mkdir()
    assert list_files(tmp_path) == (SnapshotFile("b/a", 2),)
