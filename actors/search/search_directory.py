"""What of a data directory is the search's, and how it is opened.

search/            the catalogue and the indexes (`graphdb.search.catalog.files`)
search.incoming/   the same as a peer has sent it, complete; takes the place of search/ where it is ahead
search.fetched/    what is arriving because this node has asked for it (`actors.search.late_joiner`)
search.taken/      one of those while it is looked at: another may arrive meanwhile
search.starting    a file: the indexes are about to pass over entries of the log, as other nodes can see
search.replaced/   what search/ was before that, or what was not ahead; removed at once
search.damaged/    a directory that could not be opened, when the log could make it anew
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from actors.search.catalog_view import CatalogView
from actors.shard.incoming import sync_tree
from actors.shard.search_state import STARTING
from graphdb.log.file_system import RealFileSystem, storage_error
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.files import CatalogFiles, read_log_index
from graphdb.search.following.graph_settings import check_graph

__all__ = ["SearchDirectory"]


class SearchDirectory:
    """Used by one process, on any thread, one call at a time. Everything raises UnavailableError where the
    disk refuses.
    """

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "search"
        self._data_dir = data_dir
        self._incoming = data_dir / "search.incoming"
        self._taken = data_dir / "search.taken"
        self.fetched = data_dir / "search.fetched"
        self._starting = data_dir / STARTING
        self._replaced = data_dir / "search.replaced"
        self._damaged = data_dir / "search.damaged"

    def open(self) -> CatalogView:
        """The catalogue as it is on disk. Raises CorruptionError."""
        files = CatalogFiles(RealFileSystem(), str(self.path))
        catalog, log_index = files.load() or (Catalog(), 0)
        catalog.check_graph = check_graph
        return CatalogView(catalog, files, log_index)

    def adopt_incoming(self, applied_index: int) -> bool:
        """Take over what a peer has sent, if it is ahead of applied_index; else it is of no use.

        Nobody has search/ open. A crash leaves it to the next call. Raises CorruptionError.
        """
        adopted = False
        with _disk_failures("taking over the search indexes of a snapshot"):
            while self._take():
                log_index = read_log_index(str(self._taken)) or 0
                if log_index > applied_index:
                    applied_index, adopted = log_index, True
                    self._make_room(self.path)
                    self._taken.rename(self.path)
                    sync_tree(self.path)
                    RealFileSystem().sync_directory(str(self._data_dir))
                    shutil.rmtree(self._replaced, ignore_errors=True)
                else:
                    self._make_room(self._taken)
                    shutil.rmtree(self._replaced, ignore_errors=True)
        return adopted

    def _take(self) -> bool:
        """Have for oneself what has arrived, or what was taken before a crash; whether there is any."""
        if not self._taken.exists():
            with contextlib.suppress(FileNotFoundError):
                self._incoming.rename(self._taken)
        return self._taken.exists()

    def _make_room(self, path: Path) -> None:
        """Have nothing there: a name that is whole or not there at all, whenever this is cut short."""
        if self._replaced.exists():
            shutil.rmtree(self._replaced)
        with contextlib.suppress(FileNotFoundError):
            path.rename(self._replaced)

    def show_starting(self, is_starting: bool) -> None:
        """Whether the indexes are about to pass over entries of the log."""
        with _disk_failures("showing that the search indexes are starting"):
            if is_starting:
                self._starting.touch()
            else:
                self._starting.unlink(missing_ok=True)

    def take(self, catalog: Path) -> None:
        """Have a directory, complete and durable, for the next call of adopt_incoming."""
        with _disk_failures("taking over search indexes"):
            self._make_room(self._taken)
            catalog.rename(self._taken)
            RealFileSystem().sync_directory(str(self._data_dir))
            shutil.rmtree(self._replaced, ignore_errors=True)
            shutil.rmtree(self.fetched, ignore_errors=True)

    def set_aside(self) -> None:
        """Make room for a catalogue begun anew; the damaged one is kept for whoever wants to look at it."""
        with _disk_failures("setting damaged search indexes aside"):
            shutil.rmtree(self._damaged, ignore_errors=True)
            self.path.rename(self._damaged)


@contextlib.contextmanager
def _disk_failures(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing) from error
