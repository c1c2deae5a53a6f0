"""Pages of files leave a process's memory, and no byte of it changes."""

import mmap
from pathlib import Path

from actors.freed_memory import unmap_file_pages

_SIZE = 4 << 20


def _resident_kb(name: str) -> int:
    """Of this process's mappings of a file."""
    _, _, rest = Path("/proc/self/smaps").read_text().partition(f"{name}\n")
    (line,) = [line for line in rest.splitlines()[:8] if line.startswith("Rss:")]
    return int(line.split()[1])


def _mapped(path: Path, protection: int) -> mmap.mmap:
    path.write_bytes(b"x" * _SIZE)
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=protection)
    assert mapped.find(b"y") == -1  # every page has been read
    assert _resident_kb(str(path)) == _SIZE >> 10
    return mapped


def test_pages_that_were_only_read_leave_and_come_back(tmp_path: Path) -> None:
    path = tmp_path / "library"
    mapped = _mapped(path, mmap.PROT_READ)
    unmap_file_pages()
    assert _resident_kb(str(path)) == 0
    assert mapped[:] == b"x" * _SIZE


def test_what_the_process_has_written_stays(tmp_path: Path) -> None:
    mapped = _mapped(tmp_path / "data", mmap.PROT_READ | mmap.PROT_WRITE)
    mapped[0] = mapped[-1] = ord("y")
    unmap_file_pages()
    assert mapped[0] == mapped[-1] == ord("y")
