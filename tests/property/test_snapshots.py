"""Snapshots on their way: whatever the tree and the pieces, what arrives is what was offered."""

import errno
import tempfile
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.raft.snapshot_transfer import (
    BLOCK_BYTES,
    Manifest,
    OutgoingSnapshot,
    block_mark,
    encode_header,
    list_files,
    take_header,
)
from actors.raft.snapshots import Snapshots
from graphdb.errors import StorageFull
from graphdb.log.file_system import File, RealFileSystem
from graphdb.raft.membership import Member, Members, PeerId
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.wire import Malformed

MARK = SnapshotMark(70, 3, Members((Member(PeerId(1, 17), "127.0.0.1:7002", True),)))
NAMES = st.sampled_from(["a", "b", "000012.sst", "CURRENT", "é \n", "x" * 160])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
SIZES = st.sampled_from([0, 1, 7, 300, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES + 9])
CHUNKS = st.sampled_from([1 << 20, 1 << 20, 1 << 18, 70_000, 5000])


@st.composite
def trees(draw: st.DrawFn) -> dict[str, bytes]:
    """Contents by path; no file is a directory of another."""
    random = Random(draw(st.integers(0, 1000)))
    files: dict[str, bytes] = {}
    for path in draw(st.lists(PATHS, max_size=7)):
        clash = any(path.startswith(f"{other}/") or other.startswith(f"{path}/") for other in files)
        if not clash:
            files[path] = random.randbytes(draw(SIZES))
    return files


def write_tree(directory: Path, files: dict[str, bytes]) -> Path:
    directory.mkdir(parents=True)
    for path, content in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)
    return directory


def read_tree(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def naive_stream(files: dict[str, bytes], manifest: Manifest) -> bytes:
    """The stream as the format describes it."""
    content = b"".join(files[path] for path in sorted(files))
    stream = encode_header(manifest)
    for number, start in enumerate(range(0, len(content), BLOCK_BYTES)):
        block = content[start : start + BLOCK_BYTES]
        stream += block_mark(manifest, number, [block]) + block
    return stream


@settings(max_examples=60, deadline=None)
@given(trees(), st.data())
def test_any_part_of_a_stream_can_be_read(files: dict[str, bytes], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        tree = write_tree(Path(directory, "tree"), files)
        manifest = Manifest(bytes(16), list_files(tree))
        expected = naive_stream(files, manifest)
        snapshot = OutgoingSnapshot(tree, MARK, manifest, 0)
        for _ in range(5):
            offset = data.draw(st.integers(0, len(expected)))
            length = data.draw(CHUNKS)
            found, last = snapshot.read(offset, length, 0)
            assert found == expected[offset : offset + len(found)]
            assert len(found) <= length
            assert found or offset == len(expected)
            assert last == (offset + len(found) == len(expected))


class FullNowAndThen(RealFileSystem):
    """A disk that refuses some writes after it has done a part of them."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.refuses = True

    def create(self, path: str) -> File:
        self._refuse()
        return super().create(path)

    def open(self, path: str) -> File:
        self._refuse()
        return super().open(path)

    def _refuse(self) -> None:
        if self.refuses and self._random.random() < 0.1:
            raise OSError(errno.ENOSPC, "no room")


@settings(max_examples=60, deadline=None)
@given(trees(), st.data())
def test_what_arrives_is_what_was_offered(files: dict[str, bytes], data: st.DataObject) -> None:
    """Chunks have any size, writes are refused halfway and repeated, the receiver is restarted."""
    with tempfile.TemporaryDirectory() as directory:
        source = Snapshots(Path(directory, "source"), lambda: 0)
        source.offer(write_tree(Path(directory, "tree"), files), MARK)
        random = Random(data.draw(st.integers(0, 1000)))
        disk = FullNowAndThen(random)
        target = Snapshots(Path(directory, "target"), lambda: 0, files=disk)
        offset, last, restarts = 0, False, 0
        while not last:
            if offset and restarts < 2 and random.random() < 0.2:
                target.close()
                target = Snapshots(Path(directory, "target"), lambda: 0, files=disk)
                offset, restarts = 0, restarts + 1
            piece = source.read(MARK, offset, data.draw(CHUNKS))
            assert piece is not None
            try:
                target.write(MARK, offset, piece[0])
            except StorageFull:
                continue
            offset, last = offset + len(piece[0]), piece[1]
        disk.refuses = False
        assert read_tree(target.complete(MARK) / "tree") == files
        source.close()
        target.close()


@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_do_more_than_be_refused(data: bytes, with_magic: bool) -> None:
    header = encode_header(Manifest(bytes(16), ()))
    try:
        found = take_header(header[:5] + data if with_magic else data)
    except Malformed:
        return
    assert found is None
