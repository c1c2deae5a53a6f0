"""`EntryLines`: what entries of the log change, gathered as N-Quads lines until a view takes it."""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TypeVar

from graphdb.errors import CorruptionError
from graphdb.log.codec import change_sections, decode_close
from graphdb.model import EntryKind, LogEntry

__all__ = ["EntryLines", "NetLines"]

_SPOOL_BYTES = 16 << 20  # of parts that stay in memory
# Of a larger change so many bytes are made lines at a time: they take two to three times as much memory.
_TOGETHER_BYTES = 32 << 20
T = TypeVar("T")


class NetLines:
    """Takes payloads of ChangeSets (`graphdb.log.codec`) in order, each the next after the one before.

    The log writes equal quads as equal lines, and only what really changes is in it; so a line that is added
    and removed again is none. Quads are never parsed here.
    """

    def __init__(self) -> None:
        self._quads: dict[bytes, bool] = {}  # line -> added
        self._graphs: dict[str, bool] = {}

    def add(self, payload: bytes) -> None:
        """Raises CorruptionError."""
        removed, added, dropped, created = change_sections(payload)
        _note(removed.splitlines(), self._quads, is_added=False)
        _note(added.splitlines(), self._quads, is_added=True)
        # a change that only adds quads to a graph may name it as new; so the last change of a graph counts
        self._graphs.update(dict.fromkeys(dropped.decode().split("\n")[:-1], False))
        self._graphs.update(dict.fromkeys(created.decode().split("\n")[:-1], True))

    def __bool__(self) -> bool:
        return bool(self._quads or self._graphs)

    def __len__(self) -> int:
        return len(self._quads)

    @property
    def has_quads(self) -> bool:
        return bool(self._quads)

    @property
    def created_graphs(self) -> list[str]:
        return [graph for graph, is_there in self._graphs.items() if is_there]

    @property
    def dropped_graphs(self) -> list[str]:
        return [graph for graph, is_there in self._graphs.items() if not is_there]

    def write(self, added: Path, removed: Path) -> None:
        """Make the files of what is added and what is removed."""
        for path, wanted in ((added, True), (removed, False)):
            with path.open("wb") as file:
                file.writelines(line + b"\n" for line, is_added in self._quads.items() if is_added is wanted)


class _LargeChange:
    """The parts of a closed change that are too large to be held in memory, in a file."""

    def __init__(self, parts: IO[bytes], place: int, lengths: list[int]) -> None:
        """place and lengths are those of the payloads in the file; it is closed with the change."""
        self._parts, self._place, self._lengths = parts, place, lengths

    def lines(self) -> Iterator[NetLines]:
        """Some of the parts at a time, in their order. Raises CorruptionError."""
        net, size = NetLines(), 0
        self._parts.seek(self._place)
        for length in self._lengths:
            if size and size + length > _TOGETHER_BYTES:
                yield net
                net, size = NetLines(), 0
            net.add(self._parts.read(length))
            size += length
        yield net

    def close(self) -> None:
        self._parts.close()


class EntryLines:
    """Feed it entries in order, beginning anywhere that no part of a change was open.

    Like `graphdb.log.replay.Replayer`, without reading the quads: parts wait for their CLOSE, which closes
    the last ones of its request, and any entry on quads that is none of theirs ends them.
    """

    def __init__(self, index: int, resume_index: int | None = None) -> None:
        """index is that of the view. The first entry fed is the one after resume_index, by default index."""
        # since the last call of taken()
        self._gathered: list[NetLines | _LargeChange] = [NetLines()]
        self.applied_index = index  # lines() bring a view here
        self.resume_index = index if resume_index is None else resume_index
        self.read_index = self.resume_index  # the last entry that was fed
        self._request_id = b""
        self._parts: IO[bytes] | None = None
        self._lengths: list[int] = []

    def feed_all(self, entries: Iterable[LogEntry]) -> None:
        """Raises CorruptionError."""
        for entry in entries:
            self.feed(entry)

    def feed(self, entry: LogEntry) -> None:
        """Raises CorruptionError."""
        if entry.log_index != self.read_index + 1:
            raise CorruptionError(f"the entry {self.read_index + 1} is missing", "update log")
        self.read_index = entry.log_index
        is_new = entry.log_index > self.applied_index  # others only tell which parts are open
        match entry.kind:
            case EntryKind.PART:
                self._add_part(entry)
            case EntryKind.CHANGES | EntryKind.CLOSE | EntryKind.CLOSE_CLEARED:
                if is_new and entry.kind is EntryKind.CHANGES:
                    self._net().add(entry.payload)
                elif is_new:
                    self._close_parts(entry)
                self._forget_parts()
            case kind if kind.concerns_quads:
                self._forget_parts()
        self.applied_index = max(self.applied_index, entry.log_index)
        if self._parts is None:
            self.resume_index = entry.log_index

    def lines(self) -> Iterator[NetLines]:
        """What was gathered, each to be applied behind the one before; the same each time.

        Those of a large change are made one after the other. Raises CorruptionError.
        """
        for gathered in self._gathered:
            if isinstance(gathered, _LargeChange):
                yield from gathered.lines()
            elif gathered:
                yield gathered

    def taken(self) -> None:
        """What was gathered is in the view."""
        for gathered in self._gathered:
            if isinstance(gathered, _LargeChange):
                gathered.close()
        self._gathered = [NetLines()]

    def _net(self) -> NetLines:
        """Where to add what comes next."""
        if isinstance(last := self._gathered[-1], NetLines):
            return last
        self._gathered.append(added := NetLines())
        return added

    def _add_part(self, entry: LogEntry) -> None:
        if self._parts is None or self._request_id != entry.request_id:
            self._forget_parts()
            self._parts = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 closed with its CLOSE
            self._request_id, self._lengths = entry.request_id, []
            self.resume_index = entry.log_index - 1
        self._parts.write(entry.payload)
        self._lengths.append(len(entry.payload))

    def _close_parts(self, entry: LogEntry) -> None:
        count = decode_close(entry.payload)
        if self._parts is None or self._request_id != entry.request_id or len(self._lengths) < count:
            raise CorruptionError(
                f"entry {entry.log_index} closes {count} parts that are not there", "update log"
            )
        first = len(self._lengths) - count
        place, lengths = sum(self._lengths[:first]), self._lengths[first:]
        if sum(lengths) > _TOGETHER_BYTES:
            self._gathered.append(_LargeChange(self._parts, place, lengths))
            self._parts = None  # the change closes it
            return
        self._parts.seek(place)
        for length in lengths:
            self._net().add(self._parts.read(length))

    def _forget_parts(self) -> None:
        if self._parts is not None:
            self._parts.close()
            self._parts = None


def _note(items: Iterable[T], noted: dict[T, bool], *, is_added: bool) -> None:
    for item in items:
        if noted.get(item) is (not is_added):
            del noted[item]
        else:
            noted[item] = is_added
