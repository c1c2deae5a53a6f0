"""A graph database service: RDF and SPARQL 1.2, one update log under all of it.

From a notebook or a script, beside a running service:

    import graphdb
    service = graphdb.connect()
    service.query("SELECT * WHERE { ?s ?p ?o } LIMIT 10").to_pandas()
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.connection import Connection

__all__ = ["connect"]


def connect(data_dir: str | os.PathLike[str] | None = None) -> "Connection":
    """Connect to the service on a data directory, without HTTP; by the same user on the same machine.

    That user may do everything there: authentication is for those who come over the ports.

    Unless given, the directory is the one that `graphdb serve` would take here: `GRAPHDB_SERVER__DATA_DIR`,
    the configuration file, else `data`. Raises UnavailableError where no service runs on it.
    """
    from actors.connection import open_connection

    if data_dir is None:
        from graphdb.config import load_settings

        data_dir = load_settings().server.data_dir
    return open_connection(data_dir)
