"""What log entries do to a dataset: the one path from an entry to its effect, for recovery and for catching
up.

Replay is idempotent. The state that it begins with may hold the effects of any first few of the entries
already; so entries are never netted against each other: of all that they say about a quad or a graph, the
last word counts.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from pyoxigraph import Quad

from graphdb.errors import CorruptionError
from graphdb.log.codec import decode_changes, decode_close
from graphdb.log.file_system import storage_error
from graphdb.model import ChangeSet, EntryKind, LogEntry, NamedGraph

__all__ = ["Replayer", "last_words"]

_LENGTH_BYTES = 4
_MERGED_QUADS_MAX = 20_000  # applied at once while replaying many entries


@dataclass(slots=True)
class _OpenParts:
    """The PART payloads of one request so far, in a nameless file: length (4), payload, and so on."""

    request_id: bytes
    first_index: int
    count: int
    spool: IO[bytes]


class Replayer:
    """Feeds entries, in order, to a store. After a call that raised, feed the same entry again.

    applied_index is the last entry whose effect is in the store. PART entries wait in a temporary file until
    their CLOSE; those of a request that another request's PART follows will never be closed, and are
    forgotten.
    """

    def __init__(
        self,
        apply: Callable[[Iterable[ChangeSet]], None],
        applied_index: int,
        spool_directory: str | None = None,
    ) -> None:
        """apply makes the parts of one change visible at once, or raises and leaves nothing of them."""
        self._apply = apply
        self._spool_directory = spool_directory
        self._parts: _OpenParts | None = None
        self.applied_index = applied_index

    @property
    def resume_index(self) -> int:
        """The last index that need not be replayed for a store that holds what this one does."""
        return self.applied_index if self._parts is None else self._parts.first_index - 1

    def replay(self, entries: Iterable[LogEntry]) -> None:
        """Apply many entries, several at once. Raises CorruptionError, and what apply raises."""
        merged: list[ChangeSet] = []
        quads = 0
        last_index = self.applied_index
        for entry in entries:
            if entry.kind is EntryKind.CHANGES:
                merged.append(decode_changes(entry.payload))
                quads += merged[-1].affected_triples
                last_index = entry.log_index
                if quads < _MERGED_QUADS_MAX:
                    continue
            self._apply_merged(merged, last_index)
            merged, quads = [], 0
            if entry.kind is not EntryKind.CHANGES:
                self._take(entry)
                last_index = entry.log_index
        self._apply_merged(merged, last_index)

    def _apply_merged(self, changes: list[ChangeSet], last_index: int) -> None:
        if changes:
            self._apply((last_words(changes),))
            self.note_applied(last_index)

    def note_applied(self, index: int) -> None:
        """Entries up to index have been applied to the store otherwise."""
        assert index >= self.applied_index
        self.applied_index = index

    def forget_open_parts(self) -> None:
        """The writer of the PART entries that are open will not close them."""
        if self._parts is not None:
            self._parts.spool.close()
            self._parts = None

    def _take(self, entry: LogEntry) -> None:
        """One entry that is no CHANGES. Those of the cluster's own may stand between PART entries."""
        if entry.kind is EntryKind.PART:
            self._add_part(entry)
        elif entry.kind is EntryKind.CLOSE:
            self._close_parts(entry)
        self.applied_index = entry.log_index

    def _add_part(self, entry: LogEntry) -> None:
        parts = self._parts
        if parts is None or parts.request_id != entry.request_id:
            self.forget_open_parts()
            spool = tempfile.TemporaryFile(dir=self._spool_directory, buffering=0)  # noqa: SIM115
            parts = self._parts = _OpenParts(entry.request_id, entry.log_index, 0, spool)
        data = len(entry.payload).to_bytes(_LENGTH_BYTES, "little") + entry.payload
        start = parts.spool.tell()
        try:
            while data:
                data = data[parts.spool.write(data) :]
        except OSError as error:
            parts.spool.seek(start)
            raise storage_error(error, "keeping a part of a large change") from error
        parts.count += 1

    def _close_parts(self, entry: LogEntry) -> None:
        parts = self._parts
        expected = decode_close(entry.payload)
        if parts is None or parts.request_id != entry.request_id or parts.count != expected:
            raise CorruptionError(
                f"entry {entry.log_index} closes {expected} parts that are not there", "update log"
            )
        self._apply(_read_parts(parts))
        self.forget_open_parts()


def _read_parts(parts: _OpenParts) -> Iterator[ChangeSet]:
    parts.spool.seek(0)
    for _ in range(parts.count):
        length = int.from_bytes(parts.spool.read(_LENGTH_BYTES), "little")
        yield decode_changes(parts.spool.read(length))


def last_words(changes: Iterable[ChangeSet]) -> ChangeSet:
    """One change that leaves every quad and graph as the last of these changes that names it does."""
    quads: dict[Quad, bool] = {}
    graphs: dict[NamedGraph, bool] = {}
    for change in changes:
        quads.update(dict.fromkeys(change.removed, False))
        quads.update(dict.fromkeys(change.added, True))
        graphs.update(dict.fromkeys(change.dropped_graphs, False))
        graphs.update(dict.fromkeys(change.created_graphs, True))
    return ChangeSet(
        tuple(quad for quad, there in quads.items() if not there),
        tuple(quad for quad, there in quads.items() if there),
        tuple(graph for graph, there in graphs.items() if not there),
        tuple(graph for graph, there in graphs.items() if there),
    )
