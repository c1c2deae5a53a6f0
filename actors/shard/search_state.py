"""The search indexes of a node, as snapshots and backups of its quads carry them: copies of those on disk.

Another process owns the indexes themselves (`actors.search.recovery`).
"""

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

from actors.shard.incoming import sync_tree
from graphdb.log.file_system import FileSystem

__all__ = ["STARTING", "copy_search", "has_search", "receive_search", "saved_search_index"]

STARTING = "search.starting"  # a file that says that the indexes are about to pass over entries of the log

_SEARCH = "search"
_INCOMING = "search.incoming"
_DRAFT = "search.incoming.draft"
_REPLACED = "search.incoming.replaced"

# Here the search rooms are imported where they are used: at the top, each process that holds quads would load
# NumPy and what builds on it, for what it does once in a while.


def has_search(data_dir: Path) -> bool:
    """Whether there are indexes on disk."""
    return (data_dir / _SEARCH).exists()


def saved_search_index(data_dir: Path) -> int | None:
    """The log index up to which the indexes are on disk; None where there are none.

    Raises CorruptionError, UnavailableError.
    """
    from graphdb.search.catalog.files import read_log_index

    return read_log_index(str(data_dir / _SEARCH))


def copy_search(data_dir: Path, target: Path, log_index: int | None = None) -> int | None:
    """Write the indexes as they are on disk to target, another data directory or a snapshot's tree, durably;
    the log index that they are of. None where there are none: then nothing is written.

    log_index: what the copy shall be of, whatever the indexes are. Raises CorruptionError, UnavailableError.
    """
    if not has_search(data_dir):
        return None
    from graphdb.search.catalog.files import copy_state

    return copy_state(str(data_dir / _SEARCH), str(target / _SEARCH), log_index)


def receive_search(
    tree: Path, data_dir: Path, files: FileSystem, copy_file: Callable[[str, str], object]
) -> None:
    """Have the indexes of a snapshot's tree, where it has any, on disk beside those of data_dir, whose owner
    takes them over where they are ahead.

    A crash leaves all of them or nothing, and so does an error. Raises OSError.
    """
    if not (tree / _SEARCH).exists():
        return
    draft, replaced = data_dir / _DRAFT, data_dir / _REPLACED
    for left in (draft, replaced):
        shutil.rmtree(left, ignore_errors=True)
    shutil.copytree(tree / _SEARCH, draft, copy_function=copy_file)
    sync_tree(draft)
    with contextlib.suppress(FileNotFoundError):  # or its owner has taken it
        (data_dir / _INCOMING).rename(replaced)  # at once: it may look at any moment
    draft.rename(data_dir / _INCOMING)
    files.sync_directory(str(data_dir))
    shutil.rmtree(replaced, ignore_errors=True)
