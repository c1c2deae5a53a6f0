"""Work on a data directory whose service is stopped: loading in bulk, backing up, restoring.

Each holds the service's lock while it works, so no service starts meanwhile, and each leaves the directory
whole whenever it is interrupted.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pyoxigraph import Quad, Store

from actors.raft.raft_directory import fresh_incarnation, raft_directory
from actors.service_files import ServiceFiles
from actors.shard.incoming import adopt, incoming_state
from actors.shard.search_state import copy_search, has_search
from actors.shard.store_directory import KeptBeside, StoreDirectory, StoreLost
from graphdb.errors import UnavailableError
from graphdb.history.places import HISTORY
from graphdb.log.file_log import FileLog, begin_log
from graphdb.log.file_system import RealFileSystem, storage_error
from graphdb.log.replay import Replayer
from graphdb.model import EntryKind
from graphdb.raft.membership import Members, PeerId
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.state_file import STATE_FILE, DurableState, read_state, write_state
from graphdb.store.engine_errors import storage_failures
from graphdb.store.quad_store import QuadStore

__all__ = ["back_up_offline", "enter_cluster", "fill_in_bulk", "load_in_bulk", "refuse_member", "restore"]

_FORMAT_FILE = "FORMAT"


def load_in_bulk(data_dir: Path, quads: Iterable[Quad]) -> int:
    """`fill_in_bulk` with quads; how many were read."""
    count = 0

    def counted() -> Iterator[Quad]:
        nonlocal count
        for quad in quads:
            count += 1
            yield quad

    fill_in_bulk(data_dir, lambda store: store.bulk_extend(counted()))
    return count


def fill_in_bulk(data_dir: Path, fill: Callable[[Store], None]) -> None:
    """Have fill add to a stopped service's store, all or nothing.

    To everyone who follows the log this is one more entry, but not one that can be read: the log begins anew
    behind it. What fill raises comes out as it is; then nothing has changed.
    Raises UnavailableError, CorruptionError.
    """
    refuse_member(data_dir)
    with _stopped_service(data_dir), _disk_failures("loading"), incoming_state(data_dir) as draft:
        new = StoreDirectory(draft)
        index, kept = _copy_present(data_dir, new.store)
        copy_search(data_dir, draft, index + 1)
        _fill(new.store, fill)
        begin_log(RealFileSystem(), str(new.log), index + 2)
        kept.requests.pass_over(index + 1)
        new.write_beside(kept)
        new.write_applied(index + 1)


def back_up_offline(data_dir: Path, target: Path) -> int:
    """Write a stopped service's state to target, which does not exist yet; the log index that it is of.

    Raises UnavailableError, CorruptionError.
    """
    if not (data_dir / _FORMAT_FILE).exists():
        raise UnavailableError(f"{data_dir} is no data directory")
    with _stopped_service(data_dir), _disk_failures("backing up"):
        present, index, kept = _recovered(data_dir)
        directory = StoreDirectory(data_dir)
        directory.back_up(present, index, kept, target)
        directory.back_up_history(index, target)
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
    refuse_member(data_dir)
    with _stopped_service(data_dir), _disk_failures("restoring"), incoming_state(data_dir) as draft:
        new = StoreDirectory(draft)
        # Copied and not linked: a backup has to stay what it is whatever the service does to its own files.
        shutil.copytree(source.store, new.store)
        shutil.copytree(source.log, new.log, ignore=shutil.ignore_patterns("lock"))
        for part in ("search", HISTORY):
            # Also where the backup has none: what is there belongs to what is replaced.
            (draft / part).mkdir()
            if (backup / part).exists():
                shutil.copytree(backup / part, draft / part, dirs_exist_ok=True)
        index = source.read_applied()
        new.write_beside(source.read_beside(index))
        new.write_applied(index)
    StoreDirectory(data_dir)  # marks a new directory with its format
    return index


def refuse_member(data_dir: Path) -> None:
    """Raise UnavailableError where the directory is that of a member of a cluster: what the others rely on
    must not be changed behind their backs.
    """
    if (raft_directory(data_dir) / STATE_FILE).exists():
        raise UnavailableError(
            f"{data_dir} belongs to a node of a cluster: start it as that, or make a backup of it, which "
            "stands for itself"
        )


def enter_cluster(data_dir: Path, node_id: int) -> None:
    """Where a node has stood alone so far, let its journal in a cluster begin behind what it has.

    The caller holds the service's lock. May be interrupted, and called again. Raises UnavailableError, where
    the directory is another node's too; CorruptionError.
    """
    raft = raft_directory(data_dir)
    state = read_state(RealFileSystem(), str(raft))
    if state is not None and state.peer.node_id != node_id:
        owner = state.peer.node_id
        raise UnavailableError(f"{data_dir} belongs to node {owner} of its cluster, not to node {node_id}")
    if state is not None or not (data_dir / "applied").exists():
        return
    with _disk_failures("entering the cluster"):
        present, index, kept = _recovered(data_dir)
        present.flush()
        directory = StoreDirectory(data_dir)
        directory.write_beside(kept)
        directory.write_applied(index)
        with closing(FileLog(RealFileSystem(), str(directory.log))) as log:
            log.restart_at(index + 1)
        RealFileSystem().make_directory(str(raft))
        begun = DurableState(PeerId(node_id, fresh_incarnation()), base=SnapshotMark(index, 0, Members()))
        write_state(RealFileSystem(), str(raft), begun)


@contextmanager
def _stopped_service(data_dir: Path) -> Iterator[None]:
    files = ServiceFiles(data_dir)
    files.acquire()
    try:
        adopt(data_dir)
        yield
    finally:
        files.release()


def _copy_present(data_dir: Path, place: Path) -> tuple[int, KeptBeside]:
    """Write the present store to a new directory; the log index that it is of, and what is kept beside it.

    The store is closed on return. An open one would tidy up its directory when it closes, and so delete the
    files of whatever has been moved there meanwhile. Where there is none yet, none is made at place either.
    """
    directory = StoreDirectory(data_dir)
    if not (directory.read_applied() or directory.store.exists() or directory.log.exists()):
        return 0, directory.read_beside(0)
    present, index, kept = _recovered(data_dir)
    present.checkpoint(place)
    return index, kept


def _recovered(data_dir: Path) -> tuple[QuadStore, int, KeptBeside]:
    """The store with everything that the log holds, the index of that, and what is kept beside it; the search
    indexes, on disk, have it too.
    """
    directory = StoreDirectory(data_dir)
    applied = directory.read_applied()
    try:
        quads = directory.open_store(applied, union_default_graph=False)
    except StoreLost as error:
        raise UnavailableError(f"{error}; start the service once, to rebuild it from the log") from None
    scratch, kept = str(directory.scratch), directory.read_beside(applied)
    replayer = Replayer(quads.apply_many, applied, scratch, kept.requests, kept.books)
    with closing(FileLog(RealFileSystem(), str(directory.log))) as log:
        while entries := log.read(replayer.applied_index + 1):
            replayer.replay(entries)
        replayer.close()
        _recover_search(data_dir, log)
    return quads, replayer.applied_index, kept


def _recover_search(data_dir: Path, log: FileLog) -> None:
    """Put on disk what the log holds for the search indexes, as its owner would: the log may begin anew."""
    if not has_search(data_dir) and not _has_documents(log):
        return
    # at the top, whoever runs or reaches a service would load NumPy and what builds on it, for this alone
    from actors.search.recovery import SearchDirectory

    directory = SearchDirectory(data_dir)
    view = directory.open()
    if directory.adopt_incoming(view.saved_index):
        view = directory.open()
    if view.applied_index < log.first_index - 1:
        view.pass_over(log.first_index - 1)
    while entries := log.read(view.applied_index + 1):
        view.apply(entries)
        view.check()
    view.flush()


def _has_documents(log: FileLog) -> bool:
    index = log.first_index
    while entries := log.read(index):
        if any(entry.kind is EntryKind.SEARCH for entry in entries):
            return True
        index += len(entries)
    return False


def _fill(place: Path, fill: Callable[[Store], None]) -> None:
    """Add to the store in this directory, and close it."""
    store = Store(place)
    with storage_failures():
        fill(store)
        store.flush()


@contextmanager
def _disk_failures(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing) from error
