"""The reserve of a disk: when it is whole, what is taken from it, and what is refused meanwhile."""

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.disk_room import DiskRoom
from graphdb.config.service import Server
from tests.support.small_disk import ToldDisk, fill, mounted

MB = 1 << 20


@pytest.fixture(params=["tmpfs", "ext4"])
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A real file system of 200 MB."""
    with mounted(tmp_path / "disk", 200, request.param) as place:
        yield place


class Clock:
    """Tells the time as files are dated, later by what a test says."""

    def __init__(self) -> None:
        self.later_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.later_s


def free(place: Path) -> int:
    usage = os.statvfs(place)
    return usage.f_bavail * usage.f_frsize


def test_a_reserve_is_kept_given_up_and_made_again(disk: Path) -> None:
    clock = Clock()
    room = DiskRoom(disk, 512 * MB, 16 * MB, clock)
    before = free(disk)
    room.keep_reserve()
    held = before - free(disk)
    assert 15 * MB <= held <= 21 * MB, "a tenth of the disk"
    assert room.admits()
    assert not room.admits(200 * MB)

    fill(disk / "filler")
    assert free(disk) == 0
    assert not room.admits()
    assert room.make_room(4 * MB)
    assert free(disk) >= 8 * MB, "that, and what the log allocates at a time"
    (disk / "written").write_bytes(bytes(4 * MB))
    assert not room.make_room(100 * MB), "there is not so much"
    assert not room.admits(), "giving the reserve up makes no room for what adds"
    room.keep_reserve()
    assert (disk / "reserve").stat().st_blocks == 0, "the disk is full still"

    (disk / "filler").unlink()
    assert room.admits(), "at once"
    room.keep_reserve()
    assert (disk / "reserve").stat().st_blocks == 0, "who has taken from it may be at work"
    clock.later_s = 60
    room.keep_reserve()
    assert (disk / "reserve").stat().st_blocks * 512 >= 15 * MB


def test_every_process_finds_the_same(disk: Path) -> None:
    ours, other = (DiskRoom(disk, 10 * MB, 16 * MB) for _ in range(2))
    ours.keep_reserve()
    fill(disk / "filler", leave_bytes=17 * MB)
    assert ours.admits()
    assert other.admits()
    assert other.make_room(5 * MB)
    assert ours.admits() is other.admits() is True, "what is taken from it is not for inserts"
    (disk / "more").write_bytes(bytes(3 * MB))
    assert ours.admits() is other.admits() is False


@pytest.mark.parametrize(("reserve_mb", "held_mb"), [(0, 0), (3, 3), (2000, 102)])
def test_the_size_of_the_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reserve_mb: int, held_mb: int
) -> None:
    ToldDisk(monkeypatch, tmp_path)
    room = DiskRoom.of(Server(data_dir=tmp_path, disk_reserve_mb=50))
    room.keep_reserve()
    os.utime(tmp_path / "reserve", (0, 0))  # nobody has taken from it lately
    room = DiskRoom.of(Server(data_dir=tmp_path, disk_reserve_mb=reserve_mb))
    room.keep_reserve()
    assert (tmp_path / "reserve").stat().st_size == held_mb * MB


def test_a_disk_that_refuses_has_no_room_and_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, clock = ToldDisk(monkeypatch, tmp_path), Clock()
    room = DiskRoom(tmp_path, 8 * MB, clock=clock)

    def refuse(descriptor: int, offset: int, length: int) -> None:
        os.ftruncate(descriptor, 3 * MB)  # as far as it came
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", refuse)
    room.keep_reserve()
    assert (tmp_path / "reserve").stat().st_size == 0, "half a reserve is none"
    disk.beside_bytes = 0
    clock.later_s = 1
    assert not room.admits()
    assert not room.make_room()

    def fail(_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("shutil.disk_usage", fail)
    assert not room.admits()
    assert not room.make_room()
    room.keep_reserve()


def test_an_ample_disk_is_looked_at_ten_times_a_second_a_nearly_full_one_always(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = ToldDisk(monkeypatch, tmp_path, 10_000 * MB)
    now = 1000.0
    room = DiskRoom(tmp_path, 0, 16 * MB, lambda: now)
    assert room.admits(100 * MB)
    disk.beside_bytes = 200 * MB
    assert room.admits(100 * MB), "that much is not used up so soon"
    assert not room.admits(9_800 * MB), "for so much it is not ample"
    assert room.admits(100 * MB)
    disk.beside_bytes = 100 * MB
    assert not room.admits(100 * MB), "it was nearly full at the last look"
    disk.beside_bytes = 10_000 * MB
    assert room.admits(100 * MB)
    disk.beside_bytes = 0
    now = 1000.1
    assert not room.admits()
    disk.beside_bytes = 10_000 * MB
    assert room.admits()
    disk.beside_bytes, now = 0, 900.0
    assert not room.admits(), "the clock was set back"
