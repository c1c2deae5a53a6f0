"""Putting a whole new state into a data directory, so that a crash leaves the old one or the new one.

The new state is written beside the old one under a draft's name, synced, and renamed to `incoming`: that one
rename decides. What follows only moves it into place, and is finished at the next start if cut short.

    incoming.draft/   not decided; removed by the next draft
    incoming/         decided; the service does not start before its parts are in place
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from actors.store_directory import StoreDirectory, sync, sync_tree

__all__ = ["adopt", "incoming_state"]

_DRAFT = "incoming.draft"
_INCOMING = "incoming"
_PARTS = ("store", "log", "applied")


@contextmanager
def incoming_state(data_dir: Path) -> Iterator[StoreDirectory]:
    """A fresh data directory to be filled; it takes the place of data_dir's state when the block ends well.

    Whoever calls holds the service's lock on data_dir. After an error data_dir is as it was.
    """
    draft = data_dir / _DRAFT
    shutil.rmtree(draft, ignore_errors=True)
    try:
        yield StoreDirectory(draft)
        sync_tree(draft)
        draft.rename(data_dir / _INCOMING)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    sync(data_dir)
    adopt(data_dir)


def adopt(data_dir: Path) -> None:
    """Finish moving an incoming state into place, if there is one. Whoever calls holds the service's lock."""
    incoming = data_dir / _INCOMING
    if not incoming.exists():
        return
    for part in _PARTS:
        # A part that is not in `incoming` any more is in place already.
        if (incoming / part).exists():
            _remove(data_dir / part)
            (incoming / part).rename(data_dir / part)
    sync(data_dir)
    shutil.rmtree(incoming)
    sync(data_dir)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
