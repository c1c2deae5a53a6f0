"""The one place of the command line that knows actors: a node, reached through its data directory, and the
nodes of a Ray cluster, which parse documents.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from actors.offline import back_up_offline, fill_in_bulk, restore
from actors.service_files import ServiceFiles
from graphdb.errors import UnavailableError

if TYPE_CHECKING:
    from actors.distributed_load import ParsedDocuments, parsing_runtime
    from actors.loading.documents import Document, find_objects, is_remote

__all__ = [
    "Document",
    "ParsedDocuments",
    "back_up",
    "fill_in_bulk",
    "find_objects",
    "is_remote",
    "parsing_runtime",
    "restore",
]

# When first asked for: an offline load, which may be a small one, needs none of them.
_MODULES = {
    "Document": "actors.loading.documents",
    "ParsedDocuments": "actors.distributed_load",
    "find_objects": "actors.loading.documents",
    "is_remote": "actors.loading.documents",
    "parsing_runtime": "actors.distributed_load",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def back_up(data_dir: Path, target: Path) -> int:
    """Write the state of the service on data_dir, running or stopped, to target; the log index that it is of.

    Raises UnavailableError, CorruptionError.
    """
    try:
        ServiceFiles(data_dir).read_run_file()
    except UnavailableError:
        return back_up_offline(data_dir, target)
    from actors.connection import open_connection

    with open_connection(data_dir) as service:
        return service.backup(target)
