"""Virtuoso, the peer of the analytical queries, where it is installed (Debian: virtuoso-opensource-7).

It runs in a process of its own with its data in a directory of ours, listening on loopback alone, and is
asked over HTTP, as its users ask it.
"""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from string import Template
from urllib.parse import urlencode

from benchmarks.plain_client import PlainClient, PlainClientError
from benchmarks.service import BenchmarkError, free_port, stop

__all__ = ["RunningVirtuoso", "VirtuosoRefused", "is_installed", "running_virtuoso"]

SERVER, CLIENT = "virtuoso-t", "isql-vt"
READY_TIMEOUT_S, LOAD_TIMEOUT_S, STOP_TIMEOUT_S = 120, 1_800, 60
QUERY_TIMEOUT_S = 60
GRAPH = "http://bench.example/all"

_HEADERS = {
    "Accept": "application/sparql-results+json",
    "Content-Type": "application/x-www-form-urlencoded",
}
# Two cores and 1.4 GB of pages of 8 kB; answers are not cut off at a number of rows.
SETTINGS = Template("""\
[Database]
DatabaseFile = $directory/virtuoso.db
ErrorLogFile = $directory/virtuoso.log
LockFile = $directory/virtuoso.lck
TransactionFile = $directory/virtuoso.trx
xa_persistent_file = $directory/virtuoso.pxa
ErrorLogLevel = 7
FileExtend = 200
MaxCheckpointRemap = 2000
TempStorage = TempDatabase
[TempDatabase]
DatabaseFile = $directory/temporary.db
TransactionFile = $directory/temporary.trx
MaxCheckpointRemap = 2000
[Parameters]
ServerPort = 127.0.0.1:$sql_port
DisableUnixSocket = 1
DirsAllowed = $directory
NumberOfBuffers = 170000
MaxDirtyBuffers = 130000
MaxQueryMem = 2G
ThreadsPerQuery = 2
AsyncQueueMaxThreads = 2
[HTTPServer]
ServerPort = 127.0.0.1:$http_port
ServerThreads = 4
[SPARQL]
ResultSetMaxRows = 100000000
MaxQueryExecutionTime = $query_timeout
""")


def is_installed() -> bool:
    return shutil.which(SERVER) is not None and shutil.which(CLIENT) is not None


class VirtuosoRefused(Exception):
    """It fails to answer a query; str() of it is what it says."""


@dataclass(frozen=True, slots=True)
class RunningVirtuoso:
    """A server."""

    client: PlainClient
    directory: Path
    sql_port: int

    def load(self, triples: Path) -> None:
        """Take in the N-Triples of a file in its directory, as the default graph. Raises BenchmarkError."""
        _statement(
            self.sql_port,
            f"ld_dir('{self.directory}', '{triples.name}', '{GRAPH}'); rdf_loader_run(); checkpoint;",
        )

    def answer(self, text: str) -> bytes:
        """The results JSON of a query. Raises VirtuosoRefused."""
        try:
            # a body that is the query is never answered
            form = urlencode({"query": text, "default-graph-uri": GRAPH}).encode()
            status, body = self.client.post("/sparql", form, _HEADERS)
        except PlainClientError as error:
            raise VirtuosoRefused(str(error)) from error
        if status != HTTPStatus.OK:
            raise VirtuosoRefused(body.decode(errors="replace").partition("\n")[0])
        return body


@contextmanager
def running_virtuoso(directory: Path) -> Iterator[RunningVirtuoso]:
    """An empty server with its files in the directory; stopped at the end. Raises BenchmarkError."""
    sql_port, http_port = free_port(), free_port()
    settings = directory / "virtuoso.ini"
    settings.write_text(
        SETTINGS.substitute(
            directory=directory,
            sql_port=sql_port,
            http_port=http_port,
            query_timeout=QUERY_TIMEOUT_S,
        )
    )
    server = subprocess.Popen(
        [SERVER, "+foreground", "+configfile", str(settings)],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(server, sql_port)
        client = PlainClient(f"http://127.0.0.1:{http_port}", QUERY_TIMEOUT_S + 10)
        with closing(client):
            yield RunningVirtuoso(client, directory, sql_port)
    finally:
        stop(server, STOP_TIMEOUT_S)


def _wait(server: subprocess.Popen[bytes], sql_port: int) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise BenchmarkError(f"Virtuoso ended with {server.returncode} while it started")
        try:
            _statement(sql_port, "status();")
        except BenchmarkError:
            time.sleep(0.5)
        else:
            return
    raise BenchmarkError(f"Virtuoso was not ready after {READY_TIMEOUT_S} s")


def _statement(sql_port: int, text: str) -> str:
    command = [CLIENT, f"127.0.0.1:{sql_port}", "dba", "dba", f"exec={text}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LOAD_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"Virtuoso took longer than {LOAD_TIMEOUT_S} s for a statement") from None
    if done.returncode or "Error" in done.stderr + done.stdout:
        raise BenchmarkError(f"Virtuoso: {(done.stderr or done.stdout).strip()[:200]}")
    return done.stdout
