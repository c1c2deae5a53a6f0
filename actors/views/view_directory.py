"""`ViewDirectory`: where views lie on disk, and copies of the state that they are made of."""

import asyncio
import itertools
import os
import shutil
import threading
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pyoxigraph import Store

from actors.shard.shard_writer import ShardWriter
from graphdb.log.file_system import storage_error
from graphdb.store.quad_store import QuadStore

__all__ = ["ViewDirectory", "delete_after", "linked_copy"]

_TABLES = (".sst", ".blob")  # files of the engine that nobody writes again
_ITS_OWN = ("LOCK", "LOG*")  # of a process that has the store open
_ATTEMPTS, _AGAIN_S = 10, 0.1


class ViewDirectory:
    """On the file system of the store. What is in it at the start is of a process before this one."""

    def __init__(self, path: Path) -> None:
        """It is emptied here. Raises StorageFull, LogUnavailable."""
        self.path = path
        self._names = (path / f"view-{number}" for number in itertools.count())
        shutil.rmtree(path, ignore_errors=True)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, "making a directory for views") from error

    def new_path(self) -> Path:
        """Of a directory that does not exist yet."""
        return next(self._names)

    @asynccontextmanager
    async def copied(self, quads: QuadStore, writer: ShardWriter) -> AsyncIterator[tuple[QuadStore, int]]:
        """The state of a store between two writes, to read at leisure, and the index that it is of.

        Raises StorageFull, CorruptionError, LogUnavailable.
        """
        path = self.new_path()

        def copy(index: int) -> int:
            quads.checkpoint(path)
            return index

        index = await writer.in_turn(copy)
        state = QuadStore(await asyncio.to_thread(Store, path))
        delete_after(state, path)
        yield state, index


def linked_copy(source: Path, target: Path) -> None:
    """Copy the files of a store that nobody writes to a new directory, where it may be written: those that
    hold data as hard links. Blocks. Raises StorageFull, LogUnavailable.
    """

    def copy(one: str, other: str) -> None:
        (os.link if one.endswith(_TABLES) else shutil.copyfile)(one, other)

    try:
        shutil.copytree(source, target, copy_function=copy, ignore=shutil.ignore_patterns(*_ITS_OWN))
    except shutil.Error as error:
        raise storage_error(OSError(str(error)), "copying a state of the graph") from error
    except OSError as error:
        raise storage_error(error, "copying a state of the graph") from error


def delete_after(quads: QuadStore, path: Path) -> None:
    """Delete the files of a store when nobody holds it any more."""
    weakref.finalize(quads, _delete, path)


def _delete(path: Path) -> None:
    """On a thread of its own: the last reference may go on an event loop."""
    threading.Thread(target=_delete_now, args=(path,), name="view files").start()


def _delete_now(path: Path) -> None:
    """The engine, which closes just now, may make a file meanwhile; what is left goes at the next start."""
    for _ in range(_ATTEMPTS):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(_AGAIN_S)
