"""What has changed between two states: the changes of log entries, the last first."""

from collections.abc import Iterator

from graphdb.errors import HistoryForgotten
from graphdb.log.codec import decode_changes, decode_close
from graphdb.log.log_files import LogFiles
from graphdb.model import ChangeSet, EntryKind, LogEntry

__all__ = ["changes_back"]


def changes_back(log: LogFiles, last: int, first: int) -> Iterator[ChangeSet]:
    """What the entries from last back to first have changed. Their inverses, one after the other, lead from
    the state at last to that at first - 1.

    A change of many entries takes effect with the last of them, and comes in parts, of which one is held at
    a time. Raises HistoryForgotten where not all of them are there any more, CorruptionError, LogUnavailable.
    """
    if first < log.first_index:
        raise HistoryForgotten(str(first - 1), log.first_index - 1)
    close: LogEntry | None = None  # of the change whose parts are being read
    parts_left = 0
    for entry in log.entries_back(last, log.first_index):
        if parts_left:
            assert close is not None
            if entry.kind is EntryKind.PART and entry.request_id == close.request_id:
                parts_left -= 1
                yield decode_changes(entry.payload)
        elif entry.log_index < first:
            return
        elif entry.kind is EntryKind.CHANGES:
            yield decode_changes(entry.payload)
        elif entry.kind.closes_parts:
            close, parts_left = entry, decode_close(entry.payload)
    if parts_left:
        assert close is not None
        raise HistoryForgotten(str(first - 1), close.log_index)
