"""What of a data directory is the search's, and how it is opened.

search/            the catalogue and the indexes (`graphdb.search.catalog.files`)
search.incoming/   the same as a peer has sent it, complete; takes the place of search/ where it is ahead
search.replaced/   what search/ was before that; removed at once
search.damaged/    a directory that could not be opened, when the log could make it anew
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from actors.search.catalog_view import CatalogView
from actors.shard.incoming import sync_tree
from graphdb.log.file_system import RealFileSystem, storage_error
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.files import CatalogFiles, read_log_index
from graphdb.search.following.settings import check_graph

__all__ = ["SearchDirectory"]


class SearchDirectory:
    """Used by one process, on any thread, one call at a time. Everything raises UnavailableError where the
    disk refuses.
    """

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "search"
        self._data_dir = data_dir
        self._incoming = data_dir / "search.incoming"
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
        with _disk_failures("taking over the search indexes of a snapshot"):
            if not self._incoming.exists():
                return False
            is_ahead = (read_log_index(str(self._incoming)) or 0) > applied_index
            if is_ahead:
                shutil.rmtree(self._replaced, ignore_errors=True)
                with contextlib.suppress(FileNotFoundError):
                    self.path.rename(self._replaced)
                self._incoming.rename(self.path)
                sync_tree(self.path)
                RealFileSystem().sync_directory(str(self._data_dir))
            shutil.rmtree(self._replaced if is_ahead else self._incoming, ignore_errors=True)
            return is_ahead

    def set_aside(self) -> None:
        """Make room for a catalogue begun anew; the damaged one is kept for whoever wants to look at it."""
        with _disk_failures("setting damaged search indexes aside"):
            shutil.rmtree(self._damaged, ignore_errors=True)
            self.path.rename(self._damaged)

    def free_bytes(self) -> int:
        """On the disk of the data."""
        return shutil.disk_usage(self._data_dir).free


@contextlib.contextmanager
def _disk_failures(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing) from error
