"""The one place of the command line that knows actors: a node, reached through its data directory, and the
nodes of a Ray cluster, which parse documents.
"""

from pathlib import Path

from actors.connection import open_connection
from actors.distributed_load import ParsedDocuments, parsing_runtime
from actors.loading.documents import Document, find_objects, is_remote
from actors.offline import back_up_offline, fill_in_bulk, restore
from actors.service_files import ServiceFiles
from graphdb.errors import UnavailableError

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


def back_up(data_dir: Path, target: Path) -> int:
    """Write the state of the service on data_dir, running or stopped, to target; the log index that it is of.

    Raises UnavailableError, CorruptionError.
    """
    try:
        ServiceFiles(data_dir).read_run_file()
    except UnavailableError:
        return back_up_offline(data_dir, target)
    with open_connection(data_dir) as service:
        return service.backup(target)
