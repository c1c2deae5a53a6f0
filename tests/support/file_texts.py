"""`files_with`: which files have a text."""

import mmap
from pathlib import Path

__all__ = ["files_with"]


def files_with(directory: Path, *texts: str) -> list[str]:
    """Files below a directory that have one of these texts as they stand; compressed ones may have more."""
    found = []
    for path in directory.rglob("*"):
        try:
            if path.is_file() and path.stat().st_size:
                with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
                    found += [str(path) for text in texts if data.find(text.encode()) >= 0]
        except FileNotFoundError:  # deleted meanwhile
            continue
    return found
