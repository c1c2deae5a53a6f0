"""What has been written since the last refresh, and the versions of what was deleted lately."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from graphdb.search.fields import ParsedDocument
from graphdb.search.segments.builder import SegmentBuilder
from graphdb.search.segments.versioning import MISSING, Current

__all__ = ["Buffer", "Tombstones"]


class _Entry(NamedTuple):
    current: Current
    doc: int  # in the builder; -1: deleted


class Buffer:
    """Documents on their way into a segment. One thread writes; any thread may call `find`."""

    def __init__(self) -> None:
        self.builder = SegmentBuilder()
        self.dead: list[int] = []  # roots in the builder that were replaced or deleted since
        self._entries: dict[str, _Entry] = {}

    def __len__(self) -> int:
        """Documents written or deleted."""
        return len(self._entries)

    def ids(self) -> list[str]:
        return list(self._entries)

    def find(self, doc_id: str) -> Current | None:
        """None: nothing was done to it, ask the segments."""
        entry = self._entries.get(doc_id)
        return None if entry is None else entry.current

    def put(self, doc_id: str, current: Current, parsed: ParsedDocument) -> None:
        self._bury(doc_id)
        self.builder.add(doc_id, current.source, current.seq_no, current.version, parsed, current.routing)
        self._entries[doc_id] = _Entry(current, self.builder.size - 1)

    def delete(self, doc_id: str, current: Current) -> None:
        self._bury(doc_id)
        self._entries[doc_id] = _Entry(current, -1)

    def _bury(self, doc_id: str) -> None:
        before = self._entries.get(doc_id)
        if before is not None and before.doc >= 0:
            self.dead.append(before.doc)


class Tombstones:
    """The last versions of documents that were deleted, the latest 10,000.

    A document that comes back goes on from there. Elasticsearch forgets by the clock (`index.gc_deletes`);
    that would not be the same on every node.
    """

    COUNT_MAX = 10_000

    def __init__(self, rows: Iterable[tuple[str, int, int]] = ()) -> None:
        self._versions = OrderedDict((doc_id, (version, seq_no)) for doc_id, version, seq_no in rows)

    def rows(self) -> list[tuple[str, int, int]]:
        """`_id`, version, sequence number; the oldest first."""
        return [(doc_id, version, seq_no) for doc_id, (version, seq_no) in self._versions.items()]

    def find(self, doc_id: str) -> Current:
        found = self._versions.get(doc_id)
        return MISSING if found is None else Current(False, *found)

    def add(self, doc_id: str, version: int, seq_no: int) -> None:
        self._versions.pop(doc_id, None)
        self._versions[doc_id] = (version, seq_no)
        if len(self._versions) > self.COUNT_MAX:
            self._versions.popitem(last=False)

    def remove(self, doc_id: str) -> None:
        self._versions.pop(doc_id, None)
