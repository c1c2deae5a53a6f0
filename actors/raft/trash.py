"""`Trash`: directories that nobody needs. To unlink some GB takes seconds, so a thread of its own does."""

import logging
import os
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from graphdb.log.file_system import FileSystem, storage_error

__all__ = ["Trash"]

logger = logging.getLogger(__name__)


class Trash:
    """A directory of its own beside what is thrown away. What a crash leaves in it goes at the next start."""

    def __init__(self, files: FileSystem, directory: Path) -> None:
        """Raises OSError."""
        self._files = files
        self._directory = directory
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="trash")
        files.make_directory(str(directory))
        for path in directory.iterdir():
            self._thread.submit(shutil.rmtree, path, ignore_errors=True)

    def take(self, path: Path) -> None:
        """Throw away a directory, which is gone from where it was at once.

        Raises LogUnavailable, StorageFull.
        """
        aside = self._directory / uuid.uuid4().hex
        try:
            self._files.rename(str(path), str(aside))
        except OSError as error:
            raise storage_error(error, f"removing {path.name}") from error
        self._thread.submit(self._remove, path.parent, aside)

    def close(self) -> None:
        """Wait until it is empty."""
        self._thread.shutdown()

    def _remove(self, parent: Path, aside: Path) -> None:
        # The new name first: no crash may bring a directory back that has lost some of its files.
        try:
            for directory in (self._directory, parent):
                self._files.sync_directory(os.fspath(directory))
        except OSError as error:
            logger.warning("%s stays until the next start: %s", aside, error)
            return
        shutil.rmtree(aside, ignore_errors=True)
