"""Putting a whole new state into a data directory, so that a crash leaves the old one or the new one.

The new state is written beside the old one under a draft's name, synced, and renamed to `incoming`: that one
rename decides. What follows only moves it into place, and is finished at the next start if cut short.

    incoming.draft/   not decided; removed by the next draft
    incoming/         decided; the service does not start before its parts are in place
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphdb.log.file_system import sync_path

__all__ = ["KEPT_BESIDE", "STORE_PURGED", "adopt", "incoming_state", "sync_tree"]

_DRAFT = "incoming.draft"
_INCOMING = "incoming"
STORE_PURGED = "store-purged"  # see `store_directory`
# the files of `store_directory.KeptBeside`
KEPT_BESIDE = ("requests", "alerts", "saved-queries", "namespaces", "named-states", "purges")
_PARTS = ("store", "search", "log", "history", *KEPT_BESIDE, STORE_PURGED, "applied")


@contextmanager
def incoming_state(data_dir: Path) -> Iterator[Path]:
    """A directory to be made and filled; its parts take the place of data_dir's when the block ends well.

    A part that it lacks stays as it is in data_dir. Nobody else uses data_dir meanwhile. After an error
    data_dir is as it was, unless moving the parts failed: then that is to be finished, by `adopt`.
    """
    adopt(data_dir)
    draft = data_dir / _DRAFT
    shutil.rmtree(draft, ignore_errors=True)
    try:
        yield draft
        sync_tree(draft)
        draft.rename(data_dir / _INCOMING)
    finally:
        _remove_draft(draft)
    sync_path(data_dir)
    adopt(data_dir)


def adopt(data_dir: Path) -> None:
    """Finish moving an incoming state into place, if there is one. Nobody else uses data_dir meanwhile."""
    incoming = data_dir / _INCOMING
    if not incoming.exists():
        return
    for part in _PARTS:
        # A part that is not in `incoming` any more is in place already.
        if (incoming / part).exists():
            _remove(data_dir / part)
            (incoming / part).rename(data_dir / part)
    sync_path(data_dir)
    shutil.rmtree(incoming)
    sync_path(data_dir)


def _remove_draft(draft: Path) -> None:
    """After an error a store in it may be open still, whose threads make files while others are deleted."""
    for _ in range(10):
        shutil.rmtree(draft, ignore_errors=True)
        if not draft.exists():
            return


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync_tree(directory: Path) -> None:
    """Return once every file below the directory, and every name, is on disk."""
    for folder, _, names in os.walk(directory):
        for name in names:
            sync_path(Path(folder, name))
        sync_path(folder)
