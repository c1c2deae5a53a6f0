"""`LogEnd`: where a log ends, for those who append to it: what was planned, and what needs no plan."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from graphdb.model import EntryKind, LogEntry

__all__ = ["LogEnd"]

_OTHER_KINDS = bytes(kind for kind in EntryKind if not kind.concerns_quads)


@dataclass(frozen=True, slots=True)
class LogEnd:
    """A writer of quads plans upon the entries that it knows. Entries of other writers may follow these, and
    what was planned still holds after them; only an entry that concerns quads makes it old.

    Of the entries after quads_index none concerns quads. It may be larger than it need be: of a log that was
    just opened it is last_index. A writer that is refused for that reads the log to its end, and is
    not refused again.
    """

    last_index: int
    quads_index: int

    @classmethod
    def of_opened(cls, last_index: int) -> Self:
        """Of a log nothing of which has been read."""
        return cls(last_index, last_index)

    def admits(self, expected_index: int) -> bool:
        """Whether what was planned upon the entries before expected_index may be appended; 0: upon none."""
        return expected_index == 0 or self.quads_index < expected_index <= self.last_index + 1

    def extended(self, entries: Iterable[LogEntry]) -> Self:
        """The end after these, whose own log_index does not count."""
        return self.extended_by(bytes([entry.kind for entry in entries]))

    def extended_by(self, kinds: bytes | bytearray) -> Self:
        """The end after entries of these kinds."""
        until_quads = len(kinds.rstrip(_OTHER_KINDS))
        quads_index = self.last_index + until_quads if until_quads else self.quads_index
        return type(self)(self.last_index + len(kinds), quads_index)

    def cut(self, last_index: int) -> Self:
        """The end once the entries after last_index are taken back."""
        return type(self)(last_index, min(self.quads_index, last_index))
