"""`EntryLines`: what entries of the log change, gathered as N-Quads lines until a view takes it."""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from graphdb.errors import CorruptionError
from graphdb.log.payloads import change_sections, decode_close
from graphdb.model import EntryKind, LogEntry

__all__ = ["SEPARATOR", "EntryLines", "NetLines"]

_CHANGES = EntryKind.CHANGES
SEPARATOR = "\x01"  # not in any line: literals have it escaped, and no parser accepts an IRI with it
_SEPARATOR = SEPARATOR.encode()
_ONE_TURN, _TURNS = b"%%d%s%%s\n" % _SEPARATOR, b"%%s%s%%s\n" % _SEPARATOR
_SPOOL_BYTES = 16 << 20  # of parts that stay in memory
# Of a larger change so many bytes are made lines at a time: they take two to three times as much memory.
_TOGETHER_BYTES = 32 << 20


class NetLines:
    """Takes payloads of ChangeSets (`graphdb.log.payloads`) in order, each the next after the one before.

    The log writes equal quads as equal lines, and only what really changes is in it; so a line that is added
    and removed again is none, unless turns are kept. Quads are never parsed here.

    A turn is the log index of an addition, or, of a removal, the same below zero.
    """

    def __init__(self, *, keeps_turns: bool = False) -> None:
        self._keeps_turns = keeps_turns
        # line -> its turns, most have one; without keeping them, the last
        self._quads: dict[bytes, int | tuple[int, ...]] = {}
        self._graphs: dict[str, bool] = {}
        self.graph_turns: list[tuple[str, int]] = []  # in their order, where turns are kept

    def add(self, payload: bytes, log_index: int) -> None:
        """log_index: from which on the change counts. Raises CorruptionError."""
        removed, added, dropped, created = change_sections(payload)
        if removed:
            self._note(removed.splitlines(), -log_index)
        if added:
            self._note(added.splitlines(), log_index)
        if dropped or created:
            self._note_graphs(dropped, created, log_index)

    def _note(self, lines: Iterable[bytes], turn: int) -> None:
        noted = self._quads
        for line in lines:
            turns = noted.setdefault(line, turn)
            if turns is not turn:
                self._note_again(line, turns if isinstance(turns, tuple) else (turns,), turn)

    def _note_again(self, line: bytes, turns: tuple[int, ...], turn: int) -> None:
        """The line has these turns already."""
        if (turns[-1] > 0) is (turn > 0):
            return
        if not self._keeps_turns or turns == (-turn,):
            del self._quads[line]
        elif turns[-1] == -turn:  # within one change it is nothing
            self._quads[line] = turns[:-1]
        else:
            self._quads[line] = (*turns, turn)

    def _note_graphs(self, dropped: bytes, created: bytes, log_index: int) -> None:
        # a change that only adds quads to a graph may name it as new; so the last change of a graph counts
        for names, turn in ((dropped, -log_index), (created, log_index)):
            graphs = names.decode().split("\n")[:-1]
            self._graphs.update(dict.fromkeys(graphs, turn > 0))
            if self._keeps_turns:
                self.graph_turns += ((graph, turn) for graph in graphs)

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

    def write(self, path: Path) -> None:
        """Make a file of the lines, each behind its turns, with SEPARATOR in place of its first two spaces:
        the turns (`7,-9`), the subject, the predicate, and the rest.
        """
        with path.open("wb") as file:
            file.writelines(
                _ONE_TURN % (turns, line.replace(b" ", _SEPARATOR, 2))
                if isinstance(turns, int)
                else _TURNS % (",".join(map(str, turns)).encode(), line.replace(b" ", _SEPARATOR, 2))
                for line, turns in self._quads.items()
            )


class _LargeChange:
    """The parts of a closed change that are too large to be held in memory, in a file."""

    def __init__(
        self, parts: IO[bytes], place: int, lengths: list[int], log_index: int, *, keeps_turns: bool
    ) -> None:
        """place and lengths are those of the payloads in the file, which is closed with the change. log_index
        is that of the CLOSE.
        """
        self._parts, self._place, self._lengths = parts, place, lengths
        self._log_index, self._keeps_turns = log_index, keeps_turns

    def lines(self) -> Iterator[NetLines]:
        """Some of the parts at a time, in their order. Raises CorruptionError."""
        net, size = NetLines(keeps_turns=self._keeps_turns), 0
        self._parts.seek(self._place)
        for length in self._lengths:
            if size and size + length > _TOGETHER_BYTES:
                yield net
                net, size = NetLines(keeps_turns=self._keeps_turns), 0
            net.add(self._parts.read(length), self._log_index)
            size += length
        yield net

    def close(self) -> None:
        self._parts.close()


class EntryLines:
    """Feed it entries in order, beginning anywhere that no part of a change was open.

    Like `graphdb.log.replay.Replayer`, without reading the quads: parts wait for their CLOSE, which closes
    the last ones of its request, and any entry on quads that is none of theirs ends them.
    """

    def __init__(self, index: int, resume_index: int | None = None, *, keeps_turns: bool = False) -> None:
        """index is that of the view. The first entry fed is the one after resume_index, by default index.
        keeps_turns: for who wants to know the states in between.
        """
        self._keeps_turns = keeps_turns
        # since the last call of taken()
        self._gathered: list[NetLines | _LargeChange] = [NetLines(keeps_turns=keeps_turns)]
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
        log_index, kind = entry.log_index, entry.kind
        if log_index != self.read_index + 1:
            raise CorruptionError(f"the entry {self.read_index + 1} is missing", "update log")
        self.read_index = log_index
        is_new = log_index > self.applied_index  # others only tell which parts are open
        if kind is _CHANGES:  # looked for first: most are
            if is_new:
                self._net().add(entry.payload, log_index)
            self._forget_parts()
        elif kind is EntryKind.PART:
            self._add_part(entry)
        elif kind.closes_parts:
            if is_new:
                self._close_parts(entry)
            self._forget_parts()
        elif kind.concerns_quads:
            self._forget_parts()
        if is_new:
            self.applied_index = log_index
        if self._parts is None:
            self.resume_index = log_index

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
        self._gathered = [NetLines(keeps_turns=self._keeps_turns)]

    def _net(self) -> NetLines:
        """Where to add what comes next."""
        if isinstance(last := self._gathered[-1], NetLines):
            return last
        self._gathered.append(added := NetLines(keeps_turns=self._keeps_turns))
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
            self._gathered.append(
                _LargeChange(self._parts, place, lengths, entry.log_index, keeps_turns=self._keeps_turns)
            )
            self._parts = None  # the change closes it
            return
        self._parts.seek(place)
        for length in lengths:
            self._net().add(self._parts.read(length), entry.log_index)

    def _forget_parts(self) -> None:
        if self._parts is not None:
            self._parts.close()
            self._parts = None
