"""`EntryLines`: what entries of the log change, gathered until a view takes it."""

import tempfile
from collections.abc import Iterable
from typing import IO

from graphdb.columns.net_lines import NetLines
from graphdb.errors import CorruptionError
from graphdb.log.codec import decode_close
from graphdb.model import EntryKind, LogEntry

__all__ = ["EntryLines"]

_SPOOL_BYTES = 16 << 20  # of open parts that stay in memory


class EntryLines:
    """Feed it entries in order, beginning anywhere that no part of a change was open.

    Like `graphdb.log.replay.Replayer`, without reading the quads: parts wait for their CLOSE, which closes
    the last ones of its request, and any entry on quads that is none of theirs ends them.
    """

    def __init__(self, index: int, resume_index: int | None = None) -> None:
        """index is what the view has; the first entry fed is that behind resume_index, by default index."""
        self.net = NetLines()  # since the last call of taken()
        self.applied_index = index  # net brings a view here
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
            case EntryKind.CHANGES | EntryKind.CLOSE:
                if is_new and entry.kind is EntryKind.CHANGES:
                    self.net.add(entry.payload)
                elif is_new:
                    self._close_parts(entry)
                self._forget_parts()
            case kind if kind.concerns_quads:
                self._forget_parts()
        self.applied_index = max(self.applied_index, entry.log_index)
        if self._parts is None:
            self.resume_index = entry.log_index

    def taken(self) -> None:
        """What was gathered is in the view."""
        self.net = NetLines()

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
        self._parts.seek(sum(self._lengths[:first]))
        for length in self._lengths[first:]:
            self.net.add(self._parts.read(length))

    def _forget_parts(self) -> None:
        if self._parts is not None:
            self._parts.close()
            self._parts = None
