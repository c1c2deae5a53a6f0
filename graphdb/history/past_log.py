"""`PastLog`: what changed the quads, as far back as the history and the log have it."""

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from graphdb.errors import CorruptionError, HistoryForgotten, LogUnavailable
from graphdb.history.archive import (
    COMPRESSED,
    ArchiveName,
    Block,
    CompressedFile,
    EntryFile,
    RawFile,
    entries_in,
    parse_archive_name,
)
from graphdb.history.places import HISTORY, LOG
from graphdb.log.payloads import change_sections, decode_changes, decode_close
from graphdb.log.segment import counting_segments, parse_segment_name, read_segment_head
from graphdb.model import Author, ChangeSet, EntryKind, LogEntry, node_of_text
from graphdb.rdf.quad_lines import parse_lines

if TYPE_CHECKING:
    from graphdb.history.purging import PurgedUpTo

__all__ = ["PastChange", "PastLog", "Scanned", "Span", "archived_names"]

_FILES_MAX = 16  # that are kept open
_ATTEMPTS = 5  # to open a file that compaction has just put elsewhere


class PastChange(NamedTuple):
    """What one entry changed, or a piece of it: a large change comes in several, all with its log_index."""

    log_index: int
    timestamp_ms: int
    author: Author
    change: ChangeSet
    part: int = 0  # its number among those of its entry, in the order of the reading


class Scanned(NamedTuple):
    """Some entries that have been looked through. The changes are made out while they are taken, and have to
    be before the next entries are asked for.
    """

    next_index: int  # where to go on: everything up to there, in the direction of the scan, was looked at
    changes: Iterator[PastChange]


@dataclass(frozen=True, slots=True)
class Span:
    """The entries first_index to last_index stand in this file."""

    first_index: int
    last_index: int
    path: Path
    is_raw: bool


class PastLog:
    """The entries of one data directory, read from its files. For one thread at a time.

    The log may be written and compacted meanwhile; what is asked for must have been applied, and so is on
    disk. The last index asked for counts as the end of the log.
    """

    def __init__(self, data_dir: Path, purges: Callable[[], Sequence["PurgedUpTo"]] = tuple) -> None:
        """purges: what was purged that files may still have; asked with each scan, which leaves it out."""
        self._log, self._history = data_dir / LOG, data_dir / HISTORY
        self._purges = purges
        self._files: OrderedDict[Path, EntryFile] = OrderedDict()
        self._resting: dict[Path, RawFile] = {}  # closed; what is known of them holds for their names
        self._spans: list[Span] = []
        self._begins: dict[Path, int] = {}  # of the oldest file

    def first_index(self, last_index: int) -> int:
        """The oldest entry from which on there is no gap up to last_index.

        Raises LogUnavailable, CorruptionError.
        """
        self._look(last_index)
        return self._kept_from(last_index)

    def _kept_from(self, last_index: int) -> int:
        if not self._spans:
            return last_index + 1
        span = self._spans[0]
        if span.first_index == 1:
            return 1
        if span.path not in self._begins:
            self._begins = {span.path: self._beginning(span.first_index, last_index)}
        return self._begins[span.path]

    def _beginning(self, first_index: int, last_index: int) -> int:
        """Where the entries begin that are kept wholly: a change, some of whose parts are gone, is not."""
        parts = 0
        for entry in self._entries_on(first_index, last_index):
            if entry.kind is EntryKind.PART:
                parts += 1
            elif entry.kind.closes_parts and decode_close(entry.payload) > parts:
                return entry.log_index + 1
            else:
                break
        return first_index

    def needed_from(self, index: int, last_index: int) -> int:
        """The first of the entries by which the state at index is found: the next one; or, where a change
        that comes in parts has begun by then and is not closed, the first of these.

        Raises HistoryForgotten, LogUnavailable, CorruptionError.
        """
        kept_from = self.first_index(last_index)
        if index < kept_from - 1:
            raise HistoryForgotten(str(index), kept_from - 1)
        needed, request_id = index + 1, None
        if index >= kept_from:
            for entry in self._entries_back(index, kept_from):
                if entry.kind is not EntryKind.PART or request_id not in (None, entry.request_id):
                    break
                needed, request_id = entry.log_index, entry.request_id
        return needed

    def disk_from(self, indexes: Sequence[int], last_index: int) -> list[int]:
        """For each index the bytes of the history's files, without the log, that have it or later entries.

        Raises LogUnavailable, CorruptionError.
        """
        self._look(last_index)
        sizes: list[tuple[int, int]] = []
        for span in self._spans:
            if span.path.parent == self._history:
                with contextlib.suppress(FileNotFoundError):  # compressed or deleted meanwhile
                    sizes.append((span.last_index, span.path.stat().st_size))
        return [sum(size for last, size in sizes if last >= index) for index in indexes]

    def spans(self, last_index: int) -> list[Span]:
        """The files and what counts in them, in order and without a gap. One may be gone when it is opened:
        then ask again. Raises LogUnavailable, CorruptionError.
        """
        self._look(last_index)
        return self._spans

    def changes_between(
        self, first_index: int, last_index: int, *, newest_first: bool = False, needle: bytes = b""
    ) -> Iterator[PastChange]:
        """What the entries from first_index to last_index, both included, changed, one entry after the other.

        A piece of a large change is told when its turn comes; the pieces of an entry come last piece first
        where newest_first. needle: only quads and graphs whose text has it, and entries with such. Raises
        HistoryForgotten, LogUnavailable, CorruptionError.
        """
        for scanned in self.scan(first_index, last_index, newest_first=newest_first, needle=needle):
            yield from scanned.changes

    def scan(
        self,
        first_index: int,
        last_index: int,
        *,
        newest_first: bool = False,
        needle: bytes = b"",
        skipped_parts: int = 0,
    ) -> Iterator[Scanned]:
        """`changes_between`, about a megabyte of log at a time. skipped_parts: so many parts of the entry
        that the scan begins with are passed over.
        """
        kept_from = self.first_index(last_index)
        if first_index < kept_from:
            raise HistoryForgotten(str(first_index - 1), kept_from - 1)
        purges = self._purges()
        at, end = (last_index, first_index - 1) if newest_first else (first_index, last_index + 1)
        while at != end:
            span, file, blocks = self._blocks_at(at, last_index)
            bounds = max(first_index, span.first_index), min(last_index, span.last_index)
            for block in reversed(blocks) if newest_first else blocks:
                if block.last_index < first_index or block.first_index > last_index:
                    continue
                if newest_first and block.first_index <= at:
                    following = max(block.first_index, bounds[0]) - 1
                elif not newest_first and block.last_index >= at:
                    following = min(block.last_index, bounds[1]) + 1
                else:
                    continue
                begins = last_index if newest_first else first_index
                yield Scanned(
                    following,
                    self._changes(
                        file,
                        block,
                        bounds,
                        needle,
                        purges,
                        newest_first=newest_first,
                        skipped=(begins, skipped_parts),
                    ),
                )
            at = bounds[0] - 1 if newest_first else bounds[1] + 1

    def index_at(self, time_ms: int, last_index: int) -> int | None:
        """The last entry of those that change quads that is not after a time; None where all that are kept
        are. last_index as for `scan`.
        """
        kept_from, at = self.first_index(last_index), last_index
        while at >= kept_from:
            span, file, blocks = self._blocks_at(at, last_index)
            for block in reversed(blocks):
                if block.first_index <= at and block.first_ms <= time_ms:
                    entries = _all_entries(file.read(block), span.first_index, min(at, span.last_index))
                    found = [e.log_index for e in entries if e.timestamp_ms <= time_ms]
                    if found:
                        return found[-1]
            at = span.first_index - 1
        return None

    def rest(self) -> None:
        """Let go of the files until they are read again, so that deleted ones take no room."""
        named = {span.path for span in self._spans}
        for path, file in self._files.items():
            if isinstance(file, RawFile) and path in named:
                self._resting[path] = file
        self._resting = {path: file for path, file in self._resting.items() if path in named}
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _changes(
        self,
        file: EntryFile,
        block: Block,
        bounds: tuple[int, int],
        needle: bytes,
        purges: Sequence["PurgedUpTo"],
        *,
        newest_first: bool,
        skipped: tuple[int, int],
    ) -> Iterator[PastChange]:
        data = file.read(block)
        if needle and not block.has_close and needle not in data:
            return
        entries = list(entries_in(data, *bounds, lambda start, end: data.find(needle, start, end) >= 0))
        for entry in reversed(entries) if newest_first else entries:
            parts: Iterable[LogEntry] = ()
            if entry.kind is EntryKind.CHANGES:
                parts = (entry,)
            elif entry.kind.closes_parts:
                parts = self._parts(entry, newest_first=newest_first)
            passed_over = skipped[1] if entry.log_index == skipped[0] else 0
            for number, part in enumerate(parts):
                if number >= passed_over:
                    yield from _told(_unpurged(entry, purges), _unpurged(part, purges), number, needle)

    def _parts(self, close: LogEntry, *, newest_first: bool) -> Iterator[LogEntry]:
        """The parts that an entry closes; they stand in front of it, with nothing that concerns quads
        between.
        """
        wanted = decode_close(close.payload)
        found = self._parts_before(close, wanted)
        if newest_first:
            yield from found
            return
        indexes = [part.log_index for part in found]
        for index in reversed(indexes):
            yield next(self._entries_back(index, index))

    def _parts_before(self, close: LogEntry, wanted: int) -> Iterator[LogEntry]:
        if not wanted:
            return
        for entry in self._entries_back(close.log_index - 1, self._spans[0].first_index):
            if entry.kind is EntryKind.PART and entry.request_id == close.request_id:
                yield entry
                wanted -= 1
                if not wanted:
                    return
        raise HistoryForgotten(str(close.log_index - 1), close.log_index)

    def _entries_back(self, index: int, first_index: int) -> Iterator[LogEntry]:
        """Those that change quads, from index down to first_index."""
        while index >= first_index:
            span, file, blocks = self._blocks_at(index, self._spans[-1].last_index)
            for block in reversed(blocks):
                if block.first_index <= index and block.last_index >= first_index:
                    bounds = max(first_index, span.first_index), min(index, span.last_index)
                    yield from reversed(list(_all_entries(file.read(block), *bounds)))
            index = span.first_index - 1

    def _entries_on(self, index: int, last_index: int) -> Iterator[LogEntry]:
        """Those that change quads, from index up to last_index."""
        while index <= last_index:
            span, file, blocks = self._blocks_at(index, last_index)
            for block in blocks:
                yield from _all_entries(file.read(block), index, min(last_index, span.last_index))
            index = span.last_index + 1

    def _blocks_at(self, index: int, last_index: int) -> tuple[Span, EntryFile, list[Block]]:
        """The file that an entry stands in."""
        for _ in range(_ATTEMPTS):
            span = next((each for each in self._spans if each.first_index <= index <= each.last_index), None)
            if span is None:
                raise HistoryForgotten(str(index - 1), self._kept_from(last_index) - 1)
            try:
                file = self._opened(span)
                return span, file, file.blocks(span.last_index)
            except FileNotFoundError:
                self._look(last_index)
            except OSError as error:
                raise LogUnavailable(f"reading the history: {error.strerror}") from error
        raise LogUnavailable("the history is being put elsewhere")

    def _opened(self, span: Span) -> EntryFile:
        file = self._files.get(span.path)
        if file is None:
            known = self._resting.pop(span.path, None)
            if known is not None:
                file = known.same_again()
            else:
                file = RawFile(span.path) if span.is_raw else CompressedFile(span.path)
            self._files[span.path] = file
            if len(self._files) > _FILES_MAX:
                self._files.popitem(last=False)[1].close()
        self._files.move_to_end(span.path)
        return file

    def _look(self, last_index: int) -> None:
        """Find the files, and which entries of which of them count."""
        for _ in range(_ATTEMPTS):
            try:
                logged = _logged_spans(self._log, last_index)
                archived = archived_names(self._history)  # later: it gets what compaction takes from the log
            except FileNotFoundError:
                continue
            except OSError as error:
                raise LogUnavailable(f"reading the history: {error.strerror}") from error
            if not logged:
                raise CorruptionError("the log has no segment", str(self._log))
            self._spans = _joined(archived, logged, self._history)
            return
        raise LogUnavailable("the log is being compacted")


def archived_names(directory: Path) -> list[ArchiveName]:
    """The files of the history in the order of their entries; of two with the same entries the compressed
    one. Raises OSError.
    """
    names: dict[tuple[int, int], ArchiveName] = {}
    with contextlib.suppress(FileNotFoundError):
        for path in directory.iterdir():
            name = parse_archive_name(path.name)
            if name is not None and (name.suffix == COMPRESSED or name[:2] not in names):
                names[name[:2]] = name
    return sorted(names.values())


def _logged_spans(directory: Path, last_index: int) -> list[Span]:
    """What of the log counts, up to last_index. A span may be empty."""
    paths = (path for path in directory.iterdir() if parse_segment_name(path.name) is not None)
    segments = counting_segments(map(read_segment_head, paths))
    ends = [*(newer.first_index - 1 for newer in segments[1:]), last_index]
    return [
        Span(segment.first_index, min(end, last_index), segment.path, True)
        for segment, end in zip(segments, ends, strict=True)
    ]


def _joined(archived: list[ArchiveName], logged: list[Span], directory: Path) -> list[Span]:
    """The spans up to the end of the log that have no gap between them."""
    spans = list(logged)
    for name in reversed(archived):
        first_index = spans[0].first_index
        if name.last_index >= first_index - 1 and name.first_index < first_index:
            path = directory / str(name)
            spans.insert(0, Span(name.first_index, first_index - 1, path, name.suffix != COMPRESSED))
    return [span for span in spans if span.first_index <= span.last_index]


def _all_entries(data: bytes, first_index: int, last_index: int) -> Iterator[LogEntry]:
    return entries_in(data, first_index, last_index, lambda start, end: True)


def _unpurged(entry: LogEntry, purges: Sequence["PurgedUpTo"]) -> LogEntry:
    """An entry without what was purged; see `graphdb.history.purging.purged`."""
    if not purges:
        return entry
    from graphdb.history.purging import purged  # it is needed while files are written anew, and loads more

    return purged(entry, purges)


def _told(entry: LogEntry, part: LogEntry, number: int, needle: bytes) -> Iterator[PastChange]:
    """What a part of an entry changed; nothing where it has nothing of what is looked for."""
    change = _with_needle(part.payload, needle) if needle else decode_changes(part.payload)
    if change or not needle:
        yield PastChange(entry.log_index, entry.timestamp_ms, entry.author, change, number)


def _with_needle(payload: bytes, needle: bytes) -> ChangeSet:
    if needle not in payload:
        return ChangeSet()
    sections = [
        [line for line in section.split(b"\n") if needle in line] for section in change_sections(payload)
    ]
    removed, added = (tuple(parse_lines(b"\n".join((*lines, b"")))) for lines in sections[:2])
    dropped, created = (tuple(node_of_text(line.decode()) for line in lines) for lines in sections[2:])
    return ChangeSet(removed, added, dropped, created)
