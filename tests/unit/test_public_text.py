"""No error that reaches a client names a file of the server, whatever it was made of."""

import errno
from collections.abc import Callable

import pytest

from actors.wire.messages import decode_error, encode_error
from graphdb.errors import (
    CorruptionError,
    GraphDBError,
    InvalidParameter,
    LogUnavailable,
    StorageFull,
    UnavailableError,
)
from graphdb.log.file_system import storage_error
from graphdb.public_text import fault_text, public_text, without_paths
from graphdb.search.errors import unexpected
from graphdb.store.engine_errors import request_failures, storage_failures
from serve.errors import failure_response
from serve.graph.graphql.operation_socket import _failure
from serve.graph.graphql.result_answers import ResultMedia, failed
from serve.search.frame.errors import failure

PLACE = "/srv/graph data/node-1/store/000016.sst"
# as pyoxigraph (RocksDB), the operating system, DuckDB and Ray write them
FOREIGN = [
    OSError(f"IO error: No space left on device: While appending to file: {PLACE}: No space left on device"),
    OSError(
        "IO error: No such file or directory: While open a file for random read: /srv/data/store/1.sst: x"
    ),
    OSError(errno.ENOSPC, "No space left on device", "/srv/data/scratch/checkpoint-1"),
    PermissionError(errno.EACCES, "Permission denied", "/srv/data/search/x"),
    RuntimeError(
        'IO Error: Could not write file "/srv/data/columns/view.duckdb.wal": No space left on device'
    ),
    ValueError("The actor died: see /tmp/gdb-0-abc/session_latest/logs/worker-1.err for more"),
]


def leaks(text: str) -> bool:
    return any(part in text for part in ("srv", "/tmp", ".sst", "session_latest"))


@pytest.mark.parametrize("error", FOREIGN)
def test_what_others_raise(error: Exception) -> None:
    assert not leaks(fault_text(error))
    assert not leaks(unexpected(error).reason)
    assert not leaks(str(decode_error(encode_error(error))))


@pytest.mark.parametrize("error", [error for error in FOREIGN if isinstance(error, OSError)])
def test_what_the_engine_raises(error: OSError) -> None:
    with pytest.raises(GraphDBError) as asked, request_failures():
        raise error
    assert not leaks(str(asked.value))
    with pytest.raises(GraphDBError) as stored, storage_failures():
        raise error
    assert isinstance(stored.value, CorruptionError) or not leaks(str(stored.value))
    assert not leaks(str(storage_error(OSError(errno.EIO, "Input/output error", "/srv/data/log"), "writing")))


EDGES: list[Callable[[GraphDBError], str]] = [
    lambda error: bytes(failure_response(error).body).decode(),
    lambda error: str(failure(error).value),
    lambda error: str(_failure(error).formatted),
    lambda error: bytes(failed(ResultMedia.JSON, error).body).decode(),
]


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(
    "error",
    [
        UnavailableError("it failed: /srv/data/store/000016.sst: No space left on device"),
        StorageFull("no room (/srv/data/store/000016.sst)"),
        LogUnavailable("cannot open '/srv/data/log/lock'"),
        LogUnavailable("cannot open '/my srv/data/lock'"),
        CorruptionError("not what was written", "/srv/data/store/000016.sst"),
    ],
)
def test_no_edge_tells_a_path(edge: Callable[[GraphDBError], str], error: GraphDBError) -> None:
    assert not leaks(edge(error))


@pytest.mark.parametrize(
    "text",
    [
        "SERVICE <http://host.example/a/b/c>: the host answers 500",
        "https://host.example/a/b and urn:a/b/c and <file:///a/b/c>",
        "and/or either/or 1/2/3",
        "</relative/iri/of/a/graph>",
        "index [a/b/c] at 10.0.0.1:9200",
    ],
)
def test_what_is_no_path_stays(text: str) -> None:
    assert without_paths(text) == text


def test_what_the_caller_has_sent_stays() -> None:
    assert "/a/b/c" in public_text(InvalidParameter("graph", "'/a/b/c' is not an absolute IRI"))
