"""Work on a data directory whose service is stopped: loading in bulk, backing up, restoring.

Each holds the service's lock while it works, so no service starts meanwhile, and each leaves the directory
whole whenever it is interrupted.
"""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pyoxigraph import Quad, Store

from actors.incoming import adopt, incoming_state
from actors.service_files import ServiceFiles
from actors.store_directory import StoreDirectory, StoreLost
from graphdb.errors import UnavailableError
from graphdb.log.file_log import FileLog, begin_log
from graphdb.log.file_system import RealFileSystem, storage_error
from graphdb.log.replay import Replayer
from graphdb.store.engine_errors import storage_failures
from graphdb.store.quad_store import QuadStore

__all__ = ["back_up_offline", "load_in_bulk", "restore"]

_FORMAT_FILE = "FORMAT"


def load_in_bulk(data_dir: Path, quads: Iterable[Quad]) -> int:
    """Add quads to a stopped service's store, all or none; how many were read.

    To everyone who follows the log this is one more entry, but not one that can be read: the log begins anew
    behind it. What the iterable raises comes out as it is; then nothing has changed.
    Raises UnavailableError, CorruptionError.
    """
    with _stopped_service(data_dir), _disk_failures("loading"), incoming_state(data_dir) as new:
        index = _copy_present(data_dir, new.store)
        count = _extend(new.store, quads)
        begin_log(RealFileSystem(), str(new.log), index + 2)
        new.write_applied(index + 1)
    return count


def back_up_offline(data_dir: Path, target: Path) -> int:
    """Write a stopped service's state to target, which does not exist yet; the log index that it is of.

    Raises UnavailableError, CorruptionError.
    """
    if not (data_dir / _FORMAT_FILE).exists():
        raise UnavailableError(f"{data_dir} is no data directory")
    with _stopped_service(data_dir), _disk_failures("backing up"):
        present, index = _recovered(data_dir)
        StoreDirectory(data_dir).back_up(present, index, target)
    return index


def restore(backup: Path, data_dir: Path, *, replace: bool) -> int:
    """Make a backup the state of data_dir; the log index that it is of.

    replace allows data_dir to hold a state already, which is gone then.
    Raises UnavailableError, CorruptionError.
    """
    if not all((backup / part).exists() for part in (_FORMAT_FILE, "store", "log", "applied")):
        raise UnavailableError(f"{backup} is no backup, or not a whole one")
    source = StoreDirectory(backup)
    if not replace and any((data_dir / part).exists() for part in ("store", "log")):
        raise UnavailableError(f"{data_dir} holds data already; --force replaces it")
    with _stopped_service(data_dir), _disk_failures("restoring"), incoming_state(data_dir) as new:
        # Copied and not linked: a backup has to stay what it is whatever the service does to its own files.
        shutil.copytree(source.store, new.store)
        shutil.copytree(source.log, new.log, ignore=shutil.ignore_patterns("lock"))
        index = source.read_applied()
        new.write_applied(index)
    StoreDirectory(data_dir)  # marks a new directory with its format
    return index


@contextmanager
def _stopped_service(data_dir: Path) -> Iterator[None]:
    files = ServiceFiles(data_dir)
    files.acquire()
    try:
        adopt(data_dir)
        yield
    finally:
        files.release()


def _copy_present(data_dir: Path, place: Path) -> int:
    """Write the present store to a new directory; the log index that it is of.

    The store is closed on return. An open one would tidy up its directory when it closes, and so delete the
    files of whatever has been moved there meanwhile.
    """
    present, index = _recovered(data_dir)
    present.checkpoint(place)
    return index


def _recovered(data_dir: Path) -> tuple[QuadStore, int]:
    """The store with everything that the log holds, and the index of that."""
    directory = StoreDirectory(data_dir)
    try:
        quads = directory.open_store(directory.read_applied(), union_default_graph=False)
    except StoreLost as error:
        raise UnavailableError(f"{error}; start the service once, to rebuild it from the log") from None
    replayer = Replayer(quads.apply_many, directory.read_applied(), str(directory.scratch))
    with closing(FileLog(RealFileSystem(), str(directory.log))) as log:
        while entries := log.read(replayer.applied_index + 1):
            replayer.replay(entries)
        replayer.forget_open_parts()
    return quads, replayer.applied_index


def _extend(place: Path, quads: Iterable[Quad]) -> int:
    """Add quads to the store in this directory with the bulk loader, and close it."""
    count = 0

    def counted() -> Iterator[Quad]:
        nonlocal count
        for quad in quads:
            count += 1
            yield quad

    store = Store(place)
    with storage_failures():
        store.bulk_extend(counted())
        store.flush()
    return count


@contextmanager
def _disk_failures(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing) from error
