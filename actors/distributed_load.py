"""Documents parsed by all nodes of a Ray cluster, for one load into a service: its driver.

Each piece is a task. Only as many tasks are under way as keep all cores busy, which bounds the memory.
"""

import os
import secrets
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from actors.loading.documents import Document
from actors.loading.parsing import Parsed, Piece, cut, parse_piece
from actors.ray_environment import client_environment
from graphdb.errors import GraphDBError, InvalidParameter, RequestError, UnavailableError
from graphdb.public_text import fault_text

__all__ = ["ParsedDocuments", "parsing_runtime"]

_CONNECT_S = 5.0
_SALT_BYTES = 16
_TASKS_A_CORE = 2  # one runs, one waits to be taken
_AHEAD = 2  # results of a task that wait to be taken
_RETRIES = 3  # of a task whose worker is lost
_OBJECT_STORE_BYTES = 256 << 20  # of a runtime of its own, for each core


@contextmanager
def parsing_runtime(address: str | None) -> Iterator[None]:
    """Connect this process to the Ray cluster at an address, else start a runtime of its own on this
    machine's cores. Ray must not be imported yet. Raises UnavailableError.
    """
    with tempfile.TemporaryDirectory(prefix="graphdb-ray-", ignore_cleanup_errors=True) as directory:
        if address is None:
            token = Path(directory) / "token"
            token.write_text(secrets.token_hex(32))
            os.environ |= client_environment(token)
        import ray

        from actors import cluster

        try:
            if address is None:
                cores = len(os.sched_getaffinity(0))
                cluster.start_alone(directory, cores, cores * _OBJECT_STORE_BYTES)
            else:
                _check_reachable(address)
                cluster.connect(address, "graphdb-load", cluster.chosen_temp_dir())
        except Exception as error:
            where = "on this machine" if address is None else f"to be reached at {address}"
            raise UnavailableError(f"there is no Ray {where}: {fault_text(error)}") from error
        try:
            yield
        finally:
            cluster.bounded(ray.shutdown, timeout_s=10)


def _check_reachable(address: str) -> None:
    """Ray itself tries for minutes. Raises OSError."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():  # else it is a word such as `auto`
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()


class ParsedDocuments:
    """Documents that are parsed while they are iterated over, within `parsing_runtime`."""

    def __init__(self, documents: Sequence[Document], graph: str | None, base_iri: str | None) -> None:
        """graph: where all triples go; base_iri is that of documents without one. Raises GraphDBError."""
        self._graph, self._base_iri = graph, base_iri
        self._measured: list[tuple[Document, int, bool]] = []
        for document in documents:
            with _told_of(document):
                self._measured.append((document, *document.measure()))

    @property
    def size_bytes(self) -> int:
        """Of all documents, as they are read."""
        return sum(size for _, size, _ in self._measured)

    def lines(self, beat_s: float) -> Iterator[Parsed | None]:
        """Results in the order in which they come. None: there was none for so long. A blank node has one
        label in all results of its document, which no other node has.

        Raises what is wrong with a document, with its address; then nothing more comes. Raises GraphDBError.
        """
        import ray

        from actors.cluster import core_count, streaming_task

        task = streaming_task(parse_piece, _AHEAD, _RETRIES)
        waiting, running = self._pieces(), dict[Any, Piece]()
        while True:
            room = max(0, _TASKS_A_CORE * core_count() - len(running))  # more, once nodes were added
            running |= {task.remote(piece): piece for piece in islice(waiting, room)}
            if not running:
                return
            ready: list[Any] = ray.wait([*running], num_returns=1, timeout=beat_s)[0]
            if not ready:
                yield None
            for generator in ready:
                try:
                    with _told_of(running[generator].document):
                        parsed: Parsed = ray.get(next(generator))
                except StopIteration:
                    del running[generator]
                else:
                    yield parsed

    def _pieces(self) -> Iterator[Piece]:
        for document, size_bytes, is_compressed in self._measured:
            salt = secrets.token_bytes(_SALT_BYTES)
            whole = Piece(document, 0, None, salt, self._graph, self._base_iri)
            yield from cut(whole, size_bytes, is_compressed)


@contextmanager
def _told_of(document: Document) -> Iterator[None]:
    """Raise an error, of a task too, as one of ours with the document's address."""
    from ray.exceptions import RayError, RayTaskError

    try:
        yield
    except RayTaskError as error:
        raise _at(document, error.cause) from None
    except RayError as error:
        reason = str(error).strip().partition("\n")[0]
        raise UnavailableError(f"{document}: Ray has lost a worker of it too often: {reason}") from error
    except (GraphDBError, OSError) as error:
        raise _at(document, error) from None


def _at(document: Document, error: Exception) -> GraphDBError:
    if isinstance(error, RequestError):
        return InvalidParameter(str(document), str(error))
    if isinstance(error, UnavailableError):
        return UnavailableError(f"{document}: {error}")
    if isinstance(error, OSError):
        return UnavailableError(f"{document}: {error.strerror or error} (every Ray node must see it)")
    return UnavailableError(f"{document}: a Ray node cannot parse it, is graphdb installed there? {error}")
