"""A process that makes the store of a state of the past, for `PastStates`.

`python -m actors.history.state_process FD MEMORY_MB` reads one task from the socket of this number, a JSON
object behind its length, and writes its outcome there. It may take long and fill its memory, and is killed
then.
"""

import asyncio
import json
import socket
import struct
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyoxigraph import Store

from actors.bounded_process import read_to_end
from actors.process_bounds import settle
from actors.wire.messages import decode_error, encode_error
from graphdb.history.past_log import PastLog
from graphdb.history.undoing import lead
from graphdb.store.engine_errors import storage_failures

if TYPE_CHECKING:
    from graphdb.history.purging import PurgedUpTo, ScopeKind

__all__ = ["MODULE", "Leading", "Rewriting", "VisiblePart", "outcome_of", "read_outcome"]

MODULE = "actors.history.state_process"
_DONE = b"done"
_LENGTH = struct.Struct("<Q")  # of a task, in bytes
_LOADED_AT_ONCE = 200_000  # quads, of about 1 kB each in memory


@dataclass(frozen=True, slots=True)
class Leading:
    """Lead a store from the state at one log index to that at another."""

    store: str  # a directory, which nobody else has open
    data_dir: str
    from_index: int
    to_index: int
    purges: Sequence[tuple["ScopeKind", str, int]] = ()  # of a `PurgedUpTo`; files may still have them

    def perform(self) -> None:
        """Raises HistoryForgotten, StorageFull, CorruptionError, LogUnavailable."""
        log = PastLog(Path(self.data_dir), self._purges)
        try:
            store = Store(self.store)
            lead(store, log, self.from_index, self.to_index)
            store.flush()
        finally:
            log.close()

    def _purges(self) -> Sequence["PurgedUpTo"]:
        if not self.purges:
            return ()
        from graphdb.history.purging import PurgedUpTo, PurgeScope

        return [PurgedUpTo(PurgeScope(kind, iri), log_index) for kind, iri, log_index in self.purges]


@dataclass(frozen=True, slots=True)
class VisiblePart:
    """Make a store of what a visibility shows of a past state, and of the present one."""

    store: str  # a directory to be made
    past: str  # the directory of the past state
    present: str  # that of a copy of the present one
    visibility: str  # in JSON

    def perform(self) -> None:
        """Raises StorageFull, CorruptionError."""
        # at the top, who leads one back would load the parser of SPARQL and more
        from actors.history.visible_past import build_visible_past

        build_visible_past(self.visibility, Path(self.past), Path(self.present), Path(self.store))


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Write a store anew: its files have nothing of what is not in it any more."""

    store: str  # a directory to be made
    source: str  # that of a copy of the store

    def perform(self) -> None:
        """Raises StorageFull, CorruptionError."""
        with storage_failures():
            source, store = Store.read_only(self.source), Store(self.store)
            quads = source.quads_for_pattern(None, None, None, None)
            while some := list(islice(quads, _LOADED_AT_ONCE)):
                store.bulk_extend(some)
            for name in source.named_graphs():
                store.add_graph(name)
            store.flush()


_Task: TypeAlias = Leading | VisiblePart | Rewriting
_TASKS: dict[str, type[_Task]] = {task.__name__: task for task in (Leading, VisiblePart, Rewriting)}


async def outcome_of(task: _Task, connection: socket.socket) -> bytes:
    """What a process makes of a task, over a socket that does not block here: see `read_outcome`."""
    data = json.dumps({"task": type(task).__name__, **asdict(task)}).encode()
    try:
        await asyncio.get_running_loop().sock_sendall(connection, _LENGTH.pack(len(data)) + data)
        return await read_to_end(connection)
    except ConnectionError:  # it has ended without reading its task
        return b""


def read_outcome(data: bytes) -> None:
    """Raises the error that the process has met; ValueError for what it has not written whole."""
    if data != _DONE:
        raise decode_error(data)


def _outcome(task: _Task) -> bytes:
    try:
        task.perform()
    except Exception as error:  # noqa: BLE001 whoever asked gets it
        return encode_error(error)
    return _DONE


def _main() -> None:
    fd, memory_mb = map(int, sys.argv[1:])
    settle(memory_mb)
    with socket.socket(fileno=fd) as connection:
        with connection.makefile("rb") as source:
            (length,) = _LENGTH.unpack(source.read(_LENGTH.size))
            task = json.loads(source.read(length))
        connection.sendall(_outcome(_TASKS[task.pop("task")](**task)))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)  # whoever asked ends this process


if __name__ == "__main__":
    _main()
