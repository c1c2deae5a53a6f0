"""Disks that fill up: a mounted one, for whoever may mount, and one that is told what it has."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

__all__ = ["ToldDisk", "fill", "mounted"]


@contextmanager
def mounted(place: Path, megabytes: int, kind: str) -> Iterator[Path]:
    """A file system of its own on a new directory: "tmpfs", or "ext4" in a file. Skips where that is not
    allowed.
    """
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    image = place.with_suffix(".image")
    if kind == "ext4":
        with image.open("wb") as file:
            file.truncate(megabytes << 20)
        made = shutil.which("mkfs.ext4", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if made is None:
            pytest.skip("a full ext4 needs mkfs.ext4")
        subprocess.run([made, "-q", "-m", "0", str(image)], check=True)
        command = ["mount", "-o", "loop", str(image), str(place)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a full disk needs a mount, which this user may not make: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)
        image.unlink(missing_ok=True)


def fill(file: Path, leave_bytes: int = 0) -> None:
    """Take all the room that is left but for that."""
    with file.open("ab", buffering=0) as sink:
        missing = shutil.disk_usage(file.parent).free - leave_bytes
        if missing > 0:
            with suppress(OSError):
                os.posix_fallocate(sink.fileno(), sink.tell(), missing)
        if not leave_bytes:
            with suppress(OSError):
                while True:
                    sink.write(bytes(1 << 12))


class ToldDisk:
    """What `shutil.disk_usage` says while it is patched: a reserve takes its room as on a real disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, data_dir: Path, total_bytes: int = 1 << 30) -> None:
        self.total_bytes = self.beside_bytes = total_bytes  # beside_bytes: free, were there no reserve
        self._reserve = data_dir / "reserve"
        monkeypatch.setattr("shutil.disk_usage", self._usage)

    def _usage(self, _: object) -> SimpleNamespace:
        held = self._reserve.stat().st_blocks * 512 if self._reserve.exists() else 0
        return SimpleNamespace(total=self.total_bytes, free=max(0, self.beside_bytes - held))
