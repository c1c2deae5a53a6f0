"""The history for a backup, which goes on from its last entry with a log of its own."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from graphdb.errors import LogUnavailable
from graphdb.history.archive import COMPRESSED, ArchiveName, RawFile, compress
from graphdb.history.past_log import PastLog, Span
from graphdb.history.places import HISTORY
from graphdb.log.file_system import RealFileSystem, sync_path

__all__ = ["copy_history"]

_ATTEMPTS = 5


def copy_history(data_dir: Path, target: Path, last_index: int, link: Callable[[str, str], None]) -> None:
    """Put all that is kept of the past, up to last_index, into the history of the data directory target.

    What is in the log still is compressed on the way. link gives a file a second name, or copies it. It is on
    disk on return. Raises OSError, LogUnavailable, CorruptionError.
    """
    directory = target / HISTORY
    directory.mkdir(exist_ok=True)
    with closing(PastLog(data_dir)) as past:
        for _ in range(_ATTEMPTS):
            try:
                for span in past.spans(last_index):
                    _copy(span, directory, link)
                break
            except FileNotFoundError:  # compaction has put it elsewhere
                continue
        else:
            raise LogUnavailable("the history is being put elsewhere")
    RealFileSystem().sync_directory(str(directory))


def _copy(span: Span, directory: Path, link: Callable[[str, str], None]) -> None:
    if not span.is_raw:
        place = directory / span.path.name
        if not place.exists():
            link(str(span.path), str(place))
            sync_path(place)
        return
    place = directory / str(ArchiveName(span.first_index, span.last_index, COMPRESSED))
    if not place.exists():
        with closing(RawFile(span.path)) as raw:
            compress(raw, span.last_index, place, lambda: None)
