"""What log entries do to a dataset, and to the books beside it: the one path from an entry to its effect,
for recovery and for catching up.

Replay is idempotent. The state that it begins with may hold the effects of any first few of the entries
already; so entries are never netted against each other: of all that they say about a quad or a graph, the
last word counts.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Protocol

from pyoxigraph import Quad

from graphdb.errors import CorruptionError
from graphdb.log.file_system import storage_error
from graphdb.log.payloads import (
    SECTIONS_BYTES,
    change_sections,
    decode_changes,
    decode_cleared,
    decode_close,
    decode_lines,
    graphs_named,
    only_adds,
    quad_sections,
    told_affected,
    told_lines,
)
from graphdb.log.recent_requests import RecentRequests
from graphdb.model import ChangeSet, EntryKind, GraphName, LogEntry, NamedGraph
from graphdb.rdf.quad_lines import MANY_QUADS, AddedLines, ClearedLines

__all__ = ["Book", "Replayer"]

_LENGTH_BYTES = 4
_MERGED_QUADS_MAX = 20_000  # applied at once while replaying many entries


class Book(Protocol):
    """A small state beside the quads that entries of one kind drive."""

    def apply(self, log_index: int, payload: bytes) -> None:
        """Take the entry at log_index, once however often it is replayed. Raises CorruptionError."""


@dataclass(slots=True)
class _OpenParts:
    """PART payloads of one request so far, in a nameless file: length (4), payload, and so on."""

    request_id: bytes
    spool: IO[bytes]
    last_index: int = 0  # of the last one, in the log
    starts: list[int] = field(default_factory=list)  # where each begins in the spool


class _Merged:
    """CHANGES that are applied together, and other writers' entries after the first of them.

    Lines that follow each other and say the same are parsed together: a call of the parser for each of many
    small entries costs more than their quads.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[bytes, int, int]] = []  # id, log index, affected triples
        self.quads = 0
        self.last_index = 0
        self._runs: list[tuple[bool, list[bytes]]] = []  # whether these lines are of quads that are there
        self._graphs: dict[NamedGraph, bool] = {}

    def takes(self, entry: LogEntry) -> bool:
        """Whether it can be one of these."""
        return entry.kind is EntryKind.CHANGES or bool(self.requests and not entry.kind.concerns_quads)

    def add(self, entry: LogEntry) -> None:
        """Take the next entry. Raises CorruptionError."""
        self.last_index = entry.log_index
        if entry.kind is not EntryKind.CHANGES:
            return
        payload = entry.payload
        removed, added, dropped, created = change_sections(payload)
        self._note(False, removed)
        self._note(True, added)
        if dropped or created:
            gone, new = graphs_named(payload)
            self._graphs |= dict.fromkeys(gone, False) | dict.fromkeys(new, True)
        self.requests.append((entry.request_id, entry.log_index, told_lines(payload)))
        self.quads += removed.count(b"\n") + added.count(b"\n")

    def _note(self, there: bool, lines: bytes) -> None:
        if not lines:
            return
        if self._runs and self._runs[-1][0] is there:
            self._runs[-1][1].append(lines)
        else:
            self._runs.append((there, [lines]))

    def change(self) -> ChangeSet:
        """One change that leaves every quad and graph as the last of these that names it does.

        Raises CorruptionError.
        """
        quads: dict[Quad, bool] = {}
        for there, lines in self._runs:
            quads.update(dict.fromkeys(decode_lines(b"".join(lines)), there))
        return ChangeSet(
            tuple(quad for quad, there in quads.items() if not there),
            tuple(quad for quad, there in quads.items() if there),
            tuple(graph for graph, there in self._graphs.items() if not there),
            tuple(graph for graph, there in self._graphs.items() if there),
        )


class Replayer:
    """Feeds entries, in order, to a store. After a call that raised, feed the same entry again.

    applied_index is the last entry whose effect is in the store; requests remembers whose entries they were.
    PART entries wait in a temporary file until their CLOSE. Between them and their CLOSE stand only entries
    that do not concern quads (`EntryKind`), for each is stored only where nothing else has been since the
    last one; so any other entry that follows them means that they will never be closed. A request that began
    again may have left parts in front of its later ones: a CLOSE closes as many as it says, the last ones.
    """

    def __init__(
        self,
        apply: Callable[[Iterable[ChangeSet]], None],
        applied_index: int,
        spool_directory: str | None = None,
        requests: RecentRequests | None = None,
        books: Mapping[EntryKind, Book] = MappingProxyType({}),
        is_settled: Callable[[], bool] = lambda: True,
    ) -> None:
        """apply makes the parts of one change visible at once, or raises and leaves nothing of them. It gets
        `AddedLines` for a change that only adds, and many quads, and `ClearedLines` where that is logged.

        requests accounts for the entries up to applied_index at least; none are known where it is not given.
        books: what entries of a kind of their own are fed to; without its book, such an entry has no effect.
        is_settled, on any thread: False where the store has yet to do what it shows as done already.
        """
        self._apply = apply
        self._spool_directory = spool_directory
        self._parts: _OpenParts | None = None
        self.applied_index = applied_index
        self.quad_entries = 0  # how many entries that concern quads were fed so far
        self._resume_index = applied_index
        self._is_settled = is_settled
        self._unsettled_from: int | None = None  # the resume_index before a change that may not be settled
        self.requests = RecentRequests(applied_index) if requests is None else requests
        self._books = books
        assert self.requests.through >= applied_index

    @property
    def resume_index(self) -> int:
        """The last index that need not be replayed for a store that holds what this one does. Any thread."""
        held = self._unsettled_from
        if held is not None and not self._is_settled():
            return held
        return self._resume_index

    def replay(self, entries: Iterable[LogEntry]) -> None:
        """Apply many entries, several at once. Raises CorruptionError, and what apply raises."""
        merged = _Merged()
        for entry in entries:
            if merged.takes(entry) and merged.quads < _MERGED_QUADS_MAX:
                merged.add(entry)
                continue
            self._apply_merged(merged)
            merged = _Merged()
            if merged.takes(entry):
                merged.add(entry)
            else:
                self._take(entry)
        self._apply_merged(merged)

    def _apply_merged(self, merged: "_Merged") -> None:
        if not merged.requests:
            return
        self._apply((merged.change(),))
        self.requests.remember_all(merged.requests)
        self.requests.pass_over(merged.last_index)
        self.quad_entries += len(merged.requests)
        self._advance(merged.last_index)

    def note_applied(self, first_index: int, requests: Iterable[tuple[bytes, int]]) -> None:
        """The entries from first_index on, all CHANGES, are applied to the store: their request ids and
        affected triples. Those before them that were not fed do not concern quads.
        """
        noted = [(request_id, index, told) for index, (request_id, told) in enumerate(requests, first_index)]
        self.requests.remember_all(noted)
        self.quad_entries += len(noted)
        self._advance(first_index + len(noted) - 1)

    @property
    def has_open_parts(self) -> bool:
        """Whether there are parts that may be closed still."""
        return self._parts is not None

    def forget_open_parts(self, last_part: int) -> None:
        """The writer of the PART entry at last_part, this node's own, will not close it: where no other parts
        are open, let go of them.
        """
        if self._parts is not None and self._parts.last_index == last_part:
            self._forget_parts()
            self._resume_index = self.applied_index

    def close(self) -> None:
        """Let go of the temporary file; resume_index stays. Nothing can be replayed any more."""
        if self._parts is not None:
            self._parts.spool.close()

    def _advance(self, index: int) -> None:
        """The entry at index is done with, and so are open parts."""
        self.applied_index = self._resume_index = index
        self._forget_parts()

    def _forget_parts(self) -> None:
        if self._parts is not None:
            self._parts.spool.close()
            self._parts = None

    def _take(self, entry: LogEntry) -> None:
        """One entry that is no CHANGES."""
        if entry.kind.closes_parts:
            before = self.resume_index
            affected_triples = self._close_parts(entry)
            self._unsettled_from = None if self._is_settled() else before
            self.requests.remember(entry.request_id, entry.log_index, affected_triples)
            self._advance(entry.log_index)
        elif entry.kind.is_of_a_book:
            if (book := self._books.get(entry.kind)) is not None:
                book.apply(entry.log_index, entry.payload)
            self.requests.remember(entry.request_id, entry.log_index, 0)
            self._advance(entry.log_index)
        elif entry.kind is EntryKind.PART:
            self._add_part(entry)
            self._pass_over(entry.log_index)
        elif entry.kind.concerns_quads or self._parts is None:
            self.requests.pass_over(entry.log_index)
            self._advance(entry.log_index)
        else:
            self._pass_over(entry.log_index)
        self.quad_entries += entry.kind.concerns_quads

    def _pass_over(self, index: int) -> None:
        """The entry at index has no effect so far, and ends no open parts."""
        self.requests.pass_over(index)
        self.applied_index = index

    def _add_part(self, entry: LogEntry) -> None:
        parts = self._parts
        if parts is None or parts.request_id != entry.request_id:
            self._forget_parts()
            self._resume_index = entry.log_index - 1
            spool = tempfile.TemporaryFile(dir=self._spool_directory, buffering=0)  # noqa: SIM115
            parts = self._parts = _OpenParts(entry.request_id, spool)
        data = len(entry.payload).to_bytes(_LENGTH_BYTES, "little") + entry.payload
        start = parts.spool.tell()
        try:
            while data:
                data = data[parts.spool.write(data) :]
        except OSError as error:
            parts.spool.seek(start)
            raise storage_error(error, "keeping a part of a large change") from error
        parts.starts.append(start)
        parts.last_index = entry.log_index

    def _close_parts(self, entry: LogEntry) -> int:
        """Apply the parts that a CLOSE closes; how many triples they affect."""
        parts, count = self._parts, decode_close(entry.payload)
        if parts is None or parts.request_id != entry.request_id or len(parts.starts) < count:
            raise CorruptionError(
                f"entry {entry.log_index} closes {count} parts that are not there", "update log"
            )
        first = len(parts.starts) - count
        cleared = decode_cleared(entry.payload)
        with _lines(parts, first, cleared, self._spool_directory) as gathered:
            affected: list[int] = []
            if gathered is None:
                self._apply(_read_parts(parts, first, affected))
            else:
                self._apply(gathered.lines)
                affected.append(gathered.affected_triples)
        return sum(affected)


@dataclass(frozen=True, slots=True)
class _Gathered:
    lines: AddedLines | ClearedLines
    affected_triples: int  # as reported to the writer


@contextmanager
def _lines(
    parts: _OpenParts, first: int, cleared: tuple[GraphName, ...], directory: str | None
) -> Iterator[_Gathered | None]:
    """The parts from the one numbered first on as lines in files; None where they do not only add, or few
    quads, nor clear graphs.
    """
    if not cleared and not all(only_adds(beginning) for beginning in _beginnings(parts, first)):
        yield None
        return
    removed_count = added_count = affected_triples = 0
    dropped: tuple[NamedGraph, ...] = ()
    created: tuple[NamedGraph, ...] = ()
    with (
        tempfile.NamedTemporaryFile(dir=directory) as removed,
        tempfile.NamedTemporaryFile(dir=directory) as added,
    ):
        try:
            for payload in _payloads(parts, first):
                (start, middle), (_, end) = quad_sections(payload)
                removed.write(memoryview(payload)[start:middle])
                added.write(memoryview(payload)[middle:end])
                removed_count += payload.count(b"\n", start, middle)
                added_count += payload.count(b"\n", middle, end)
                affected_triples += told_lines(payload)
                gone, new = graphs_named(payload)
                dropped += gone
                created += new
            removed.flush()
            added.flush()
        except OSError as error:
            raise storage_error(error, "gathering the parts of a large change") from error
        new_lines = AddedLines(Path(added.name), added_count, created)
        if cleared:
            more = new_lines if added_count or created else None
            lines = ClearedLines(Path(removed.name), removed_count, cleared, dropped, more)
            yield _Gathered(lines, affected_triples)
        else:
            yield _Gathered(new_lines, affected_triples) if added_count >= MANY_QUADS else None


def _beginnings(parts: _OpenParts, first: int) -> Iterator[bytes]:
    for start in parts.starts[first:]:
        parts.spool.seek(start + _LENGTH_BYTES)
        yield parts.spool.read(SECTIONS_BYTES)


def _payloads(parts: _OpenParts, first: int) -> Iterator[bytes]:
    if first < len(parts.starts):
        parts.spool.seek(parts.starts[first])
    for _ in parts.starts[first:]:
        length = int.from_bytes(parts.spool.read(_LENGTH_BYTES), "little")
        yield parts.spool.read(length)


def _read_parts(parts: _OpenParts, first: int, affected: list[int]) -> Iterator[ChangeSet]:
    """The parts from the one numbered first on; affected gets how many triples each
    affects, as reported to its writer."""
    for payload in _payloads(parts, first):
        change = decode_changes(payload)
        affected.append(told_affected(payload, change))
        yield change
